# SPDX-License-Identifier: Apache-2.0
"""What the doctor prints, and how the command ends."""

import json
import unittest

from baton.doctor import judges, report
from plots.doctor.made_up import always, calm, changed, with_gpus
from plots.example import InFolder, run


def ill(ranks):
    """A machine with much that is wrong."""
    return changed(with_gpus(ranks), ranks__1__spin_seconds=always(10e-3), ranks__1__waited=always(0.5), build__type="Debug",
                   machine="A processor whose name is as long as names of processors are, 2.10GHz, 224 cores",
                   hosts__0__cores__1__busy=always(1), links__0__pairs__0__latency_seconds=always(1e-3),
                   hosts__0__others=[{"number": 4711 + one, "name": "a_long_name_of_", "cores": 1.0} for one in range(3)],
                   ranks__0__devices__0__values__throttle_reasons=always(0xff))


class Text(unittest.TestCase):
    def test_it_begins_with_the_verdict_and_fits_a_terminal(self):
        for ranks in (1, 3, 13, 90, 128):
            for readings, verdict in ((calm(ranks), "This machine is fit"), (ill(max(ranks, 2)), "This machine is NOT fit")):
                text = report.text(readings, judges.findings_of(readings))
                self.assertTrue(text.startswith(verdict), text[:500])
                self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_links_are_numbers_or_characters(self):
        numbers = report.text(changed(calm(3), links__0__pairs__1__latency_seconds=always(7.25e-6),
                                      links__0__pairs__2__large_seconds=always(524.288e-6)), [])
        self.assertIn("\n     0      -   0.50   7.25\n", numbers)
        self.assertTrue(numbers.endswith("\n     2   6.99   2.00      -"), numbers)
        characters = report.text(changed(calm(16), links__0__pairs__1__latency_seconds=always(20e-6),
                                         links__0__pairs__2__large_seconds=always(450e-6)), [])
        self.assertIn("\n     0 -.#.............\n", characters)
        self.assertIn("\n     3 3..-............\n", characters)

    def test_ranks_beyond_the_table_are_counted_unless_they_are_late(self):
        text = report.text(changed(calm(40), ranks__39__spin_seconds=always(1)), [])
        self.assertIn("\n    39 ", text)
        self.assertIn("7 more ranks, none of them late", text)


class Command(InFolder):
    def ended(self, script, *words):
        """How the command ends where `doctor_readings` is this script of the shell."""
        program = self.folder / "doctor_readings"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        return run("doctor", "--programs", self.folder, *words)

    def test_readings_are_judged(self):
        for readings, code in ((calm(2), 0), (ill(2), 1)):
            (self.folder / "readings").write_text(json.dumps(readings), encoding="utf-8")
            done = self.ended(f"cat '{self.folder}/readings'", "--json")
            found = json.loads(done.stdout)
            self.assertEqual((done.returncode, found["fit"], found["readings"]), (code, code == 0, readings), done.stderr)
            self.assertEqual(found["findings"], [one._asdict() for one in judges.findings_of(readings)])

    def test_a_program_that_fails_after_its_readings_is_not_fit(self):
        done = self.ended(f"echo '{json.dumps(calm(1))}'; exit 1")
        self.assertEqual(done.returncode, 1)

    def test_flags_reach_the_program_and_its_code_comes_back(self):
        done = self.ended('echo "$@" >&2; exit 130', "--ranks=2", "--executor", "tcp", "--repeats", "3")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (130, "", "--ranks 2 --executors tcp --repeats 3\n"))
        self.assertEqual(self.ended("echo baton 1", "--version").stdout, "baton 1\n")

    def test_a_signal_that_ended_the_program_is_named(self):
        self.assert_one_line(self.ended("kill -9 $$"), "doctor_readings was ended by signal 9", status=137)

    def test_without_the_program_it_says_what_builds_it(self):
        self.assert_one_line(run("doctor", "--programs", self.folder), "doctor_readings: No such file or directory; ./run doctor builds it")


if __name__ == "__main__":
    unittest.main()
