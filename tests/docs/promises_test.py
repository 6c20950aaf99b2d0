# SPDX-License-Identifier: Apache-2.0
"""Every promise of docs/promises.md names tests, and every test that it names exists."""

import pathlib
import re
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs/promises.md"
ROW = re.compile(r"^\| (?!promise \||---)(.*?) \|(.*)\|$", re.MULTILINE)


def all_tests(sources):
    """The names of tests in texts: Suite.Name of GoogleTest, methods of unittest, and names of CTest."""
    found = set()
    for text in sources:
        found.update(".".join(names) for names in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", text, re.MULTILINE))
        found.update(re.findall(r"^ +def (test_\w+)\(", text, re.MULTILINE))
        found.update(re.findall(r"^ *add_(?:script_)?test\((?:NAME )?(\w+)", text, re.MULTILINE))
    return found


def problems(page, tests):
    """What is wrong with the rows of a page."""
    rows = ROW.findall(page)
    named = {promise: re.findall(r"`([^`]+)`", shown) for promise, shown in rows}
    return [*(f"{promise}: no test is named" for promise, names in named.items() if not names),
            *(f"{promise}: no test {name}" for promise, names in named.items() for name in names if name not in tests),
            *(["no promise"] if not rows else [])]


class Promises(unittest.TestCase):
    def test_each_names_tests_that_exist(self):
        sources = [path.read_text(encoding="utf-8") for path in TESTS.rglob("*")
                   if path.suffix in (".cpp", ".cu", ".py") or path.name == "CMakeLists.txt"]
        self.assertEqual(problems(PAGE.read_text(encoding="utf-8"), all_tests(sources)), [])

    def test_a_promise_without_a_test_is_found(self):
        tests = all_tests(["TEST_F(Suite, Name) {\n", "    def test_this(self):\n", "add_test(NAME one COMMAND one)\n"])
        head = "| promise | shown by |\n| --- | --- |\n"
        self.assertEqual(problems(head + "| It holds | `Suite.Name`, `test_this`, `one` |\n", tests), [])
        self.assertEqual(problems(head + "| It holds | `Suite.Other`, `test_this` |\n| So does this | |\n", tests),
                         ["So does this: no test is named", "It holds: no test Suite.Other"])
        self.assertEqual(problems(head, tests), ["no promise"])


if __name__ == "__main__":
    unittest.main()
