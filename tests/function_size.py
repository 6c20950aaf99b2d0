# SPDX-License-Identifier: Apache-2.0
"""Measures functions: of Python by its own parser, of shell and CMake by the lines that open and close them, of C++ and
CUDA by their braces, well enough for formatted sources:

  blank out comments, strings and preprocessor lines
  at each '{' look at the text since the last statement: it opens a function, a member initialiser, or a scope
  a function runs from the first line of its head to its closing brace; what it contains counts as its own
"""

import ast
import collections
import pathlib
import re

Function = collections.namedtuple("Function", "line lines head")

HIDDEN = re.compile(r"""
    //[^\n]* | /\*.*?\*/                                # comments
    | R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"               # raw strings
    | "(?:\\.|[^"\\\n])*"                              # strings
    | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'              # characters, but not the digit separator
    | ^[ \t]*\#(?:\\\n|[^\n])*                         # preprocessor lines
    """, re.DOTALL | re.MULTILINE | re.VERBOSE)
TEMPLATE = re.compile(r"\b(?:template|requires)\s*<[^{};]*?>(?=\s*[\w:\[~])")
NAMES_A_TYPE = re.compile(r"\s*(?:\w+:\s+)?(?:(?:typedef|static|const|inline)\s+)*"
                          r"(?:class|struct|union|enum|namespace)\b.*(?<!\))\s*$", re.DOTALL)
MEMBER_INITIALISER = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)[^{}]*[\w>]\s*$", re.DOTALL)

SHELL_FUNCTION = re.compile(r"^(?P<head>\w+)\(\) \{$.*?^\}$", re.DOTALL | re.MULTILINE)
CMAKE_FUNCTION = re.compile(r"^(?P<head>function\([^)]*\))$.*?^endfunction\(\)$", re.DOTALL | re.MULTILINE)


def functions_of(path, text):
    """All functions of a source, in whatever language, that are not inside another function."""
    path = pathlib.PurePath(path)
    if path.suffix == ".py":
        return list(_python_functions(ast.parse(text)))
    if path.suffix in (".cmake", ".txt"):
        return _between_lines(CMAKE_FUNCTION, text)
    if path.suffix in ("", ".sh"):
        return _between_lines(SHELL_FUNCTION, text)
    return functions(text)


def _python_functions(node):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Function(child.lineno, child.end_lineno - child.lineno + 1, f"def {child.name}")
        else:
            yield from _python_functions(child)


def _between_lines(pattern, text):
    return [Function(text.count("\n", 0, found.start()) + 1, found[0].count("\n") + 1, found["head"])
            for found in pattern.finditer(text)]


def functions(text):
    """All functions of C++ text that are not inside another function."""
    return list(FunctionScanner(text).functions())


def without_hidden(text):
    """Line numbers stay; what could hold a brace that opens nothing goes."""
    return HIDDEN.sub(lambda hidden: "\n" * hidden[0].count("\n"), text)


class FunctionScanner:
    """Walks through C++ text and tells its functions."""

    def __init__(self, text):
        self.text = without_hidden(text)
        self.open = []  # what each open brace is: "function", "inside", "value" or "scope"
        self.head = ""  # the text since the last statement ended
        self.line = 1
        self.head_line = 1
        self.parentheses = 0

    def functions(self):
        for character in self.text:
            if character == "{":
                self._open()
            elif character == "}":
                yield from self._close()
            elif character == ";" and not self.parentheses:
                self._end_statement()
            else:
                self._extend(character)
            self.line += character == "\n"

    def _end_statement(self):
        self._restart()

    def _extend(self, character):
        self.parentheses += (character == "(") - (character == ")")
        if not self.head.strip():
            self.head_line = self.line
        self.head += character

    def _open(self):
        kind = self._kind()
        self.open.append((kind, self.head, self.head_line, self.parentheses))
        self.parentheses = 0
        self._restart()

    def _close(self):
        if not self.open:
            return
        kind, head, head_line, self.parentheses = self.open.pop()
        if kind == "function":
            yield Function(head_line, self.line - head_line + 1, " ".join(head.split()))
        self._restart()
        # An initialiser is part of what is being declared, and so is a lambda among arguments.
        if kind == "value" or self.parentheses:
            self.head, self.head_line = head + "()", head_line

    def _kind(self):
        if any(kind in ("function", "inside") for kind, *_ in self.open):
            return "inside"
        head = TEMPLATE.sub("", self.head)
        if MEMBER_INITIALISER.search(head):
            return "value"
        if self.parentheses:
            return "function" if head.rstrip().endswith((")", "mutable", "noexcept")) else "value"
        return "function" if ")" in head and not NAMES_A_TYPE.match(head) else "scope"

    def _restart(self):
        self.head = ""
