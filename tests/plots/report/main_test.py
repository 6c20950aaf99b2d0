# SPDX-License-Identifier: Apache-2.0
"""The command as a user runs it: which session is answered, of which files, and what bad input is answered with."""

import unittest

from plots.compare.example import InFolder
from plots.example import ROOT, run
from plots.report.example import failed, layer, report, scan


def rivals(fastest="all_scan", **changes):
    names = ["all_scan", "all_gather_scan"]
    names.sort(key=lambda name: name != fastest)
    return scan(names[0], 100, **changes) + scan(names[1], 150, 0.001, **changes)


def said(done):
    """The standard output without the breaks that the width of a terminal makes."""
    return " ".join(done.stdout.split())


class Command(InFolder):
    def test_the_newest_session_is_answered(self):
        older = rivals("all_gather_scan", session="s1", time="2030-01-01T00:00:00Z")
        newer = rivals("all_scan", session="s2", time="2030-01-02T00:00:00Z")
        path = self.write("r.jsonl", newer + older)
        self.assertIn("fastest is all_scan", said(report("--terminal", path)))
        self.assertIn("fastest is all_gather_scan", said(report("--session", "s1", path)))

    def test_files_of_a_folder_make_one_session(self):
        self.write("a.jsonl", rivals(session="s")[:3])
        self.write("b.jsonl", rivals(session="s")[3:])
        done = report(self.folder)
        self.assertEqual(done.stderr, "")
        self.assertIn("2 compared: fastest is all_scan", said(done))

    def test_runs_that_leave_the_traces_of_the_page_are_printed(self):
        path = self.write("r.jsonl", rivals() + layer("zeco", 100) + layer("lasp2", 120))
        runs = report("--traces", path).stdout.splitlines()
        self.assertEqual([(run.split()[2], run.split()[-1].split("/")[-1]) for run in runs],
                         [("all_scan", "fastest_exchange.json"), ("all_gather_scan", "slowest_exchange.json"),
                          ("zeco", "fastest_layer.json"), ("lasp2", "slowest_layer.json")])
        self.assertTrue(runs[-1].startswith("operator_bench --methods lasp2"), runs[-1])

    def test_places_are_answered_one_by_one(self):
        for name, fastest in (("one", "all_scan"), ("other", "all_gather_scan")):
            (self.folder / name).mkdir()
            self.write(f"{name}/r.jsonl", rivals(fastest))
        for places in ([self.folder], [self.folder / "one", self.folder / "other"]):
            done = report(*places)
            self.assertRegex(said(done), r"(?s)# A: \S*one, session .*fastest is all_scan.*# B: \S*other, .*fastest is all_gather")

    def test_a_failed_case_is_no_failure_of_the_report(self):
        done = report(self.write("r.jsonl", rivals() + failed()))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Failures 1 failed of 3 rows", said(done))

    def test_older_sessions_are_said_to_be_there(self):
        path = self.write("r.jsonl", rivals(session="old") + rivals(session="new", time="2031-01-01T00:00:00Z"))
        text = said(report(path))
        self.assertIn("1 older session in", text)
        self.assertIn("--session 'old'", text)
        self.assertEqual(report("--session", "all", path).stdout.count("ANSWER"), 2)

    def test_bad_input_ends_with_one_line(self):
        path = self.write("r.jsonl", rivals(session="s"))
        for words, expected in (((self.folder / "none.jsonl",), "No such file"), ((self.write("e.jsonl", []),), "no records"),
                            (("--session", "x", path), "no records of session 'x'"),
                            ((self.write("b.jsonl", [{**scan()[0], "ranks": []}]),), "ranks: expected")):
            done = report(*words)
            self.assertEqual((done.returncode, len(done.stderr.splitlines()), said(done)), (2, 1, ""), done.stderr)
            self.assertIn(expected, done.stderr)

    def test_a_terminal_of_ascii(self):
        made = [{**one, "machine": {**one["machine"], "cpu": "Prozessor \u00fc"}} for one in rivals()]
        done = run("report", self.write("r.jsonl", made), PYTHONIOENCODING="ascii")
        self.assertIn("fastest is all_scan", said(done))

    def test_the_records_of_this_tree_are_answered(self):
        done = report(ROOT / "results")
        self.assertEqual(done.returncode, 0, done.stderr)
        answers = done.stdout.split("\n\n")
        self.assertGreater(len(answers), 2)
        for text in answers:
            lines = text.splitlines()
            self.assertLessEqual(max(map(len, lines[1:])), 100, text)
            self.assertTrue(text.splitlines()[1].startswith("ANSWER"), text)


if __name__ == "__main__":
    unittest.main()
