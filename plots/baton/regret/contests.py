# SPDX-License-Identifier: Apache-2.0
"""The contests in which the simulator was judged, kept in contests.csv by `python3 -m baton regret`.

The times of a contest are those that were measured or published. The simulator's say which row it names.
"""

import collections
import csv
import io
import pathlib
import statistics

from baton import fastest, files

KEPT = pathlib.Path(__file__).with_name("contests.csv")
CALIBRATED, COMPOSED = "calibrated on this machine", "not calibrated there"

# `what` is the bench, `origin` one of the two words above, `rows` how many rows competed. `times` is
# how many times as long as `best` the row takes that the simulator `named`, and `slowest` the slowest
# row. `claimed` is how many times as long as the named row the simulator has the best one.
Judged = collections.namedtuple(
    "Judged", "source what topology origin contest ranks rows named best times slowest claimed")
NUMBERS = {"ranks": int, "rows": int, "times": float, "slowest": float, "claimed": float}


def judge(measured, predicted):
    """Returns (rows, named, best, times, slowest, claimed) of {name: seconds}, measured and predicted, or None where fewer
    than two rows have both."""
    both = {name: seconds for name, seconds in measured.items() if name in predicted}
    if len(both) < 2:
        return None
    best = fastest.of(both)
    named = fastest.of({name: predicted[name] for name in both}).name
    return (len(both), named, best.name, both[named] / best.seconds, max(both.values()) / best.seconds,
            predicted[best.name] / predicted[named])


def as_text(head, judged):
    """Returns the file: the lines of `head` as comments, and a line for each contest."""
    text = io.StringIO(newline="")
    text.writelines(f"# {line}\n" for line in head)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Judged._fields)
    writer.writerows([f"{value:.4f}" if isinstance(value, float) else value for value in one] for one in judged)
    return text.getvalue()


def read(path=KEPT):
    lines = [line for line in files.text_of(path).splitlines() if not line.startswith("#")]
    return [Judged(**{key: NUMBERS.get(key, str)(value) for key, value in row.items()})
            for row in csv.DictReader(lines)]


def median(judged):
    return statistics.median(one.times for one in judged)


def worst(judged):
    return max(judged, key=lambda one: one.times)


def count_on(judged, topology):
    """Returns how many contests were judged on the topology of that name."""
    return sum(one.topology == topology for one in judged)


def sentence(judged):
    return (f"Over {len(judged)} measured and published contests, what the simulator names takes {median(judged):.2f} "
            f"times as long as the fastest at the median, {worst(judged).times:.2f} times at worst.")
