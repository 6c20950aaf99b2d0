# SPDX-License-Identifier: Apache-2.0
"""One sentence on two sessions, of two machines or two commits: who is ahead in each of the settings that both have."""

import collections
import math

from baton import results, words
from baton.report import axes, choice, findings, ranking
from baton.report.comparisons import MOVE_TOKENS

# The same setting of two sessions: the comparison of each.
Pair = collections.namedtuple("Pair", "one other")


def sentence(one, other, letters="AB"):
    """Who of two sessions is faster, by how much at the setting that stands for all, and whether the same row is ahead."""
    pairs = shared(one, other)
    first, second = letters
    if not pairs:
        works = [f"{letter} has {axes.heading(found[0])}" for letter, session in zip(letters, (one, other)) if (found := asked(session))]
        return f"{first} and {second} have no setting in common{': ' * bool(works)}{'; '.join(works)}."
    main = pairs[0]
    rows = [(main.one.best, main.one.label_of(main.one.best), first), (main.other.best, main.other.label_of(main.other.best), second)]
    (fast, name, faster), (slow, name_of_slow, slower) = sorted(rows, key=lambda each: each[0].median)
    verdict = {ranking.SLOWER: f"{faster} is faster", ranking.TIES: f"{first} and {second} tie", ranking.UNDECIDED: f"the launches cannot tell {first} from {second}"}
    text = (f"{axes.heading(main.one, 'ranks')}, {words.count(main.one['ranks'], 'rank')}: {verdict[ranking.relation(slow, fast)]}; {faster}'s {name} "
            f"takes {words.time_of(fast)}, and {slower}'s {name_of_slow} {findings.times(slow, fast)} as long.")
    if len(pairs) == 1:
        return text
    ahead = sum(pair.one.best.median < pair.other.best.median for pair in pairs)
    same = sum(pair.one.best.name.name == pair.other.best.name.name for pair in pairs)
    return (f"{text} Of {len(pairs)} settings that both have, {first} has the lower time in {ahead} and {second} in {len(pairs) - ahead}; the same "
            f"name has the least time in {same}.")


def asked(session):
    """The comparisons that stand for the questions of a session."""
    return [one.main for bench in results.BENCHES for simulated in (False, True) for one in choice.questions(session, bench, simulated)]


def shared(one, other):
    """The Pairs of two sessions, those of the first one's questions first, and among others those nearest to the papers' state."""
    of_other = {setting(comparison): comparison for comparison in comparisons(other)}
    order = asked(one)
    found = [Pair(comparison, of_other[setting(comparison)]) for comparison in comparisons(one) if setting(comparison) in of_other]
    return sorted(found, key=lambda pair: (order.index(pair.one) if pair.one in order else len(order), choice.importance(pair.one)[:-1],
                                           abs(math.log2(pair.one["state_bytes"] / choice.STATE))))


def comparisons(session):
    return [one for one in session.comparisons if choice.says_something(one) and one.competitors]


def setting(comparison):
    """What a comparison has in common with the same one of another machine, commit or kind of executor."""
    moves_tokens = comparison.is_layer or comparison.kind in MOVE_TOKENS
    free = ("family", "warmup", "rounds", *["tokens"] * (not moves_tokens))
    return comparison.is_simulated, results.alike(comparison.record, *free)._replace(host="", machine="", placement="", topology="")
