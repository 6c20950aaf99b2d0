# SPDX-License-Identifier: Apache-2.0
"""Functions fit a screen, in all languages: none is longer than 50 lines, nine of ten are at most 25."""

import math
import unittest

from function_size import functions, functions_of
from source_tree import all_sources, text_of

LONGEST = 50
NINE_OF_TEN = 25


class FunctionSize(unittest.TestCase):
    longMessage = False

    def test_every_function_fits_a_screen(self):
        sizes = [(one.lines, f"{path}:{one.line}: {one.head}") for path in all_sources()
                 for one in functions_of(path, text_of(path))]
        self.assertTrue(sizes, "found no function: the measure is broken")
        sizes.sort()
        print(summary(sizes), flush=True)
        long = [f"{where} has {lines} lines" for lines, where in sizes if lines > LONGEST]
        self.assertFalse(long, "\n" + "\n".join(long))


def summary(sizes):
    def quantile(share):
        return sizes[math.ceil(share * len(sizes)) - 1][0]

    lines, where = sizes[-1]
    return (f"{len(sizes)} functions: median {quantile(0.5)} lines, p90 {quantile(0.9)} "
            f"(wanted: at most {NINE_OF_TEN}), longest {lines} (at most {LONGEST}): {where}")


class TheMeasureItself(unittest.TestCase):
    def heads(self, text):
        return [(one.head.split("(")[0], one.lines) for one in functions(text)]

    def test_free_functions_and_members(self):
        text = "namespace a {\nint f(int x) {\n  if (x) {\n    x++;\n  }\n  return x;\n}\n" \
               "class B : public C {\n public:\n  int g() const { return 1; }\n  int h_ = 0;\n};\n}\n"
        self.assertEqual(self.heads(text), [("int f", 6), ("public: int g", 2)])

    def test_a_head_of_several_lines_counts(self):
        text = "template <typename T>\nint f(int a,\n      int b) {\n}\n"
        self.assertEqual(self.heads(text), [("template <typename T> int f", 4)])

    def test_constructors_with_brace_initialisers(self):
        self.assertEqual(self.heads("A::A(int x) : a_{x}, b_(x), c_{} {\n  f();\n}\n"), [("A::A", 3)])

    def test_default_arguments_in_braces(self):
        text = "void f(Options o = {}) {\n}\nvoid g(int b = 1) {}\n"
        self.assertEqual(self.heads(text), [("void f", 2), ("void g", 1)])

    def test_lambdas_count_with_what_holds_them(self):
        text = "void f() {\n  g([](int x) {\n    return x;\n  });\n}\n" \
               "const R r{{\n  .build = [](S& s) {\n    s();\n  },\n}};\n"
        self.assertEqual(self.heads(text), [("void f", 5), (".build = []", 3)])

    def test_braces_in_strings_and_comments_open_nothing(self):
        text = 'void f() {\n  // {\n  g("{", \'{\', R"(\n{ {)");  /* {\n */\n  int n = 1\'000\'000;\n}\n' \
               '#define X {\nvoid h() {}\n'
        self.assertEqual(self.heads(text), [("void f", 7), ("void h", 1)])

    def test_initialisers_and_types_are_no_functions(self):
        text = "const int a[] = {1, 2};\nstruct [[nodiscard]] S { int x = 0; };\nenum class E { a, b };\n" \
               "int b{f(3)};\ntemplate <class T>\nstruct Q {};\n"
        self.assertEqual(self.heads(text), [])

    def sizes(self, path, text):
        return [(one.line, one.lines, one.head) for one in functions_of(path, text)]

    def test_python(self):
        text = "import re\n\nclass A:\n    def f(self):\n        def inner():\n            pass\n        return 1\n"
        self.assertEqual(self.sizes("a/b.py", text), [(4, 4, "def f")])

    def test_shell(self):
        text = "#!/bin/bash\nf() {\n  echo ${x}\n}\ng() {\n  { f; }\n}\n"
        self.assertEqual(self.sizes("run", text), [(2, 3, "f"), (5, 3, "g")])

    def test_cmake(self):
        text = "set(x 1)\nfunction(add_it name)\n  add_test(NAME ${name})\nendfunction()\n"
        self.assertEqual(self.sizes("cmake/a.cmake", text), [(2, 3, "function(add_it name)")])
        self.assertEqual(self.sizes("CMakeLists.txt", text), [(2, 3, "function(add_it name)")])


if __name__ == "__main__":
    unittest.main()
