# SPDX-License-Identifier: Apache-2.0
"""Which contest is "the exchange" and which is "the layer" of an answer, and which ones stand beside it.

On GPUs before processors, isolated rounds before others, at most ranks, at the papers' state of 2 MiB or what is
nearest to it. Contests that prove nothing, of oversubscribed ranks for example, are never chosen.
"""

import math

from baton.report.contests import LINEAR, SCAN, SOFTMAX
from baton.report.rows import EXPOSED

STATE = 2 << 20  # bytes a rank of 32 heads of 128 x 128: the ZeCO paper's exchange


def exchanges(session, simulated=False):
    """The contests of exclusive scans in rank order, of unrounded states, that have something to compare."""
    return [contest for contest in session.contests if not contest.is_layer and contest.kind == SCAN
            and contest.way == "forward" and contest.wire == "f32" and competes(contest, simulated)]


def layers(session, simulated=False, attention=LINEAR):
    return [contest for contest in session.contests if contest.is_layer and not contest.is_model
            and contest.kind == attention and competes(contest, simulated)]


def models(session, simulated=False):
    return [contest for contest in session.contests if contest.is_model and competes(contest, simulated)]


def competes(contest, simulated):
    """True if a contest says which of several is fastest, measured or simulated as asked."""
    return contest.is_simulated == simulated and contest.counts and contest["ranks"] > 1 \
        and len(contest.competitors) > 1


def the_exchange(found):
    """The contest that the answer is about, of those that `exchanges` returned; None if there are none."""
    def worth(contest):
        wide = 2 * len(contest.competitors) >= max(len(other.competitors) for other in found if alike(contest, other))
        return (contest.on_gpus, contest["cadence"] == "isolated", contest["ranks"], wide,
                -abs(math.log2(contest["state_bytes"] / STATE)), len(contest.competitors), contest["rounds"])

    return max(found, key=worth, default=None)


def alike(contest, other):
    """True if two contests differ in the size alone."""
    return contest.group[1:4] == other.group[1:4] and all(contest[key] == other[key] for key in ("family", "ranks", "cadence"))


def the_layer(found):
    """The same of layers: both passes before one, and a contest that shows what the exchange costs before others."""
    def worth(contest):
        exposed = any(row.is_timed and row.name.mode == EXPOSED for row in contest.rows)
        return (contest.on_gpus, contest["ranks"], contest.way == "both", exposed, len(contest.competitors),
                contest["tokens"], contest["rounds"])

    return max(found, key=worth, default=None)


def ends(session):
    """Yields (subject, contest, [(end, row)...]) of the contests that the answer is about: the fastest and slowest."""
    for subject, contest in (("exchange", the_exchange(exchanges(session))), ("layer", the_layer(layers(session)))):
        if contest:
            yield subject, contest, [("fastest", contest.competitors[0]), ("slowest", contest.competitors[-1])]


def softmax_layer(session, layer):
    """The contest of softmax attention of the same pass and shape as `layer`, or the best there is, or None."""
    found = layers(session, attention=SOFTMAX)
    return max(found, key=lambda one: layer is not None and (
        one["family"] == layer["family"], one["ranks"] == layer["ranks"], one.way == layer.way),
        default=None)


def others(found, chosen):
    """The contests of three rows or more by the same executors that differ in ranks, size or cadence."""
    return [contest for contest in found if contest is not chosen and contest["family"] == chosen["family"]
            and len(contest.competitors) > 2]


def on_other_family(found, chosen):
    """The contests by other executors than the chosen one's: on processors beside GPUs, by tcp beside mpi."""
    return [contest for contest in found if contest["family"] != chosen["family"]]
