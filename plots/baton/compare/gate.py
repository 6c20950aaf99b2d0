# SPDX-License-Identifier: Apache-2.0
"""Holds counted bytes, hops and messages and simulated times of all collectives and methods against committed ones.

None of them depends on the machine or on how busy it is, so any change is a finding. A wanted change is committed with
its figures: `./run compare --gate --accept` rewrites the baseline. New cases are named and are no finding, so that a new
collective stays one file.
"""

import json
import math
import os
import pathlib
import subprocess
import tempfile

from baton import cases, results

ROOT = pathlib.Path(__file__).resolve().parents[3]
BASELINE = pathlib.Path(__file__).with_name("baseline.json")
EXIT_CHANGED = 5

# Compilers may round the last bits of a simulated time differently.
TOLERANCE = 1e-6

# Two nodes of eight GPUs from 9 ranks on. The executor of a dry run counts natives too, by their authors' claims.
MACHINE = ("--executor", "simulator", "--topology", "topologies/dgx-h100-32x8.json")
LAUNCHES = (
    ("collective_bench", *MACHINE, *"--collectives all --ranks 3,8,16 -b 256K -e 4M -f 16".split()),
    ("collective_bench", *MACHINE, *"--collectives all --direction reverse --ranks 16 -b 256K".split()),
    ("collective_bench", *MACHINE, *"--collectives all --map scalar,affine --direction both --ranks 3,16 -b 4M".split()),
    ("operator_bench", *MACHINE, *"--methods all --pass all --mode all --gates layer --tokens 2048 --ranks 3,16".split()),
    ("operator_bench", *MACHINE, *"--attention gdn,kda --methods all --gates layer --tokens 2048 --ranks 3,16".split()),
    ("operator_bench", *MACHINE, *("--mask full,window:1024 --methods window_halo,window_halo_zigzag,ring_attention_softmax,"
     "all_gather_kv_zigzag,ulysses_softmax,usp_zigzag,token_ring --pass all --tokens 2048 --ranks 3,16").split()),
    ("operator_bench", *MACHINE, *("--packed 900 --packed-draw lognormal --methods ring_attention_zigzag,all_gather_kv,usp,zeco "
     "--gates layer --tokens 2048 --ranks 3,16").split()),
    ("collective_bench", *"--executor mpi --collectives all --ranks 3,16 --dry-run".split()),
)

# What a baseline has of a case, and the words for it. `us` is a simulated round.
FIGURES = {"sent_bytes": "bytes", "hops": "hops", "messages": "messages", "blocks": "blocks", "us": "us"}


def run(programs, accept, baseline=BASELINE, launches=LAUNCHES):
    """Prints what changed and returns the exit code, or rewrites the baseline. Throws cases.Refused."""
    if programs is None:
        raise cases.Refused("--gate needs --programs, the folder of the benches")
    now = {name: figures for words in launches for name, figures in figures_of(programs, words).items()}
    if accept:
        return write(baseline, now)
    before = read(baseline)
    changes = [f"{name}: {change}" for name in sorted(before) if (change := change_of(before[name], now.get(name)))]
    new = sorted(now.keys() - before.keys())
    for line in [*changes, *(f"{name}: new, not in the baseline" for name in new)]:
        print(line)
    print(f"gate: {len(before)} cases, {len(changes)} changed, {len(new)} new" +
          ("; if that is wanted: ./run compare --gate --accept" if changes or new else ""))
    return EXIT_CHANGED if changes else 0


def change_of(before, now):
    """Says what changed in a case, or returns None."""
    if now is None:
        return "missing, was in the baseline"
    if isinstance(before, str) or isinstance(now, str):
        return None if before == now else f"{_words(before)} -> {_words(now)}"
    changed = [f"{word} {before.get(key)} -> {now.get(key)}" for key, word in FIGURES.items()
               if not _alike(before.get(key), now.get(key))]
    return ", ".join(changed) or None


def _alike(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return one == other


def _words(figures):
    if isinstance(figures, str):
        return figures
    return ", ".join(f"{FIGURES[key]} {value}" for key, value in figures.items())


def figures_of(programs, words):
    """Runs one launch and returns {case: figures}, or the reason in place of figures. Throws Refused if it fails."""
    program, arguments = words[0], list(words[1:])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records.jsonl")
        if "--dry-run" not in arguments:
            arguments += ["-J", path]
        try:
            done = subprocess.run([str(pathlib.Path(programs).resolve() / program), *arguments], cwd=ROOT,
                                  capture_output=True, text=True, check=False)
        except OSError as error:
            raise cases.Refused(f"cannot run {program} in {programs}: {error.strerror}") from error
        if done.returncode not in results.ENDED_WELL:
            last = (done.stderr.strip().splitlines() or ["no word"])[-1]
            raise cases.Refused(f"{program} {' '.join(words[1:])} ended with status {done.returncode}: {last}")
        return counted(done.stdout) if "--dry-run" in arguments else simulated(path)


def simulated(path):
    """Figures of the records of a simulation."""
    with open(path, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    return {cases.key_of(record, path): _figures(record) for record in records}


def _figures(record):
    if cases.state_of(record) != cases.TIMED:
        return f"skipped: {record['skipped']}"
    microseconds = float(f"{record['median_seconds'] * 1e6:.9g}")
    return {**{key: record[key] for key in FIGURES if key in record}, "us": microseconds}


def counted(table):
    """Figures of the table of a dry run, whose first line is its head; lines with # are remarks."""
    figures = {}
    for line in table.splitlines()[1:]:
        if line.startswith("#") or not line.strip():
            continue
        name, rest = line.split(maxsplit=1)
        if rest.startswith("skipped: "):
            figures[name] = rest
            continue
        numbers = [int(word) if word.isdecimal() else word for word in rest.split()]
        figures[name] = dict(zip(("sent_bytes", "hops", "messages"), numbers))
    return figures


def read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise cases.Refused(f"cannot read the baseline {path}: {error}") from error


def write(path, figures):
    """Writes a baseline, one line a case, so that a change of it reads well."""
    lines = [f"{json.dumps(name)}: {json.dumps(figures[name])}" for name in sorted(figures)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"gate: wrote {len(figures)} cases to {path}")
    return 0
