# SPDX-License-Identifier: Apache-2.0
"""Tables rank within comparisons alone, and mark what must not be mixed."""

import html
import re
import unittest

from plots.example import skipped
from plots.report import example
from plots.report.example import crowded, failed, layer, scan, session
from plots.report.page import pages
from plots.report.page.pages import layers, scans, whole


def tables_of(text):
    """[(heading and notes, [cells of each row])] of a page."""
    found = []
    for section in re.findall(r'<section class="of-table">(.*?)</section>', text, re.DOTALL):
        said, body = re.sub("<small.*?</small>", "", section).split("<tbody>")  # the words for a telephone
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
        found.append((plain(said), [[plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]))
    return found


def plain(text):
    return html.unescape(re.sub("<[^>]+>", " ", text)).strip()


def row_of(text, name):
    return next(row for _, rows in tables_of(text) for row in rows if row[0] == name)


class Tables(unittest.TestCase):
    def test_measured_and_simulated_rows_share_no_table(self):
        found = tables_of(pages.html_of(whole()))
        kinds = [{row[0].endswith("~") for row in rows} for _, rows in found]
        self.assertTrue(all(len(kind) == 1 for kind in kinds), kinds)
        self.assertIn({True}, kinds)
        for (said, _), kind in zip(found, kinds):
            self.assertEqual("simulated:" in said, kind == {True}, said)

    def test_the_fastest_comes_first_with_the_ratio_of_the_others(self):
        (_, rows), = tables_of(pages.html_of(session(scan("ring_scan", 150), scan("all_scan", 100))))
        self.assertEqual([row[0] for row in rows], ["all_scan", "ring_scan"])
        self.assertIn("fastest", rows[0])
        self.assertIn("1.500 [1.496, 1.504]", rows[1])

    def test_what_cannot_be_distinguished_names_no_fastest(self):
        text = pages.html_of(session(scan("all_scan", 100, noise=0.02), scan("ring_scan", 100.5, noise=-0.02)))
        self.assertNotIn("fastest", row_of(text, "all_scan"))
        self.assertTrue(any(cell.startswith("? ") for cell in row_of(text, "ring_scan")))

    def test_ranks_without_cores_are_not_ranked(self):
        text = pages.html_of(session(crowded(scan("all_scan", ranks=8), 4), crowded(scan("ring_scan", ranks=8), 4)))
        self.assertIn("oversubscribed", row_of(text, "all_scan"))
        self.assertNotIn("fastest", row_of(text, "all_scan"))

    def test_modes_are_shown_and_only_the_published_one_is_ranked(self):
        (_, rows), _ = tables_of(pages.html_of(session(layers())))
        ranked = [row[1] for row in rows if row[-2]]  # the column before the last is "against the fastest"
        self.assertEqual(set(ranked), {"overlapped"})
        self.assertEqual([row[1] for row in rows][:3], ["overlapped"] * 3)

    def test_another_launch_or_commit_is_marked(self):
        text = pages.html_of(session(scan("all_scan"), scan("two_shot", 130), scan("ring_scan", 150, commit="other")))
        self.assertIn("a: of another launch, a, commit other.", tables_of(text)[0][0])
        self.assertTrue(row_of(text, "ring_scan")[4].endswith(" a"))
        self.assertFalse(row_of(text, "two_shot")[4].endswith(" a"))

    def test_a_failure_is_a_row_and_a_skipped_one_is_counted(self):
        not_here = skipped("no native of mpi", name="all_scan_fused", machine=example.machine(64), case="skipped")
        text = pages.html_of(session(scan(), scan("two_shot"), failed("ring_scan", case="lost"), [not_here]))
        self.assertIn("failed", row_of(text, "ring_scan"))
        self.assertIn("1 row could not run here", tables_of(text)[0][0])

    def test_sessions_stand_side_by_side(self):
        text = pages.html_of(session(scans()), session(crowded(scans(ranks=(2,), commit="b"), 9)))
        (_, rows), = tables_of(text)
        widths = {len(row) for row in rows}
        self.assertEqual(len(widths), 1)
        self.assertNotIn("of another launch", text)
        both = [row for row in rows if sum("[" in cell for cell in row) >= 2]
        self.assertTrue(both)

    def test_what_is_constant_is_no_column(self):
        text = pages.html_of(session(layer("zeco", chunk=64), layer("lasp2", 1.2, chunk=64)))
        self.assertIn("chunk 64", tables_of(text)[0][0])
        self.assertNotIn("<button>chunk</button>", text)
        text = pages.html_of(session(layer("zeco", chunk=64), layer("zeco", chunk=128), layer("lasp2", 1.2, chunk=64)))
        self.assertIn("<button>chunk</button>", text)


if __name__ == "__main__":
    unittest.main()
