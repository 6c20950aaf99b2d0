# SPDX-License-Identifier: Apache-2.0
"""However a command ends, it is by one line and a documented exit code, and never by a traceback."""

import contextlib
import io
import unittest

from baton import frames, program

CODES_OF_FAULTS = 1


class Faults(unittest.TestCase):
    def ended(self, main):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
            program.run("report", main)
        self.assertEqual(said.getvalue().count("\n"), 1, said.getvalue())
        return end.exception.code, said.getvalue()

    def test_a_fault_names_its_place_in_the_package(self):
        code, said = self.ended(lambda: frames.read(12))
        self.assertEqual(code, CODES_OF_FAULTS)
        self.assertRegex(said, r"^report: a fault of Baton in baton/\w+\.py:\d+, please report it with this input: TypeError: ")

    def test_a_fault_behind_the_package_is_reported_too(self):
        for raised in (ZeroDivisionError("a\nb"), RecursionError(), AssertionError("\x1b[31m"), ModuleNotFoundError("no module 'baton.new'")):
            with self.subTest(repr(raised)):
                def fail(raised=raised):
                    raise raised
                code, said = self.ended(fail)
                self.assertIn(code, (CODES_OF_FAULTS, program.BAD_INPUT))
                self.assertNotIn("\x1b", said)

    def test_memory_that_is_not_there_is_no_fault(self):
        self.assertEqual(self.ended(lambda: bytes(1 << 62)), (CODES_OF_FAULTS, "report: there is not enough memory for it\n"))


if __name__ == "__main__":
    unittest.main()
