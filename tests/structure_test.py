# SPDX-License-Identifier: Apache-2.0
"""The tree stays easy to enter. Each check takes texts by path and gives one line for each complaint."""

import ast
import collections
import graphlib
import pathlib
import re
import unittest

from source_tree import PRODUCT, FOLDERS, cpp, files, sources

LINES_A_FILE = 300
FILES_A_FOLDER = 30
COMMENT_COLUMNS = 100
LINES_A_FUNCTION = 50
SERIES = {"docs/decisions"}  # read one at a time by their numbers, and none is ever removed

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
# What may do without a header: programs, and what registers itself before main.
WITHOUT_HEADER = re.compile(r"^int main\(|^const Registered\w+ |^BENCHMARK", re.MULTILINE)
DECLARED = re.compile(r"^(?:  )?(?=[\w\[])(?!return|throw|using|friend|static_assert)"
                      r"[\w:<>,&*\[\] ]*[ &*](\w+)\([^;{}=\"]*\)[\w ]*;$", re.MULTILINE)
FUNCTION = re.compile(r"^(?!namespace)(?=[^\s#/}])([^;{}=#]*\([^;{}]*\)[\w ]*\{\n.*?^\})", re.MULTILINE | re.DOTALL)

NAMESPACE = re.compile(r"^namespace ([\w:]+) \{\n(.*?)^\}  // namespace \1$", re.MULTILINE | re.DOTALL)
ANONYMOUS = re.compile(r"^namespace \{\n.*?^\}  // namespace$", re.MULTILINE | re.DOTALL)
TYPE = re.compile(r"^(?:(?:class|struct|union|enum class) |using )(?:\[\[\w+\]\] )?(\w+)(?= [:{=f])", re.MULTILINE)


def long_files(texts):
    return [f"{path}: {lines} lines" for path, text in texts.items() if (lines := len(text.splitlines())) > LINES_A_FILE]


def crowded_folders(paths):
    sizes = collections.Counter(path.rpartition("/")[0] for path in paths)
    return [f"{folder}: {size} files" for folder, size in sizes.items() if size > FILES_A_FOLDER and folder not in SERIES]


def repeated_names(paths):
    """Files whose name begins with that of their folder, as in peer/peer_plan.cpp; schedule/schedule.hpp is fine."""
    return [path for path in map(pathlib.PurePosixPath, paths) if path.stem.removesuffix("_test")
            .startswith((path.parent.name + "_", path.parent.name.removesuffix("s") + "_"))]


def long_comments(texts):
    return [f"{path}:{number}: {len(line)} columns" for path, text in texts.items()
            for number, line in enumerate(text.splitlines(), start=1)
            if line.lstrip().startswith("//") and len(line) > COMMENT_COLUMNS]


def without_licence(texts):
    return [path for path, text in texts.items() if "SPDX-License-Identifier: Apache-2.0" not in text[:200]]


def sources_without_header(texts):
    return [path for path, text in texts.items() if path.endswith((".cpp", ".cu")) and not WITHOUT_HEADER.search(text)
            and not any(header in texts for header in headers_of(path))]


def functions_of_other_sources(texts):
    """Functions that a header declares and the source of its name does not define."""
    return [f"{header}: {name}" for path, text in texts.items() if path.endswith((".cpp", ".cu"))
            for header in headers_of(path) for name in DECLARED.findall(texts.get(header, ""))
            if not re.search(rf"\b{name}\(", text + re.sub(DECLARED, "", texts[header]))]


def headers_of(source):
    stem = source.rpartition(".")[0]
    return stem + ".hpp", stem + ".cuh"


def double_names(texts):
    """Types of one name in one namespace, which must not meet in one program."""
    found = collections.defaultdict(set)
    for path, text in texts.items():
        for namespace, body in NAMESPACE.findall(text):
            for name in TYPE.findall(ANONYMOUS.sub("", body)):
                found[namespace, name].add(path)
    return [f"{namespace}::{name}: {', '.join(sorted(paths))}" for (namespace, name), paths in found.items() if len(paths) > 1]


def circles(texts):
    """Units, each a header with the source of its name, that include one another."""
    units = collections.defaultdict(set)
    for path, text in texts.items():
        units[path.rpartition(".")[0]].update(header.rpartition(".")[0] for header in INCLUDE.findall(text))
    try:
        graphlib.TopologicalSorter({unit: needed - {unit} for unit, needed in units.items()}).prepare()
    except graphlib.CycleError as error:
        return [" -> ".join(error.args[1])]
    return []


def long_functions(texts):
    return [f"{path}: {name}: {lines} lines" for path, text in texts.items() for name, lines in functions(path, text)
            if lines > LINES_A_FUNCTION]


def functions(path, text):
    """Name and lines of each function of Python, and of those of other languages that begin in the first column."""
    if path.endswith(".py"):
        return [(one.name, one.end_lineno - one.lineno + 1) for one in ast.walk(ast.parse(text))
                if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [(one.partition("\n")[0], one.count("\n") + 1) for one in FUNCTION.findall(text)]


class Structure(unittest.TestCase):
    longMessage = False

    def assert_none(self, complaints):
        self.assertFalse(complaints, "".join(f"\n{one}" for one in complaints))

    def test_files(self):
        self.assert_none([*long_files(sources()), *without_licence(sources()), *long_comments(cpp(*PRODUCT, "tests"))])

    def test_folders(self):
        self.assert_none([*crowded_folders(files(*FOLDERS)), *repeated_names(files(*FOLDERS))])

    def test_headers_and_their_sources(self):
        self.assert_none([*sources_without_header(cpp("harness")), *functions_of_other_sources(cpp(*PRODUCT))])

    def test_no_units_need_one_another(self):
        self.assert_none(circles(cpp(*PRODUCT)))

    def test_a_name_is_that_of_one_type(self):
        self.assert_none(double_names(cpp(*PRODUCT)))

    def test_functions_fit_a_screen(self):
        self.assert_none(long_functions(sources()))


class ChecksThemselves(unittest.TestCase):
    def test_each_sees_what_it_looks_for(self):
        body = "  f();\n" * 60
        for check, found in (
                (long_files, {"a.py": "\n" * 301}),
                (crowded_folders, [f"a/{number}" for number in range(31)]),
                (repeated_names, ["peer/peer_plan.cpp"]),
                (long_comments, {"a.cpp": "  // " + "c" * 100}),
                (without_licence, {"a.cpp": ""}),
                (sources_without_header, {"a.cpp": "int f() {}"}),
                (functions_of_other_sources, {"a.hpp": "int f(int x);\n", "a.cpp": "int g(int x) {}"}),
                (functions_of_other_sources, {"a.hpp": "class A {\n  int f() const;\n};", "a.cpp": ""}),
                (double_names, {path: "namespace a {\nstruct B {\n};\n}  // namespace a\n" for path in ("b.hpp", "c.hpp")}),
                (circles, {"a.hpp": "", "a.cpp": '#include "b.hpp"\n', "b.hpp": '#include "a.hpp"\n'}),
                (long_functions, {"a.cu": f"void f(int x,\n       int y) {{\n{body}}}\n"}),
                (long_functions, {"run": f"f() {{\n{body}}}\n"}),
                (long_functions, {"a.py": "def f():\n" + body.replace("  ", "    ").replace(";", "")})):
            self.assertEqual(len(check(found)), 1, check.__name__)

    def test_each_lets_pass_what_is_right(self):
        right = {"a.hpp": "class A {\n  A();\n  int f(int x) const { return g(x); }\n};\nint g(int x);\n",
                 "a.cpp": '#include "a.hpp"\nA::A() {}\nint g(int x) { return x; }\n'}
        for check in (sources_without_header, functions_of_other_sources, circles, long_functions):
            self.assertEqual(check(right), [], check.__name__)


if __name__ == "__main__":
    unittest.main()
