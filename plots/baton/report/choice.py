# SPDX-License-Identifier: Apache-2.0
"""What a session was asked, and which comparison stands for each question.

A question is one work in all its settings: sizes, ranks, passes, cadences. Its comparison is that on GPUs before processors,
of isolated rounds before others, at most ranks, at the papers' state of 2 MiB or what is nearest to it. Comparisons that
prove nothing, of oversubscribed ranks for example, are never chosen.
"""

import collections
import math

from baton import results, schema
from baton.report.comparisons import LINEAR, SCAN, SOFTMAX
from baton.report.rows import EXPOSED

# All comparisons of one work, and the one among them that stands for all.
Question = collections.namedtuple("Question", "comparisons main")
KINDS = (SCAN, LINEAR, "gdn", "kda", "deltanet", "rwkv7", SOFTMAX)  # in the order in which they are answered

STATE = 2 << 20  # bytes a rank of 32 heads of 128 x 128: the ZeCO paper's exchange


def questions(session, bench, simulated=False):
    """The Questions that the comparisons of one bench answer, those with several competitors first."""
    works = collections.defaultdict(list)
    for comparison in session.comparisons:
        if comparison["bench"] == bench and comparison.is_simulated == simulated and says_something(comparison):
            works[work_of(comparison)].append(comparison)
    choose = the_layer if bench in results.OF_METHODS else the_exchange
    made = [Question(found, choose([one for one in found if len(one.competitors) > 1] or found)) for found in works.values()]
    return sorted(made, key=lambda one: importance(one.main))


def says_something(comparison):
    """True if a comparison has a time that is worth something, be it of one method alone."""
    return comparison.counts and any(row.is_timed for row in comparison.rows)


def work_of(comparison):
    """What is the same in all settings of a question."""
    _, topology, host, machine, *_ = comparison.group
    return (topology, host, machine, comparison["family"], comparison.kind, comparison.wire, comparison.model, comparison["map"],
            "" if comparison.is_layer else comparison.way)


def importance(comparison):
    """Orders questions: what can be compared first, GPUs before processors, the papers' exchange and attention before others."""
    return (len(comparison.competitors) < 2 or comparison["ranks"] < 2, not comparison.on_gpus,
            KINDS.index(comparison.kind) if comparison.kind in KINDS else len(KINDS), schema.is_said(comparison.record, "map"),
            comparison.wire != "f32", not comparison.is_layer and comparison.way != "forward", -comparison["ranks"], comparison.group.axes)


def exchanges(session, simulated=False):
    """The comparisons of exclusive scans in rank order, of unrounded states, that have something to compare."""
    return [comparison for comparison in session.comparisons if not comparison.is_layer and comparison.kind == SCAN
            and comparison.way == "forward" and comparison.wire == "f32" and competes(comparison, simulated)]


def layers(session, simulated=False, attention=LINEAR):
    return [comparison for comparison in session.comparisons if comparison.is_layer and not comparison.is_model
            and comparison.kind == attention and competes(comparison, simulated)]


def competes(comparison, simulated):
    """True if a comparison says which of several is fastest, measured or simulated as asked."""
    return comparison.is_simulated == simulated and comparison.counts and comparison["ranks"] > 1 \
        and len(comparison.competitors) > 1


def the_exchange(found):
    """The comparison that the answer is about, of those that `exchanges` returned; None if there are none."""
    def worth(comparison):
        wide = 2 * len(comparison.competitors) >= max(len(other.competitors) for other in found if alike(comparison, other))
        return (comparison.on_gpus, comparison["cadence"] == "isolated", comparison["ranks"], wide,
                -abs(math.log2(comparison["state_bytes"] / STATE)), len(comparison.competitors), comparison["rounds"])

    return max(found, key=worth, default=None)


def alike(comparison, other):
    """True if two comparisons differ in the size alone."""
    return comparison.group[1:4] == other.group[1:4] and all(comparison[key] == other[key] for key in ("family", "ranks", "cadence"))


def the_layer(found):
    """The same of layers: both passes before one, and a comparison that shows what the exchange costs before others."""
    def worth(comparison):
        exposed = any(row.is_timed and row.name.mode == EXPOSED for row in comparison.rows)
        return (comparison.on_gpus, comparison["ranks"], comparison.way == "both", exposed, len(comparison.competitors),
                comparison["tokens"], comparison["rounds"])

    return max(found, key=worth, default=None)


def ends(session):
    """Yields (subject, comparison, [(end, row)...]) of the comparisons that the answer is about: the fastest and slowest."""
    for subject, bench in (("exchange", "collective"), ("layer", "operator")):
        found = [one.main for one in questions(session, bench) if competes(one.main, simulated=False)]
        for comparison in found[:1]:
            yield subject, comparison, [("fastest", comparison.competitors[0]), ("slowest", comparison.competitors[-1])]
