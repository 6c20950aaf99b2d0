# SPDX-License-Identifier: Apache-2.0
"""The tree stays easy to enter: bounds of its numbers, each failure with the names of the files.

`python3 tests/house_numbers.py` prints the numbers themselves.
"""

import unittest

import house_numbers as numbers
from header_owners import declared_and_defined, shared_headers
from units import Units

SMALL_FILES = 25
FILES_A_FOLDER = 30
SERIES = {"docs/decisions"}  # read one at a time by their numbers, and none is ever removed
LINES_A_FILE = 300


class Structure(unittest.TestCase):
    longMessage = False
    maxDiff = None

    def assert_none(self, found):
        self.assertFalse(found, "".join(f"\n{one}" for one in found))

    def test_no_folder_is_crowded(self):
        self.assert_none([f"{folder}: {own} files" for folder, own in numbers.folder_sizes()
                          if own > FILES_A_FOLDER and str(folder) not in SERIES])

    def test_no_file_repeats_its_folder(self):
        self.assert_none(numbers.repeated_names())

    def test_no_file_is_long(self):
        self.assert_none([f"{path}: {lines} lines" for path, lines in numbers.lines_of().items()
                          if lines > LINES_A_FILE])

    def test_small_files_are_the_exception(self):
        small = numbers.small_files()
        self.assertLessEqual(len(small), SMALL_FILES, "".join(f"\n{path}: {lines} lines" for lines, path in small))

    def test_sources_implement_the_header_of_their_name(self):
        self.assert_none(numbers.sources_without_header("harness"))

    def test_a_header_has_one_source(self):
        self.assert_none(shared_headers())

    def test_no_units_need_one_another(self):
        self.assert_none([" <-> ".join(circle) for circle in Units.of_tree().circles()])

    def test_comments_fit_their_columns(self):
        self.assert_none(numbers.long_comments())

    def test_operands_of_kernels_have_names(self):
        self.assert_none(numbers.positional_accesses())

    def test_what_kernels_read_stays_constant(self):
        self.assert_none(numbers.const_casts())


class UnitsThemselves(unittest.TestCase):
    """A check that cannot fail proves nothing."""

    INCLUDES = {"a.hpp": [], "a.cpp": ["a.hpp", "b.hpp", "vendor.hpp"], "b.hpp": ["a.hpp"], "c.cpp": ["b.hpp"],
                "d.hpp": ["e.hpp"], "e.hpp": ["f.cuh"], "f.cuh": ["d.hpp"]}

    def test_a_header_and_its_source_are_one(self):
        self.assertEqual(Units(self.INCLUDES).files["a"], ["a.hpp", "a.cpp"])

    def test_circles_through_a_source_and_of_headers(self):
        self.assertEqual(Units(self.INCLUDES).circles(), [("a", "b"), ("d", "e", "f")])

    def test_a_reader_is_led_to_sources_too(self):
        self.assertEqual(Units(self.INCLUDES).closure(r"c\.cpp"), {"a", "b", "c"})
        self.assertEqual(Units(self.INCLUDES).closure(r"c\.cpp", without="a"), {"b", "c"})


class HeadersThemselves(unittest.TestCase):
    """The same for what headers declare and sources define."""

    def test_members_overloads_and_what_has_no_name_outside(self):
        declared, _ = declared_and_defined("namespace a {\nclass B {\n public:\n  B();\n"
                                           "  int f(const C& c, int n = 1) const;\n};\n"
                                           "void g(int x);\nint h() { return 1; }\nextern int y;\n}\n")
        _, defined = declared_and_defined("B::B() : x_(1) {}\nint B::f(const C& c, int n) const {\n  return 1;\n}\n"
                                          "void g(int x) {}\nvoid g(long x) {}\nnamespace {\nvoid k() {}\n}\n")
        self.assertEqual(declared, {("B::B", ()), ("B::f", ("constC&", "int")), ("g", ("int",))})
        self.assertEqual(defined, declared | {("g", ("long",))})


if __name__ == "__main__":
    unittest.main()
