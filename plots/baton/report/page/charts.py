# SPDX-License-Identifier: Apache-2.0
"""Makes charts of contests: times against sizes, times against ranks, and layers as bars."""

import collections
import math
import statistics

from baton import looks, style, words
from baton.report.contests import METHODS
from baton.report.page import bars, lines, said
from baton.report.rows import AUTO, COMPUTE_ONLY, EXPOSED, LOCAL

SIZE, RANKS = "size", "ranks"
# The fields of a key in which the contests of a chart may differ.
FREE = {SIZE: {"state_bytes": 0, "heads": 0, "tokens": 0},
        RANKS: {"ranks": 0, "ranks_a_node": 0, "ranks_a_gpu": 1}}
PAPERS = ("zeco", "lasp1", "lasp2", "all_scan", "ring_scan", "all_gather_scan", "nccl_all_gather_scan",
          LOCAL)  # lines that are kept first

Identity = collections.namedtuple("Identity", "name executor implementation scan blocks simulated")


def against_size(contests_of_session):
    """Yields (place, Chart) of exchanges against the bytes of the state, and of layers against the tokens."""
    for key, group in grouped(contests_of_session, SIZE):
        field = "tokens" if key.bench in METHODS else "state_bytes"
        unit, title = (str, "tokens a rank") if field == "tokens" else (words.size, "bytes of a rank's state")
        if len({getattr(one.key, field) for one in group}) > 1:
            yield from chart(key, group, field, said.heading(key, "state_bytes", "tokens", "heads"),
                             title, unit)


def against_ranks(contests_of_session):
    """Yields (place, Chart): measured lines, with simulated ones beside them where this machine was the model."""
    groups = dict(grouped(contests_of_session, RANKS))
    joined = {key: [other for other in groups if modelled(key, other)] for key in groups if not key.topology}
    beside = {other for others in joined.values() for other in others}
    for key, group in groups.items():
        if key in beside:
            continue
        group = group + [one for other in joined.get(key, ()) for one in groups[other]]
        if len({one.key.ranks for one in group}) > 1:
            yield from chart(key, group, "ranks", said.heading(key, "ranks"), "ranks", str)


def modelled(key, other):
    """True if `other` is the same work, simulated on a model of the machine that `key` was measured on."""
    def work(of):
        return of._replace(family="", topology="", host="", machine="", ranks_a_node=0, rounds=None)
    ours = key.machine and key.machine in other.topology  # "64 x Some CPU, 2 cores, mpi"
    return bool(other.topology) and bool(ours) and work(key) == work(other)


def grouped(contests_of_session, kind):
    groups = collections.defaultdict(list)
    for contest in contests_of_session:
        groups[contest.key._replace(**FREE[kind])].append(contest)
    return groups.items()


def chart(key, group, field, title, x_title, unit):
    """Yields the chart of a group of contests, if two methods have lines in it."""
    found, names = collect(group, field)
    found = {one: points for one, points in found.items() if len(points) > 1}
    if len({one[:-1] for one in found}) < 2:
        return
    order = by_worth(found)
    kept = sorted(order[:style.MOST_LINES], key=lambda one: worth(one, found))
    left_out = [names[one] + " ~" * one.simulated for one in order[style.MOST_LINES:]]
    made = [lines.Line(names[one], looks.look(one.name).colour, one.simulated,
                       [point[:5] for point in sorted(found[one])]) for one in kept]
    both = len({one.simulated for one in kept}) > 1
    about = f"{said.subject(key)}." + (" Dashed and ~: simulated, on a model of this machine." if both else "")
    marks = {point[4] for one in kept for point in found[one]}
    about += " Crosses: oversubscribed, no measure of the methods." * (lines.OVERSUBSCRIBED in marks)
    about += " Rings: of another launch or commit than the other points." * (lines.ELSEWHERE in marks)
    yield key, lines.Chart(title, about, x_title, unit, made, left_out, lines.OVERSUBSCRIBED in marks and "" not in marks)


def collect(group, field):
    """Returns {Identity: [(x, seconds, interval, note, mark, ratio to the best)]} and {Identity: label}."""
    found, names = collections.defaultdict(list), {}
    main = common_origin(group)
    for contest in group:
        for row in contest.competitors + [row for row in contest.local_rows if row.name.name == LOCAL]:
            one = Identity(row.name.name, "" if row.is_simulated else row.name.executor, row.name.implementation,
                           row.name.scan, AUTO if row.name.blocks == AUTO else row.name.blocks, row.is_simulated)
            label = contest.label_of(row)
            names[one] = max(names.get(one, ""), label, key=len)
            other = not row.is_simulated and origin(row.records[-1]) != main
            mark = lines.OVERSUBSCRIBED if contest.is_oversubscribed else lines.ELSEWHERE if other else ""
            best = row.median / contest.best.median if contest.best else 1
            found[one].append((getattr(contest.key, field), row.median, row.interval, note(label, contest, row), mark, best))
    return found, names


def note(label, contest, row):
    simulated = "~ simulated, " if row.is_simulated else ""
    return f"{label}: {simulated}{said.shape(contest.key)}: {words.time_of(row)}"


def by_worth(found):
    """Returns the lines by what they are worth: the best one of each of the papers' methods, then the best of all."""
    best = sorted(found, key=lambda one: worth(one, found))
    papers = {(one.name, one.simulated): one for one in reversed(best) if one.name in PAPERS}
    return sorted(best, key=lambda one: one not in papers.values())


def worth(one, found):
    """Orders lines: the nearer to the best of its contests, the earlier."""
    return statistics.fmean(math.log(point[5]) for point in found[one])


def origin(record):
    """What must be equal of points that stand together unmarked: the run of the whole suite, and the commit."""
    return record.get("session") or record["run"], record["commit"]


def common_origin(group):
    """The origin of most measured records of these contests."""
    seen = collections.Counter(origin(record) for contest in group if not contest.is_simulated
                               for record in contest.records)
    return seen.most_common(1)[0][0] if seen else None


def layers(contests_of_session):
    """Yields (key, Chart) of each contest of layers."""
    for contest in contests_of_session:
        if not contest.is_layer or not contest.competitors:
            continue
        rows = contest.competitors + [row for row in contest.local_rows if row.name.name == LOCAL]
        rows = [*sorted(rows, key=lambda row: row.median)]
        order = sorted(rows, key=lambda row: row.name.name not in PAPERS)
        kept = order[:style.MOST_LINES]
        made = [bar(contest, row) for row in rows if row in kept]
        about = (f"{said.subject(contest.key)}. Full: local work alone; light: what the exchange adds; stroke: the "
                 "exchange exposed.")
        about += " Oversubscribed: no measure of the methods." * contest.is_oversubscribed
        main = common_origin([contest])
        others = [contest.label_of(row) for row in kept if not row.is_simulated and origin(row.records[-1]) != main]
        about += f" Of another launch or commit: {words.names(others)}." if others else ""
        yield contest.key, bars.Chart(said.heading(contest.key), about, made,
                                      [contest.label_of(row) for row in order[style.MOST_LINES:]], contest.is_oversubscribed)


def bar(contest, row):
    local, exposed = (contest.beside(row, mode) for mode in (COMPUTE_ONLY, EXPOSED))
    return bars.Bar(contest.label_of(row), looks.look(row.name.name).colour, row.is_simulated, row.median, row.interval,
                    words.time_of(row), local.median if local else None, exposed.median if exposed else None,
                    note(contest.label_of(row), contest, row))


def place(key):
    """What charts of several sessions share that stand side by side."""
    return key._replace(host="", machine="")
