# SPDX-License-Identifier: Apache-2.0
"""Whatever was asked is answered, in the first sentence under its heading, and nothing is said of what was not asked."""

import itertools
import random
import unittest

from baton.report import answer, layout
from baton.report.page import cards
from plots import example
from plots.report.example import gpu_scan, layer, local, paragraphs, scan, session, simulated, answer_text
from plots.report.models_test import lines as models

PAIR = (("zeco", 1.0), ("lasp2", 1.5))


def rivals(make=layer, pair=PAIR, **changes):
    return [one for number, (name, time) in enumerate(pair) for one in make(name, time, 0.001 * number, **changes)]


class Layers(unittest.TestCase):
    def first(self, *groups, heading="Layer"):
        found = paragraphs(*groups)
        self.assertEqual(set(found) - {"ANSWER", "Caveats", "Left out", "Verified"}, {heading})
        return found[heading]

    def test_delta_rules_are_answered_one_by_one(self):
        text = self.first(*(rivals(attention=rule, tokens=256) for rule in ("gdn", "kda", "rwkv7")))
        self.assertTrue(text.startswith("GDN attention, both passes, 256 tokens a rank, 4 heads of 128, f32, 4 ranks on processors, "
                                        "2 compared: fastest is zeco, 1000 us ["), text)
        for rule in ("KDA", "RWKV-7"):
            self.assertIn(f"{rule} attention, 2 compared: fastest is zeco", text)

    def test_each_question_comes_before_other_settings_of_the_first(self):
        made = [one for rule in ("gdn", "kda", "rwkv7", "deltanet") for way in ("both", "forward", "backward") for tokens in (512, 1024)
                for one in rivals(attention=rule, which=way, tokens=tokens)]
        text = answer_text(made)
        for rule in ("GDN", "KDA", "RWKV-7", "DeltaNet"):
            self.assertIn(f"{rule} attention, ", text)

    def test_each_of_several_passes_has_its_winner(self):
        made = rivals(), rivals(which="forward", pair=(("lasp2", 0.3), ("zeco", 0.5))), rivals(which="backward")
        text = self.first(*made)
        self.assertIn("both passes, 1024 tokens a rank, 4 heads of 128, f32, 4 ranks on processors, 2 compared: fastest is zeco", text)
        self.assertIn("Forward pass: fastest is lasp2, 300 us", text)
        self.assertIn("Backward pass: fastest is zeco", text)

    def test_one_method_has_its_time_and_what_it_is_beside(self):
        self.assertRegex(self.first(layer("zeco", 1.5), local(1.0, 0.001)),
                         r"4 ranks on processors: zeco takes 1\.50 ms \[[^]]*\], 1\.50\d? \[[^]]*\] times as long as without any exchange; "
                         r"nothing was measured that competes with it\.$")
        self.assertRegex(self.first(scan("all_scan", 100, bound_seconds=5e-5), heading="Exchange"),
                         r": all_scan takes 100 us \[[^]]*\], reaches 50 % of what the link allows;")
        self.assertRegex(self.first(local(1.0)), "local, the layer without any exchange, takes 1000 us")

    def test_one_method_in_all_modes_has_the_cost_of_its_exchange(self):
        made = [one for mode, time in (("overlapped", 1.2), ("exposed", 1.5), ("compute_only", 1.0)) for one in layer("zeco", time, mode=mode, scan="")]
        self.assertRegex(self.first(made), r"zeco takes 1\.20 ms .*1\.200 \[[^]]*\] times as long as without any exchange; nothing .* Without overlap the exchange "
                                           r"of zeco would cost 41 to 42 % of a layer's time, so it matters\.$")

    def test_a_time_beside_local_work_is_no_more_than_launches_tell(self):
        loud = (1.0, 4.0, 0.5)
        for time, factors, said in ((1.001, (1.0, 1.001, 0.999), r"1\.00 ms [^;]*as long as without any exchange \(1\.001 \["),
                                    (3.0, loud, r"a time that the launches cannot tell from that without any exchange \(3\.\d+ \["),
                                    (0.8, (1.0, 1.001, 0.999), r"0\.80\d? \[[^]]*\] times as long as without any exchange, which cannot be: times err")):
            self.assertRegex(self.first(layer("zeco", time, factors=factors), local(1.0, factors=(1.0, 1.0, 1.0))), said)

    def test_rows_that_were_all_skipped_say_why(self):
        made = [example.skipped_layer("its text has the delta rule, not the decay rule", name="zeco_corrected")]
        self.assertIn("No row has a time: zeco_corrected was skipped: its text has the delta rule, not the decay rule.", answer_text(made))

    def test_one_rank_exchanges_nothing(self):
        text = self.first(rivals(scan), rivals(scan, ranks=1), heading="Exchange")
        self.assertNotIn("1 rank", text)

    def test_one_method_on_several_sizes_has_the_time_of_each(self):
        made = [layer("zeco", tokens / 1024, tokens=tokens) for tokens in (1024, 2048, 4096)]
        text = self.first(*made)
        self.assertIn("4096 tokens a rank, 4 heads of 128, f32, 4 ranks on processors: zeco takes 4.00 ms", text)
        self.assertRegex(text, r"Elsewhere: 1024 tokens 1000 us \[[^]]*\]; 2048 tokens 2\.00 ms \[[^]]*\]\.")


class Settings(unittest.TestCase):
    """Many settings of one question: who is fastest in how many of them."""

    names = ("all_scan", "two_shot", "ring_scan")

    def sizes(self, times, noise=0.0005, **changes):
        """Three scans at sizes from 64 KiB on, with these times."""
        return [one for number, row in enumerate(times) for place, (name, time) in enumerate(zip(self.names, row))
                for one in scan(name, time, noise * place, state_bytes=65536 << number, **changes)]

    def test_a_winner_everywhere(self):
        text = answer_text(self.sizes([(10, 12, 20)] * 4))
        self.assertIn("4 ranks on processors, 3 compared: at all 4 sizes (64 KiB to 512 KiB), all_scan is fastest. Always slower: ring_scan and "
                      "two_shot, 1.2 to 2 times as long. At 512 KiB: fastest is all_scan", text)

    def test_winners_here_and_there(self):
        text = answer_text(self.sizes([(10, 12, 20), (10, 12, 20), (12, 10, 20), (10, 10, 20)]))
        self.assertIn("no scan is among the fastest at all 4 sizes (64 KiB to 512 KiB). Fastest is all_scan in 2 of 4 (64 KiB and 128 KiB) and "
                      "two_shot in 1 (256 KiB). Always slower: ring_scan, 2 times as long.", text)

    def test_what_launches_cannot_tell_is_no_tie(self):
        text = answer_text(self.sizes([(10, 10.1, 20)] * 4, noise=0.1))
        self.assertIn("nothing is measurably faster than all_scan", text)
        self.assertIn("The launches cannot tell in any of them who is fastest.", text)
        self.assertNotRegex(text, "tie")

    def test_the_settings_are_said(self):
        text = answer_text(self.sizes([(10, 12, 20)] * 3), self.sizes([(10, 12, 20)] * 2, cadence="graph"))
        self.assertIn("in all 5 tests (3 sizes isolated, 2 as CUDA graphs), all_scan is fastest", text)
        text = answer_text(*(self.sizes([(10, 12, 20)] * 2, ranks=ranks) for ranks in (3, 4)))
        self.assertIn("in all 4 tests (2 numbers of ranks, 2 sizes), all_scan is fastest", text)

    def test_one_launch_says_who_took_least_where(self):
        made = self.sizes([(10, 12, 20), (12, 10, 20), (10, 12, 20), (10, 12, 20)])
        text = answer_text([one for one in made if one["launch"] == 1])
        self.assertIn("at all 4 sizes (64 KiB to 512 KiB), in one launch each, least time has all_scan in 3 of 4 (64 KiB, 256 KiB and 512 KiB) and two_shot in 1 (128 KiB).", text)

    def test_two_ranks_explain_a_winner_too(self):
        explained = "Between two ranks most scans send one and the same message"
        self.assertIn(explained, answer_text(rivals(scan, ranks=2)))
        self.assertIn(explained, answer_text(rivals(gpu_scan, ranks=2)))
        self.assertNotIn(explained, answer_text(rivals(scan, ranks=3)))
        self.assertNotIn(explained, answer_text(*(scan("all_scan", blocks, ranks=2, blocks=blocks, blocks_asked=blocks) for blocks in (1, 2))))
        self.assertNotIn(explained, answer_text(rivals(scan, ranks=2, kind="all_gather")))


class Simulated(unittest.TestCase):
    """What the simulator alone was asked."""

    def asked(self, make, **changes):
        made = [simulated(make(name, time, **changes)) for name, time in PAIR]
        found = paragraphs(*made)
        self.assertEqual(set(found), {"ANSWER", "~ Simulated", "Verified"})
        return found["~ Simulated"]

    def test_each_kind_of_question_is_answered(self):
        for make, changes, said in ((layer, {"attention": "gdn"}, "GDN attention, both passes"), (scan, {"kind": "all_gather"}, "All-gather"),
                                    (layer, {"which": "forward"}, "Linear attention, forward pass")):
            with self.subTest(said):
                self.assertRegex(self.asked(make, ranks=64, **changes), rf"~ {said}.*, 64 ranks.*: fastest is zeco, ~1\.00 .s; the next, lasp2, takes ~1\.50 times")

    def test_one_method_alone_has_its_times(self):
        self.assertRegex(paragraphs(simulated(layer("zeco", 2, ranks=64)))["~ Simulated"], r"64 ranks, simulated on somewhere-32x8: zeco takes ~2\.00 ms;")
        self.assertIn("~ exchange of 2 MiB simulated on somewhere-32x8: all_scan takes ~10.0 us at 4 ranks, ~20.0 us at 8 ranks and ~30.0 us at 16 ranks.",
                      paragraphs(*(simulated(scan(microseconds=time, ranks=ranks)) for ranks, time in ((4, 10), (8, 20), (16, 30))))["~ Simulated"])

    def test_sizes_are_followed_as_ranks_are(self):
        made = [simulated(scan(name, time, state_bytes=size, ranks=8)) for size, times in ((1 << 16, (1, 2)), (1 << 20, (2, 3)), (1 << 21, (9, 3)))
                for name, time in zip(("all_scan", "two_shot"), times)]
        self.assertIn("~ exchange between 8 ranks simulated on somewhere-32x8: all_scan fastest at 64 KiB to 1 MiB; two_shot fastest at 2 MiB; "
                      "all_scan ~3.00 times as long as two_shot at 2 MiB.", paragraphs(*made)["~ Simulated"])


class AnyLaunches(unittest.TestCase):
    """Interrupted sessions, failed second launches, mixtures: any choice of rows and launches is answered."""

    def assert_answered(self, records):
        made = session(records)
        text = " ".join(answer.lines(made))
        self.assertTrue(text.startswith("ANSWER"), text)
        self.assertLessEqual(max(map(len, answer.lines(made))), layout.COLUMNS)
        return made

    def test_any_choice_of_two_launches_of_three_tied_scans(self):
        made = [one for number, name in enumerate(("all_scan", "two_shot", "ring_scan"))
                for one in scan(name, 100 + number, 0.01 * number, factors=(1, 1.01), ranks=2)]
        for size in range(1, len(made) + 1):
            for chosen in itertools.combinations(made, size):
                with self.subTest([(one["name"], one["launch"]) for one in chosen]):
                    self.assert_answered(chosen)

    def test_any_choice_of_layers_models_and_sizes(self):
        whole = [*rivals(), *rivals(which="forward"), *local(0.9), *rivals(mode="exposed"), *rivals(attention="gdn"), *models(),
                 *(one for size in (1, 2, 4, 8) for one in rivals(scan, state_bytes=size * 65536)), *rivals(gpu_scan)]
        draw = random.Random(51)
        for number in range(60):
            chosen = draw.sample(whole, draw.randint(1, len(whole)))
            lost = [{**one, "wrong": 2} if draw.random() < 0.1 else one for one in chosen]
            with self.subTest(number):
                made = self.assert_answered(lost)
                if number % 20 == 0:
                    self.assertTrue(list(cards.of_session(made)))


if __name__ == "__main__":
    unittest.main()
