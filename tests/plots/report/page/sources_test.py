# SPDX-License-Identifier: Apache-2.0
"""Traces, commands and links of the page lead to what they name."""

import json
import os
import re
import unittest
import urllib.parse

from baton.report import rerun_command
from plots.example import InFolder, read, write
from plots.report.example import layer, report, scan
from plots.report.page import pages


def trace(case, ranks=2):
    events = [{"ph": "X", "pid": rank, "tid": 0, "cat": "combine", "name": "combine", "ts": 10 * rank, "dur": 5, "args": {}}
              for rank in range(ranks)]
    events += [{"ph": "s", "id": 1, "pid": 0, "ts": 5}, {"ph": "f", "id": 1, "pid": 1, "ts": 10}]
    return {"traceEvents": events, "otherData": {"case": case, "executor": "mpi", "ranks": ranks, "blocks": 1, "commit": "c"}}


class Sources(InFolder):
    def page_of(self, records):
        folder = self.folder / "some results"
        folder.mkdir(exist_ok=True)
        write(folder / "collectives.jsonl", records)
        done = report("--out", self.folder / "out" / "index.html", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / "out" / "index.html").read_text(encoding="utf-8")

    def test_the_page_is_one_file_that_fetches_nothing(self):
        page = self.page_of(scan() + scan("ring_scan", 150))
        self.assertNotRegex(page, r"""<(link|img|iframe)|src=|@import|url\((?!#)|fetch\(|XMLHttp""")

    def test_links_lead_to_the_records(self):
        links = re.findall(r'<a href="([^#"][^"]*)">', self.page_of(scan() + scan("ring_scan", 150)))
        self.assertEqual(len(links), 1)
        self.assertTrue((self.folder / "out" / urllib.parse.unquote(links[0])).is_file(), links)

    def test_pages_of_a_folder_lead_to_one_another(self):
        self.page_of(scan())
        (self.folder / "out" / "my question.html").write_text("", encoding="utf-8")
        self.assertIn('<a href="my%20question.html">my question</a>', self.page_of(scan()))

    def test_a_trace_of_the_fastest_is_drawn_and_the_other_is_asked_for(self):
        records = scan(case="fast") + scan("ring_scan", 150, case="slow")
        self.assertNotIn("One round, no statistic", self.page_of(records))
        (self.folder / "some results" / "fast.json").write_text(json.dumps(trace("fast")), encoding="utf-8")
        os.mkfifo(self.folder / "some results" / "pipe.json")  # which has no writer
        (self.folder / "some results" / "torn.json").write_text('{"traceEvents":[', encoding="utf-8")
        page = self.page_of(records)
        self.assertIn("The exchange with the lowest median: all_scan", page)
        self.assertIn("--trace results/local/slowest_exchange.json", page)
        self.assertNotIn("fastest_exchange.json", page)

    def test_machine_and_commits_are_reported(self):
        page = self.page_of(scan() + scan("ring_scan", 150, commit="0123abc-dirty"))
        self.assertIn("Example CPU", page)
        self.assertIn("0123abc-dirty", page)


class Commands(unittest.TestCase):
    def test_of_an_exchange(self):
        self.assertEqual(rerun_command.command(scan("all_scan", blocks_asked=16)[0], "--trace", "a b.json"),
                         "./run bench --collectives all_scan --direction forward --heads 32 --d-k 128 --d-v 128 --tokens 8192 "
                         "--executor mpi --ranks 4 --blocks 16 --cadence isolated --trace 'a b.json'")

    def test_of_a_layer_and_of_a_simulated_row(self):
        asked, *_ = read(layer())
        self.assertIn("./run bench operator --methods zeco", rerun_command.command(asked))
        self.assertIn("--kv-heads 4", rerun_command.command({**asked, "kv_heads": 4}))
        self.assertIn("--packed 100", rerun_command.command({**asked, "packed": 100}))
        latent = rerun_command.command({**asked, "kv_heads": 1, "latent": True, "d_k": 576, "d_v": 512})
        self.assertIn("--mla 512,64", latent)
        self.assertNotRegex(latent, "--kv-heads|--d-[kv]")
        padded = rerun_command.command({**asked, "mask": "full", "sequence": 698, "padding": 0.0086})
        self.assertRegex(padded, "--mask full .*--sequence 698")
        self.assertNotRegex(padded, "--tokens|--padding")
        made = pages.simulated_each(scan())[0]
        self.assertIn("--topology results/local/machine.json", rerun_command.command(made))
        self.assertIn("--topology topologies/dgx-h100-8.json", rerun_command.command({**made, "topology": "dgx-h100-8"}))


if __name__ == "__main__":
    unittest.main()
