# SPDX-License-Identifier: Apache-2.0
"""No program that reads records or traces writes over what it reads, by whatever name: it ends with one line before."""

import json
import os
import pathlib
import re
import shutil
import unittest

from plots.example import ROOT, InFolder, layer, on_gpus, record, run, write

RECORDS = [{**one, "case": f"case {number}"} for number, one in enumerate(
    [*(record(name, ranks) for name in ("all_scan", "ring_scan") for ranks in (2, 4)), layer(), layer("lasp2", milliseconds=2.0),
     layer(mode="compute_only"), *(on_gpus(name, size=size) for name in ("all_scan_fused", "two_shot") for size in (2**20, 2**21))])]
TRACE = {"otherData": {"case": "made_up/isolated", "executor": "simulator", "ranks": 1, "blocks": 1, "commit": "c"}, "traceEvents": [
    {"name": "send", "cat": "send", "ph": "X", "ts": 0.0, "dur": 1.0, "pid": 0, "tid": 0, "args": {}}]}
# Figures: the flag of the input, an output that it would replace, and what it needs besides.
DRAWN = {"layers": ("--results", "operator_time.svg", ()), "ranks": ("--results", "time_against_ranks.png", ()),
         "sizes": ("--results", "time_against_size.png", ()), "trace": ("--trace", "round.png", ("--name", "round"))}
# The modules with an output. Simulations and grown topologies read what nobody would name as their output; peers reads nothing.
WITH_OUTPUT = {"report/command.py", "compare/command.py", "paper/command.py", "paper/simulations.py", "report/figure.py",
               "predict/command.py", "grow.py", "peers.py"}


class Outputs(InFolder):
    def assert_refused(self, done, path, before):
        self.assert_one_line(done, "the output would replace this file, which is an input")
        self.assertEqual(path.read_bytes(), before)

    def spellings(self, path):
        """Names of the same file: itself, a link, a hard link, and one through another folder."""
        link, hard = self.folder / "link", self.folder / "hard"
        link.symlink_to(path)
        os.link(path, hard)
        (self.folder / "sub").mkdir()
        return [path, link, hard, self.folder / "sub" / ".." / path.name, os.path.relpath(path)]

    def test_files_by_any_spelling(self):
        path = write(self.folder / "r.jsonl", RECORDS)
        before = path.read_bytes()
        commands = [("report", "--out", output, self.folder) for output in self.spellings(path)]
        for words in (*commands, ("compare", "--json", path, path, path), ("compare", "--json", path, self.folder, path)):
            with self.subTest(words=words):
                done = run(*words)
                self.assert_refused(done, path, before)
                self.assertEqual(done.stdout, "")

    def test_another_file_of_an_input_folder_is_written(self):
        write(self.folder / "r.jsonl", RECORDS)
        for words in (("report", "--out", self.folder / "page.html", self.folder),
                      ("compare", "--json", self.folder / "found.json", self.folder, self.folder)):
            self.assertEqual(run(*words).stderr, "")
            self.assertTrue(words[2].is_file(), words)

    def test_figures(self):
        for figure, (flag, name, more) in DRAWN.items():
            with self.subTest(figure=figure):
                path = self.folder / name
                path.write_text(json.dumps(TRACE) if flag == "--trace" else "".join(json.dumps(one) + "\n" for one in RECORDS),
                                encoding="utf-8")
                self.assert_refused(run("figure", figure, flag, path, "--out", self.folder, *more), path, path.read_bytes())
                self.assertEqual([one.name for one in self.folder.iterdir()], [name], "nothing else was written")
                path.unlink()

    def test_the_papers_page_leaves_published_cells(self):
        published = self.folder / "published"
        shutil.copytree(ROOT / "results/paper", published)
        (published / "zeco_table2.csv").rename(published / "table2.csv")
        (published / "zeco_table2.csv").symlink_to("table2.csv")
        before = (published / "table2.csv").read_bytes()
        write(self.folder / "simulated.jsonl", [record(executor="simulator", topology="dgx-h100-32x8", messages=9, blocks_asked=1)])
        (self.folder / "machines").mkdir()
        done = run("paper", "--simulated", self.folder, "--machines", self.folder / "machines", "--published", published, "--out",
                   published)
        self.assert_refused(done, published / "table2.csv", before)

    def test_a_fit_leaves_its_cells(self):
        cells = shutil.copy(ROOT / "results/paper/nccl_cells.csv", self.folder)
        before = pathlib.Path(cells).read_bytes()
        done = run("predict", "--fit", cells, "--system", "b200_sxm", "--topology", ROOT / "topologies/b200-8.json", "--out", cells)
        self.assert_refused(done, pathlib.Path(cells), before)

    def test_every_program_with_an_output_is_here(self):
        package = ROOT / "plots/baton"
        found = {str(path.relative_to(package)) for path in package.rglob("*.py")
                 if re.search(r'add_argument\("--(out|json|csv)"(?!, action="store_true")', path.read_text(encoding="utf-8"))}
        self.assertEqual(found, WITH_OUTPUT)


if __name__ == "__main__":
    unittest.main()
