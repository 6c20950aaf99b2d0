# SPDX-License-Identifier: Apache-2.0
"""A card for each question: its launches, one colour a verdict, and an axis on which the nearest rows can be distinguished."""

import re
import unittest

from baton.report import page
from baton.report.page import cards, charts
from plots.report.example import layer, local, methods, scan, session, simulated
from plots.report.models_test import lines as models
from plots.report.page.pages import html_of

QUIET, LOUD = (1.0, 1.001, 0.999), (1.0, 1.2, 0.85)


def rows(*times, factors=QUIET, **changes):
    return [one for number, time in enumerate(times) for one in scan(f"scan_{number}", time, factors=factors, **changes)]


def drawn(*groups):
    """The SVG of the first card."""
    return next(cards.of_session(session(*groups))).svg


class Titles(unittest.TestCase):
    def test_the_title_of_the_page_fits_the_question(self):
        softmax = [one for name in ("ring_attention_zigzag", "all_gather_kv") for one in layer(name, scan="", attention="softmax")]
        for made, title in ((rows(1, 2), "Which exchange is fastest on Example CPU?"), (softmax, "Which method is fastest in a layer of Softmax "
                            "attention on Example CPU?"), (models(), "Which method is fastest in a model on Example CPU?"),
                            (rows(1, 2, kind="all_gather"), "Which all-gather of the maps is fastest on Example CPU?"),
                            (rows(1, 2) + layer() + layer("lasp2", 2), "What is fastest on Example CPU?"), (rows(1), "What does it take on Example CPU?"),
                            ([one for time in (1, 2) for one in simulated(scan(f"s{time}", time))], "Which exchange is fastest on a simulated machine?")):
            self.assertIn(f"<h1>{title}</h1>", html_of(session(made)))

    def test_each_card_has_its_launches_and_the_head_a_range(self):
        text = html_of(session(rows(1, 2), methods(factors=(1.0, 1.001))))
        self.assertIn("2 to 3 launches", text)
        self.assertIn("2 compared; 3 launches.", text)
        self.assertIn("3 compared; 2 launches.", text)

    def test_a_second_question_has_what_it_differs_in(self):
        made = session(layer(attention="gdn"), layer("lasp2", 2, attention="gdn"), layer(attention="kda"), layer("lasp2", 2, attention="kda"), local(tokens=7))
        self.assertEqual([card.question for card in cards.of_session(made)], ["Which method is fastest in a layer?", "KDA attention: which method is fastest in a layer?",
                                                                      "Linear attention: what does it take?"])


class Figure(unittest.TestCase):
    def places(self, svg):
        """The places of the points, from left to right as they are drawn."""
        return [float(place) for place in re.findall(r'<use xlink:href="[^"]*" x="([\d.]+)"', svg)]

    def test_rows_near_the_first_are_distinguished_where_another_is_far(self):
        first, second, far = self.places(drawn(rows(15, 15.6, 95)))
        self.assertGreater(second - first, 0.3 * (far - first))
        self.assertIn("95.0 us", drawn(rows(15, 15.6, 95)))
        self.assertIn("not from 0", drawn(rows(15, 15.6, 95)))

    def test_rows_that_all_lie_apart_stand_on_an_axis_from_nought(self):
        self.assertNotIn("not from 0", drawn(rows(10, 20, 30)))

    def test_a_tie_is_green_and_what_cannot_be_reported_is_not(self):
        self.assertIn(cards.TIED, drawn(rows(100, 101)))
        self.assertNotIn(cards.UNDECIDED, drawn(rows(100, 101)))
        doubtful = drawn(rows(100), scan("loud", 101, factors=LOUD))
        self.assertIn(cards.UNDECIDED, doubtful)
        self.assertNotIn(cards.TIED, doubtful)

    def test_names_of_a_figure_have_one_size(self):
        svg = drawn(scan("all_scan", 10), scan("a_name_of_more_than_24_letters", 12))
        self.assertEqual(len(set(re.findall(rf"fill: (?:{cards.TIED}|{cards.OTHER}); font: ([\d.]+)px", svg))), 1)


class Words(unittest.TestCase):
    def test_verified_has_a_unit(self):
        text = html_of(session([{**one, "verified_elements": 4096} for one in rows(1, 2)],
                               [{**one, "verified_tokens": 512, "verified_heads": 2} for one in methods()]))
        self.assertIn("4096 elements", text)
        self.assertIn("512 tokens x 2 heads", text)

    def test_a_row_that_cannot_be_reported_has_another_sign_than_a_tie(self):
        text = html_of(session(rows(100, 101), scan("loud", 101, factors=LOUD)))
        self.assertRegex(text, r'class="tied"[^>]*>≈ 1\.01')
        self.assertRegex(text, r'class="undecided"[^>]*>\? ')

    def test_a_flat_line_of_layers_is_said_to_be_ideal(self):
        made = [one for ranks in (2, 4) for name in ("zeco", "lasp2") for one in layer(name, ranks=ranks)]
        (_, chart), = charts.against_ranks(session(made).comparisons)
        self.assertIn("a flat line is ideal", chart.about)
        (_, chart), = charts.against_ranks(session([one for ranks in (2, 4) for one in rows(1, 2, ranks=ranks)]).comparisons)
        self.assertNotIn("flat", chart.about)

    def test_one_more_figure_is_no_plural(self):
        seven = [one for heads in range(1, 8) for tokens in (256, 512) for name in ("zeco", "lasp2")
                 for one in layer(name, heads=heads, tokens=tokens, d_k=heads, d_v=heads, chunk=16 * heads)]
        self.assertIn("<summary>1 more figure</summary>", page.html([session(seven)], "out/index.html"))


if __name__ == "__main__":
    unittest.main()
