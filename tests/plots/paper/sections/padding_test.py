# SPDX-License-Identifier: Apache-2.0
"""The tables of padding: who has a ratio, and that measured ratios are made launch by launch."""

import unittest

from baton.paper.sections import padding
from baton.paper.sources import Sources
from baton.report.sessions import Session
from plots.example import layer
from plots.paper.shown import simulated_layer


def both(make, name, padded, even, **changes):
    same = {"packed": 1090, "packed_draw": "lognormal", "sequence": 128000, **changes}
    return [make(name, padded, **{**same, "pad_documents": 16, "shares": "padded:16", "padding": 0.02}), make(name, even, **{**same, "shares": "even"})]


def tables(simulated=(), **sessions):
    found = {machine: [Session("s", "", list(records))] for machine, records in sessions.items()}
    return [block for block in padding.section(Sources(list(simulated), {}, {}, sessions=found)).blocks[1:]]


def simulated(name, milliseconds, topology=padding.H100, ranks=8, **changes):
    return {**simulated_layer(name, milliseconds, **{"ranks": ranks, **changes}), "topology": topology}


def measured(name, milliseconds, **changes):
    return layer(name, milliseconds=milliseconds, **{"executor": "mpi", "ranks": 8, **changes})


class Padding(unittest.TestCase):
    def test_simulated_ratios_stand_at_their_machine_and_ranks(self):
        table, = tables([*both(simulated, "zeco", 1.2, 1.0), *both(simulated, "zeco", 3.0, 2.0, ranks=64),
                         *both(simulated, "lasp2", 1.5, 1.0)[:1], simulated("ulysses", 1.0)])
        self.assertEqual([(row.label, [cell and cell.text for cell in row.cells]) for row in table.rows], [
            ("tokens of padding", ["2.00 %", "2.00 %", None, None, None]),
            ("`zeco`", ["1.20×", "1.50×", None, None, None])])

    def test_measured_ratios_have_an_interval_over_launches(self):
        records = [one for launch, (padded, even) in enumerate([(1.2, 1.0), (2.4, 2.0), (1.21, 1.0)], 1)
                   for one in both(measured, "zeco", padded, even, launch=launch, attention="linear")]
        table, = tables(xeon=[*records, *both(measured, "zeco", 3.0, 1.0, attention="gdn")])
        self.assertEqual(table.columns, ["P=8"])
        self.assertEqual([(row.label, row.kind) for row in table.rows[:4]], [
            ("tokens of padding", "derived"), ("`zeco`", "measured, padded, ms"), ("", "measured, even, ms"), ("", "padded / even")])
        self.assertEqual([row.cells[0].text for row in table.rows if row.kind == "padded / even"], ["1.20 [1.19, 1.22]", "3.00"])

    def test_sizes_are_not_mixed(self):
        old = both(measured, "zeco", 9.0, 1.0, contest="small", time="2030-01-01T00:00:00Z")
        new = both(measured, "zeco", 3.0, 2.0, contest="large", time="2031-01-01T00:00:00Z", run="b")
        alone = both(measured, "zeco", 8.0, 1.0, contest="alone", time="2032-01-01T00:00:00Z", run="c")[:1]
        table, = tables(xeon=[*old, *new, *alone])
        self.assertEqual(table.rows[-1].cells[0].text, "1.50")


if __name__ == "__main__":
    unittest.main()
