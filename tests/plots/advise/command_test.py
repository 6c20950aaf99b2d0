# SPDX-License-Identifier: Apache-2.0
"""The command as a user runs it, with the bench in the environment variable BATON_BENCHES if there is one."""

import json
import pathlib
import re
import unittest

from plots import example
from plots.example import ROOT, InFolder, run

H200 = ROOT / "topologies/h200-4.json"
BENCHES = list(map(pathlib.Path, example.BENCHES.values()))

ASKED = {"--topology": H200, "--tokens": "1K", "--heads": 2, "--ranks": 4, "--width": 64}


def advise(programs, **changes):
    asked = {**ASKED, **{f"--{flag.replace('_', '-')}": value for flag, value in changes.items()}}
    return run("advise", "--programs", programs,
                      *(word for flag, value in asked.items() if value is not None for word in (flag, value)))


class BadInput(InFolder):
    def test_it_is_answered_in_one_line(self):
        no_json, no_links = self.folder / "no.json", self.folder / "none.json"
        no_json.write_text("{", encoding="utf-8")
        no_links.write_text("[]", encoding="utf-8")
        for changes, said in (({"ranks": None}, "--ranks"), ({"ranks": 1}, "one rank exchanges nothing"),
                              ({"ranks": "many"}, "found 'many'"), ({"tokens": "0"}, "found '0'"), ({"no_such": 1}, "--no-such"),
                              ({"topology": "nowhere.json"}, "cannot read nowhere.json: No such file"),
                              ({"topology": no_json}, "is no JSON"), ({"topology": no_links}, "has no links"),
                              ({"ranks": "2,4"}, "a list with --model"), ({"sequence": "8K"}, "only with --model"), ({"methods": "zeco"}, "only with --model"),
                              ({"model": "tiny"}, "--tokens: a model has its own sizes"),
                              ({"model": "tiny", "tokens": None, "heads": None}, "--sequence, --ranks: give the tokens"),
                              ({"heads": None}, "--heads: needed"), ({}, "cannot run")):
            with self.subTest(changes):
                self.assert_one_line(advise(self.folder, **changes), said)

    def test_arguments_are_checked_without_the_benches(self):
        done = run("advise", "--check", *(word for one in ASKED.items() for word in one))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assert_one_line(run("advise", "--check", "--topology", H200), "--tokens")


@unittest.skipUnless(BENCHES, "BATON_BENCHES names no benches")
class WithTheBench(InFolder):
    def test_three_lines_follow_the_remarks(self):
        done = advise(BENCHES[0].parent)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        said = [line for line in re.sub(r"\n +", " ", done.stdout).splitlines() if not line.startswith("#")]
        self.assertEqual([line.split()[0] for line in said], ["softmax", "linear", "hybrid"])
        for line in said:
            self.assertRegex(line, r"^\w+ +~\d\S* \w+ \w+.*; .*\. It sends \d\S* MiB in \d+ hops, .*; \w+.* sends .*\.$")
        self.assertIn(" + 3 zeco", said[2])
        self.assertRegex(said[2], r" \+ 3 zeco(;|_zigzag| \+ 4 moves| )")

    @unittest.skipUnless("model_bench" in example.BENCHES, "BATON_BENCHES has no model_bench")
    def test_a_prefill_says_where_more_ranks_stop_to_pay(self):
        asked = ("advise", "--programs", BENCHES[0].parent, "--topology", H200, "--model", "tiny", "--dtype", "f32",
                 "--sequence", "256,512", "--ranks", "1,2,4")
        done = run(*asked, "--methods", "zeco,whole")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = done.stdout.splitlines()[3:]
        self.assertEqual({row.split()[1] for row in rows}, {"zeco", "whole"})
        everything = {row.split()[1] for row in run(*asked).stdout.splitlines()[3:]}
        self.assertLess({"zeco", "whole", "lasp2", "lasp1_as_released"}, everything)
        for row in rows:
            self.assertRegex(row, r"(stop to pay at P = \d|may pay)$")

    def test_as_json_every_candidate_has_its_time(self):
        done = run("advise", "--json", "--programs", BENCHES[0].parent, *(word for one in ASKED.items() for word in one))
        found = json.loads(done.stdout)
        self.assertEqual(list(found), ["question", "softmax", "linear", "hybrid"])
        self.assertEqual(found["linear"][0]["ratio"], 1)
        self.assertEqual(sorted(found["linear"], key=lambda one: one["seconds"]), found["linear"])

    def test_what_the_ranks_of_a_node_share_takes_time_too(self):
        done = advise(BENCHES[0].parent, topology=ROOT / "topologies/l40s-8.json", ranks=8, heads=8)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("takes next to no time", re.sub(r"\n +", " ", done.stdout))

    def test_what_the_bench_refuses_is_one_line(self):
        self.assert_one_line(advise(BENCHES[0].parent, ranks=5), "5 ranks do not fit on h200-4")


if __name__ == "__main__":
    unittest.main()
