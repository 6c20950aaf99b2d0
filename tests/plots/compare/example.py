# SPDX-License-Identifier: Apache-2.0
"""Made-up records for the tests of compare/, and a way to run it as a user does."""

from plots import example

BASE = 100e-6  # seconds of a round
EVEN = (0.999, 1.0, 1.001)  # rounds of a launch, around its median


def record(name="all_scan", seconds=BASE, run="a", **changes):
    """One timed record of a launch, with a key that joins it."""
    asked = changes.get("blocks_asked", "auto")
    ranks = changes.get("ranks", 4)
    case = f"{name}/mpi/ranks:{ranks}/exclusive_scan/forward/isolated/blocks:{asked}"
    made = example.record(name, milliseconds=1e3 * seconds, run=run, case=case, blocks_asked=asked, wire_dtype="f32",
                          cycle=0, messages=None)
    rounds = [factor * seconds for factor in EVEN]
    return {**made, "seconds": rounds, "rounds": len(rounds), **changes}


def simulated(name="all_scan", seconds=BASE, **changes):
    made = record(name, seconds, executor="simulator", topology="somewhere", **changes)
    return {**made, "case": made["case"].replace("/mpi/", "/simulator/")}


def skipped(reason, **changes):
    return example.untimed(record(**changes), reason)


def launches(factors, run="a", pairs=None, **changes):
    """Launches of one run, one a factor of the time; `pairs` names the session that they are paired in."""
    return [record(seconds=BASE * factor, run=run, launch=number,
                   **({"pair": f"{pairs}-{number}"} if pairs else {}), **changes)
            for number, factor in enumerate(factors, start=1)]


class InFolder(example.InFolder):
    def compare(self, a, b, *arguments):
        """What compare says of these records."""
        return self.run_on(self.write("a.jsonl", a), self.write("b.jsonl", b), *arguments)

    def write(self, name, records):
        return example.write(self.folder / name, records)

    def run_on(self, *arguments):
        return example.run_here("compare", *arguments)

    def verdicts(self, done):
        """The first words of the rows."""
        words = ("slower", "wrong", "missing", "cannot tell", "new", "faster", "same")
        return [word for line in done.stdout.splitlines() for word in words if line.startswith(f"{word} ")]
