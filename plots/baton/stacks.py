# SPDX-License-Identifier: Apache-2.0
"""Stacks of one softmax layer and some linear ones, as hybrid models have them, under three layouts of their tokens.

Causal softmax is balanced with zigzag tokens, and a linear layer is a shorter chain with contiguous ones. So a stack has
contiguous tokens everywhere, zigzag ones everywhere, or hidden states move before and after each softmax layer.
"""

import collections

LINEAR_LAYERS = 3
CONTIGUOUS, ZIGZAG, MOVED = LAYOUTS = ("contiguous", "zigzag", "moved")
MOVE = "direct_to_zigzag"  # the collective; the way back costs as much

# `parts` are [(how often, record)], the softmax layer first.
Stack = collections.namedtuple("Stack", "name layout parts")


def all_of(softmax, linear, move=None):
    """Yields the Stacks of two lists of records of layers, and the record of a move, or None if it has no time."""
    for one in softmax:
        for other in linear:
            if one["layout"] == other["layout"] and one["layout"] in (CONTIGUOUS, ZIGZAG):
                yield stack(one["layout"], one, other)
            elif (one["layout"], other["layout"]) == (ZIGZAG, CONTIGUOUS) and move is not None:
                yield stack(MOVED, one, other, move)


def stack(layout, softmax, linear, move=None):
    moves = [(moves_of(softmax), move)] if move else []
    name = f"{softmax['name']} + {LINEAR_LAYERS} {linear['name']}" + "".join(f" + {count} moves" for count, _ in moves)
    return Stack(name, layout, [(1, softmax), (LINEAR_LAYERS, linear), *moves])


def moves_of(softmax):
    """How often hidden states move for one softmax layer: there and back in each of its passes."""
    return 4 if softmax["pass"] == "both" else 2


def total(one, key):
    """Returns a sum over the layers and moves of a Stack, None if one of them lacks the key."""
    values = [(count, record.get(key)) for count, record in one.parts]
    return None if any(value is None for _, value in values) else sum(count * value for count, value in values)


def shape_of_move(tokens, heads, width, dtype):
    """The arguments that make collective_bench, whose elements are f32, move hidden states of heads * width channels."""
    return ["--collectives", MOVE, "--tokens", str(tokens), "--heads", str(heads_of_move(heads, width, dtype)),
            "--d-k", "1", "--d-v", "1"]


def heads_of_move(heads, width, dtype):
    """The heads of one f32 channel that have the bytes of a token's hidden states."""
    return max(heads * width * {"f32": 4, "bf16": 2}[dtype] // 4, 1)
