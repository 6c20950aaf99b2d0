# SPDX-License-Identifier: Apache-2.0
"""Says of two results of the benches whether B is slower than A, and whether the launches can tell."""

import argparse
import collections
import json
import pathlib
import sys

from baton import cases, files, program, results
from baton.compare import commits, conditions, gate, output, verdicts
from baton.estimates import MARGIN

USAGE = """./run compare A B                                  record files, or folders of *.jsonl
       ./run compare --commits X Y [BENCH ARGUMENTS]      builds both and runs their launches in turns ('.': this tree)
       ./run compare --gate [--accept]                    counted and simulated figures against the committed ones"""
EXITS = """exit codes: 0 nothing is worse; 5 something is slower, wrong or missing (or the gate's figures changed);
6 nothing is slower, but something cannot be told; 2 the two must not be compared. docs/comparing.md explains all."""


def main(arguments):
    options, rest = arguments_of(arguments)
    if options.gate:
        return gate.run(options.programs, options.accept)
    if options.commits:
        places = commits.run(options.commits, options.preset, options.launches, rest)
        names = [f"{commit}, records {place.relative_to(commits.ROOT)}" for commit, place in
                 zip(options.commits, places)]
    else:
        places = names = options.sides
    a, b = (cases.read(place) for place in places)
    across = allowed(conditions.differences(a, b), options.across)
    apart = conditions.on_unlike_machines(a, b)
    header = header_of(names, a, b, options.margin, across) + output.not_compared(a, b, apart)
    a, b = (cases.without(side, apart) for side in (a, b))
    if not a.cases and not b.cases:
        raise cases.Refused(f"{header[-1].lstrip('# ')}, and there is nothing else to compare")
    findings = verdicts.judge(a, b, options.margin / 100)
    if options.json:
        write_json(options.json, {**output.as_json(findings, across, options.margin / 100), "not_compared": apart})
    text = (output.markdown if options.markdown else output.text)(findings, header)
    print(program.printable(text, sys.stdout), end="")
    return verdicts.exit_code(findings)


def arguments_of(words):
    """Returns the options, and the words that are the bench's. Ends the program with status 2 if they make no sense."""
    parser = argparse.ArgumentParser(prog="./run compare", usage=USAGE, description=__doc__, epilog=EXITS,
                                     allow_abbrev=False)
    if not {"--commits", "--gate"} & set(words):
        parser.add_argument("sides", nargs=2, metavar="A B", help="record files, or folders of *.jsonl")
    parser.add_argument("--commits", nargs=2, metavar=("X", "Y"), help="commits to build and to run in turns")
    parser.add_argument("--launches", type=program.positive, default=10, help="launches of each commit (10)")
    parser.add_argument("--preset", default="cpu", help="the preset that --commits builds (that of this machine)")
    parser.add_argument("--margin", type=percent, default=100 * MARGIN, metavar="PERCENT",
                        help=f"changes that do not matter ({100 * MARGIN:g})")
    parser.add_argument("--across", action="append", default=[], metavar="KEY",
                        help="compare in spite of this difference")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all findings to this file")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, for a pull request")
    parser.add_argument("--gate", action="store_true", help="check what needs no quiet machine")
    parser.add_argument("--accept", action="store_true", help="with --gate: take the figures of now as the baseline")
    parser.add_argument("--programs", type=pathlib.Path, metavar="DIR", help="with --gate: where the benches are")
    options, rest = parser.parse_known_args(words)
    if rest and not options.commits:
        parser.error(f"unknown argument '{rest[0]}'")
    return options, [word for word in rest if word != "--"]


def percent(word):
    try:
        value = float(word)
    except ValueError:
        value = -1
    if not 0 < value < 100:
        raise argparse.ArgumentTypeError(f"takes a number of percent above 0 and below 100, not '{word}'")
    return value


def allowed(differences, keys):
    """Returns the differences that `keys` or conditions.NAMED allow, as texts. Throws Refused if there are others."""
    unknown = [key for key in keys if key not in differences]
    if unknown:
        found = f"; they differ in: {', '.join(differences)}" if differences else "; they differ in nothing"
        raise cases.Refused(f"--across {unknown[0]}: A and B do not differ in that{found}")
    refused = {key: text for key, text in differences.items() if key not in keys and not conditions.is_named(key)}
    if refused:
        hint = f"--across {next(iter(refused))}"
        raise cases.Refused("A and B must not be compared:", *(f"  {text}" for text in refused.values()),
                            f"  ({hint} compares in spite of the first)")
    return list(differences.values())


def header_of(names, a, b, margin, across):
    def commits_of(side):
        records = (record for case in side.cases.values() for record in case.records)
        return ", ".join(dict.fromkeys(record.get("commit", "unknown") for record in records))

    paired = bool(a.pairs and b.pairs)
    design = ("launches ran in turns and are compared pair by pair" if paired else
              "launches did not run in turns: what drifted between A and B counts as a change")
    return [f"# A: {names[0]} ({commits_of(a)})", f"# B: {names[1]} ({commits_of(b)})",
            f"# {design}; margin {margin:g} %", *(f"# in spite of: {text}" for text in across),
            *(f"# the build of {letter} is not known: {why}" for letter, side in (("A", a), ("B", b))
              for why in unknown_builds(side))]


def unknown_builds(side):
    """Says of each commit that names no build how many runs have it: each of them may be of another build."""
    runs = collections.defaultdict(set)
    for case in side.cases.values():
        for record in case.records:
            if not results.is_build_known(record):
                runs[record.get("commit", "unknown")].add(record["run"])
    for commit, found in sorted(runs.items()):
        why = "nothing told its commit" if commit == "unknown" else f"files of {commit.removesuffix('-dirty')} had changed"
        yield why + f", in {len(found)} runs, each of which may be of another" * (len(found) > 1)


def write_json(path, findings):
    try:
        files.write(path.parent, {path.name: json.dumps(findings, indent=1) + "\n"})
    except OSError as error:
        raise cases.Refused(f"cannot write {path}: {error.strerror}") from error

