# SPDX-License-Identifier: Apache-2.0
"""The rounds of every row reach the page's script, and many of them do not make the page too large."""

import base64
import json
import re
import unittest
from unittest import mock

from baton.report.page import strips
from plots.report.example import failed, scan, session
from plots.report.page import pages

ROUNDS = [[1e-6, 2e-6, 4e-6], [1e-6, 3e-6, 1e-6]]


def strips_of(html):
    found = re.search(r'<script type="application/json" id="strips">(.*?)</script>', html, re.DOTALL)
    return json.loads(found[1])


class Strips(unittest.TestCase):
    def test_every_row_of_a_table_has_its_rounds(self):
        html = pages.html_of(pages.whole())
        numbers = [int(number) for number in re.findall(r'<tr[^>]* data-n="(\d+)"', html)]
        self.assertEqual(sorted(numbers), list(range(len(strips_of(html)))))

    def test_times_are_places_on_a_logarithmic_scale(self):
        one, = strips_of(pages.html_of(session(scan("all_scan", rank_seconds=ROUNDS), scan("ring_scan"))))[0]
        self.assertEqual((one["low"], one["high"]), (1e-6, 4e-6))
        coded = one["launches"][0]["ranks"]
        self.assertEqual([list(base64.b64decode(rank)) for rank in coded], [[0, 128, 255], [0, 202, 0]])
        self.assertEqual([launch["n"] for launch in one["launches"]], [1, 2, 3])

    def test_of_many_launches_the_newest_are_shown(self):
        with mock.patch.object(strips, "MOST_LAUNCHES", 2):
            one, = strips_of(pages.html_of(session(scan("all_scan", rank_seconds=ROUNDS), scan("ring_scan"))))[0]
        self.assertEqual([launch["n"] for launch in one["launches"]], [2, 3])
        self.assertTrue(one["from"].endswith("these 2 of 3 are the newest"), one["from"])

    def test_a_failure_has_its_reason(self):
        found = strips_of(pages.html_of(session(scan(), scan("two_shot"), failed(case="lost"))))
        self.assertIn("exceeded its limit of 60 s", [one.get("why") for row in found for one in row])

    def test_too_many_ranks_leave_the_slowest(self):
        with mock.patch.object(strips, "MOST_LETTERS", 20):
            one, = strips_of(pages.html_of(session(scan("all_scan", rank_seconds=ROUNDS), scan("ring_scan"))))[0]
        self.assertEqual(one["slowest"], 1)
        self.assertEqual([list(base64.b64decode(rank)) for rank in one["launches"][0]["ranks"]], [[0, 202, 255]])

    def test_many_rounds_are_thinned_to_the_slowest_of_each_few(self):
        self.assertEqual(strips.thinned([[*range(800)]], 9), [[*range(1, 800, 2)]])

    def test_no_text_ends_the_script(self):
        html = pages.html_of(session(scan(case="</script><b>"), scan("ring_scan")))
        self.assertNotIn("</script><b>", html)
        self.assertEqual(strips_of(html)[0][0]["name"], "</script><b>")


if __name__ == "__main__":
    unittest.main()
