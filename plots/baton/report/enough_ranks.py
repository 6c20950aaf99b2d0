# SPDX-License-Identifier: Apache-2.0
"""Where more ranks stop to pay: a model's time over the numbers of ranks that share one sequence, method by method.

A number of ranks pays if its time is less than that of the last smaller number that pays, by an interval beyond the margin
(ranking.py), or in the simulator by more than the error of predictions. One launch has no interval and tells nothing.
"""

import collections

from baton import estimates, fastest, results, words
from baton.report import axes, choice, ranking

# One sequence of one model on the numbers of ranks that ran it: `rows` has [(ranks, row)] of each method by its label.
Shared = collections.namedtuple("Shared", "comparison rows")


def sentences(session, simulated):
    """Sentences on each model of which several numbers of ranks shared a sequence, measured or simulated as asked: one on the
    model, and one for each of its sequences."""
    found, titles = [], []
    for one in shared(session, simulated):
        title = axes.heading(one.comparison, "sequence", "heads", "ranks", "threads_per_rank")
        title += f", simulated on {one.comparison.group.topology}" * simulated
        if title not in titles:
            margin = words.percent(fastest.TYPICAL_ERROR if simulated else estimates.MARGIN, 0)
            found.append(f"{title}: the ranks of least time. Gains that may be less than {margin} do not pay.")
        titles.append(title)
        found.append("~ " * simulated + sentence(one))
    return found


def shared(session, simulated):
    """The Shared of a session, model by model, the shortest sequences first."""
    groups = collections.defaultdict(list)
    for one in session.comparisons:
        if one.is_model and one["sequence"] and one.is_simulated == simulated and choice.says_something(one):
            groups[results.alike(one.record, "ranks", "ranks_per_node")].append(one)
    found = []
    for comparisons in groups.values():
        rows = collections.defaultdict(list)
        for one in sorted(comparisons, key=lambda one: one["ranks"]):
            for row in one.competitors:
                rows[one.label_of(row)].append((one["ranks"], row))
        rows = {label: of_ranks for label, of_ranks in rows.items() if len(of_ranks) > 1}
        found += [Shared(comparisons[0], rows)] * bool(rows)
    return sorted(found, key=lambda one: (axes.heading(one.comparison, "sequence", "ranks"), one.comparison["sequence"]))


def sentence(one):
    """The least time of each method, the fastest first, and the time of one rank, which is that of ranks that repeat its work."""
    texts = [method(label, one.rows[label]) for label in sorted(one.rows, key=lambda label: least(one.rows[label])[1].median)]
    alone = [row for of_ranks in one.rows.values() for ranks, row in of_ranks if ranks == 1]
    texts += [f"one rank alone {words.time_of(min(alone, key=lambda row: row.median))}"] * bool(alone)
    return f"{one.comparison['sequence']} tokens: {'; '.join(texts)}."


def least(of_ranks):
    return min(of_ranks, key=lambda item: item[1].median)


def method(label, of_ranks):
    (ranks, row), last = least(of_ranks), last_that_pays(of_ranks)
    text = f"{label} {words.time_of(row)} on {words.count(ranks, 'rank')}"
    if last is None:
        return f"{text}, where more stop to pay the launches cannot tell"
    return f"{text}, more ranks {f'stop to pay at P = {last}' if last < of_ranks[-1][0] else 'may pay'}"


def last_that_pays(of_ranks):
    """The last number of ranks that gains over the one before it that pays; None where no two can be compared."""
    (_, first), *others = of_ranks
    if not first.is_simulated and not any(row.ratio_to(first).interval for _, row in others):
        return None
    return fastest.last_that_pays(of_ranks, lambda best, row: row.median < best.median and ranking.is_slower(best, row))
