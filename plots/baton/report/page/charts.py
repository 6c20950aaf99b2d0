# SPDX-License-Identifier: Apache-2.0
"""Makes charts of comparisons: times against sizes, times against ranks, and layers as bars."""

import collections
import math
import statistics

from baton import looks, results, style, words
from baton.report import axes
from baton.report.page import bars, lines
from baton.report.rows import AUTO, COMPUTE_ONLY, EXPOSED, LOCAL

SIZE, RANKS = "size", "ranks"
# The axes in which the comparisons of a chart may differ.
FREE = {SIZE: ("heads", "tokens"), RANKS: ("ranks", "ranks_per_node", "ranks_per_gpu")}
PAPERS = ("zeco", "lasp1", "lasp2", "all_scan", "ring_scan", "all_gather_scan", "nccl_all_gather_scan",
          LOCAL)  # lines that are kept first

# What a chart is of: what its comparisons share, and what orders it among others.
Subject = collections.namedtuple("Subject", "group importance")

Identity = collections.namedtuple("Identity", "name executor implementation scan shares blocks simulated")


def against_size(comparisons):
    """Yields (Subject, Chart) of exchanges against the bytes of the state, and of layers against the tokens."""
    for shared, group in grouped(comparisons, SIZE):
        axis = "tokens" if group[0].is_layer else "state_bytes"
        unit, title = (str, "tokens a rank") if axis == "tokens" else (words.size, "bytes of a rank's state")
        if len({one[axis] for one in group}) > 1:
            yield from chart(Subject(shared, axes.importance(group[0])), group, axis, ("state_bytes", *FREE[SIZE]), title, unit)


def against_ranks(comparisons):
    """Yields (Subject, Chart): measured lines, with simulated ones beside them where this machine was the model."""
    groups = dict(grouped(comparisons, RANKS))
    joined = {shared: [other for other in groups if modelled(group[0], groups[other][0])]
              for shared, group in groups.items() if not shared.topology}
    beside = {other for others in joined.values() for other in others}
    for shared, group in groups.items():
        if shared in beside:
            continue
        group = group + [one for other in joined.get(shared, ()) for one in groups[other]]
        if len({one["ranks"] for one in group}) > 1:
            yield from chart(Subject(shared, axes.importance(group[0])[:-1]), group, "ranks", FREE[RANKS], "ranks", str)


def modelled(one, other):
    """True if `other` is the same work at any ranks, simulated on a model of the machine that `one` was measured on."""
    def work(of):
        of_machine = ("family", "warmup", "rounds", *FREE[RANKS])
        return results.alike(of.record, *of_machine).axes, of.wire, of["dtype"]
    topology, machine = other.group.topology, one.group.machine  # "64 x Some CPU, 2 cores, mpi"
    return bool(topology) and bool(machine) and machine in topology and work(one) == work(other)


def grouped(comparisons, kind):
    groups = collections.defaultdict(list)
    for comparison in comparisons:
        groups[results.alike(comparison.record, *FREE[kind])].append(comparison)
    return groups.items()


def chart(subject, group, axis, hidden, x_title, unit):
    """Yields the chart of a group of comparisons, if two methods have lines in it. Its title is without the axes `hidden`."""
    found, names = collect(group, axis)
    found = {one: points for one, points in found.items() if len(points) > 1}
    if len({one[:-1] for one in found}) < 2:
        return
    order = by_worth(found)
    kept = sorted(order[:style.MOST_LINES], key=lambda one: worth(one, found))
    left_out = [names[one] + " ~" * one.simulated for one in order[style.MOST_LINES:]]
    made = [lines.Line(names[one], looks.look(one.name).colour, one.simulated,
                       [point[:5] for point in sorted(found[one])]) for one in kept]
    both = len({one.simulated for one in kept}) > 1
    first = next(one for one in group if both or one.is_simulated == kept[0].simulated)
    about = f"{axes.subject(first)}." + (" Dashed and ~: simulated, on a model of this machine." if both else "")
    about += " local is the layer without an exchange, which competes with none." * any(one.name == LOCAL for one in kept)
    is_flat_ideal = axis == "ranks" and first.is_layer and len({one["tokens"] for one in group}) == 1
    about += " Each rank has as many tokens at any number of ranks, so a flat line is ideal." * is_flat_ideal
    marks = {point[4] for one in kept for point in found[one]}
    about += " Crosses: oversubscribed, no measure of the methods." * (lines.OVERSUBSCRIBED in marks)
    about += " Rings: of another launch or commit than the other points." * (lines.ELSEWHERE in marks)
    yield subject, lines.Chart(axes.heading(first, *hidden), about, x_title, unit, made, left_out, lines.OVERSUBSCRIBED in marks and "" not in marks)


def collect(group, axis):
    """Returns {Identity: [(x, seconds, interval, note, mark, ratio to the best)]} and {Identity: label}."""
    found, names = collections.defaultdict(list), {}
    main = common_origin(group)
    for comparison in group:
        for row in comparison.competitors + [row for row in comparison.local_rows if row.name.name == LOCAL]:
            one = Identity(row.name.name, "" if row.is_simulated else row.name.executor, row.name.implementation,
                           row.name.scan, row.name.shares, AUTO if row.name.blocks == AUTO else row.name.blocks, row.is_simulated)
            label = comparison.label_of(row)
            names[one] = max(names.get(one, ""), label, key=len)
            other = not row.is_simulated and origin(row.records[-1]) != main
            mark = lines.OVERSUBSCRIBED if comparison.is_oversubscribed else lines.ELSEWHERE if other else ""
            best = row.median / comparison.best.median if comparison.best else 1
            found[one].append((comparison[axis], row.median, row.interval, note(label, comparison, row), mark, best))
    return found, names


def note(label, comparison, row):
    simulated = "~ simulated, " if row.is_simulated else ""
    return f"{label}: {simulated}{axes.shape(comparison)}: {words.time_of(row)}"


def by_worth(found):
    """Returns the lines by what they are worth: the best one of each of the papers' methods, then the best of all."""
    best = sorted(found, key=lambda one: worth(one, found))
    papers = {(one.name, one.simulated): one for one in reversed(best) if one.name in PAPERS}
    return sorted(best, key=lambda one: one not in papers.values())


def worth(one, found):
    """Orders lines: the nearer to the best of its comparisons, the earlier."""
    return statistics.fmean(math.log(point[5]) for point in found[one])


def origin(record):
    """What must be equal of points that stand together unmarked: the run of the whole suite, and the commit."""
    return record.get("session") or record["run"], record["commit"]


def common_origin(group):
    """The origin of most measured records of these comparisons."""
    seen = collections.Counter(origin(record) for comparison in group if not comparison.is_simulated
                               for record in comparison.records)
    return seen.most_common(1)[0][0] if seen else None


def layers(comparisons):
    """Yields (Subject, Chart) of each comparison of layers that has a method without its exchange, which splits its time."""
    for comparison in comparisons:
        if not comparison.is_layer or not comparison.competitors:
            continue
        rows = comparison.competitors + [row for row in comparison.local_rows if row.name.name == LOCAL]
        rows = [*sorted(rows, key=lambda row: row.median)]
        order = sorted(rows, key=lambda row: row.name.name not in PAPERS)
        kept = order[:style.MOST_LINES]
        made = [bar(comparison, row) for row in rows if row in kept]
        if not any(one.local for one in made):
            continue
        about = f"{axes.subject(comparison)}."
        about += " Oversubscribed: no measure of the methods." * comparison.is_oversubscribed
        main = common_origin([comparison])
        others = [comparison.label_of(row) for row in kept if not row.is_simulated and origin(row.records[-1]) != main]
        about += f" Of another launch or commit: {words.names(others)}." if others else ""
        yield Subject(comparison.group, axes.importance(comparison)), bars.Chart(axes.heading(comparison), about, made,
                                      [comparison.label_of(row) for row in order[style.MOST_LINES:]], comparison.is_oversubscribed)


def bar(comparison, row):
    local, exposed = (comparison.beside(row, mode) for mode in (COMPUTE_ONLY, EXPOSED))
    return bars.Bar(comparison.label_of(row), looks.look(row.name.name).colour, row.is_simulated, row.median, row.interval,
                    words.time_of(row), local.median if local else None, exposed.median if exposed else None,
                    note(comparison.label_of(row), comparison, row))


def without_machine(group):
    """What comparisons of several sessions share that stand side by side."""
    return group._replace(host="", machine="", placement="")
