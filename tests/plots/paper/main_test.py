# SPDX-License-Identifier: Apache-2.0
"""The page shows every published cell, what was simulated and what was measured, and says where there is nothing."""

import re
import unittest

from baton.paper.sources import H100, load_cells
from plots.example import ROOT, InFolder, record, run, write
from plots.paper.shown import published, simulated


class Page(InFolder):
    def setUp(self):
        super().setUp()
        self.machine = self.folder / "results" / "some-machine"
        self.machine.mkdir(parents=True)

    def make(self, records, measured=(), *arguments):
        """Runs the command; returns its HTML and {name: rows} of its CSVs."""
        write(self.folder / "simulated.jsonl", records)
        write(self.machine / "r.jsonl", measured)
        done = run("paper", "--simulated", self.folder, "--machines", self.folder / "results", "--out",
                   self.folder / "page", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = self.folder / "page"
        return (out / "index.html").read_text(encoding="utf-8"), {path.stem: load_cells(path) for path in out.glob("*.csv")}

    def test_the_whole_page(self):
        page, tables = self.make([simulated("all_scan", 8, 0.226), simulated("all_scan", 16, 0.5)],
                                       [record("all_scan", 8, 3.0, commit="abc-dirty"), simulated("all_scan", 8, 5.0)])
        self.assertNotRegex(page, r"<(script|link|iframe)\b")
        self.assertNotIn("@import", page)
        self.assertIn('src="data:image/svg+xml;base64,', page)
        for source in re.findall(r'src="([^"]{0,40})', page):
            self.assertTrue(source.startswith("data:"), source)
        self.assertTrue((self.folder / "page" / "table2_bars.png").exists())
        ours = [row for row in tables["table2"] if row["row"] == "all_scan" and row["kind"] == "simulated"]
        self.assertEqual([(row["column"], row["value"], row["origin"]) for row in ours],
                         [("8", "0.226", f"topology {H100}"), ("16", "0.5", f"topology {H100}")])
        self.assertEqual([row["value"] for row in tables["table2_measured"]], ["3"])
        self.assertIn("<sup>a</sup> some-machine, commit abc-dirty, launch a", page)
        ratios = {row["column"]: row["value"] for row in tables["table2"] if row["origin"] == "simulated / published"}
        self.assertEqual(ratios, {"8": "1", "16": "1.6835"})
        self.assertRegex(page, r'class="derived off"[^>]*>1.68×')
        self.assertRegex(page, r'class="derived"[^>]*>1.00×')

    def test_the_results_show_the_published_cells(self):
        results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
        for title in ("AllGather (LASP-2)", "All-Scan (ZeCO)"):
            cells = [row["value"] for row in published("zeco_table2")["zeco_table2"] if row["method"] == title]
            self.assertIn(f"| {title} | published<sup>a</sup> | {' | '.join(cells)} |", results)

    def test_records_of_this_checkout_stand_there_only_if_asked(self):
        here = self.folder / "results" / "local"
        here.mkdir()
        write(here / "r.jsonl", [record(ranks=8, milliseconds=7)])
        page, tables = self.make([simulated("all_scan", 8)])
        self.assertNotIn("results/local", page)
        self.assertEqual(tables["table2_measured"], [])
        page, tables = self.make([simulated("all_scan", 8)], (), "--local")
        self.assertIn("results/local", page)
        self.assertEqual([row["value"] for row in tables["table2_measured"]], ["7"])

    def test_nothing_simulated_is_one_line(self):
        done = run("paper", "--simulated", self.folder, "--machines", self.folder / "results", "--out", self.folder)
        self.assert_one_line(done, "no simulated record")


if __name__ == "__main__":
    unittest.main()
