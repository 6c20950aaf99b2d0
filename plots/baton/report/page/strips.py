# SPDX-License-Identifier: Apache-2.0
"""The rounds of every row as data for the page's script, which draws a strip of them when a reader asks for it.

A time is one byte: its place between the least and the greatest time of the row, on a logarithmic scale. Bytes stand as
base64. Where the page would be too large, rows of most ranks keep the slowest rank's times alone, and rows of many
launches the newest.
"""

import base64
import collections
import itertools
import json
import math

from baton import cases

MOST_ROUNDS = 400  # that a strip has room for
MOST_LETTERS = 6_000_000  # of all strips
MOST_LAUNCHES = 100  # that a row shows


class Strips:
    """Gathers rows, and gives each a number."""

    def __init__(self):
        self.rows = []

    def add(self, sides):
        """Keeps a row and returns its number. `sides` are [(letter of the session, comparison, row)]."""
        self.rows.append(sides)
        return len(self.rows) - 1

    def json(self, repeat):
        """Returns the data as JSON; `repeat` makes the command that runs a record's case again."""
        most = self._most_ranks()
        data = [[strip(letter, row, most, repeat) for letter, _, row in sides] for sides in self.rows]
        # "</" would end the script that the data stand in, and "<!--" hide its end.
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")

    def _most_ranks(self):
        """The most ranks for which all ranks' times have room."""
        letters = collections.Counter()
        for record in (record for sides in self.rows for _, _, row in sides for record in row.records[-MOST_LAUNCHES:]):
            for rank in times_of(record):
                letters[len(times_of(record))] += min(MOST_ROUNDS, len(rank)) * 4 // 3
        ranks = sorted(letters)
        totals = itertools.accumulate(letters[rank] for rank in ranks)
        fits = [rank for rank, total in zip(ranks, totals) if total <= MOST_LETTERS]
        return math.inf if fits == ranks else max(fits, default=1)


def strip(letter, row, most, repeat):
    """What the script needs of one row of one session."""
    newest = row.records[-MOST_LAUNCHES:]
    records = [record for record in newest if times_of(record)]
    data = {"s": letter, "name": newest[-1].get("case", row.name.name), "again": repeat(newest[-1]), "from": origins(newest)}
    if len(row.records) > len(newest):
        data["from"] += f"; these {len(newest)} of {len(row.records)} are the newest"
    if row.state != cases.TIMED:
        data["why"] = row.reason
    if not records or row.is_simulated:
        return data
    times = [thinned(times_of(record), most) for record in records]
    every = [second for launch in times for rank in launch for second in rank if second > 0]
    if not every:
        return data
    low, high = min(every), max(every)
    data.update(low=low, high=high, launches=[
        {"n": record.get("launch", 1), "last": record.get("rounds_as_last"),
         "ranks": [coded(rank, low, high) for rank in launch]}
        for record, launch in zip(records, times)])
    if most < max(len(times_of(record)) for record in records):
        data["slowest"] = 1
    return data


def times_of(record):
    """Seconds of each rank's rounds, or of the rounds alone where one process ran all ranks: [ranks, rounds]."""
    return record.get("rank_seconds") or ([record["seconds"]] if record.get("seconds") else [])


def thinned(times, most):
    """The times of the slowest rank if there are too many ranks; of many rounds the slowest of each few."""
    if len(times) > most:
        times = [[max(of_round) for of_round in zip(*times)]]
    few = math.ceil(len(times[0]) / MOST_ROUNDS)
    return [[max(rank[start:start + few]) for start in range(0, len(rank), few)] for rank in times]


def coded(seconds, low, high):
    span = math.log(high / low) or 1
    places = bytes(round(255 * math.log(max(second, low) / low) / span) for second in seconds)
    return base64.b64encode(places).decode("ascii")


def origins(records):
    """Which runs and commits the records are of, as text."""
    return "; ".join(dict.fromkeys(f"{record['time']}, run {record['run']}, commit {record['commit']}"
                                   for record in records))
