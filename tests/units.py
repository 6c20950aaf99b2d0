# SPDX-License-Identifier: Apache-2.0
"""Units of the C++ and CUDA sources and what they include of one another.

A unit is a header with the source beside it that has its name: what a reader opens together.
"""

import collections
import re

from source_tree import PRODUCT, ROOT, cpp_files, text_of

HEADERS = (".hpp", ".cuh")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Units:
    def __init__(self, includes):
        """`includes`: for each file the project headers that it includes, all as paths from the root."""
        self.files = collections.defaultdict(list)
        for path in includes:
            self.files[unit_of(path)].append(path)
        self.includes = {path: [one for one in found if unit_of(one) in self.files] for path, found in includes.items()}

    @classmethod
    def of_tree(cls, root=ROOT):
        return cls({path.as_posix(): INCLUDE.findall(text_of(path, root)) for path in cpp_files(*PRODUCT, root=root)})

    def needs(self, unit, suffixes=(".hpp", ".cuh", ".cpp", ".cu")):
        """The other units that the unit's files with these suffixes include."""
        return {unit_of(header) for path in self.files[unit] if path.endswith(suffixes)
                for header in self.includes[path]} - {unit}

    def closure(self, entries, without=r"(?!)"):
        """All units that a reader of the files that match `entries` is led to, but for what matches `without`."""
        waiting = [unit_of(path) for path in self.includes if re.fullmatch(entries, path)]
        seen = set()
        while waiting:
            unit = waiting.pop()
            if unit not in seen and not re.match(without, unit):
                seen.add(unit)
                waiting.extend(self.needs(unit))
        return seen

    def circles(self):
        """Units that include one another, be it a source of the one and a header of the other, and longer circles of
        headers."""
        return sorted({tuple(sorted((one, other))) for one in self.files for other in self.needs(one)
                       if one in self.needs(other)} | self._longer_circles())

    def _longer_circles(self):
        """Circles of three and more headers."""
        reached = {unit: self._reached_by_headers(unit) for unit in self.files}
        return {tuple(sorted(circle)) for unit in self.files
                for circle in [{other for other in reached[unit] if unit in reached[other]}] if len(circle) > 2}

    def _reached_by_headers(self, unit):
        waiting, seen = [unit], set()
        while waiting:
            new = self.needs(waiting.pop(), HEADERS) - seen
            seen |= new
            waiting.extend(new)
        return seen


def unit_of(path):
    return path.rsplit(".", 1)[0]
