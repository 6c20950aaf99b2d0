# SPDX-License-Identifier: Apache-2.0
"""The timed rounds of a layer: each lies between two CUDA events, and all ranks start it together."""

import datetime

import ranks
import torch

WARM_UP, ROUNDS = 5, 50
PASSES = ("forward", "backward", "both")


def call_of(compute, inputs, d_o, which):
    """A function that runs one round of the pass. A backward pass is that of a forward pass that ran before."""
    def forward():
        with torch.no_grad():
            return compute()

    if which == "forward":
        return forward
    if which == "both":
        return lambda: torch.autograd.grad(compute(), inputs, d_o)
    output = compute()
    return lambda: torch.autograd.grad(output, inputs, d_o, retain_graph=True)


def seconds_of(calls):
    """Returns the seconds of each round; the calls take turns."""
    seconds = []
    for number in range(WARM_UP + ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        ranks.start_together()
        begin.record()
        calls[number % len(calls)]()
        end.record()
        torch.cuda.synchronize()
        if number >= WARM_UP:
            seconds.append(begin.elapsed_time(end) * 1e-3)
    return seconds


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
