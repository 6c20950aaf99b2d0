# SPDX-License-Identifier: Apache-2.0
"""Exchanges on GPUs, method by size of the state: medians, ratios to All-Scan, bounds.

Writes exchange.md and one CSV a table: one table for each number of ranks and cadence.
"""

import argparse
import pathlib

import lib
from lib import exchanges, files, results
from paper.page import Page, Section, as_csv, markdown
from paper.sections import gpu_exchanges


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", nargs="+", required=True, metavar="FILE", help="records, JSON lines")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    options = parser.parse_args()
    records = results.newest(results.load(options.results))
    contests = exchanges.contests(filter(exchanges.on_gpus, records))
    save(options.out, [gpu_exchanges.table(contest, place, "here", f"exchange_{place[0]}_{place[1]}")
                       for place, contest in contests.items()], why_not(records))


def why_not(records):
    """Returns one line for each reason why a case has no time."""
    reasons = {results.why_no_time(record): results.method(record) for record in records if results.why_no_time(record)}
    return [f"- No time, `{name}`: {reason}." for reason, name in sorted(reasons.items())]


def save(folder, tables, reasons):
    page = Page("Exchanges of states between GPUs",
                ["Medians, and the bound of each method's own traffic.", *reasons],
                [Section(table.title.split(",")[0], [table]) for table in tables])
    files.write(folder, {"exchange.md": markdown(page, {}), **dict(map(as_csv, tables))})
    print(f"Table: {folder}/{', '.join(['exchange.md', *(f'{table.name}.csv' for table in tables)])}")


if __name__ == "__main__":
    lib.run(main)
