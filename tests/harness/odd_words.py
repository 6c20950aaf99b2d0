# SPDX-License-Identifier: Apache-2.0
"""Generates odd flags, topologies and records from a random generator, each with what must come of it.

A word for a flag comes with a verdict that this file derives by itself: True if the flag must take it, False if the bench
must refuse it.
"""

import collections
import json
import os
import re

Number = collections.namedtuple("Number", "least most")

# The flags that take a number, under the names that errors use, and their ranges.
NUMBERS = {"--ranks": Number(1, 16384), "--ranks-per-gpu": Number(1, 64), "--ranks-per-node": Number(0, 16384),
           "--warmup": Number(0, 1000000), "--rounds": Number(1, 1000000), "--cycles": Number(1, 1000), "--check": Number(1, 1000),
           "--seed": Number(0, 2**64 - 1), "--timeout": Number(0, 1000000), "--heads": Number(1, 2**24),
           "--d-k": Number(1, 2**24), "--d-v": Number(1, 2**24), "--tokens": Number(1, 2**24)}
WORDS = {"--collectives": ("all_scan", "two_shot", "all"), "--executor": ("local", "mpi"),
         "--direction": ("forward", "reverse", "both"), "--cadence": ("isolated", "streaming"),
         "--map": ("diagonal", "scalar", "affine"), "--baseline": ("all_scan",), "--blocks": ("1", "02", "auto", "1,2")}
UNITS = {"": 1, "B": 1, "K": 1 << 10, "kb": 1 << 10, "KiB": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# What holds for every word here: a small, quick case.
SMALL = {"--executor": "local", "--ranks": "2", "--collectives": "all_scan", "--heads": "2", "--d-k": "4", "--d-v": "2",
         "--tokens": "4", "--rounds": "2", "--warmup": "0"}

STRANGE = ("", " ", "-", "--", "--list", "x", "true", "null", "nan", "inf", "1e3", "1.5", "0x10", "+4", " 4", "4 ", "4x",
           "1_000", "-1", "-99999999999999999999", "99999999999999999999", "9" * 400, "9" * 100000, "x" * 100000,
           "[", "]", "[2]", "[[2]]", "[" * 50000 + "]" * 50000, "2,,3", ",", "2,", ",2", "2;3", "2..4", "{}", "'", '"', "$HOME",
           "%s%n%d", "\\", "a\nb", "a\tb", "\x1b[31mred", "\x07", "\x7f", "\u0663", "é", "😀", "\u202e", "../x", "/", "*",
           b"\xff", b"\xc3", b"a\xed\xa0\x80b")


def shown(word):
    return word if isinstance(word, bytes) else word.encode("utf-8")


class OddWords:
    """Words for one flag at a time."""

    def __init__(self, random):
        self.random = random

    def flag(self):
        """Returns (flag, its word as bytes, the verdict)."""
        kind = self.random.random()
        if kind < 0.45:
            return self.number()
        if kind < 0.6:
            return self.size()
        return self.word()

    def number(self):
        flag, least, most = self.random.choice([(flag, *bounds) for flag, bounds in NUMBERS.items()])
        near = (least, least - 1, most + 1, most * 1000, self.random.randint(least, min(most, 9)))
        zeros = "0" * self.random.choice((0, 0, 1, 30))
        word = self.random.choice(STRANGE) if self.random.random() < 0.6 else with_zeros(self.random.choice(near), zeros)
        return flag, shown(word), self.takes(word, least, most, flag == "--ranks")

    @staticmethod
    def takes(word, least, most, is_list):
        words = word.split(b"," if isinstance(word, bytes) else ",") if is_list else [word]
        return all(isinstance(one, str) and re.fullmatch("[0-9]+", one) is not None and len(one) < 4000
                   and least <= int(one) <= most for one in words) and len(set(words)) == len(words)

    def size(self):
        count, unit = self.random.choice((0, 1, 3, 8, 16, 64, 10**30)), self.random.choice([*UNITS, "Q", "KK", "iB", "E"])
        strange = self.random.random() < 0.3
        word = self.random.choice(STRANGE) if strange else f"{count}{unit}"
        # Heads of 4 x 2 elements: the state is cut into pieces of 32 bytes.
        size = 0 if strange else count * UNITS.get(unit, 0)
        return "--min-bytes", shown(word), 0 < size <= 1 << 43 and size % 32 == 0

    def word(self):
        flag = self.random.choice(list(WORDS))
        if self.random.random() < 0.3:
            return flag, shown(self.random.choice(WORDS[flag])), True
        return flag, shown(self.random.choice([word for word in STRANGE if not is_whole(word) or flag != "--blocks"])), False

    def unknown(self):
        """Returns arguments that no bench can take, and the words of which the error must have one."""
        flag = self.random.choice([*NUMBERS, *WORDS, "--json", "--trace", "--list", "--dry-run"])
        return self.random.choice((
            ([flag + "x"], (flag + "x", "belongs")), ([flag + "="], (flag,)), ([flag[1:]], ("--", flag[1:3])),
            (["stray", flag], ("stray", flag)), (["--json"], ("--json",)), (["--dry-run=3"], ("--dry-run",)),
            (["--list", "x"], ("x",)), (["--heads", "2", "--heads", "2"], ("--heads",)),
            (["--max-bytes", "1M"], ("--max-bytes",)), (["--factor", "2"], ("--factor",)),
            (["--benchmark_out_format=" + flag], ("--benchmark_out_format",)),
            (["--benchmark_filter=" + "(" * self.random.choice((1, 5, 5000))], ("--benchmark_filter",)),
            (["--benchmark_" + flag[2:]], ("--benchmark_",)), (["--ranks", "3", "--ranks", "3"], ("--ranks",))))


def is_whole(word):
    return isinstance(word, str) and re.fullmatch("[0-9]+", word) is not None


def with_zeros(number, zeros):
    return f"-{zeros}{-number}" if number < 0 else f"{zeros}{number}"


# --- Topologies -----------------------------------------------------------------------------------------

VALUES = (None, True, "", "x", "a\nb", "\x1b[31m", [], {}, [1, 2], -1, 0, 0, 1, 2, 0.5, 3600, 1e-15, 1e-300, 5e-324, 1e9, 1e15,
          1e18, 1e19, 2**63, 10**400)
CURVE = ((0, 0), (5e-324, 3600), (1, 0), (1, 5e-324), (1e-300, 1e-9), (1e14, 0), (1e15, 1e-300), (1e15, 5e-324), (1e15, 3600))


def odd_topology(random, folder):
    """Returns the text of a topology of `folder` after some changes."""
    with open(os.path.join(folder, random.choice(sorted(os.listdir(folder)))), encoding="utf-8") as file:
        topology = json.load(file)
    for _ in range(random.choice((1, 1, 2, 8))):
        holder, key = random.choice(list(places(topology)))
        holder[key] = random.choice(VALUES)
    if random.random() < 0.4:
        link = topology.get("links") if isinstance(topology.get("links"), dict) else {}
        for name in ("measured", "measured_idle", "node_measured"):
            if isinstance(link.get("intra_node"), dict) and random.random() < 0.5:
                points = sorted(random.sample(CURVE, random.randint(1, 4)))
                link["intra_node"][name] = [{"bytes": size, "seconds": time} for size, time in points]
    text = json.dumps(topology).encode("utf-8")
    return torn(random, text) if random.random() < 0.2 else text


def places(value):
    """Yields (holder, key) of each value within a JSON value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def torn(random, text):
    """Returns the text cut, or with bytes that it must not have."""
    at = random.randrange(len(text))
    return random.choice((text[:at], text[:at] + b"\0" + text[at:], text[:at] + b"\xff\xfe" + text[at:], b"", b"\0" * 4096,
                          text + text, text[at:], b"[" * 5000, text.replace(b"1", b"1e999", 1)))


# --- Records --------------------------------------------------------------------------------------------

IN_RECORDS = (None, True, -1, 0, 1, 1.5, 1e999, float("nan"), -1e999, 10**400, 1e-320, 2**70, "", "x", "a\nb", "\ud800",
              "$\\frac{1}$", "$x", "<b>", "|", [], [1], [None, None], [1, 2, 3], [2.0, 1.0], {}, {"a": 1}, {"cpu": 5},
              {"cpu": "$\\frac$", "cores": 2}, {"gpu": "$\\frac$", "driver": "1"}, "auto")


def odd_records(random, records):
    """Returns the bytes of a file of records after a change."""
    records = json.loads(json.dumps(records))
    one = random.choice(records)
    key = random.choice(list(one))
    if random.random() < 0.15:
        del one[key]
    else:
        one[key] = random.choice(IN_RECORDS)
    lines = [json.dumps(record).encode("utf-8") for record in records]
    if random.random() < 0.3:
        at = random.randrange(len(lines))
        lines[at] = torn(random, lines[at])
    return b"\n".join(lines) + random.choice((b"", b"\n"))
