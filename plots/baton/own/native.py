# SPDX-License-Identifier: Apache-2.0
"""Exchanges of one's own as rows of collective_bench, beside Baton's and under the same protocol.

    @baton.native("my_scan", bytes="N", hops="P-1")
    def my_scan(call): ...
    baton.main()                     # python3 mine.py --ranks 4 --collectives all_scan,my_scan -b 256K -e 16M

The harness makes the inputs, starts all ranks together, times a call of the function on each rank, takes the slowest rank,
compares the results with a serial fold before, in and after the timed rounds, and prints the table.
"""

import ast
import operator

from baton.own import start
from baton.frames import Error

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


def native(name, *, bytes=None, hops=None, summary="an exchange in Python", views=None):  # pylint: disable=redefined-builtin
    """A decorator that makes a function an exclusive scan of maps x -> decay * x + state, called `name` on the command line.

    The function gets a `Call`: `own` (and its parts `decay` [rows, 1] and `state` [rows, d_v]) is this rank's map, and `into`
    [rows, d_v] must hold the state that the maps of the ranks before this one make, when it returns; rank 0 leaves it as it
    is. With --map scalar `decay` is [heads, 1, 1] and a state [heads, d_k, d_v]; with --map affine there is `matrix`
    [heads, d_k, d_k] in place of `decay`, a state is [heads, d_v, d_k], and the map is x -> x @ matrix + state. `map` is the
    kind as a text.

    All are of f32 and share the harness's memory: NumPy arrays, or what `views`, such as torch.from_dlpack, makes of objects with
    __dlpack__. `send(array, to)` and `receive(array, from)` carry arrays over TCP; any other library will do as well. Ranks are
    counted in scan order, and `home(rank)` is that of the launcher.

    `bytes`, sent by the rank that sends most, and `hops`, messages on the longest chain, are what you claim: numbers, or texts
    of +, -, * and // over P, the ranks, and N, the bytes of a state. With both the row has a bound. Raises Error for one alone.
    """
    counts = claims(f"native {name}", bytes, hops, "PN")

    def add(function):
        start.harness().add_native(name, lambda call: _Exchange(function, call), views, summary, *counts)
        start.natives.append(name)
        return function
    return add


class _Exchange:
    """The parts of a native's routine."""

    def __init__(self, function, call):
        self.run = lambda: function(call)

    def prepare(self):
        """Has nothing to do: the function gets all that it needs."""

    def finish(self):
        """Has nothing to do: the function writes its result."""


def claims(what, of_bytes, of_hops, names):
    """The functions of values by `names` that give the claimed bytes and hops; None for both without a claim."""
    if (of_bytes is None) != (of_hops is None):
        raise Error(f"{what}: a bound needs bytes and hops: give both, or none")
    return [None if claim is None else _count(what, claim, names) for claim in (of_bytes, of_hops)]


def _count(what, claim, names):
    """A function that takes a value for each of `names` and gives the claimed number."""
    try:
        tree = ast.parse(str(claim), mode="eval").body
        _value(tree, dict.fromkeys(names, 4))
    except (SyntaxError, ValueError, ZeroDivisionError):
        raise Error(f"{what}: expected a number or a text of +, -, *, // over {', '.join(names)}, found {claim!r}") from None
    return lambda *values: _value(tree, dict(zip(names, values)))


def _value(tree, numbers):
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        return tree.value
    if isinstance(tree, ast.Name) and tree.id in numbers:
        return numbers[tree.id]
    if isinstance(tree, ast.BinOp) and type(tree.op) in OPERATORS:
        return OPERATORS[type(tree.op)](_value(tree.left, numbers), _value(tree.right, numbers))
    raise ValueError
