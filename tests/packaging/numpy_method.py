# SPDX-License-Identifier: Apache-2.0
"""A method in NumPy for methods_test.py, right or with the fault that FAULT names."""

import ctypes
import os
import sys
import time

import numpy

import baton

FAULT = os.environ.get("FAULT", "")
calls = 0


def recurrence(layer, before):
    """o and the states before each token and behind the last one, of gated linear attention."""
    states, outputs = [before], []
    for k, v, g in zip(layer.k, layer.v, layer.g):
        states.append(numpy.exp(g)[..., None] * states[-1] + k[..., None] * v[:, None, :])
    for q, state in zip(layer.q, states[1:]):
        outputs.append(numpy.einsum("hd,hdv->hv", q, state) * q.shape[-1] ** -0.5)
    return numpy.stack(outputs).astype(numpy.float32), states


def forward(layer):
    global calls  # pylint: disable=global-statement
    calls += 1
    if FAULT == "prints":
        print(f"rank {layer.rank} says hello")
    before = numpy.zeros((layer.k.shape[1], layer.k.shape[2], layer.v.shape[2]), numpy.float32)
    if layer.rank > 0:
        layer.receive(before, layer.rank - 1)
    output, states = recurrence(layer, before)
    layer.saved = states
    if layer.rank + 1 < layer.ranks:
        layer.send(numpy.ascontiguousarray(states[-1], numpy.float32), layer.rank + 1)
    return spoiled(layer, output)


def spoiled(layer, output):
    """The output with the fault."""
    last = layer.rank == layer.ranks - 1
    if FAULT == "o":
        output *= 1.01
    if FAULT == "last_token" and last:
        output[-1] *= 1.5
    if FAULT == "nan" and last:
        output[3] = numpy.nan
    if FAULT == "sometimes" and calls % 7 == 6 and last:
        return None
    if FAULT == "unwritten":
        return None
    if FAULT == "stale":
        layer.__dict__.setdefault("first", output.copy())
        return layer.first
    if FAULT == "spoils_inputs":
        layer.v[...] *= 1.001
    if FAULT == "shape":
        return output[:-1]
    if FAULT == "type":
        return output.astype(numpy.float64)
    if FAULT == "raises":
        raise KeyError("the reason")
    if last and FAULT == "hangs":
        time.sleep(600)
    if last and FAULT == "exits":
        sys.exit(3)
    if last and FAULT == "dies":
        os._exit(3)  # pylint: disable=protected-access
    if last and FAULT == "crashes":
        ctypes.string_at(0)
    return output


def backward(layer):
    behind = numpy.zeros_like(layer.saved[0])
    if layer.rank + 1 < layer.ranks:
        layer.receive(behind, layer.rank + 1)
    dq, dk, dv, dg = (numpy.zeros_like(x) for x in (layer.q, layer.k, layer.v, layer.g))
    scale = layer.q.shape[-1] ** -0.5
    for t in reversed(range(len(layer.q))):
        dq[t] = scale * numpy.einsum("hv,hdv->hd", layer.d_o[t], layer.saved[t + 1])
        behind = behind + scale * layer.q[t][..., None] * layer.d_o[t][:, None, :]
        dk[t] = numpy.einsum("hdv,hv->hd", behind, layer.v[t])
        dv[t] = numpy.einsum("hdv,hd->hv", behind, layer.k[t])
        behind = numpy.exp(layer.g[t])[..., None] * behind
        dg[t] = (behind * layer.saved[t]).sum(-1)
    if layer.rank > 0:
        layer.send(numpy.ascontiguousarray(behind, numpy.float32), layer.rank - 1)
    gradients = {"dq": dq, "dk": dk, "dv": dv, "dg": dg}
    if FAULT in gradients:
        gradients[FAULT] *= 1.01
    if FAULT == "too_few":
        return dq, dk
    return gradients


baton.method("numpy_chain", attention="linear", backward=None if FAULT == "no_backward" else backward,
             bytes={"forward": "N", "backward": "N"}, hops={"forward": "P-1", "backward": "P-1"})(forward)
baton.main()
