# SPDX-License-Identifier: Apache-2.0
"""What the simulator says, of more ranks than were measured or of all that it was asked.

All of it is marked `~` and said to be simulated.
"""

import collections
import math

from baton import cases, fastest, results, words
from baton.report import axes, choice, costs, findings, ranking
from baton.report.comparisons import LINEAR, SCAN

MACHINE = "~ Simulated machine: "
OF_PROCESSORS = ", mpi"  # ends the names of topologies that `./run bench` grows from a machine's own calibration
# The axes over which the simulator is followed, and those that change with them.
FOLLOWED = {"ranks": ("ranks", "ranks_per_node"), "state_bytes": ("heads", "tokens"), "tokens": ("tokens", "heads")}

MOST_TIMES = 8  # of a method that nothing competes with
# Comparisons that differ in one axis alone, whose values rise.
Series = collections.namedtuple("Series", "axis comparisons")


def sentences(session):
    """Returns the sentences on the machine, on each series, and on the errors of predictions; empty where nothing was
    simulated."""
    found = grown(session)
    machines = {one.group.topology for each in found for one in each.comparisons}
    where = f"{MACHINE}{', '.join(machines)}." if len(machines) == 1 and len(found) > 1 else ""
    texts = [sentence(each, reservation(session, each.comparisons), not where) for each in found]
    error = typical_error(session.records)
    off = f"Predictions of the measured rows are off by {words.percent(error, 0)} in the mean." if error else ""
    return [where, *texts, off if texts else ""]


def grown(session):
    """Returns the Series of what was simulated, of each bench those of the first question first."""
    found = []
    for bench in results.BENCHES:
        measured = [one.main for one in choice.questions(session, bench)]
        for question in choice.questions(session, bench, simulated=True):
            found += [each._replace(comparisons=beyond(each.comparisons, measured)) for each in series(question.comparisons)]
    return [each for each in found if each.comparisons]


def series(found):
    """Returns the Series that cover these comparisons, those of most comparisons and of the papers' state first."""
    found = [one for one in found if len(one.competitors) > 1 and one["ranks"] > 1] or found

    def groups(axis):
        made = collections.defaultdict(dict)
        for comparison in found:
            made[results.alike(comparison.record, *FOLLOWED[axis])][comparison[axis]] = comparison
        return [Series(axis, [comparison for _, comparison in sorted(each.items())]) for each in made.values()]

    def worth(each):
        one = each.comparisons[0]
        return len(each.comparisons), one.way == "both", -abs(one["state_bytes"] - choice.STATE), one["tokens"] if one.is_layer else 0

    followed = [axis for axis in FOLLOWED if axis != ("state_bytes" if found[0].is_layer else "tokens")]
    made = max(map(groups, followed), key=lambda each: max((len(one.comparisons) for one in each), default=0))
    return sorted(made, key=worth, reverse=True)


def reservation(session, comparisons):
    """What stands before a forecast that is worth less than it seems."""
    last = comparisons[-1]
    if last.is_layer and rates_are_doubtful(session):
        return "from rates of ranks that shared cores: "
    if last.group.topology.endswith(OF_PROCESSORS) and any(record.get("device") for record in session.measured):
        return "of processors, not of these GPUs: "
    return ""


def rates_are_doubtful(session):
    """True if every layer that was measured here waited for its turn on a core, the calibrated one included."""
    timed = [record for record in session.measured if record["bench"] == "operator"
             and cases.state_of(record) == cases.TIMED]
    return bool(timed) and all(map(results.is_oversubscribed, timed))


def beyond(simulated, measured):
    """The simulated comparisons of more ranks than were measured, whose times say who is fastest at fewer."""
    most = max((one["ranks"] for one in measured if one.kind == simulated[0].kind), default=0)
    return [one for one in simulated if one["ranks"] > most]


def sentence(each, before, is_alone):
    """Who leads at which ranks or sizes, and how far LASP-2 is behind at the last; with the machine if `is_alone`."""
    last = each.comparisons[-1]
    machine = f" simulated on {last.group.topology}" * is_alone
    if len(each.comparisons) == 1:
        answer = words.lowered(findings.winner(last)) if len(last.competitors) > 1 else costs.alone(last)
        return f"~ {before}{axes.heading(last).removeprefix('~ ')}{',' * is_alone}{machine}: {answer}"
    if any(len(one.competitors) < 2 for one in each.comparisons):
        times = [f"{words.time_of(costs.row_of(one))} at {ends(each.axis, [one], True)}" for one in each.comparisons]
        return f"~ {before}{subject(each)}{machine}: {last.label_of(costs.row_of(last))} takes {words.names(times, MOST_TIMES)}."
    parts = [f"{clause(names)} at {ends(each.axis, comparisons, number == 0)}" for number, (names, comparisons) in enumerate(leaders(each))]
    text = f"~ {before}{subject(each)}{machine}: {'; '.join(parts)}"
    lasp2, first = ranking.lasp2_of(last) if last.kind in (SCAN, LINEAR) else None, last.best
    slower = lasp2 if lasp2 not in (None, first) else findings.runner_up_of(ranking.rank(last))
    if ranking.is_slower(slower, first):
        name = slower.name.name if slower is not lasp2 else "LASP-2" if last.is_layer else f"LASP-2 ({lasp2.name.name})"
        text += f"; {name} ~{words.factor(slower.ratio_to(first).value)} times as long as {first.name.name} at {value(last, each.axis)}"
    return text + "."


def subject(each):
    """What a series is of, in words: a layer or an exchange, with the axes that others of its session have otherwise."""
    one, is_of_ranks = each.comparisons[-1], each.axis == "ranks"
    if one.kind not in (SCAN, LINEAR) or one.is_model or set(one.apart) - {*FOLLOWED[each.axis], each.axis}:
        hidden = (each.axis, *FOLLOWED[each.axis], *["heads", "dtype"] * (one.is_layer and "dtype" not in one.apart))
        return axes.heading(one, *hidden).removeprefix("~ ")
    what = "layer" if one.is_layer else "exchange"
    if not is_of_ranks:
        return f"{what} between {words.count(one['ranks'], 'rank')}"
    return what if one.is_layer else f"{what} of {words.binary_size(one['state_bytes'])}"


def value(comparison, axis):
    return words.binary_size(comparison[axis]) if axis == "state_bytes" else str(comparison[axis])


def ends(axis, comparisons, is_named):
    """The ends of rising values of an axis, such as `4 to 256 ranks`."""
    values = [value(one, axis) for one in (comparisons[0], comparisons[-1])]
    text = values[0] if len(comparisons) == 1 else " to ".join(values)
    return text + {"ranks": " ranks", "tokens": " tokens a rank"}.get(axis, "") * is_named


def clause(names):
    if len(names) == 1:
        return f"{names[0]} fastest"
    return f"{words.names(names, 3)} tie within {words.percent(fastest.TYPICAL_ERROR, 0)}"


def leaders(each):
    """Returns [(names, comparisons)]: those that the model cannot tell from the least time, over the comparisons of a series
    where all of them stay so. The one that led before comes first."""
    stretches = []
    for comparison in each.comparisons:
        ranks = ranking.rank(comparison)
        level = list(dict.fromkeys(row.name.name for row in (ranks.first, *ranks.unbeaten)))
        kept = [name for name in stretches[-1][0] if name in level] if stretches else []
        if kept and len(kept) == 1 == len(stretches[-1][0]) == len(level) or len(kept) > 1:
            stretches[-1] = (kept, [*stretches[-1][1], comparison])
        else:
            stretches.append(([*kept, *(name for name in level if name not in kept)], [comparison]))
    return stretches


def typical_error(records):
    """The geometric mean error of the predictions that stand beside measured rows, or None without any. One rank exchanges
    nothing, so that a calibration predicts only the times that it was made of."""
    errors = [abs(math.log(record["predicted_seconds"] / record["median_seconds"])) for record in records
              if record.get("predicted_seconds") and record.get("median_seconds")
              and record["ranks"] > 1 and record["executor"] != results.SIMULATOR and not results.is_oversubscribed(record)]
    return math.expm1(sum(errors) / len(errors)) if errors else None
