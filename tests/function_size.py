# SPDX-License-Identifier: Apache-2.0
"""Measures the functions of C++ text by their braces, well enough for formatted sources.

  blank out comments, strings and preprocessor lines
  at each '{' look at the text since the last statement: it opens a function, a member initialiser, or a scope
  a function runs from the first line of its head to its closing brace; what it contains counts as its own
"""

import collections
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


def functions(text):
    """All functions of the text that are not inside another function."""
    return list(_Scanner(_without_hidden(text)).functions())


def _without_hidden(text):
    """Line numbers stay; what could hold a brace that opens nothing goes."""
    return HIDDEN.sub(lambda hidden: "\n" * hidden[0].count("\n"), text)


class _Scanner:
    def __init__(self, text):
        self.text = text
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
                self._restart()
            else:
                self._extend(character)
            self.line += character == "\n"

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
