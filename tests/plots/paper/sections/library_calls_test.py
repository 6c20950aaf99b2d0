# SPDX-License-Identifier: Apache-2.0
"""Published calls of NCCL beside predicted ones: what was fitted, left out and predicted alone stands apart."""

import unittest

from baton.paper.page import Figure, Table, Text
from baton.paper.sections import library_calls
from baton.paper.sources import Sources

SYSTEM, NATIVE = "b200_sxm", "nccl_all_gather"


def published(gpus, size, microseconds):
    return {"system": SYSTEM, "device": "NVIDIA B200", "nccl": "2.29.2", "collective": "all_gather", "gpus": str(gpus),
            "total_bytes": str(size), "microseconds": str(microseconds)}


def predicted(form, gpus, size, microseconds):
    return {"system": SYSTEM, "topology": "b200-8", "form": form, "native": NATIVE, "protocol": "LL", "gpus": str(gpus),
            "total_bytes": str(size), "microseconds": str(microseconds)}


PUBLISHED = [published(2, 512, 10), published(2, 1024, 20), published(4, 512, 40),
             {**published(2, 512, 7), "collective": "all_reduce"}]
LIBRARY = [predicted("fitted", 2, 512, 10.1), predicted("fitted", 2, 1024, 20.4), predicted("fitted", 4, 512, 42),
           predicted("left out", 2, 512, 11), predicted("left out", 2, 1024, 20), predicted("left out", 4, 512, 20),
           predicted("predicted", 8, 512, 80), predicted("predicted", 8, 1024, 90)]


def section(library=LIBRARY):
    return library_calls.section(Sources([], {}, {"nccl_cells": PUBLISHED}, library=library))


def table(name):
    return next(block for block in section().blocks if isinstance(block, Table) and block.name == name)


class LibraryCalls(unittest.TestCase):
    def test_fitted_and_left_out_cells_have_errors_of_their_own(self):
        row = table("library_errors").rows[0]
        self.assertEqual(row.label, f"`{NATIVE}`, {SYSTEM}")
        self.assertEqual([cell.text for cell in row.cells], ["3", "2.0", "5.0", "10.0", "50.0"])

    def test_each_published_cell_stands_above_its_predictions(self):
        rows = {(row.label, row.kind): [cell and cell.text for cell in row.cells] for row in table(f"library_{SYSTEM}").rows}
        self.assertEqual(rows[f"`{NATIVE}`, 2 GPUs", "published"], ["10.0", "20.0"])
        self.assertEqual(rows[f"`{NATIVE}`, 4 GPUs", "published"], ["40.0", None])
        self.assertEqual(rows["", "predicted, left out of the fit"], ["20.0", None])
        self.assertEqual(rows[f"`{NATIVE}`, 8 GPUs", "predicted, nothing published here"], ["80.0", "90.0"])

    def test_the_figure_has_the_cells_that_were_left_out(self):
        figure = next(block for block in section().blocks if isinstance(block, Figure))
        self.assertEqual(sorted(figure.data), [(NATIVE, 0.01, 0.011), (NATIVE, 0.02, 0.02), (NATIVE, 0.04, 0.02)])

    def test_without_predictions_it_says_so(self):
        only, = section(library=()).blocks
        self.assertIsInstance(only, Text)
        self.assertIn("missing", only.markdown)


if __name__ == "__main__":
    unittest.main()
