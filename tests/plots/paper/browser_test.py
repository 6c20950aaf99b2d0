# SPDX-License-Identifier: Apache-2.0
"""The papers' page in a real browser, of the records in results/ and of a few simulated ones."""

import unittest

import browser
from baton.paper.sources import H100, MANY_H100
from plots.example import InFolder, run, write
from plots.paper.shown import simulated, simulated_layer

# Opens all tables, and checks that none is wider than a laptop's window.
OPEN_ALL = """
for (const one of document.querySelectorAll("details")) one.open = true;
for (const one of document.querySelectorAll(".scroll")) {
  if (innerWidth > 1000 && one.scrollWidth > one.clientWidth) console.error("a table ends outside the page");
}
"""
RANKS = (8, 16, 32, 64, 128, 256)
SCANS = ("all_scan", "ring_scan", "all_gather_scan", "ring_all_gather", "two_shot")


def records():
    scans = [simulated(name, ranks, 0.1 * number * ranks / 8, sent_bytes=2**21, hops=ranks - 1, topology=topology)
             for number, name in enumerate(SCANS, 1) for ranks in RANKS for topology in (H100, MANY_H100)]
    shape = {"tokens": 16384, "heads": 16, "messages": 9, "blocks_asked": 1}
    layers = [simulated_layer(name, 6 + number * (1 + ranks / 64), ranks=ranks, which=which, **shape)
              for number, name in enumerate(("zeco", "lasp1", "lasp2"), 1)
              for ranks in RANKS for which in ("both", "forward")]
    return scans + layers + [simulated_layer("local", 6, ranks=ranks, mode="compute_only", scan="", **shape) for ranks in RANKS]


@browser.needed
class PapersPage(InFolder):
    def test_at_both_widths(self):
        write(self.folder / "simulated.jsonl", records())
        done = run("paper", "--simulated", self.folder, "--out", self.folder / "page")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.folder / "page" / "index.html").read_text(encoding="utf-8")
        self.assertEqual(page.count('<section class="finding">'), 5)  # four findings, and how to read the page
        for width in browser.WIDTHS:
            for before in ("", OPEN_ALL):
                with self.subTest(width=width, before=before):
                    self.assertEqual(browser.look(page, width, before), [])


if __name__ == "__main__":
    unittest.main()
