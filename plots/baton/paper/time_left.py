# SPDX-License-Identifier: Apache-2.0
"""How long launches take from now on, of which several run at a time, from how long those took that have ended."""

import heapq
import time

MEMORY = 0.9  # what a launch weighs in the pace, after one more has ended: those to come are most like the last ones


class TimeLeft:
    """`costs` are {name of a launch: about what it costs, in any unit}, in the order in which they start."""

    def __init__(self, costs, workers, clock=time.monotonic):
        self.waiting, self.workers, self.clock = dict(costs), workers, clock
        self.running = {}  # {name: (cost, when it began)}
        self.paces = self.weights = 0  # of those that have ended: seconds by cost

    def begin(self, name):
        self.running[name] = self.waiting.pop(name), self.clock()

    def end(self, name):
        cost, began = self.running.pop(name)
        self.paces = MEMORY * self.paces + (self.clock() - began) / cost
        self.weights = MEMORY * self.weights + 1

    def seconds(self):
        """Starts what waits on paper, each launch where one ends first. Needs a launch that has ended."""
        pace, now = self.paces / self.weights, self.clock()
        # One that takes longer than it should takes somewhat longer still.
        ends = [max(pace * cost - (now - began), pace * cost / 20) for cost, began in list(self.running.values())]
        ends = sorted(ends + [0] * (self.workers - len(ends)))
        for cost in list(self.waiting.values()):
            heapq.heapreplace(ends, ends[0] + pace * cost)
        return max(ends)
