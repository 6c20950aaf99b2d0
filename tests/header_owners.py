# SPDX-License-Identifier: Apache-2.0
"""Which sources implement the functions that a header declares.

  python3 tests/header_owners.py FOLDER...      prints headers that several sources implement, and these

A function is known by its classes, its name and the types of its parameters, so that overloads of other headers are not
taken for it. Namespaces are left out.
"""

import collections
import re
import sys

from function_size import FunctionScanner
from source_tree import PRODUCT, ROOT, cpp_files, text_of

HEADERS = {".hpp", ".cuh"}
CLASS = re.compile(r"\b(?:class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w+)(?:\s+final)?\s*(?::(?!:)[^:].*)?$", re.DOTALL)
FUNCTION = re.compile(r"([\w:~]*?(?:operator\s*[^\w\s(]+|operator \w+|~?\w+)(?:<[^<>()]*>)?)\s*\(")
NO_FUNCTIONS = re.compile(r"\s*(?:using|typedef|friend|static_assert|return|template\s*<[^;]*>\s*(?:class|struct))\b")


def owners(*folders, root=ROOT):
    """For each header below the folders, the sources that define what it declares, with the names of that."""
    files = cpp_files(*(folders or PRODUCT), root=root)
    definitions = collections.defaultdict(set)
    for path in files:
        if path.suffix not in HEADERS:
            for function in declared_and_defined(text_of(path, root))[1]:
                definitions[function].add(path)
    found = {}
    for path in files:
        if path.suffix in HEADERS:
            found[path] = collections.defaultdict(list)
            for function in sorted(declared_and_defined(text_of(path, root))[0]):
                for source in definitions[function]:
                    found[path][source].append(function[0])
    return found


def shared_headers(*folders, root=ROOT):
    """Headers that several sources implement, one text each."""
    return [f"{header}: " + "; ".join(f"{source} ({', '.join(names[:3])})" for source, names in sorted(sources.items()))
            for header, sources in owners(*folders, root=root).items() if len(sources) > 1]


def declared_and_defined(text):
    names = _Names(text)
    return names.declared, names.defined


class _Names(FunctionScanner):
    """The functions that a text declares, and those that it defines, but for what has no name outside of it."""

    def __init__(self, text):
        super().__init__(text)
        self.declared, self.defined = set(), set()
        for function in self.functions():
            self._note(self.defined, function.head)

    def _end_statement(self):
        if all(kind == "scope" for kind, *_ in self.open) and "=" not in self.head.split("(")[0]:
            self._note(self.declared, self.head)
        super()._end_statement()

    def _note(self, names, head):
        head = re.sub(r"^\s*(?:(?:public|private|protected)\s*:\s*)+", "", head)
        function = FUNCTION.search(head)
        scopes = [head for _, head, *_ in self.open]
        if function is None or NO_FUNCTIONS.match(head) or any(re.search(r"\bnamespace\s*$", one) for one in scopes):
            return
        classes = [found[1] for found in map(CLASS.search, scopes) if found]
        names.add(("::".join([*classes, function[1].replace(" ", "")]), _types(head[function.end():])))


def _types(text):
    """The types of the parameters in `text`, which begins behind the parenthesis that opens them."""
    depth, parameter, types = 0, "", []
    for character in text:
        depth += (character in "(<[{") - (character in ")>]}")
        if depth < 0 or (depth == 0 and character == ","):
            types.append(parameter)
            parameter = ""
            if depth < 0:
                break
        else:
            parameter += character
    without_names = [re.sub(r"(?<=[\w&*>\s])(?<!^)\b\w+\s*$", "", one.split("=")[0].strip()) or one.strip() for one in types]
    return tuple(re.sub(r"\s+", "", one) for one in without_names if one)


def main():
    for line in shared_headers(*sys.argv[1:]):
        print(line)


if __name__ == "__main__":
    main()
