# SPDX-License-Identifier: Apache-2.0
"""Does compare keep its word on this machine? Measures how often it finds a difference where there is none, and where
there is one.

  ./run selfcheck build/cpu/bin/collective_bench --twins all_scan all_scan_twin -- --ranks 2 -b 64K -e 1M
  ./run selfcheck build/cpu/bin/collective_bench --slowed OTHER/bin/collective_bench -- --ranks 2

1. A/A, intervals: the same case under two names (--twins), or in two cycles of one launch. A pair is three launches of
   both; its 95 % interval of the ratio should leave out 1 in 5 of 100 pairs.
2. A/A, verdicts: comparisons of a program with itself, as `./run compare --commits` makes them: never slower.
3. A/B, verdicts: the same against a slowed program: always slower, in the cases of the collective that was slowed.
"""

import argparse
import collections
import math
import pathlib
import statistics
import tempfile

from baton import cases, estimates
from baton.compare import commits, verdicts

# One kind of experiment: its name, how often it was made, and what was counted, as texts.
Outcome = collections.namedtuple("Outcome", "name count found")


def main(words):
    options, arguments = arguments_of(words)
    outcomes = list(intervals(options, arguments)) if options.pairs else []
    with tempfile.TemporaryDirectory() as folder:
        for name, other in (("A/A, comparisons", options.program), ("A/B, comparisons", options.slowed)):
            if options.comparisons and other:
                outcomes.append(comparisons(name, other, options, arguments, pathlib.Path(folder) / name[:3]))
    for outcome in outcomes:
        print(f"{outcome.name:18} {outcome.count:>5}  {outcome.found}")


def arguments_of(words):
    parser = argparse.ArgumentParser(prog="./run selfcheck", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="a bench")
    parser.add_argument("--slowed", type=pathlib.Path, metavar="PROGRAM", help="a build of it that is slower")
    parser.add_argument("--slow-name", default="all_scan", metavar="NAME", help="what is slower in it (all_scan)")
    parser.add_argument("--twins", nargs=2, metavar="NAME", help="two names of one collective")
    parser.add_argument("--pairs", type=int, default=200, help="pairs of the first experiment (200); 0: leave it out")
    parser.add_argument("--launches", type=int, default=3, help="launches of a pair (3)")
    parser.add_argument("--comparisons", type=int, default=20, help="comparisons of each kind (20); 0: leave them out")
    parser.add_argument("--compared-launches", type=int, default=10, metavar="N", help="launches of each side (10)")
    ours, theirs = (words[:words.index("--")], words[words.index("--") + 1:]) if "--" in words else (words, [])
    return parser.parse_args(ours), theirs


def intervals(options, arguments):
    """The first experiment: how many 95 % intervals of a ratio of equals leave out 1."""
    extra = [] if options.twins else ["-N", "2"]
    ratios, single, wanted = collections.defaultdict(list), [], options.launches
    with tempfile.TemporaryDirectory() as folder:
        while not ratios or min(map(len, ratios.values())) < wanted:
            records = commits.launch(options.program, [*arguments, *extra], pathlib.Path(folder) / "launch.jsonl")
            found = log_ratios(records, options.twins)
            if not found:
                raise cases.Refused("no case ran under both names")
            for case, ratio in found.items():
                ratios[case].append(ratio)
            single += [record["ratio_ci95"] for record in records if options.twins and record.get("ratio_ci95") and
                       record["name"] == options.twins[1] and record.get("baseline") == options.twins[0]]
            wanted = math.ceil(options.pairs / len(ratios)) * options.launches
    yield Outcome("A/A, intervals", *leaving_out_one(ratios, options.launches))
    if single:
        outside = sum(not low <= 1 <= high for low, high in single)
        yield Outcome("  of one launch", len(single), f"{outside} ({100 * outside / len(single):.1f} %) leave out 1")


def log_ratios(records, twins):
    """Returns {case: logarithm of the second twin's median over the first's} of one launch."""
    medians = collections.defaultdict(dict)
    for record in records:
        if cases.state_of(record) != cases.TIMED:
            continue
        name, second = record["case"], record.get("cycle") == 2
        if twins:
            second = record["name"] == twins[1]
            name = "/".join([twins[0], *name.split("/")[1:]]) if record["name"] in twins else name
        medians[name][second] = statistics.median(record["seconds"])
    return {name: math.log(both[True] / both[False]) for name, both in medians.items() if len(both) == 2}


def leaving_out_one(ratios, launches):
    """Returns how many intervals there are, and how many of them leave out 1, as a text."""
    groups = [values[start:start + launches] for values in ratios.values()
              for start in range(0, len(values) - launches + 1, launches)]
    ends = [estimates.interval(estimates.paired(group)) for group in groups]
    outside = sum(not low <= 0 <= high for low, high in ends)
    half = statistics.median((high - low) / 2 for low, high in ends)
    return len(ends), (f"{outside} ({100 * outside / len(ends):.1f} %) of {launches} launches each leave out 1; "
                       f"half of one is {100 * math.expm1(min(half, 5)):.1f} % in the median")


def comparisons(name, other, options, arguments, folder):
    """Compares the program with another build, or with itself, again and again."""
    counts, slower, right = collections.Counter(), 0, 0
    for number in range(options.comparisons):
        sides = commits.alternate([options.program, other], arguments, options.compared_launches, folder / str(number))
        findings = verdicts.judge(*map(cases.read, sides))
        counts.update(finding.verdict for finding in findings)
        found = {finding.case.split("/")[0] for finding in findings if finding.verdict == verdicts.SLOWER}
        slower += bool(found)
        right += options.slow_name in found
    judged = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    right = f" ({right} in {options.slow_name})" if other != options.program else ""
    return Outcome(name, options.comparisons, f"{slower} with something slower{right}; cases: {judged}")

