# SPDX-License-Identifier: Apache-2.0
"""What a session was asked, and which contest stands for each question.

A question is one work in all its settings: sizes, ranks, passes, cadences. Its contest is that on GPUs before processors,
of isolated rounds before others, at most ranks, at the papers' state of 2 MiB or what is nearest to it. Contests that
prove nothing, of oversubscribed ranks for example, are never chosen.
"""

import collections
import math

from baton import schema
from baton.report.contests import LINEAR, METHODS, SCAN, SOFTMAX
from baton.report.rows import EXPOSED

# All contests of one work, and the one among them that stands for all.
Question = collections.namedtuple("Question", "contests main")
KINDS = (SCAN, LINEAR, "gdn", "kda", "deltanet", "rwkv7", SOFTMAX)  # in the order in which they are answered

STATE = 2 << 20  # bytes a rank of 32 heads of 128 x 128: the ZeCO paper's exchange


def questions(session, bench, simulated=False):
    """The Questions that the contests of one bench answer, those with several competitors first."""
    works = collections.defaultdict(list)
    for contest in session.contests:
        if contest["bench"] == bench and contest.is_simulated == simulated and says_something(contest):
            works[work_of(contest)].append(contest)
    choose = the_layer if bench in METHODS else the_exchange
    made = [Question(found, choose([one for one in found if len(one.competitors) > 1] or found)) for found in works.values()]
    return sorted(made, key=lambda one: importance(one.main))


def says_something(contest):
    """True if a contest has a time that is worth something, be it of one method alone."""
    return contest.counts and any(row.is_timed for row in contest.rows)


def work_of(contest):
    """What is the same in all settings of a question."""
    return (contest.group.topology, contest.group.host, contest.group.machine, contest["family"], contest.kind, contest.wire, contest.model,
            contest["map"], "" if contest.is_layer else contest.way)


def importance(contest):
    """Orders questions: what can be compared first, GPUs before processors, the papers' exchange and attention before others."""
    return (len(contest.competitors) < 2 or contest["ranks"] < 2, not contest.on_gpus,
            KINDS.index(contest.kind) if contest.kind in KINDS else len(KINDS), schema.is_said(contest.record, "map"),
            contest.wire != "f32", not contest.is_layer and contest.way != "forward", -contest["ranks"], contest.group.contest)


def exchanges(session, simulated=False):
    """The contests of exclusive scans in rank order, of unrounded states, that have something to compare."""
    return [contest for contest in session.contests if not contest.is_layer and contest.kind == SCAN
            and contest.way == "forward" and contest.wire == "f32" and competes(contest, simulated)]


def layers(session, simulated=False, attention=LINEAR):
    return [contest for contest in session.contests if contest.is_layer and not contest.is_model
            and contest.kind == attention and competes(contest, simulated)]


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
    for subject, bench in (("exchange", "collective"), ("layer", "operator")):
        found = [one.main for one in questions(session, bench) if competes(one.main, simulated=False)]
        for contest in found[:1]:
            yield subject, contest, [("fastest", contest.competitors[0]), ("slowest", contest.competitors[-1])]
