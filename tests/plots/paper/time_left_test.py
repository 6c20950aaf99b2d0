# SPDX-License-Identifier: Apache-2.0
"""The time that is left is true within a factor of two, from the tenth launch on, for launches as `./run paper` has them."""

import heapq
import itertools
import random
import unittest

from baton.paper import simulations
from baton.paper.time_left import TimeLeft
from plots.example import InFolder

FIRST, FACTOR = 10, 2
SLACK = 5  # the cost of the last launches, which end about when it is said


class Machine:
    """Runs launches of known durations on workers, on a clock of its own, and notes what was said at each end."""

    def __init__(self, costs, durations, workers):
        self.now, self.told = 0.0, []
        left, waiting = TimeLeft(costs, workers, lambda: self.now), iter(durations.items())
        running = []

        def begin(one):
            left.begin(one[0])
            heapq.heappush(running, (self.now + one[1], one[0]))

        for one in itertools.islice(waiting, workers):
            begin(one)
        while running:
            self.now, name = heapq.heappop(running)
            left.end(name)
            self.told.append((self.now, left.seconds()))  # a worker begins the next one afterwards
            for one in itertools.islice(waiting, 1):
                begin(one)

    def wrong(self, slack, first=FIRST):
        return [(number, told, self.now - when) for number, (when, told) in enumerate(self.told, start=1) if number >= first
                and not (self.now - when) / FACTOR - slack <= told <= (self.now - when) * FACTOR + slack]


class Paper(InFolder):
    def setUp(self):
        super().setUp()
        self.costs = dict(enumerate(launch.seconds for launch in simulations.suite(self.folder, 4)))

    def test_on_machines_of_any_pace_whose_launches_vary(self):
        random.seed(7)
        for workers, pace, spread in itertools.product((1, 2, 16), (0.2, 1, 8), (1, 1.3)):
            durations = {name: cost * pace * random.uniform(1 / spread, spread) for name, cost in self.costs.items()}
            with self.subTest(workers=workers, pace=pace, spread=spread):
                self.assertEqual(Machine(self.costs, durations, workers).wrong(SLACK * pace), [])

    def test_where_other_work_begins_on_the_machine(self):
        durations = {name: cost * (1 if name < 40 else 4) for name, cost in self.costs.items()}
        self.assertEqual(Machine(self.costs, durations, 2).wrong(SLACK, first=50), [])


class Few(unittest.TestCase):
    def test_the_last_one_has_a_worker_of_its_own(self):
        clock = iter((0, 0, 4, 4, 4)).__next__
        left = TimeLeft({"a": 1, "b": 2}, 2, clock)
        left.begin("a"), left.begin("b"), left.end("a")
        self.assertEqual(left.seconds(), 4)  # of 8, and half of it when divided by the workers

    def test_one_that_is_late_is_not_done(self):
        clock = iter((0, 0, 4, 90)).__next__
        left = TimeLeft({"a": 1, "b": 2}, 2, clock)
        left.begin("a"), left.begin("b"), left.end("a")
        self.assertEqual(left.seconds(), 0.4)


if __name__ == "__main__":
    unittest.main()
