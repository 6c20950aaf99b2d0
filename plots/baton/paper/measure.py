# SPDX-License-Identifier: Apache-2.0
"""Measures the settings of ZeCO's tables on this machine: its GPUs, or the cores where there are none.

A table whose settings take too long here is measured at the most tokens, a power of two, that fit into its time, and a
model by one of its layers. The page names such sizes. Each table has a file of records, where a later run goes on.
"""

import collections
import pathlib
import tempfile

from baton import results, suite
from baton.paper import settings

TABLES = (2, 3, 4, 5, 6)
OTHER_READING = "zeco-1b-h128"
AS_RELEASED = "lasp1_as_released,lasp2_as_released"
# Seconds that a table may take on processors, and the launches that must fit into them.
ON_CORES = {suite.COLLECTIVE: 20, suite.OPERATOR: 90, suite.MODEL: 140}
LEAST_TOKENS = {suite.OPERATOR: 64, suite.MODEL: 16}
LAUNCHES = {suite.COLLECTIVE: 3, suite.OPERATOR: 3, suite.MODEL: 1}
# How many rounds of `local`, both passes, a launch takes as long as: passes one by one are as long as both, and LASP-1 as
# released is twice as long.
ROUNDS = {suite.OPERATOR: 2 * 8 * 55, suite.MODEL: 4.5 * 105}

# `arguments` follow the name of the settings. `seconds` is about what they take. There is no --for, since a run that goes on
# would not know how much of its time is spent.
Line = collections.namedtuple("Line", "arguments seconds")


def on_gpus(bench, gpus):
    """Yields the lines of a table on GPUs. One GPU has no exchange, and a whole model the time of --timeout."""
    one, most = gpus == 1, suite.powers_of_two(gpus)[-1]
    several = f"--executor peer,nccl --ranks {suite.listed(suite.powers_of_two(gpus))}"
    if bench == suite.COLLECTIVE and not one:
        yield Line(f"{several} --launches 3", 60)
    if bench == suite.OPERATOR:
        yield Line("--executor nccl --ranks 1 --mode compute_only --launches 2", 70) if one else Line(f"{several} --launches 1", 120)
    if bench == suite.MODEL:
        where = f"--executor nccl --ranks {1 if one else most} --launches 1"
        lines = "dp,split" if one else "dp,split,full"
        yield Line(f"{where} --layers 1 --lines {lines} --methods zeco,lasp1,lasp2,{AS_RELEASED}", 60 if one else 90)
        yield Line(f"{where} --layers 1 --lines dp --model {OTHER_READING}", 15)
        if one:
            yield Line(f"{where} --lines dp --timeout 90", 60)


def on_cores(bench, cores, tokens):
    """Returns the line of a table on processors, with this many tokens a rank."""
    size = "" if bench == suite.COLLECTIVE else f" --tokens {tokens}" + " --layers 1" * (bench == suite.MODEL)
    return Line(f"--ranks {ranks_of(bench, cores)}{size} --launches {LAUNCHES[bench]}", ON_CORES[bench])


def ranks_of(bench, cores):
    if bench == suite.COLLECTIVE:
        return suite.listed(suite.powers_of_two(cores))
    return suite.powers_of_two(cores // 2)[-1]


def records_of(number):
    return suite.RESULTS / f"{settings.table(number)}.jsonl"


class Measurement:
    """What is measured of some tables, on a machine."""

    def __init__(self, launcher, machine):
        self.launcher, self.machine, self.taken, self.shrunk = launcher, machine, {}, {}

    def measure(self, number):
        """Measures a table, unless it is another one at the size that fits here."""
        table = settings.load(settings.table(number))
        bench, name = table["bench"], table["name"]
        if self.machine.gpus:
            lines = list(on_gpus(bench, self.machine.gpus))
            if not lines:
                print(f"      table {number} needs more than one GPU: left out", flush=True)
        else:
            most = table["flags"]["tokens"]
            tokens = self.shrunk.get(bench) or self.tokens_that_fit(number, bench, name, most)
            if tokens < most:  # another table of the bench would not fit with more
                self.shrunk[bench] = tokens
            same = self.taken.setdefault((bench, tokens), number)
            if same != number:
                print(f"      table {number} with {tokens} tokens a rank, which is what fits, is table {same}", flush=True)
                return
            lines = [on_cores(bench, self.machine.cores, tokens)]
        for line in lines:
            self.launch(number, bench, f"--like {name} {line.arguments}")

    def launch(self, number, bench, line):
        records = records_of(number)
        resume = f" --resume {records}" if suite.has_content(records) else ""
        self.launcher.launch_all(bench, [f"{line} -J {records}{resume}"])

    def tokens_that_fit(self, number, bench, name, most):
        """The most tokens a rank whose rounds fit into the time, or those of the run that goes on."""
        if bench == suite.COLLECTIVE:
            return most
        if suite.has_content(records_of(number)):
            return max(record["tokens"] for record in results.load([records_of(number)]))
        tokens = LEAST_TOKENS[bench]
        while tokens < most and self.seconds(bench, name, 2 * tokens) <= ON_CORES[bench]:
            tokens *= 2
        limit = "" if tokens == most else f" of {most}, the most that fit into {ON_CORES[bench]} s"
        layer = " and one layer" * (bench == suite.MODEL)
        print(f"      table {number}: {tokens} tokens a rank{limit}{layer}", flush=True)
        return tokens

    def seconds(self, bench, name, tokens):
        """About how long all launches of a table take with this many tokens a rank, from a few rounds."""
        few = ("--methods local --pass both" if bench == suite.OPERATOR else "--lines dp --layers 1") + " --warmup 1 --rounds 3"
        with tempfile.TemporaryDirectory() as folder:
            probe = pathlib.Path(folder) / "probe.jsonl"
            line = f"--like {name} {few} --ranks {ranks_of(bench, self.machine.cores)} --tokens {tokens} --launches 1 -J {probe}"
            self.launcher.logged("fitting", bench, line)
            found = [one for one in results.load([probe]) if results.why_no_time(one) is None] if suite.has_content(probe) else []
        return found[0]["median_seconds"] * ROUNDS[bench] * LAUNCHES[bench] if found else float("inf")


def how_long(numbers, machine):
    """Says how long the tables take. On processors those of one bench are measured once."""
    benches = [settings.load(settings.table(number))["bench"] for number in numbers]
    if machine.gpus:
        seconds = sum(line.seconds for bench in benches for line in on_gpus(bench, machine.gpus))
    else:
        seconds = sum(ON_CORES[bench] for bench in set(benches))
    return (f"      measuring the settings of ZeCO's tables {suite.listed(numbers)} takes about {seconds // 60} min {seconds % 60} s on "
            f"{suite.describe(machine)} (records: {suite.RESULTS}/); after Ctrl-C the same command goes on")


def main(words):
    parser = suite.parser_of("measure", __doc__)
    parser.add_argument("tables", metavar="TABLES", help=f"some of {suite.listed(TABLES)}, with commas")
    options = parser.parse_args(words)
    return suite.run(options, lambda launcher: run(launcher, suite.Machine(options.cores, options.gpus), options.tables))


def run(launcher, machine, words):
    """Measures the tables that `words`, such as 2,3, name. Throws ResultsError for others."""
    numbers = [int(word) if word.isdecimal() else word for word in words.split(",")]
    unknown = [str(number) for number in numbers if number not in TABLES]
    if unknown:
        raise results.ResultsError(f"--tables: unknown {', '.join(unknown)}; there are {suite.listed(TABLES)}")
    has_models = (launcher.programs / suite.MODEL).exists()
    numbers = [number for number in numbers if has_models or settings.load(settings.table(number))["bench"] != suite.MODEL]
    print(how_long(numbers, machine), flush=True)
    measurement = Measurement(launcher, machine)
    for number in numbers:
        measurement.measure(number)
