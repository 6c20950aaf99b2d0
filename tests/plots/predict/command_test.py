# SPDX-License-Identifier: Apache-2.0
"""The command as a user runs it, with library_times beside the benches that BATON_BENCHES names."""

import csv
import io
import json
import pathlib
import unittest

from plots.example import BENCHES, ROOT, InFolder, run

CELLS = ROOT / "results/paper/nccl_cells.csv"
B200 = ROOT / "topologies/b200-8.json"
PROGRAMS = next((pathlib.Path(path).parent for path in BENCHES.values()), pathlib.Path("/nowhere"))


def fit(cells, out, *words):
    return run("predict", "--fit", cells, "--system", "b200_sxm", "--topology", B200, "--out", out, *words)


class Fit(InFolder):
    def fitted(self, cells, *words):
        out = self.folder / "fitted.json"
        done = fit(cells, out, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(out.read_text(encoding="utf-8"))

    def test_it_makes_the_shipped_section_and_leaves_the_rest(self):
        shipped, fitted = json.loads(B200.read_text(encoding="utf-8")), self.fitted(CELLS)
        self.assertEqual({**fitted, "natives": None}, {**shipped, "natives": None})
        for native, call in shipped["natives"].items():
            for name, protocol in call["protocols"].items():
                for curve in ("few", "more"):
                    for one, other in zip(protocol[curve], fitted["natives"][native]["protocols"][name][curve]):
                        self.assertAlmostEqual(one["seconds"] / other["seconds"], 1, delta=1e-3)

    def test_cells_of_other_gpu_counts_are_not_read(self):
        text = CELLS.read_text(encoding="utf-8")
        row = next(line for line in text.splitlines() if line.startswith("b200_sxm") and ",4," in line)
        more = self.folder / "more.csv"
        more.write_text(text + "".join(row.replace(",4,", f",{gpus},") + "\n" for gpus in (8, 16)), encoding="utf-8")
        self.assertEqual([*map(len, self.fitted(more)["natives"].values())], [*map(len, self.fitted(CELLS)["natives"].values())])
        one, other = (self.fitted(path)["natives"]["nccl_all_gather"]["protocols"] for path in (more, CELLS))
        self.assertEqual(one, other)

    def test_bad_input_is_answered_in_one_line(self):
        empty = self.folder / "empty.csv"
        empty.write_text("system,nccl\n", encoding="utf-8")
        out = self.folder / "out.json"
        for done, said in ((fit(empty, out), "no cells with the column"), (fit(CELLS, out, "--fit-gpus", "2,16"), "2, 4"),
                           (fit(CELLS, out, "--system", "abacus"), "no cells of 'abacus'"),
                           (fit(CELLS, out, "--topology", CELLS), "nccl_cells.csv: "),
                           (run("predict", "--topology", B200, "--fit", CELLS), "go together"),
                           (run("predict", "--topology", B200, "--native", "gossip"), "no native 'gossip'"),
                           (run("predict", "--topology", B200, "--bytes", "many"), "found 'many'"),
                           (run("predict", "--topology", B200, "--programs", self.folder), "cannot run")):
            with self.subTest(said):
                self.assert_one_line(done, said)


@unittest.skipUnless((PROGRAMS / "library_times").exists(), "no library_times beside the benches of BATON_BENCHES")
class Predictions(InFolder):
    def rows(self, topology, *words):
        done = run("predict", "--topology", topology, "--programs", PROGRAMS, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def test_every_call_at_every_size_has_a_row(self):
        rows = self.rows(B200)
        self.assertEqual({row["native"] for row in rows}, {"nccl_all_gather", "nccl_reduce_scatter", "nccl_all_to_all"})
        self.assertEqual(len(rows), 3 * 21)
        for before, after in zip(rows, rows[1:]):
            if before["native"] == after["native"]:
                self.assertGreaterEqual(float(after["microseconds"]), float(before["microseconds"]))

    def test_a_fitted_cell_is_near_its_prediction(self):
        row, = self.rows(B200, "--native", "all_gather", "--gpus", "4", "--bytes", "512M")
        self.assertAlmostEqual(float(row["microseconds"]) / 710.64, 1, delta=0.02)
        self.assertEqual(row["protocol"], "Simple")

    def test_a_topology_without_times_is_refused(self):
        self.assert_one_line(run("predict", "--topology", ROOT / "topologies/pcie-4xa10.json", "--programs", PROGRAMS,
                                 "--gpus", "4"), "has no times of")


if __name__ == "__main__":
    unittest.main()
