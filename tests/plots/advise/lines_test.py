# SPDX-License-Identifier: Apache-2.0
"""The three lines, from made-up records: who is the fastest, what is called no difference, and what competes."""

import unittest

from baton import fastest
from baton.advise import candidates, command, simulator
from plots.example import ROOT, layer, skipped_layer

RING, GATHER, ZIGZAG, ZECO, LASP2 = "a_ring", "a_gather", "a_zigzag", "zeco", "lasp2"


def simulated(name, milliseconds, attention="linear", **changes):
    return layer(name, milliseconds=milliseconds, **{"executor": "simulator", "topology": "somewhere", "sent_bytes": 2**20,
                                                     "hops": 3, "attention": attention, "layout": "contiguous", **changes})


def softmax(name, milliseconds, **changes):
    return simulated(name, milliseconds, "softmax", **changes)


def half_hidden(record):
    """An exchange that adds 2 ms if it is waited for, and half of that if it is not."""
    return {**record, "exposed_seconds": record["median_seconds"] + 1e-3, "free_seconds": record["median_seconds"] - 1e-3}


def move(milliseconds):
    """A move of hidden states, all of which is waited for."""
    return {**simulated("direct_to_zigzag", milliseconds, sent_bytes=2**20, hops=1), "exposed_seconds": milliseconds / 1e3,
            "free_seconds": 0}


def lines(*records, completed=half_hidden, **choices):
    return dict(zip(candidates.TITLES, command.lines(list(records), completed, **choices), strict=True))


class Lines(unittest.TestCase):
    def test_the_fastest_the_margin_and_why(self):
        found = lines(softmax(RING, 30.0, sent_bytes=3 * 2**20), softmax(GATHER, 10.0, hops=1))["softmax"]
        self.assertEqual(found, "softmax  ~10.0 ms a_gather; a_ring takes ~3.00 times as long. It sends 1.00 MiB in 1 hops, "
                               "50 % hidden; a_ring sends 3.00 MiB in 3 hops, 50 % hidden.")

    def test_what_the_simulator_cannot_tell_is_no_difference(self):
        error = fastest.TYPICAL_ERROR
        below, above = (lines(simulated(ZECO, 1.0), simulated(LASP2, 1 + factor * error))["linear"] for factor in (0.9, 1.1))
        self.assertIn("~1.00 ms zeco; no difference from lasp2. It", below)
        self.assertIn("lasp2 takes ~1.25 times as long", above)

    def test_a_hybrid_is_one_softmax_layer_and_three_linear_ones_of_alike_tokens(self):
        found = lines(softmax(RING, 10.0), softmax(ZIGZAG, 1.0, layout="zigzag"), simulated(ZECO, 2.0),
                     simulated(LASP2, 20.0))
        self.assertIn("~1.00 ms a_zigzag", found["softmax"])
        self.assertIn("~16.0 ms a_ring + 3 zeco; a_ring + 3 lasp2 takes ~4.37 times as long. It sends 4.00 MiB in 12 hops",
                      found["hybrid"])

    def test_tokens_that_move_between_layers_are_a_choice_of_the_hybrid(self):
        made = softmax(RING, 30.0), softmax(ZIGZAG, 1.0, layout="zigzag"), simulated(ZECO, 2.0)
        self.assertIn("~11.0 ms a_zigzag + 3 zeco + 4 moves; a_ring + 3 zeco takes ~3.27 times as long. It sends 8.00 MiB in "
                      "16 hops", lines(*made, move=move(1.0))["hybrid"])
        self.assertIn("~36.0 ms a_ring + 3 zeco; a_zigzag + 3 zeco + 4 moves takes ~1.64", lines(*made, move=move(13.0))["hybrid"])

    def test_methods_without_an_exchange_or_a_time_do_not_compete(self):
        found = lines(simulated("local", 0.1, sent_bytes=0), simulated(ZECO, 1.0),
                     skipped_layer("3 heads", name="a_cut", attention="softmax"))
        self.assertIn("~1.00 ms zeco; nothing else runs here.", found["linear"])
        self.assertIn("no method runs here", found["softmax"])
        self.assertIn("no method runs here", found["hybrid"])

    def test_an_exchange_that_takes_no_time_has_no_hidden_share(self):
        found = lines(simulated(ZECO, 1.0), completed=lambda one: {**one, "exposed_seconds": 1e-3, "free_seconds": 1e-3})
        self.assertIn("in 3 hops, takes next to no time.", found["linear"])

    def test_each_method_is_simulated_apart_once(self):
        asked = []
        lines(softmax(RING, 10.0), softmax(GATHER, 30.0), simulated(ZECO, 2.0), simulated(LASP2, 20.0),
              completed=lambda one: asked.append(one["name"]) or half_hidden(one))
        self.assertEqual(sorted(asked), [GATHER, RING, LASP2, ZECO])


class Head(unittest.TestCase):
    QUESTION = simulator.Question("somewhere.json", 8192, 64, 8, 128, 4, "bf16", "both")

    def test_it_says_what_makes_the_answer_uncertain(self):
        skipped = skipped_layer("64 heads do not divide", name="a_cut")
        said = "\n".join(command.head(self.QUESTION, {}, [simulated(ZECO, 1.0, extrapolated="no such kernel"), skipped]))
        for part in ("~ simulated", "8192 tokens on each of 4 ranks, 64 heads, 8 of keys and values in softmax layers, of 128, bf16", "23 %",
                     f"# less certain: {command.NOT_CALIBRATED} and no such kernel", "# a_cut: 64 heads do not divide"):
            self.assertIn(part, said)

    def test_a_topology_that_was_not_calibrated_is_less_certain(self):
        for topology, wanted, missing in (({}, f"# less certain: {command.NOT_CALIBRATED}", "; the"),
                                        ({"calibration": {}}, "was calibrated on its machine", "less certain")):
            said = "\n".join(command.head(self.QUESTION, topology, [simulated(ZECO, 1.0)]))
            self.assertIn(wanted, said)
            self.assertNotIn(missing, said)


class FewerHeadsOfKeys(unittest.TestCase):
    """Softmax layers alone have them; the linear ones beside them have as many as of queries."""

    RECORDS = [softmax(RING, 10.0), skipped_layer("no kv_heads", name=ZECO, attention="linear")]

    def asked(self, kv_heads):
        """The words of each run of the bench that asks for all methods, and their records."""
        runs = []

        class Faked(simulator.Simulator):
            def run(self, topology, with_kv_heads, *words):
                runs.append((*simulator.flags(self.question, with_kv_heads), *words))
                return FewerHeadsOfKeys.RECORDS if "all" in words else [simulated(ZECO, 1.0)]

        question = Head.QUESTION._replace(topology=ROOT / "topologies/h200-4.json", kv_heads=kv_heads)
        return Faked("nowhere", question).all_methods(), runs

    def test_linear_methods_run_without_them(self):
        records, runs = self.asked(8)
        self.assertEqual([("--kv-heads" in words, words[-1]) for words in runs], [(True, "all"), (False, ZECO)])
        self.assertEqual([(one["name"], "skipped" in one) for one in records], [(RING, False), (ZECO, False)])

    def test_as_many_as_of_queries_need_one_run(self):
        records, runs = self.asked(None)
        self.assertEqual((records, len(runs)), (self.RECORDS, 1))
        self.assertNotIn("--kv-heads", runs[0])


class Move(unittest.TestCase):
    def moved(self, record):
        class Faked(simulator.Simulator):
            def records_of(self, bench, topology, *words):
                return [record]

        question = Head.QUESTION._replace(topology=ROOT / "topologies/h200-4.json")
        return Faked("nowhere", question).move()

    def test_it_is_waited_for_and_one_without_a_time_is_none(self):
        self.assertEqual(self.moved(simulated("direct_to_zigzag", 2.0))["exposed_seconds"], 2e-3)
        self.assertIsNone(self.moved(skipped_layer("too large", name="direct_to_zigzag")))


class FreeLinks(unittest.TestCase):
    CURVE = [{"bytes": 1, "seconds": 1}, {"bytes": 2, "seconds": 2}]
    LINK = {"latency_seconds": 1, "overhead_seconds": 1, "bytes_per_second": 1, "node_bytes_per_second": 1, "measured": CURVE,
            "measured_idle": CURVE, "node_measured": CURVE, "moved_by": "wire", "source": "counted"}

    def test_nothing_of_a_link_takes_time(self):
        free = simulator.with_free_links({"name": "x", "calibration": {}, "links": {"intra_node": self.LINK}})
        self.assertEqual(free, {"name": "x", "links": {"intra_node": {
            "latency_seconds": 0, "overhead_seconds": 0, "bytes_per_second": 1e18, "moved_by": "wire", "source": "counted"}}})


if __name__ == "__main__":
    unittest.main()
