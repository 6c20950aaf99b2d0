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

from baton import files, results, stacks
from baton.paper import fitting, settings
from baton.paper.sections import (
    delta_layers,
    dist_flash,
    headlines,
    lasp2_throughput,
    maps,
    megatron,
    method_volumes,
    published_softmax,
    zeco_throughput,
)
from baton.paper.sections import fastest_methods as fastest
from baton.paper.sources import A10, A100, A100_PAIR

RANKS = "8,16,32,64,128,256"
MORE_RANKS = "512,1024,2048,4096,8192,16384"
SOURCES = pathlib.Path(__file__).resolve().parents[3]
TOPOLOGIES = SOURCES / "topologies"

FAILED_LAUNCHES = 5  # the exit code, as of a bench with failed cases
# A search for the number of blocks takes and frees the same large arrays over and over: the C library keeps them, which
# makes a launch up to a seventh shorter.
KEEPS_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(4 << 30), "MALLOC_MMAP_THRESHOLD_": str(4 << 30)}
COLLECTIVE, OPERATOR, MODEL = "collective_bench", "operator_bench", "model_bench"
SCANS = ("all_scan,ring_scan,recursive_doubling,two_shot,hierarchical_scan,hierarchical_scan_chain,all_gather_scan")
BLOCKS = maps.BLOCKS  # near the best ones where a state crosses nodes, and quicker than to look for these
LASP = "lasp2,lasp1,lasp2_as_released,lasp1_as_released"

# `seconds` is about what a launch takes on a core of its own: it orders the launches and weighs them in the time left.
TINY, SMALL = 0.1, 0.2
Launch = collections.namedtuple("Launch", "program topology arguments seconds", defaults=(1,))


def suite(fitted, blocks):
    """Returns the launches, the longest first. `fitted` is the folder of the fitted topologies."""
    h100, many, a100 = (TOPOLOGIES / f"{name}.json" for name in ("dgx-h100-32x8", "dgx-h100-2048x8", "dgx-a100-8x8"))
    return sorted([
        # Throughput of whole models.
        *models(fitted, h100),
        # Which exchange wins where: 64 KiB to 64 MiB, a launch each, since they take long and the more the larger they are.
        *(Launch(COLLECTIVE, h100, f"--collectives {SCANS} -b {2**power}K -e {2**power}K --ranks 2,4,{RANKS}",
                 max(2, 4 * power - 26)) for power in range(6, 17)),
        # Many ranks. Collectives with P messages a rank run as far as that takes seconds, and once where they are refused.
        Launch(COLLECTIVE, many, "--collectives all_scan,hierarchical_scan_chain --blocks 512 --ranks " + MORE_RANKS, 28),
        Launch(COLLECTIVE, many, "--collectives ring_all_gather,all_gather_scan,ring_exchange --ranks "
               f"{RANKS},512,1024,16384", 4),
        Launch(COLLECTIVE, many, f"--collectives two_shot,all_gather_scan_direct --ranks {RANKS},512,16384", 12),
        Launch(COLLECTIVE, many, f"--collectives all_scan,hierarchical_scan_chain --ranks {RANKS}", 3),
        Launch(COLLECTIVE, many, "--collectives ring_scan,recursive_doubling,hierarchical_scan --ranks "
               f"{RANKS},{MORE_RANKS}", 3),
        # The map of methods, and what every method sends.
        *fastest_methods(h100), *volumes(h100), *delta_rules(many),
        # ZeCO's tables 3 and 4, in the form that GPUs run.
        *(Launch(OPERATOR, h100, f"--like {settings.table(number)} --dtype bf16 --ranks 2,4,{RANKS}", 14) for number in (3, 4)),
        # LASP-2's sequences of 2K to 4096K tokens on 64 GPUs.
        Launch(OPERATOR, a100, f"--methods zeco,{LASP},ring_attention,ring_attention_softmax,local --ranks "
               "64 --tokens 32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536", 5),
        # Softmax methods where their papers measured them.
        *softmax_papers(h100, a100),
        # ZeCO's table 2. Half the heads move as many bytes as a state in bf16.
        Launch(COLLECTIVE, h100, f"--like zeco-table2 --collectives all --ranks 2,4,{RANKS}", 13),
        Launch(COLLECTIVE, h100, "--like zeco-table2 --collectives ring_all_gather,all_scan --heads 16 --ranks " + RANKS, 1.5),
        # All-Scan's blocks.
        Launch(COLLECTIVE, h100, "--collectives all_scan --ranks 8,32,256 --blocks "
               "1,2,4,8,16,32,64,128,256,512,1024,2048,4096", 3),
        *predictions(fitted, blocks)], key=lambda launch: -launch.seconds)


def softmax_papers(h100, a100):
    """Returns the launches at the settings of the papers that measured softmax methods."""
    pair, a10 = (TOPOLOGIES / f"{name}.json" for name in (A100_PAIR, A10))
    both = (f"--dtype bf16 --heads {dist_flash.HEADS} --pass forward,both --methods {dist_flash.OURS},{dist_flash.ULYSSES} "
            "--tokens 8192,16384,32768")
    return [
        Launch(OPERATOR, h100, "--like magi --pass forward,backward --ranks " + listed(published_softmax.MAGI_RANKS)),
        Launch(OPERATOR, pair, f"{both} --ranks 8,16", SMALL), Launch(OPERATOR, a100, f"{both} --ranks 16", SMALL),
        *(Launch(OPERATOR, pair, f"--methods {name} --heads {more} --dtype bf16 --ranks 16 --tokens 16384,32768 --pass both", TINY)
          for name, more in ((dist_flash.OURS, dist_flash.MORE_HEADS), (dist_flash.ULYSSES, dist_flash.PADDED))),
        Launch(OPERATOR, a100, f"--methods ulysses_softmax --heads {published_softmax.ULYSSES_HEADS} --dtype bf16 --tokens "
               f"{published_softmax.ULYSSES_TOKENS} --pass both --ranks {listed(published_softmax.ULYSSES_RANKS)}", SMALL),
        Launch(OPERATOR, a10, f"--methods {listed(name for _, name in published_softmax.TOKEN_METHODS)} --dtype bf16 "
               f"--heads {published_softmax.TOKEN_HEADS} --ranks {published_softmax.TOKEN_RANKS} --tokens "
               f"{published_softmax.TOKEN_TOKENS} --pass forward", TINY)]


def models(folder, h100):
    """Returns the launches of the papers' models."""
    fixed = f"--lines dp,full --blocks {BLOCKS}"
    lasp2 = f"--model {lasp2_throughput.MODEL} --methods {lasp2_throughput.METHOD} --lines dp,full"
    wide = folder / f"{lasp2_throughput.TOPOLOGY}.json"
    tables = list(map(settings.table, zeco_throughput.TABLES))
    return [*(Launch(MODEL, h100, f"--like {table} {fixed} --fsdp --methods zeco,lasp2 --ranks {ranks}", seconds)
              for table in tables for ranks, seconds in ((256, 35), (128, 8))),
            *(Launch(MODEL, h100, f"--like {table} {fixed} --fsdp --methods zeco,{LASP} --ranks 8,64", 4) for table in tables),
            Launch(MODEL, h100, f"--like zeco-table6 --lines dp --ranks {listed(zeco_throughput.RANKS)}"),
            *(Launch(MODEL, wide, f"{lasp2} --fsdp --ranks {ranks} --tokens "
                     + listed(1024 * length // ranks for of, length in lasp2_throughput.CELLS if of == ranks), ranks // 10)
              for ranks in reversed(lasp2_throughput.RANKS)),
            Launch(MODEL, TOPOLOGIES / f"{A100}.json", f"--model {lasp2_throughput.MODEL} --methods {listed(headlines.LASP2_METHODS)} "
                   f"--lines full --fsdp --ranks {headlines.LASP2_RANKS} --tokens {headlines.LASP2_TOKENS}", 6)]


def write_wide(folder):
    """Writes the machine of LASP-2's table 6: the nodes of its other tables, and as many again."""
    narrow = json.loads(files.reading(TOPOLOGIES / f"{A100}.json").read_text(encoding="utf-8"))
    machine = narrow["machine"]
    wide = {**narrow, "name": lasp2_throughput.TOPOLOGY, "description": f"{narrow['description']} Twice the nodes.",
            "machine": {**machine, "nodes": 2 * machine["nodes"]}}
    files.write(folder, {f"{lasp2_throughput.TOPOLOGY}.json": json.dumps(wide, indent=2) + "\n"})


def listed(values):
    return ",".join(map(str, values))


def volumes(topology):
    """Returns the launches in which every method is counted."""
    fixed = f"--methods all --heads {method_volumes.HEADS} --dtype bf16 --blocks {BLOCKS} --pass forward"
    return [*(Launch(OPERATOR, topology, f"{fixed},backward --ranks {ranks} --tokens "
                     + ",".join(str(length // ranks) for length in method_volumes.LENGTHS), max(1, ranks // 4))
              for ranks in method_volumes.RANKS),
            *(Launch(COLLECTIVE, topology, f"{megatron.arguments(length // ranks, method_volumes.HEADS, method_volumes.WIDTH)} "
                     f"--ranks {ranks}", TINY) for ranks in method_volumes.RANKS for length in method_volumes.LENGTHS)]


def fastest_methods(topology):
    """Returns the launches of the map of methods, and of the moves between layouts."""
    tokens = ",".join(map(str, fastest.TOKENS))
    ranks = ",".join(map(str, fastest.RANKS))
    moves = (" ".join(stacks.shape_of_move(size, fastest.HEADS, 128, "bf16")) for size in fastest.TOKENS)
    return [*(Launch(OPERATOR, topology, f"--methods all --heads {fastest.HEADS} --dtype bf16 --blocks {BLOCKS} --pass both "
                     f"--tokens {tokens} --ranks {of}", max(1, of // 3)) for of in reversed(fastest.RANKS)),
            *(Launch(COLLECTIVE, topology, f"{move} --ranks {ranks}", TINY) for move in moves)]


def delta_rules(topology):
    """Returns the launches of the maps of layers with a delta rule."""
    tokens, ranks = listed(delta_layers.TOKENS), listed(delta_layers.RANKS)
    return [Launch(OPERATOR, topology, f"--attention {model.attention} --heads {model.heads} --methods {methods} --dtype bf16 "
                   f"--blocks {BLOCKS} --pass both --tokens {tokens} --ranks {ranks}", seconds)
            for methods, seconds in ((delta_layers.METHODS, 64), (f"zeco --scan {delta_layers.SCAN}", 15))
            for model in delta_layers.MODELS]


def predictions(fitted, blocks):
    """Returns the launches on the fitted machines, which predict the published cells at other rank counts."""
    gather, scan, both = (fitted / f"{name}.json" for name in (
        fitting.GATHER_FIT, fitting.SCAN_FIT, fitting.COMMON_FIT))
    return [Launch(COLLECTIVE, gather, f"--collectives ring_all_gather --ranks {RANKS}", TINY),
            Launch(COLLECTIVE, scan, f"--collectives all_scan --blocks {blocks} --ranks {RANKS}", TINY),
            Launch(COLLECTIVE, both, f"--collectives ring_all_gather,all_scan --blocks {blocks} --ranks {RANKS}", TINY)]


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

