# SPDX-License-Identifier: Apache-2.0
"""What the simulator says of more ranks than were measured. All of it is marked `~` and said to be simulated."""

import collections
import math

from baton import captions, cases, results, words
from baton.report import choice, ranking
from baton.report.contests import is_oversubscribed

MACHINE = "~ Simulated machine: "
OF_PROCESSORS = ", mpi"  # ends the names of topologies that `./run bench` grows from a machine's own calibration


def sentences(session):
    """Returns four sentences: on the machine, on the exchange, on the layer, and on the errors of predictions; empty where
    nothing was simulated."""
    found = {"exchange": beyond(series(choice.exchanges(session, simulated=True)), choice.exchanges(session)),
             "layer": beyond(series(choice.layers(session, simulated=True)), choice.layers(session))}
    machines = {one.group.topology for contests in found.values() for one in contests}
    where = f"{MACHINE}{', '.join(machines)}." if len(machines) == 1 else ""
    told = [sentence(subject, contests, reservation(session, contests), not where) if contests else ""
            for subject, contests in found.items()]
    error = typical_error(session.records)
    off = f"Predictions of the measured rows are off by {words.percent(error, 0)} in the mean." if error else ""
    return [where, *told, off if any(told) else ""]


def reservation(session, contests):
    """What stands before a forecast that is worth less than it seems."""
    last = contests[-1]
    if last.is_layer and rates_are_doubtful(session):
        return "from rates of ranks that shared cores: "
    if last.group.topology.endswith(OF_PROCESSORS) and any(record.get("device") for record in session.measured):
        return "of processors, not of these GPUs: "
    return ""


def rates_are_doubtful(session):
    """True if every layer that was measured here waited for its turn on a core, the calibrated one included."""
    timed = [record for record in session.measured if record["bench"] == "operator"
             and cases.state_of(record) == cases.TIMED]
    return bool(timed) and all(map(is_oversubscribed, timed))


def series(found):
    """Returns the contests that differ in ranks alone and cover most of them, by ranks; the papers' state if it can."""
    groups = collections.defaultdict(dict)
    for contest in found:
        groups[results.alike(contest.record, "ranks", "ranks_per_node")][contest["ranks"]] = contest

    def worth(by_ranks):
        one = next(iter(by_ranks.values()))
        return len(by_ranks), one.way == "both", -abs(one["state_bytes"] - choice.STATE), one["tokens"] if one.is_layer else 0

    return [contest for _, contest in sorted(max(groups.values(), default={}, key=worth).items())]


def beyond(simulated, measured):
    """The simulated contests of more ranks than were measured, whose times say who is fastest at fewer."""
    most = max((one["ranks"] for one in measured), default=0)
    return [one for one in simulated if one["ranks"] > most]


def sentence(subject, contests, before, is_alone):
    """Who leads at which ranks, and how far LASP-2 is behind at the most of them; with the machine if `is_alone`."""
    last = contests[-1]
    told = [f"{clause(names)} at {words.ranges(ranks)}{' ranks' if number == 0 else ''}"
            for number, (names, ranks) in enumerate(leaders(contests))]
    size = "" if last.is_layer else f" of {captions.binary_size(last['state_bytes'])}"
    text = f"~ {before}{subject}{size}{f' on {last.group.topology}' * is_alone}: {'; '.join(told)}"
    lasp2, first = ranking.lasp2_of(last), last.best
    if lasp2 is not None and lasp2 is not first and ranking.is_slower(lasp2, first):
        name = "LASP-2" if last.is_layer else f"LASP-2 ({lasp2.name.name})"
        text += f"; {name} ~{words.factor(lasp2.ratio_to(first).value)} times as long as {first.name.name} at {last['ranks']}"
    return text + "."


def clause(names):
    if len(names) == 1:
        return f"{names[0]} fastest"
    return f"{words.names(names, 3)} tie within {words.percent(ranking.MODEL_TELLS - 1, 0)}"


def leaders(contests):
    """Returns [(names, ranks)]: those that the model cannot tell from the least time, over the ranks where all of them
    stay so. The one that led before comes first."""
    stretches = []
    for contest in contests:
        ranks = ranking.rank(contest)
        level = list(dict.fromkeys(row.name.name for row in (ranks.first, *ranks.unbeaten)))
        kept = [name for name in stretches[-1][0] if name in level] if stretches else []
        if kept and len(kept) == 1 == len(stretches[-1][0]) == len(level) or len(kept) > 1:
            stretches[-1] = (kept, [*stretches[-1][1], contest["ranks"]])
        else:
            stretches.append(([*kept, *(name for name in level if name not in kept)], [contest["ranks"]]))
    return stretches


def typical_error(records):
    """The geometric mean error of the predictions that stand beside measured rows, or None without any. One rank exchanges
    nothing, so that a calibration predicts only the times that it was made of."""
    errors = [abs(math.log(record["predicted_seconds"] / record["median_seconds"])) for record in records
              if record.get("predicted_seconds") and record.get("median_seconds")
              and record["ranks"] > 1 and record["executor"] != results.SIMULATOR and not is_oversubscribed(record)]
    return math.expm1(sum(errors) / len(errors)) if errors else None
