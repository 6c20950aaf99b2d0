# SPDX-License-Identifier: Apache-2.0
"""Runs the simulations that the page of the papers stands on, as many at a time as there are cores.

The records of a launch lie in a file of their own, named by what they depend on: the sources of the benches, the topology and
the arguments. A launch whose file is there is not run again, also after a commit that leaves these as they are. A launch that
fails is reported at once, costs its own records alone, and makes the exit code 5.
"""

import argparse
import collections
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import time
import types

from baton import files, results, stacks
from baton.paper import fitting, sections, settings
from baton.paper.sections import fastest_methods, lasp2_throughput, maps, megatron, method_volumes, padding
from baton.paper.sources import A100, H100, PAPER_RANKS

SOURCES = pathlib.Path(__file__).resolve().parents[3]
TOPOLOGIES = SOURCES / "topologies"

FAILED_LAUNCHES = 5  # the exit code, as of a bench with failed cases
# A search for the number of blocks takes and frees the same large arrays over and over: the C library keeps them, which
# makes a launch up to a seventh shorter.
KEEPS_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(4 << 30), "MALLOC_MMAP_THRESHOLD_": str(4 << 30)}
COLLECTIVE, OPERATOR, MODEL = "collective_bench", "operator_bench", "model_bench"
# What launches.txt names beside the constants of sections.
NAMED = {"RANKS": ",".join(map(str, PAPER_RANKS)), "MORE_RANKS": "512,1024,2048,4096,8192,16384",
         "LASP": "lasp2,lasp1,lasp2_as_released,lasp1_as_released",
         "SCANS": "all_scan,ring_scan,recursive_doubling,two_shot,hierarchical_scan,hierarchical_scan_chain,all_gather_scan"}
LAUNCHES = pathlib.Path(__file__).with_name("launches.txt")

# `seconds` orders the launches and weighs them in the time left.
Launch = collections.namedtuple("Launch", "program topology arguments seconds")


class Constants:
    """The constants of a section as arguments have them: several numbers or names with commas."""

    def __init__(self, section):
        self.section = section

    def __getattr__(self, name):
        value = getattr(self.section, name)
        return listed(value) if isinstance(value, tuple) and all(isinstance(one, (int, str)) for one in value) else value


def suite(folder, blocks):
    """Returns the launches, the longest first. `folder` has the topologies that are written for them, `blocks` are those of the fit."""
    values = {name: Constants(section) for name, section in vars(sections).items() if isinstance(section, types.ModuleType)}
    lines = [line for line in LAUNCHES.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    found = [line.format(**values, **NAMED, FITTED_BLOCKS=blocks).split(maxsplit=3) for line in lines]
    launches = [Launch(f"{bench}_bench", topology(name, folder), arguments, float(seconds)) for bench, name, seconds, arguments in found]
    return sorted([*launches, *of_arithmetic(folder)], key=lambda launch: -launch.seconds)


def topology(name, folder):
    """The file of a topology: one of topologies/, or one that was written into the folder."""
    known = TOPOLOGIES / f"{name}.json"
    return known if known.exists() else folder / known.name


def of_arithmetic(folder):
    """Yields the launches whose tokens or heads are those of the whole sequence over the ranks, or bytes of hidden states."""
    h100, wide = topology(H100, folder), topology(lasp2_throughput.TOPOLOGY, folder)
    for ranks in lasp2_throughput.RANKS:
        yield Launch(MODEL, wide, f"--model {lasp2_throughput.MODEL} --methods {lasp2_throughput.METHOD} --lines dp,full --fsdp --ranks {ranks} "
                     f"--tokens {listed(1024 * length // ranks for of, length in lasp2_throughput.CELLS if of == ranks)}", ranks // 10)
    for ranks in method_volumes.RANKS:
        tokens = [length // ranks for length in method_volumes.LENGTHS]
        yield Launch(OPERATOR, h100, f"--methods all --heads {method_volumes.HEADS} --dtype bf16 --blocks {maps.BLOCKS} --pass forward,backward "
                     f"--ranks {ranks} --tokens {listed(tokens)}", max(1, ranks // 4))
        for count in tokens:
            yield Launch(COLLECTIVE, h100, f"{megatron.arguments(count, method_volumes.HEADS, method_volumes.WIDTH)} --ranks {ranks}", 0.1)
    for machine, ranks in padding.PLACES:
        yield Launch(OPERATOR, topology(machine, folder), f"--methods {listed(padding.METHODS)} {padding.SIMULATED} --sequence "
                     f"{padding.SHARE * ranks} --pad-documents {2 * ranks} --ranks {ranks}", ranks // 4)
    for size in fastest_methods.TOKENS:
        move = " ".join(stacks.shape_of_move(size, fastest_methods.HEADS, 128, "bf16"))
        yield Launch(COLLECTIVE, h100, f"{move} --ranks {listed(fastest_methods.RANKS)}", 0.1)


def write_wide(folder):
    """Writes the machine of LASP-2's table 6: the nodes of its other tables, and as many again."""
    narrow = json.loads(files.reading(TOPOLOGIES / f"{A100}.json").read_text(encoding="utf-8"))
    machine = narrow["machine"]
    wide = {**narrow, "name": lasp2_throughput.TOPOLOGY, "description": f"{narrow['description']} Twice the nodes.",
            "machine": {**machine, "nodes": 2 * machine["nodes"]}}
    files.write(folder, {f"{lasp2_throughput.TOPOLOGY}.json": json.dumps(wide, indent=2) + "\n"})


def listed(values):
    return ",".join(map(str, values))


def main(arguments):
    parser = argparse.ArgumentParser(prog="baton simulate", description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True, metavar="DIR", help="where the benches are")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    write_wide(options.out)
    launches = suite(options.out, fitting.write(options.out))
    if not (options.programs / MODEL).exists():
        print(f"      without {MODEL}, which is not built here: the page has no simulated models")
        launches = [launch for launch in launches if launch.program != MODEL]
    wanted = {records_of(options.out, launch): launch for launch in launches}
    for old in set(options.out.glob("simulated-*")) - set(wanted):
        old.unlink()
    missing = {records: launch for records, launch in wanted.items() if not records.exists()}
    if len(missing) < len(wanted):
        print(f"      {len(wanted) - len(missing)} of {len(wanted)} launches are there from an earlier run of these sources")
    failed = run_all(options, missing, len(wanted))
    return FAILED_LAUNCHES if failed else 0


def records_of(out, launch):
    """Returns the file in `out` of a launch's records, whose name is a digest of all that they depend on."""
    inputs = hashlib.sha256(f"{launch.program} {launch.arguments}".encode())
    inputs.update(sources(SOURCES))
    inputs.update(launch.topology.read_bytes())
    return out / f"simulated-{inputs.hexdigest()[:16]}.jsonl"


@functools.cache
def sources(root):
    """Returns a digest of the sources and settings that simulations run. The program itself would not do: it holds its commit."""
    paths = sorted(path for folder in ("collectives", "harness", "sp_methods") for end in ("[ch]pp", "json")
                   for path in (root / folder).rglob(f"*.{end}")) + sorted(settings.SETTINGS.glob("*.json"))
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in paths)).digest()


def run_all(options, missing, total):
    """Runs launches, the first ones first, and says how far they are. Returns how many failed."""
    failed, there, began = 0, total - len(missing), time.monotonic()
    costs, ended_costs = sum(launch.seconds for launch in missing.values()), 0
    pool = concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    try:
        running = {pool.submit(run, options, launch, records): launch for records, launch in missing.items()}
        for done, ended in enumerate(concurrent.futures.as_completed(running), start=1):
            launch, error = running[ended], ended.result()
            failed += bool(error)
            ended_costs += launch.seconds
            left = (time.monotonic() - began) * (costs / ended_costs - 1)
            print(f"      {there + done} of {total}: {launch.program} on {launch.topology.stem}"
                  f"{f' FAILED, {error}: {launch.arguments}' if error else ''}; about {left // 60:.0f} min {left % 60:.0f} s left", flush=True)
    finally:  # after Ctrl-C no launch starts any more
        pool.shutdown(cancel_futures=True)
    return failed


def run(options, launch, records):
    """Runs one launch, whose records take their name when all of them are there. Returns why it failed, or an empty text."""
    part = records.with_suffix(".jsonl.part")
    asked = [options.programs / launch.program, "--executor", "simulator", "--topology", launch.topology,
             "-J", part, *launch.arguments.split()]
    part.unlink(missing_ok=True)
    error = ""
    try:
        done = subprocess.run(list(map(str, asked)), capture_output=True, text=True, check=False,
                              env={**os.environ, **KEEPS_MEMORY})
        if done.returncode in results.ENDED_WELL:
            part.rename(records)
        else:
            last = (done.stderr.strip().splitlines() or ["no word"])[-1]
            error = f"status {done.returncode}: {last}"
    except OSError as failure:  # the bench cannot be started, or has left no records
        error = f"{failure.filename}: {failure.strerror}"
    part.unlink(missing_ok=True)
    return error

