# SPDX-License-Identifier: Apache-2.0
"""The hybrid by the layout of its tokens: zigzag in all layers, contiguous in all, or moved around the softmax layer."""

import itertools
import json

from baton import fastest, stacks, words
from baton.advise import candidates
from baton.advise.simulator import Simulator

TITLES = {stacks.CONTIGUOUS: "contiguous", stacks.MOVED: "moved", stacks.ZIGZAG: "zigzag"}


def fastest_of(programs, question):
    """Returns {layout: fastest.Fastest} of the hybrids of a question, None for a layout that none has."""
    simulator = Simulator(programs, question)
    found = candidates.comparisons(simulator.all_methods(), simulator.move())[candidates.HYBRID]
    return {layout: fastest.among({one.name: candidates.seconds(one) for one in found if one.layout == layout})
            for layout in TITLES}


def as_json(rows):
    """`rows` are {tokens of a rank: {layout: fastest.Fastest}}."""
    return json.dumps([{"tokens": tokens, **{TITLES[layout]: best and {"name": best.name, "seconds": best.seconds}
                                             for layout, best in row.items()}} for tokens, row in rows.items()], indent=2)


def lines(question, rows):
    """Yields what was asked, the times, and which layout has the least time from how many tokens on."""
    yield (f"# ~ simulated, not measured: one softmax layer and {stacks.LINEAR_LAYERS} {question.attention} ones on {question.ranks} "
           f"ranks, {question.heads} heads of {question.width}, {question.dtype}")
    yield f"{'tokens a rank':>13} " + " ".join(f"{title:>11}" for title in TITLES.values()) + "  the fastest"
    for tokens, row in rows.items():
        cells = [words.seconds(row[layout].seconds) if row[layout] else "-" for layout in TITLES]
        yield f"{tokens:>13,} " + " ".join(f"{cell:>11}" for cell in cells) + f"  {row[winner(row)].name}"
    for layout, group in itertools.groupby(sorted(rows), key=lambda tokens: winner(rows[tokens])):
        first, *_ = tokens = list(group)
        beyond = [f"{one:,}" for one in tokens if is_beyond_doubt(rows[one])]
        yield (f"{TITLES[layout]} takes least time at {first:,}" + (f" to {tokens[-1]:,}" if len(tokens) > 1 else "") +
               f" tokens a rank; its lead is {'beyond' if beyond else 'within'} the simulator's error of "
               f"{100 * fastest.TYPICAL_ERROR:.0f} %" + (f" at {words.names(beyond)}" if beyond else ""))


def winner(row):
    """The layout with the least time."""
    return min((layout for layout in row if row[layout]), key=lambda layout: row[layout].seconds)


def is_beyond_doubt(row):
    """Says whether the simulator can tell the layout with the least time from both others."""
    least = row[winner(row)].seconds
    return all(fastest.is_distinct(best.seconds / least) for layout, best in row.items() if best and layout != winner(row))
