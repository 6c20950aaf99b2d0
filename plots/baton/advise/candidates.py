# SPDX-License-Identifier: Apache-2.0
"""What competes: the softmax methods, the linear ones, and a hybrid of both as some models have it."""

from baton import fastest, results, stacks
from baton.operators import is_softmax

SOFTMAX, LINEAR, HYBRID = TITLES = ("softmax", "linear", "hybrid")


def comparisons(records, move=None):
    """Returns {title: [stacks.Stack]} of the methods that run, each in its published form. `move` is the record of
    hidden states on their way between layouts, or None."""
    of_kind = {kind: [one for one in records if competes(one) and is_softmax(one) == (kind == SOFTMAX)]
               for kind in (SOFTMAX, LINEAR)}
    layers = {kind: [stacks.Stack(one["name"], one["layout"], [(1, one)]) for one in found]
              for kind, found in of_kind.items()}
    return {**layers, HYBRID: list(stacks.all_of(of_kind[SOFTMAX], of_kind[LINEAR], move))}


def competes(record):
    return results.why_no_time(record) is None and fastest.exchanges(record)


def seconds(candidate):
    return stacks.total(candidate, "median_seconds")


def hidden_share(candidate):
    """Returns the share of its exchange that the local work hides, or None if the exchange takes next to no time.

    It is (exposed - overlapped) / (exposed - on links that take no time).
    """
    exposed, free = stacks.total(candidate, "exposed_seconds"), stacks.total(candidate, "free_seconds")
    if exposed is None or free is None or exposed - free < 1e-3 * exposed:
        return None
    return (exposed - seconds(candidate)) / (exposed - free)
