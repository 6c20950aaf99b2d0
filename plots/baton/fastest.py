# SPDX-License-Identifier: Apache-2.0
"""Which of several simulated times is the least, and which of the others the simulator cannot tell from it.

A simulated time is exact on the machine of its topology, and that machine is a model. So a difference counts only where
it exceeds the typical error of predictions of machines that were measured afterwards (docs/results.md).
"""

import collections

TYPICAL_ERROR = 0.23  # the largest of the machines: results/*/prediction-errors*.txt, the line `all`

# `tied` are the names of the others that cannot be told from `name`, the fastest first. `runner_up` is None if nothing
# else has a time, and `margin` then; else it says how many times as long the runner-up takes.
Fastest = collections.namedtuple("Fastest", "name seconds tied runner_up margin")


def among(times):
    """Returns the Fastest of {name: seconds}, or None if there is no time. Equal times stand in the order of names."""
    order = sorted(times, key=lambda name: (times[name], name))
    if not order:
        return None
    name, *others = order
    tied = [other for other in others if not is_distinct(times[other] / times[name])]
    runner_up = others[0] if others else None
    return Fastest(name, times[name], tied, runner_up, times[runner_up] / times[name] if runner_up else None)


def is_distinct(ratio):
    """Says whether the simulator can tell a time from another one that is `ratio` times as long."""
    return max(ratio, 1 / ratio) > 1 + TYPICAL_ERROR


def last_that_pays(of_ranks, gains):
    """Returns the last number of ranks that gains over the last smaller one that pays, of [(ranks, time)], the fewest ranks first.
    `gains` says whether its second time is less than its first one beyond doubt."""
    (last, best), *others = of_ranks
    for ranks, one in others:
        if gains(best, one):
            last, best = ranks, one
    return last


def exchanges(record):
    """Says whether the layer of a record is the attention of the whole sequence: without messages it is that of a part."""
    return record["ranks"] == 1 or bool(record["sent_bytes"])
