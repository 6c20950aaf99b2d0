# SPDX-License-Identifier: Apache-2.0
"""Cells know where they come from, and a page says the same in HTML and CSV."""

import unittest

from baton.paper import cells, html
from baton.paper.cells import Row
from baton.paper.page import Figure, Page, Section, Table, Text, as_csv, blocks
from baton.paper.sources import load_cells
from plots.example import InFolder, record


def simulated(**changes):
    return record(executor="simulator", topology="some-machine", **changes)


class Cells(unittest.TestCase):
    def test_three_digits_that_count(self):
        shown = {0: "0", 0.0004567: "0.000457", 0.04567: "0.0457", 0.4567: "0.457", 4.567: "4.57", 45.67: "45.7",
                 456.7: "457", 4567.0: "4,567", -0.5: "-0.500"}
        self.assertEqual({value: cells.digits(value) for value in shown}, shown)

    def test_a_measured_cell_names_machine_commit_and_day(self):
        cell = cells.timed(record(milliseconds=2), "mine")
        self.assertEqual((cell.text, cell.unit, cell.kind), ("2.00", "ms", "measured"))
        self.assertEqual((cell.origin, cell.commit, cell.time), ("mine, executor mpi", "abc", "2030-01-01T00:00:00Z"))
        self.assertIn("95 % interval 1.80 to 2.20 ms", cell.note)

    def test_a_simulated_cell_names_its_topology_and_what_is_extrapolated(self):
        cell = cells.timed(simulated(blocks=7, extrapolated="64 ranks, 16 were measured"))
        self.assertEqual((cell.kind, cell.origin), ("simulated", "topology some-machine"))
        self.assertEqual(cell.note, "K = 7; extrapolated: 64 ranks, 16 were measured")

    def test_what_has_no_time_is_blank(self):
        self.assertIsNone(cells.timed(None))
        self.assertIsNone(cells.timed(record(wrong=1)))

    def test_ratios_tell_of_what_and_whether_they_are_far(self):
        one, other = cells.timed(simulated(milliseconds=3)), cells.timed(record(milliseconds=4))
        near, far = cells.ratio(one, other), cells.ratio(other, one)
        self.assertEqual((near.text, near.kind, near.origin), ("0.750×", "derived", "simulated / measured"))
        self.assertFalse(near.off)
        self.assertTrue(far.off)
        self.assertEqual(cells.difference(one, other).text, "−25.0 %")
        self.assertIsNone(cells.ratio(None, other))


def example_page():
    row = [cells.timed(record(milliseconds=1.5), "mine"), None,
           cells.derived(2, "2 < 3", "", "arithmetic")._replace(off=True)]
    table = Table("times", "Times & more", ["2", "4", "8"], [Row("`all_scan`", "measured, mine", row)], ["A note."])
    return Page("A page", ["It **says** `so`: [there](#s1)."],
                [Section("First", [Text("x < y"), table, Figure("seen", "Seen", "mine", "bars", [1], "What is seen.")])])


class Rendering(InFolder):
    def test_csv_has_a_line_for_each_cell_that_is_not_blank(self):
        table, = blocks(example_page(), Table)
        name, text = as_csv(table)
        (self.folder / name).write_text(text, encoding="utf-8")
        rows = load_cells(self.folder / "times.csv")
        self.assertEqual([(row["row"], row["column"], row["value"], row["kind"]) for row in rows],
                         [("all_scan", "2", "1.5", "measured"), ("all_scan", "8", "2", "derived")])
        self.assertEqual(rows[0]["commit"], "abc")

    def test_html_stands_alone_and_escapes(self):
        text = html.page(example_page(), {"seen": "<svg></svg>"})
        self.assertIn("It <strong>says</strong> <code>so</code>: <a href=\"#s1\">there</a>.", text)
        self.assertIn("x &lt; y", text)
        self.assertIn('<td class="derived off"', text)
        self.assertIn("src=\"data:image/svg+xml;base64,", text)
        self.assertIn("<sup>a</sup> mine, commit abc, launch a", text)
        self.assertIn("A note.", text)

    def test_texts_of_records_make_no_script(self):
        for text in ("[x](javascript:alert)", '[x](a"onmouseover="b)', "<b>"):
            made = html.inline(text)
            self.assertNotIn("<b>", made)
            self.assertNotRegex(made, r"<a [^>]*(javascript|onmouseover=\"b)")
        self.assertEqual(html.inline("[x](https://a.b/c)"), '<a href="https://a.b/c">x</a>')

    def test_without_a_picture_the_page_says_so(self):
        self.assertIn("No picture", html.page(example_page(), {}))


if __name__ == "__main__":
    unittest.main()
