# SPDX-License-Identifier: Apache-2.0
"""The table of docs/topologies.md is what the command says, a row of each machine, with the bench in BATON_BENCHES."""

import re
import unittest

from baton import fastest, words
from baton.advise import candidates
from baton.advise.simulator import Question, Simulator
from plots.advise.command_test import BENCHES
from plots.example import ROOT

PAGE = ROOT / "docs/topologies.md"
ROW = re.compile(r"^\| `([\w-]+-(\d))` \| ((\d+) heads(?:, (\d+) KV heads)?) \| .* \|$", re.MULTILINE)


def row(machine, ranks, title, heads, kv_heads):
    """Returns the row of the page for a machine; `title` is its cell of heads."""
    question = Question(ROOT / f"topologies/{machine}.json", 8192, heads, kv_heads, 128, ranks, "bf16", "both")
    simulator = Simulator(BENCHES[0].parent, question)
    found = candidates.contests(simulator.all_methods(), simulator.move())
    return f"| `{machine}` | {title} | {' | '.join(cell(stacks) for stacks in found.values())} |"


def cell(stacks):
    best = fastest.among({one.name: candidates.seconds(one) for one in stacks})
    return f"{words.seconds(best.seconds)} `{best.name}` ({len(best.tied)})"


@unittest.skipUnless(BENCHES, "BATON_BENCHES names no benches")
class Page(unittest.TestCase):
    def test_the_first_row_of_each_machine_is_what_the_simulator_says(self):
        rows = {shown[1]: shown for shown in reversed(list(ROW.finditer(PAGE.read_text(encoding="utf-8"))))}
        self.assertEqual(len(rows), 4)
        for shown in rows.values():
            machine, ranks, title, heads, kv_heads = shown.groups()
            self.assertEqual(row(machine, int(ranks), title, int(heads), int(kv_heads) if kv_heads else None), shown[0])

    def test_what_counts_as_no_difference_is_the_typical_error(self):
        self.assertIn(f"others are within\n{100 * fastest.TYPICAL_ERROR:.0f} %", PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
