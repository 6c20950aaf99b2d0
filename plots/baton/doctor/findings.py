# SPDX-License-Identifier: Apache-2.0
"""A finding, and what all judges share: when a difference counts, and numbers as text.

Readings are what `doctor_readings` writes (harness/doctor/readings.hpp). Most are repeated: a list with one value for each
repeat, empty where the system does not tell the value.
"""

import collections
import statistics

from baton.words import names

PROBLEM = "problem"  # the machine is not fit to measure on until this is mended
NOTE = "note"  # a condition that may be intended

# `about` is rank, link, clock, load, binding, build or host; `ranks` are those that the finding concerns.
Finding = collections.namedtuple("Finding", "weight about ranks what advice")


def exceeds(repeats, limit):
    """True if the median reaches the limit and four of five repeats reach half of it: a single disturbance is no finding."""
    reached = sum(value >= limit / 2 for value in repeats)
    return bool(repeats) and statistics.median(repeats) >= limit and 5 * reached >= 4 * len(repeats)


def typical(repeats, otherwise=0):
    return statistics.median(repeats) if repeats else otherwise


def mean(repeats):
    return sum(repeats) / len(repeats) if repeats else 0


def excesses(times):
    """For each of several lists of repeats, the part by which it exceeds the least of them, repeat by repeat."""
    fastest = [min(repeat) for repeat in zip(*times)]
    return [[one / least - 1 if least > 0 else 0 for one, least in zip(own, fastest)] for own in times]


def numbered(noun, numbers):
    """A noun with numbers: `no rank`, `rank 1`, `ranks 0 and 2`, `ranks 0 to 3 and 7`."""
    numbers = sorted(set(numbers))
    if len(numbers) < 2:
        return f"{noun} {numbers[0]}" if numbers else f"no {noun}"
    runs = []  # of numbers without a gap
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [text for run in runs for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    return f"{noun}s {names(shown, len(shown))}"


def percent(part):
    return f"{100 * part:.0f} %"


def times(excess):
    """`1.3 times` for an excess of 0.3."""
    return f"{1 + excess:.{1 if excess < 9 else 0}f} times"
