# SPDX-License-Identifier: Apache-2.0
"""Which launches the records of one table or figure come of, so that none are mixed unmarked.

A simulation gives the same time in every launch, so only its commit counts, if it is known. One of a changed tree has
-dirty in it.
"""

import collections
import string

from baton import results

Launch = collections.namedtuple("Launch", "run commit")


def launch_of(record):
    is_one = results.is_simulated(record) and results.is_build_known(record)
    return Launch("" if is_one else record["run"], record["commit"])


class Launches:
    """The launch with most of the records, the newest among equals, has no mark. The others have the letters a, b ..."""

    def __init__(self, records):
        counts = collections.Counter(map(launch_of, records))
        newest = {launch_of(record): record["time"] for record in sorted(records, key=lambda record: record["time"])}
        ordered = sorted(counts, key=lambda one: (counts[one], newest[one]), reverse=True)
        self.marks = {one: letter(number) for number, one in enumerate(ordered)}

    def is_elsewhere(self, record):
        return bool(self.marks.get(launch_of(record)))

    def are_mixed(self):
        return len(self.marks) > 1

    def label(self, main="unmarked"):
        """Returns the launches in words, the main one first."""
        if not self.are_mixed():
            return "".join(map(words, self.marks))
        return "; ".join(f"{mark or main}: {words(one)}" for one, mark in self.marks.items())


def letter(number):
    """Returns nothing for 0, then a to z, then a1 ..."""
    turn, place = divmod(number - 1, len(string.ascii_lowercase))
    return "" if number == 0 else string.ascii_lowercase[place] + (str(turn) if turn else "")


def words(one):
    return f"launch {one.run}, commit {one.commit}" if one.run else f"commit {one.commit}"
