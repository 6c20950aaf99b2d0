# SPDX-License-Identifier: Apache-2.0
"""What competes: the softmax methods, the linear ones, and a hybrid of both as some models have it."""

import collections

from simulations import fastest, results

SOFTMAX, LINEAR, HYBRID = TITLES = ("softmax", "linear", "hybrid")

# A stack of layers: `parts` are [(number of layers, record)].
Candidate = collections.namedtuple("Candidate", "name parts")


def contests(records):
    """Returns {title: [Candidate]} of the methods that run, each in its published form."""
    of_kind = {kind: [Candidate(one["name"], [(1, one)]) for one in records if competes(one) and one["attention"] == kind]
               for kind in (SOFTMAX, LINEAR)}
    return {**of_kind, HYBRID: hybrids(*of_kind.values())}


def competes(record):
    return results.why_no_time(record) is None and fastest.exchanges(record)


def hybrids(softmax, linear):
    """One softmax layer and some linear ones. Their tokens lie alike, so that none move between layers."""
    pairs = [(one.parts[0][1], other.parts[0][1]) for one in softmax for other in linear]
    return [Candidate(fastest.hybrid_name(one["name"], other["name"]), [(1, one), (fastest.LINEAR_LAYERS, other)])
            for one, other in pairs if fastest.lie_alike(one, other)]


def total(candidate, key):
    """Returns a sum over the layers, None if one of them lacks the key."""
    values = [(layers, record.get(key)) for layers, record in candidate.parts]
    return None if any(value is None for _, value in values) else sum(layers * value for layers, value in values)


def seconds(candidate):
    return total(candidate, "median_seconds")


def hidden_share(candidate):
    """Returns the share of its exchange that the local work hides, or None if the exchange takes next to no time.

    It is (exposed - overlapped) / (exposed - on links that take no time).
    """
    exposed, free = total(candidate, "exposed_seconds"), total(candidate, "free_seconds")
    if exposed is None or free is None or exposed - free < 1e-3 * exposed:
        return None
    return (exposed - seconds(candidate)) / (exposed - free)
