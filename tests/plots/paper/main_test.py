# SPDX-License-Identifier: Apache-2.0
"""The page shows every published cell, what was simulated and what was measured, and says where there is nothing."""

import re
import unittest

from baton.paper.sources import load_cells
from plots.example import ROOT, InFolder, layer, local, on_gpus, record, run, skipped, write

PUBLISHED = ROOT / "results" / "paper"
H100, MANY = "dgx-h100-32x8", "dgx-h100-2048x8"


def simulated(name, ranks, milliseconds=1.0, topology=H100, **changes):
    return record(name, ranks, milliseconds, **{"executor": "simulator", "topology": topology, "messages": 9,
                                                "blocks_asked": 1, **changes})


def simulated_layer(name, ranks, milliseconds, **changes):
    return layer(name, ranks=ranks, milliseconds=milliseconds, **{
        "executor": "simulator", "topology": H100, "messages": 9, "blocks_asked": 1, "tokens": 16384, "heads": 16,
        "dtype": "bf16", **changes})


def tables_of(text):
    """{title: the lines of its rows} of a page as Markdown."""
    found, title = {}, ""
    for line in text.splitlines():
        title = line if line.startswith("**") else title
        if line.startswith("| ") and not line.startswith(("| | |", "| ---")):
            found.setdefault(title, []).append(line)
    return found


class Page(InFolder):
    def setUp(self):
        super().setUp()
        self.machine = self.folder / "results" / "some-machine"
        self.machine.mkdir(parents=True)

    def make(self, records, measured=(), *arguments):
        """Runs paper.py; returns its HTML, its Markdown and {name: rows} of its CSVs."""
        write(self.folder / "simulated.jsonl", records)
        write(self.machine / "r.jsonl", measured)
        done = run("paper", "--simulated", self.folder, "--machines", self.folder / "results", "--out",
                   self.folder / "page", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = self.folder / "page"
        return ((out / "index.html").read_text(encoding="utf-8"), (out / "paper.md").read_text(encoding="utf-8"),
                {path.stem: load_cells(path) for path in out.glob("*.csv")})

    def test_every_published_cell_appears(self):
        page, text, tables = self.make([simulated("all_scan", 8)])
        for name, table in (("zeco_table2", "table2"), ("zeco_table_operator_16k", "operator_16k")):
            shown = {(row["column"], row["value"]) for row in tables[table] if row["kind"] == "published"}
            for row in load_cells(PUBLISHED / f"{name}.csv"):
                self.assertIn((row["gpus"], row["value"]), shown)
                self.assertIn(f">{row['value']}<", page)
                self.assertIn(f" {row['value']} ", text)
        shown = {(row["column"], row["value"]) for row in tables["lasp2_lengths"] if row["kind"] == "published"}
        for name in ("lasp2_throughput", "lasp2_relative_speed"):
            for row in load_cells(PUBLISHED / f"{name}.csv"):
                if row["gpus"] == "64":
                    self.assertIn((row["seq_len"], row["value"]), shown)

    def test_the_page_fetches_nothing(self):
        page, _, _ = self.make([simulated("all_scan", ranks) for ranks in (8, 16)])
        self.assertNotRegex(page, r"<(script|link|iframe)\b")
        for source in re.findall(r'src="([^"]{0,40})', page):
            self.assertTrue(source.startswith("data:"), source)
        self.assertNotIn("@import", page)

    def test_simulated_and_measured_are_told_apart(self):
        _, text, tables = self.make([simulated("all_scan", 8, 2.0)],
                                    [record("all_scan", 8, 3.0, commit="abc-dirty"), simulated("all_scan", 8, 5.0)])
        ours = [row for row in tables["table2"] if row["row"] == "all_scan" and row["kind"] == "simulated"]
        self.assertEqual([(row["column"], row["value"], row["origin"]) for row in ours],
                         [("8", "2", f"topology {H100}")])
        self.assertEqual([row["value"] for row in tables["table2_measured"]], ["3"])
        self.assertIn("a: some-machine, commit abc-dirty, launch a.", text)
        for heading, rows in tables_of(text).items():
            told = " ".join(row.split("|")[2] for row in rows)
            self.assertFalse("measured" in told and "simulated" in told.replace("simulated / ", ""), heading)

    def test_far_from_the_published_is_marked_and_near_is_not(self):
        page, _, tables = self.make([simulated("all_scan", 8, 0.226), simulated("all_scan", 16, 0.5)])
        ratios = {row["column"]: row["value"] for row in tables["table2"] if row["origin"] == "simulated / published"}
        self.assertEqual(ratios, {"8": "1", "16": "1.6835"})
        self.assertRegex(page, r'class="derived off"[^>]*>1.68×')
        self.assertRegex(page, r'class="derived"[^>]*>1.00×')

    def test_a_prediction_beyond_a_quarter_is_told(self):
        def fitted(cells):
            return [simulated("ring_all_gather", ranks, time, topology="fitted-all-gather")
                    for ranks, time in cells.items()]
        _, text, _ = self.make(fitted({8: 9.0, 32: 1.6, 64: 2.5}))
        self.assertIn("All 2 predicted cells are within 25 %", text)  # what was fitted does not count
        _, text, tables = self.make(fitted({32: 1.6, 64: 5.086}))
        self.assertIn("1 of the 2 predicted cells off by more than 25 %; the worst is AllGather (LASP-2) on 64 GPUs, "
                      "+100.0 %", text)
        self.assertIn("+100.0 %", text)
        self.assertIn("100", [row["value"] for row in tables["prediction"]])

    def test_operators_by_pass_with_the_machines_that_have_them(self):
        _, text, tables = self.make(
            [simulated_layer("local", 8, 6.39, mode="compute_only", scan=""),
             simulated_layer("zeco", 8, 7.0, which="forward")],
            [local(milliseconds=5.0, tokens=16384, heads=16, ranks=4), layer(tokens=512, heads=16)])
        rows = tables["operator_16k"]
        self.assertIn(("local", "8", "6.39", "simulated"),
                      [(row["row"], row["column"], row["value"], row["kind"]) for row in rows])
        self.assertEqual([row["kind"] for row in rows if row["kind"] == "measured"], [])
        self.assertEqual([row["value"] for row in tables["operator_16k_measured"]], ["5"])
        self.assertIn("simulated, forward", text)
        self.assertIn("No machine here has measured a layer of 32K tokens yet; ", text)  # of 32K tokens

    def test_a_case_that_could_not_be_simulated_is_blank_with_its_reason(self):
        _, text, tables = self.make([simulated("two_shot", 8, topology=MANY), skipped(
            "about 200 million steps", name="two_shot", ranks=16384, executor="simulator", topology=MANY,
            blocks_asked=1)])
        self.assertIn("- Skipped: `two_shot` on 16,384 ranks (about 200 million steps).", text)
        self.assertIn("`two_shot` on 16 to 8,192.", text)
        self.assertEqual([row["column"] for row in tables["scaling"]], ["8"])

    def test_volumes_are_what_was_counted(self):
        _, _, tables = self.make([simulated("ring_scan", 8, sent_bytes=2 * 2**20, messages=7, hops=7)])
        counted = {row["column"]: row["value"] for row in tables["volumes_collectives"]}
        self.assertEqual(counted, {"MiB sent, P=8": "2", "in states, P=8": "1", "messages, P=8": "0.875", "hops, P=8": "7"})

    def test_exchanges_of_gpus_are_a_chapter_of_their_own(self):
        measured = [on_gpus(), on_gpus(cadence="graph"), on_gpus("nccl_all_gather_scan", "nccl", microseconds=35)]
        (self.machine / "nccl-tests-graph.txt").write_text("", encoding="utf-8")
        _, text, tables = self.make([simulated("all_scan", 8)], measured)
        shown = tables["exchange_some-machine_4_isolated"]
        self.assertEqual({row["value"] for row in shown if row["kind"] == "measured"}, {"10", "35"})
        self.assertIn("exchange_some-machine_4_graph", tables)
        self.assertIn("`nccl-tests-graph.txt` of some-machine has no size", text)

    def test_without_records_of_gpus_the_chapter_says_what_makes_them(self):
        _, text, _ = self.make([simulated("all_scan", 8)], [record()])
        self.assertIn("No machine here has records of GPU exchanges yet.", text)
        self.assertIn("collective_bench --executor peer,peer_bf16,nccl", text)
        self.assertIn("all_gather_perf -b 64K -e 256M", text)

    def test_predictions_of_a_machine_become_an_error_table(self):
        _, text, tables = self.make([simulated("all_scan", 8)], [
            record(ranks=2, milliseconds=1.0, predicted_seconds=2e-3, topology="mine"),
            record("ring_scan", ranks=4, milliseconds=1.0, predicted_seconds=0.5e-3, extrapolated="far")])
        rows = {(row["row"], row["column"]): row["value"] for row in tables["predicted_some-machine"]}
        self.assertEqual(rows["all", "rows"], "2")
        self.assertEqual(float(rows["all", "predicted / measured"]), 1)  # 2 and a half
        self.assertEqual(float(rows["all", "typical error, %"]), 100)
        self.assertEqual(float(rows["ranks 2", "predicted / measured"]), 2)
        self.assertIn("1 of 2 rows are extrapolated", text)

    def test_figures_stand_inside_the_page_and_beside_it(self):
        page, text, _ = self.make([simulated("all_scan", ranks) for ranks in (8, 16)])
        self.assertIn('src="data:image/svg+xml;base64,', page)
        self.assertIn("(table2_bars.png)", text)
        self.assertTrue((self.folder / "page" / "table2_bars.png").exists())

    def test_the_results_show_the_published_cells(self):
        results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
        for title in ("AllGather (LASP-2)", "All-Scan (ZeCO)"):
            cells = [row["value"] for row in load_cells(PUBLISHED / "zeco_table2.csv") if row["method"] == title]
            self.assertIn(f"| {title} | published<sup>a</sup> | {' | '.join(cells)} |", results)

    def test_records_of_this_checkout_stand_there_only_if_asked(self):
        here = self.folder / "results" / "local"
        here.mkdir()
        write(here / "r.jsonl", [record(ranks=8, milliseconds=7)])
        _, text, tables = self.make([simulated("all_scan", 8)])
        self.assertNotIn("results/local", text)
        self.assertEqual(tables["table2_measured"], [])
        _, text, tables = self.make([simulated("all_scan", 8)], (), "--local")
        self.assertIn("results/local", text)
        self.assertEqual([row["value"] for row in tables["table2_measured"]], ["7"])

    def test_nothing_simulated_is_one_line(self):
        done = run("paper", "--simulated", self.folder, "--machines", self.folder / "results", "--out", self.folder)
        self.assert_one_line(done, "no simulated record")


if __name__ == "__main__":
    unittest.main()
