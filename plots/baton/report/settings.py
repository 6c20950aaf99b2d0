# SPDX-License-Identifier: Apache-2.0
"""Sentences on one work in many settings: at which sizes, ranks, passes or cadences who is fastest, and who never is."""

import collections

from baton import words
from baton.report import axes, ranking
from baton.report.comparisons import SCAN

MOST_SINGLE = 2  # other settings that have a sentence each; more share one
PLURALS = {"state_bytes": "sizes", "tokens": "numbers of tokens", "ranks": "numbers of ranks", "cadence": "kinds of rounds",
           "pass": "passes", "heads": "numbers of heads", "dtype": "types", "packed": "lengths of documents"}
TIMINGS = {"graph": "as CUDA graphs"}


def alike(question):
    """The comparisons that share sentences, the main one first: with rows enough in common, and launches enough if it has."""
    main = question.main
    if len(main.competitors) < 2:
        return [main]
    names, is_judged = {row.name.name for row in main.competitors}, ranking.rank(main).judged

    def is_alike(one):
        common = names & {row.name.name for row in one.competitors}
        return len(common) >= min(3, len(names)) and len(one.competitors) > 1 and (one["ranks"] > 1) == (main["ranks"] > 1) \
            and ranking.rank(one).judged == is_judged

    return [main, *(one for one in question.comparisons if one is not main and is_alike(one))]


def summary(found):
    """Who is fastest in how many of these settings, the first of which is the main one; nothing of few, which have a
    sentence each."""
    if len(found) <= 1 + MOST_SINGLE:
        return ""
    if not ranking.rank(found[0]).judged:
        return f"{where(found)}, in one launch each, least time has {tally(leaders(found), found)}."
    winners = collections.defaultdict(list)
    for one in found:
        ranks = ranking.rank(one)
        if ranking.has_winner(ranks) and not one.lost:
            winners[ranks.first.name].append(one)
    labels = labels_of(found)
    if always := [labels[name] for name, won in winners.items() if len(won) == len(found)]:
        return f"{where(found)}, {always[0]} is fastest. {slower(found)}".strip()
    if level := level_in(found):
        text = f"{where(found)}, nothing is measurably faster than {words.names(labels[name] for name in level)}."
    else:
        at = where(found)
        text = f"No {noun(found[0])} is among the fastest {at[:1].lower()}{at[1:]}."
    won = f"Fastest is {tally({labels[name]: won for name, won in winners.items()}, found)}." if winners else ""
    return " ".join(filter(None, (text, won, undecided(found), slower(found))))


def labels_of(found):
    labels = {}
    for one in found:
        for row in one.competitors:  # a label may be shorter where fewer rows are
            labels.setdefault(row.name, one.label_of(row))
    return labels


def level_in(found):
    """The names of the rows that nothing beats in any of these settings, those with the least times first."""
    level = collections.Counter(row.name for one in found for row in (ranking.rank(one).first, *ranking.rank(one).unbeaten))
    return [name for name, number in level.items() if number == len(found)]


def leaders(found):
    """{label: settings}: who has the least time where."""
    least, labels = collections.defaultdict(list), labels_of(found)
    for one in found:
        least[labels[one.best.name]].append(one)
    return least


def undecided(found):
    """In how many settings the launches do not tell."""
    doubtful = [one for one in found if ranking.rank(one).verdict == ranking.CANNOT_TELL]
    if not doubtful:
        return ""
    return f"The launches cannot tell in {listed(doubtful, found)}." if len(doubtful) < len(found) \
        else "The launches cannot tell in any of them who is fastest."


def slower(found):
    """Who is slower than the fastest in each of these settings, two of them at most, and by how much."""
    behind, labels = collections.defaultdict(list), labels_of(found)
    for one in found:
        ranks = ranking.rank(one)
        for row in ranks.beaten:
            behind[row.name].append(row.ratio_to(ranks.first).value)
    names = sorted((name for name, ratios in behind.items() if len(ratios) == len(found)),
                   key=lambda name: (not ranking.is_lasp2(name.name), -min(behind[name])))[:2]
    ratios = [ratio for name in names for ratio in behind[name]]
    return f"Always slower: {words.names(labels[name] for name in names)}, {words.span(ratios)} times as long." if names else ""


def noun(comparison):
    return "method" if comparison.is_layer else "scan" if comparison.kind == SCAN else "collective"


def tally(of_names, found):
    """Such as `all_scan in 4 of 6 (64 KiB to 512 KiB) and two_shot in 1 (2 MiB)`, the most frequent first."""
    ordered = sorted(of_names.items(), key=lambda one: -len(one[1]))
    return words.names([f"{name} in {listed(some, found, number == 0)}" for number, (name, some) in enumerate(ordered)])


def listed(some, found, is_whole=True):
    """Such as `2 of 6 (128 KiB and 1 MiB)`: some of the settings found; where many axes differ, only how many they are."""
    differ = varying(found)
    number = f"{len(some)} of {len(found)}" if is_whole else str(len(some))
    if len(differ) > 1 or len(some) == len(found):
        return number
    return f"{number} ({words.names((setting(one, differ) for one in sorted(some, key=lambda one: place_of(one, differ))), 3)})"


def place_of(comparison, of_axes):
    """Orders settings."""
    return [(str(type(value)), value) for value in (axes.value_of(comparison, axis) for axis in of_axes)]


def varying(found):
    """The axes in which these comparisons differ, without those that follow from another one."""
    differ = [axis for axis in axes.axes_of(found) if len({axes.value_of(one, axis) for one in found}) > 1]
    if not found[0].is_layer and "state_bytes" in differ:
        differ = [axis for axis in differ if axis not in ("heads", "tokens")]
    return [axis for axis in differ if axis != "rounds"] or differ


def setting(comparison, of_axes):
    """What a comparison has at these axes, in few words, such as `128 KiB, graph rounds`."""
    own = {"state_bytes": words.binary_size, "ranks": lambda ranks: words.count(ranks, "rank"), "tokens": "{} tokens".format,
           "pass": axes.passes, "cadence": "{} rounds".format, "dtype": str}
    return ", ".join(own[axis](comparison[axis]) if axis in own else f"{axes.title_of(axis)} {axes.value(comparison, axis)}" for axis in of_axes)


def where(found):
    """All settings of a comparison in words, such as `At all 6 sizes (64 KiB to 16 MiB)`."""
    differ = varying(found)
    if len(differ) != 1:
        return f"In all {len(found)} tests" + (f" ({parts(found, differ)})" if differ else "")
    (axis,) = differ
    ordered = sorted({axes.value_of(one, axis): one for one in found}.values(), key=lambda one: place_of(one, differ))
    ends = [str(one[axis]) if axis in ("ranks", "tokens") else setting(one, differ) for one in ordered]
    text = f"{ends[0]} to {ends[-1]}" if isinstance(axes.value_of(found[0], axis), int) and len(ends) > 2 else words.names(ends)
    return f"{'In' if axis == 'pass' else 'At'} all {len(ends)} {plural(axis)} ({text})"


def parts(found, differ):
    """The settings by their last axis if there are two, such as `4 sizes isolated, 2 as CUDA graphs`; else each axis counted."""
    counts = {axis: len({axes.value_of(one, axis) for one in found}) for axis in differ}
    if "cadence" in differ and len(differ) == 2:
        (other,) = (axis for axis in differ if axis != "cadence")
        groups = collections.Counter(one["cadence"] for one in found)
        return ", ".join(f"{count}{'' if index else f' {plural(other)}'} {TIMINGS.get(timing, timing)}"
                         for index, (timing, count) in enumerate(groups.items()))
    return ", ".join(f"{count} {plural(axis)}" for axis, count in counts.items())


def plural(axis):
    return PLURALS.get(axis, f"values of {axes.title_of(axis)}")

