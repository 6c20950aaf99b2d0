# SPDX-License-Identifier: Apache-2.0
"""Sequence-parallel methods of one's own as rows of operator_bench, beside Baton's and under the same protocol.

    @baton.method("mine", attention="gdn", backward="autograd")
    def mine(layer): ...             # this rank's q, k, v, g, beta; returns its o
    baton.main()                     # python3 mine.py --ranks 4 --tokens 4K

The harness makes the inputs, starts all ranks together, times a call on each rank, takes the slowest rank, compares the
output and every gradient with the token recurrence in float64 before, in and after the timed rounds, and prints the table.
"""

import contextlib
import importlib.util
import types

from baton.frames import Error
from baton.own import start
from baton.own.native import claims

PASSES = ("forward", "backward")


def method(name, *, attention="linear", backward=None, layout="contiguous", bytes=None, hops=None,  # pylint: disable=redefined-builtin
           summary="a method in Python", views=None, deterministic=True, needs=(), most_ranks=None):
    """A decorator that makes a function a sequence-parallel method, called `name` on the command line.

    The function gets a `Layer` with this rank's tensors of f32, or of bf16 on GPUs, and returns `o` [tokens, heads, d_v], or
    writes it into `layer.o` and returns None. Leading dimensions of size 1 may be added.

    `attention` is a word of --attention, some of them, or "softmax". `backward` is "autograd", by which torch's autograd gives
    the gradients of the function, or a function that gets the layer and returns the gradients of the inputs in their order,
    or by name, or writes them into layer.dq and so on; without it only --pass forward runs. What the forward function
    keeps in `layer.saved` is there for it. `layout` says which tokens a rank has: contiguous, zigzag or striped.

    `views` makes the tensors of objects with __dlpack__, such as torch.from_dlpack, which "autograd" takes by itself; without
    it they are NumPy arrays. `deterministic=False` allows the last bits of results to differ from round to round. The row is
    skipped with that reason where one of the modules `needs` is not installed, and at more than `most_ranks` ranks.

    `bytes`, sent by the rank that sends most, and `hops`, messages on the longest chain, are what you claim for a forward
    pass, or {"forward": .., "backward": ..}: numbers, or texts of +, -, * and // over P, the ranks, N, the bytes of a rank's
    state, and Q, K, V and O, those of its tensors. With both the row has a bound. Raises Error for one alone.
    """
    words = [attention] if isinstance(attention, str) else list(attention)
    if not isinstance(name, str) or not name:
        raise Error(f"@baton.method needs a name in brackets, such as @baton.method(\"mine\"), found {name!r}")
    if backward not in (None, "autograd") and not callable(backward):
        raise Error(f"method {name}: backward is None, \"autograd\" or a function, not {backward!r}")
    if name in start.methods:
        raise Error(f"method {name} is declared twice")
    counts = _claims_of_passes(f"method {name}", bytes, hops)
    if backward == "autograd":
        from torch import from_dlpack  # pylint: disable=import-outside-toplevel
        views = views or from_dlpack

    def add(function):
        if not callable(function):
            raise Error(f"method {name}: expected a function, found {function!r}")

        def make(call):
            kind = _ByAutograd if backward == "autograd" else _ByFunctions
            return kind(name, Layer(call), function, backward)

        try:
            start.harness().add_method(make, views, name, summary, words, layout, _lacking(needs), most_ranks or 0,
                                       backward is not None, deterministic, *counts)
        except RuntimeError as error:  # of the harness, such as an unknown word
            raise Error(str(error)) from None
        start.harness().measure_empty_calls(_empty())
        start.methods[name] = words
        return function
    return add


def _lacking(modules):
    """Why a method that needs these modules cannot run; empty if it can."""
    for module in [modules] if isinstance(modules, str) else modules:
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:  # a package around it
            found = None
        if found is None:
            return f"this Python has no module {module}"
    return ""


class Layer:
    """One rank's part of a layer.

    `q` and `k` [tokens, heads, d_k] and `v` [tokens, heads, d_v]; the log gates `g` [tokens, heads, d_k], or [tokens, heads, 1]
    for a gate a head; `beta` [tokens, heads, 1] under a delta rule; `a` and `b` [tokens, heads, d_k] under a low-rank rule;
    `d_o`, the gradient of o, in a backward pass. The results `o`, `dq`, `dk` and so on are memory to write into. Scores are
    scaled by d_k ** -0.5, and no state comes in. `rank` is one of `ranks`, in the order of the tokens.

    All share the harness's memory. On a GPU, work must be queued on the CUDA stream `stream`, which is current in torch; it is
    None on a processor. `send(array, to)` and `receive(array, from_)` carry arrays of f32 over TCP where executor tcp runs the
    ranks; any other library will do as well. `saved` is yours.
    """

    def __init__(self, call):
        self.rank, self.ranks, self.stream, self.saved = call.rank, call.ranks, call.stream, None
        self.send, self.receive = call.send, call.receive
        self.tensors = call.tensors
        self.__dict__.update(self.tensors)

    def inputs(self):
        """The names of the inputs, in the order of their gradients."""
        return [name for name in ("q", "k", "v", "g", "beta", "a", "b") if name in self.tensors]

    def current_stream(self):
        """A context in which torch's work goes to `stream`; it does nothing for other libraries, or on a processor."""
        if self.stream is None or not type(next(iter(self.tensors.values()))).__module__.startswith("torch"):
            return contextlib.nullcontext()
        from torch import cuda  # pylint: disable=import-outside-toplevel
        return cuda.stream(cuda.ExternalStream(self.stream))

    def runs(self, which):
        """True if the pass of the row has a forward or a backward pass."""
        return ("o" if which == "forward" else "d_o") in self.tensors


class _ByFunctions:
    """The parts of the routine of a method whose backward pass is a function, or missing."""

    def __init__(self, name, layer, forward, backward):
        self.name, self.layer, self.forward, self.backward = name, layer, forward, backward
        self.results = {}

    def prepare(self):
        """A backward pass is timed on a forward pass that ran before."""
        if not self.layer.runs("forward"):
            self.layer.o = _copy(self.layer.d_o)  # as large as the output, which nobody reads
            with self.layer.current_stream():
                self.forward(self.layer)

    def run(self):
        self.results = {}
        with self.layer.current_stream():
            if self.layer.runs("forward"):
                self.keep("o", self.forward(self.layer))
            if self.layer.runs("backward"):
                self.keep_gradients(self.backward(self.layer))

    def keep(self, name, result):
        """Takes a result, once it is there: what is waited for later would not be timed."""
        place = self.layer.tensors[name]
        if hasattr(result, "trigger_wait"):  # an asynchronous collective of torch
            result = result.wait()
        if result is not None and type(result) is not type(place):
            raise Error(f"method {self.name}: {name} is {_kind(result)}, expected {_kind(place)}; `views` makes the tensors of your library")
        self.results[name] = result

    def keep_gradients(self, gradients):
        """Takes what a backward function returned: gradients by name, or in the order of the inputs, or nothing."""
        names = [f"d{name}" for name in self.layer.inputs()]
        if gradients is None:
            return
        if not isinstance(gradients, (dict, tuple, list)):
            raise Error(f"method {self.name}: expected the gradients {', '.join(names)}, found {_kind(gradients)}")
        if not isinstance(gradients, dict) and len(gradients) == len(names):
            gradients = dict(zip(names, gradients))
        if not isinstance(gradients, dict) or set(gradients) - set(names):
            found = ", ".join(gradients) if isinstance(gradients, dict) else len(gradients)
            raise Error(f"method {self.name}: expected the gradients {', '.join(names)}, found {found}")
        for name, gradient in gradients.items():
            self.keep(name, gradient)

    def finish(self):
        """Hands the results over."""
        with self.layer.current_stream():
            for name, result in self.results.items():
                if result is not None:
                    _hand_over(self.name, name, result, self.layer.tensors[name])


def _empty():
    """The parts of a method that does nothing, in both passes."""
    layer = types.SimpleNamespace(inputs=lambda: [], runs=lambda which: True, tensors={"o": None}, current_stream=contextlib.nullcontext)
    return _ByFunctions("", layer, lambda layer: None, lambda layer: None)


class _ByAutograd(_ByFunctions):
    """The parts of the routine of a method whose gradients are torch's."""

    def __init__(self, name, layer, forward, backward):
        import torch  # pylint: disable=import-outside-toplevel
        super().__init__(name, layer, forward, backward)
        self.torch = torch
        self.inputs = [layer.tensors[name] for name in layer.inputs()]
        self.output = None
        for tensor in self.inputs:
            tensor.requires_grad_(layer.runs("backward"))

    def attend(self):
        """The output, with its graph if there is a backward pass."""
        # Each round writes into a tensor of its own, or it would go on in the graph of the round before.
        self.layer.o = self.layer.tensors["o"].detach() if self.layer.runs("forward") else _copy(self.layer.d_o)
        output = self.forward(self.layer)
        output = self.layer.o if output is None else output
        if not isinstance(output, self.torch.Tensor):
            raise Error(f"method {self.name}: o is {_kind(output)}, expected {_kind(self.layer.d_o)}")
        if self.layer.runs("backward") and not output.requires_grad:
            raise Error(f"method {self.name}: autograd knows no input that o depends on")
        return output

    def prepare(self):
        self.output = None  # with what the last inputs left
        if not self.layer.runs("forward"):
            with self.layer.current_stream():
                self.output = self.attend()

    def run(self):
        self.results = {}
        with self.layer.current_stream():
            if not self.layer.runs("backward"):
                with self.torch.no_grad():
                    self.keep("o", self.attend())
                return
            output = self.attend() if self.layer.runs("forward") else self.output
            gradient = self.layer.d_o.reshape(output.shape).to(output.dtype)
            gradients = self.torch.autograd.grad(output, self.inputs, gradient, retain_graph=output is self.output, allow_unused=True)
            unused = [name for name, one in zip(self.layer.inputs(), gradients) if one is None]
            if unused:
                raise Error(f"method {self.name}: autograd finds no way from o to {', '.join(unused)}")
            self.keep_gradients(gradients)
            if self.layer.runs("forward"):
                self.keep("o", output.detach())


def _hand_over(method_name, name, result, place):
    """Copies a result to its place in the harness's memory."""
    shape, expected = tuple(result.shape), tuple(place.shape)
    while len(shape) > len(expected) and shape[0] == 1:
        shape = shape[1:]
    if shape != expected or str(result.dtype) != str(place.dtype):
        raise Error(f"method {method_name}: {name} is {result.dtype} {list(result.shape)}, expected {place.dtype} {list(expected)}")
    place[...] = result.reshape(expected)


def _kind(one):
    """The type of an object with its module, such as numpy.ndarray."""
    kind = type(one)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _copy(tensor):
    return tensor.clone() if hasattr(tensor, "clone") else tensor.copy()


def _claims_of_passes(what, of_bytes, of_hops):
    """The functions (pass, sizes) that give the claimed bytes and hops; None for both without a claim."""
    names = "PNQKVO"
    given = [claim if isinstance(claim, dict) else {"forward": claim} for claim in (of_bytes, of_hops)]
    by_pass = {which: claims(what, *(claim.get(which) for claim in given), names) for which in PASSES}

    def total(kind):
        def count(which, sizes):
            values = [dict(sizes)[name] for name in names]
            counts = [by_pass[one][kind] for one in (PASSES if which == "both" else (which,))]
            return None if None in counts else sum(one(*values) for one in counts)
        return count
    return total(0), total(1)
