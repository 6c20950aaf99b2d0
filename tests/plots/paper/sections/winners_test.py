# SPDX-License-Identifier: Apache-2.0
"""Who wins, by how much, and what the links allow at best."""

import unittest

from baton.paper.links import Links
from baton.paper.sections import winners
from baton.paper.sources import H100, Sources, by
from plots.example import record, skipped
from plots.paper.shown import simulated


def winners_of(*records):
    return winners.winners_of(Sources(list(records), {}, {}))


class Winners(unittest.TestCase):
    def test_the_fastest_family_and_its_margin(self):
        (place, best), = winners_of(simulated("all_scan", 16, 2.0), simulated("ring_scan", 16, 1.8),
                                    simulated("two_shot", 16, 3.6), simulated("hierarchical_scan", 16, 9.0)).items()
        self.assertEqual(place, (16, 2 * 2**20))
        self.assertEqual((best.name, best.runner_up), ("chain", "two-shot"))
        self.assertAlmostEqual(best.margin, 2.0)

    def test_within_a_node_the_hierarchical_scan_is_the_two_shot(self):
        best, = winners_of(simulated("hierarchical_scan", 8, 1.0), simulated("two_shot", 8, 1.0),
                        simulated("all_scan", 8, 1.005)).values()
        self.assertEqual((best.name, best.runner_up), ("two-shot", "chain"))
        self.assertEqual(best.tied, ["chain"])

    def test_blocks_of_a_sweep_and_skipped_cases_do_not_compete(self):
        swept = simulated("all_scan", 8, 0.1, blocks=64, blocks_asked=64)
        refused = skipped("too many steps", name="two_shot", ranks=8, executor="simulator", topology=H100,
                          blocks_asked=1)
        self.assertEqual(winners_of(swept, refused, simulated("ring_scan", 8, 1.0)), {})


class ChoosingRecords(unittest.TestCase):
    def test_the_models_blocks_before_others_and_then_the_newest(self):
        old = record(ranks=2, milliseconds=1.0, blocks_asked="auto", time="2030-01-01T00:00:00Z")
        new = record(ranks=2, milliseconds=2.0, blocks_asked="auto", time="2030-01-02T00:00:00Z")
        swept = record(ranks=2, milliseconds=0.5, blocks_asked=4, blocks=4, time="2030-01-03T00:00:00Z")
        self.assertEqual(by("ranks", [new, swept, old]), {2: new})


class LinksOfATopology(unittest.TestCase):
    def setUp(self):
        self.links = Links(H100)

    def test_within_a_node_a_gather_is_bound_by_a_port(self):
        self.assertAlmostEqual(self.links.gather_seconds(8, 1e9), 7e9 / self.links.inside)

    def test_between_nodes_by_the_cards_where_they_are_slower(self):
        self.links.card = 1e9
        self.assertAlmostEqual(self.links.gather_seconds(24, 1e9), 16e9 / 8e9)

    def test_a_chain_has_the_latency_of_every_hop(self):
        links = self.links
        self.assertAlmostEqual(links.chain_seconds(8, 0), 7 * links.inside_latency)
        self.assertAlmostEqual(links.chain_seconds(17, 48), 14 * links.inside_latency + 2 * links.card_latency
                               + 48 / links.card)


if __name__ == "__main__":
    unittest.main()
