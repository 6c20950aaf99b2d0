# SPDX-License-Identifier: Apache-2.0
"""The command as a user runs it."""

import json
import unittest

from plots.example import ROOT, InFolder, run

CELLS = ROOT / "results/paper/nccl_cells.csv"
B200 = ROOT / "topologies/b200-8.json"


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
                           (fit(CELLS, out, "--fit-gpus", "2,many"), "not 'many'"),
                           (run("predict", "--topology", B200, "--native", "all_gather"), "rows of collective_bench --executor simulator")):
            with self.subTest(said):
                self.assert_one_line(done, said)


if __name__ == "__main__":
    unittest.main()
