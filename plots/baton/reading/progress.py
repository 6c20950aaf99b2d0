# SPDX-License-Identifier: Apache-2.0
"""How far a long reading is, on standard error: at a terminal in one line that is written anew."""

import sys
import time

AFTER_SECONDS, EVERY_SECONDS = 5, 5
LINES = 6  # times as seldom where each says a line


class Progress:
    """That of one file; `size` is 0 where nobody knows it, as of a pipe."""

    def __init__(self, path, size):
        self.path, self.size = path, size
        self.lines = self.done = 0
        self.next = time.monotonic() + AFTER_SECONDS
        self.has_spoken = False

    def add(self, size):
        """Notes one more line of so many bytes."""
        self.lines += 1
        self.done += size
        if self.lines % 100 == 0 and time.monotonic() >= self.next:
            self.next = time.monotonic() + EVERY_SECONDS * (1 if sys.stderr is not None and sys.stderr.isatty() else LINES)
            self._say(f"reading {self.path}: {self.lines:,} lines" + (f", {100 * self.done // self.size} %" if self.size else ""))

    def _say(self, text):
        if sys.stderr is not None:
            at_terminal = sys.stderr.isatty()
            print(f"\r\033[K{text}" if at_terminal else text, end="" if at_terminal else "\n", file=sys.stderr, flush=True)
            self.has_spoken = at_terminal

    def end(self):
        """Clears the line of a terminal."""
        if self.has_spoken:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
