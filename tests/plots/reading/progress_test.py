# SPDX-License-Identifier: Apache-2.0
"""A long reading says how far it is, a short one nothing."""

import contextlib
import io
import unittest
from unittest import mock

from baton import results
from baton.reading import progress
from plots.example import InFolder, record, write


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Reading(InFolder):
    def said(self, stream, after):
        path = write(self.folder / "r.jsonl", [record()] * 250)
        with mock.patch.object(progress, "AFTER_SECONDS", after), mock.patch.object(progress, "EVERY_SECONDS", 0), \
                contextlib.redirect_stderr(stream):
            self.assertEqual(len(results.load([path])), 250)
        return stream.getvalue()

    def test_a_line_each_time(self):
        first, second = self.said(io.StringIO(), 0).splitlines()
        self.assertIn("r.jsonl: 100 lines, 40 %", first)
        self.assertIn("r.jsonl: 200 lines, 80 %", second)

    def test_a_terminal_has_one_line_which_goes(self):
        self.assertRegex(self.said(Terminal(), 0), r"^(\r\x1b\[Kreading [^\n]*){2}\r\x1b\[K$")

    def test_nothing_of_a_short_one(self):
        self.assertEqual(self.said(io.StringIO(), 3600), "")


if __name__ == "__main__":
    unittest.main()
