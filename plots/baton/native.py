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
import sys

from baton import devices, ranks
from baton.frames import Error

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}

_names = []


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
    if (bytes is None) != (hops is None):
        raise Error(f"native {name}: a bound needs bytes and hops: give both, or none")
    counts = [None if claim is None else _count(name, claim) for claim in (bytes, hops)]

    def add(function):
        _harness().add_native(name, function, views, summary, *counts)
        _names.append(name)
        return function
    return add


def main(arguments=None):
    """Runs collective_bench with these arguments, or those of the program, and ends the program with its exit code.

    Without --collectives it runs all_scan and the natives of this program. Starts the ranks first, as start_ranks does.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not any(word.split("=")[0] in ("--collectives", "--list", "--help", "--version") for word in arguments):
        arguments += ["--collectives", ",".join(["all_scan", *_names])]
    start_ranks(arguments)
    if devices.missing and {"nccl", "peer"} & set(",".join(arguments).replace("=", ",").split(",")):
        print(f"baton: executors of GPUs are not there: {devices.missing}", file=sys.stderr)
    sys.stdout.flush()
    sys.exit(_harness().run([sys.argv[0], *arguments]))


def start_ranks(arguments=None):
    """Runs this program once for each rank that --ranks asks for, on this host, and ends it; returns if this is such a rank, or
    one that torchrun or another launcher started. To be called before anything that needs the ranks, such as torch.distributed.
    """
    if not _harness().is_launched():
        sys.exit(ranks.run(ranks.wanted(sys.argv[1:] if arguments is None else arguments, _harness().usable_cores())))


def _harness():
    try:
        from baton import _harness as module  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise ImportError(f"natives need the compiled part of the package, which ./run wheel builds: {error}") from None
    devices.load()
    return module


def _count(name, claim):
    """A function of P and N that gives the claimed number."""
    try:
        tree = ast.parse(str(claim), mode="eval").body
        _value(tree, {"P": 2, "N": 4})
    except (SyntaxError, ValueError, ZeroDivisionError):
        raise Error(f"native {name}: expected a number or a text of +, -, *, // over P and N, found {claim!r}") from None
    return lambda ranks, state_bytes: _value(tree, {"P": ranks, "N": state_bytes})


def _value(tree, numbers):
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        return tree.value
    if isinstance(tree, ast.Name) and tree.id in numbers:
        return numbers[tree.id]
    if isinstance(tree, ast.BinOp) and type(tree.op) in OPERATORS:
        return OPERATORS[type(tree.op)](_value(tree.left, numbers), _value(tree.right, numbers))
    raise ValueError
