# SPDX-License-Identifier: Apache-2.0
"""Exchanges on GPUs, method by size of the state: medians, ratios to All-Scan, bounds.

Writes exchange.md and one CSV a table: one table for each number of ranks and cadence.
"""

import argparse
import pathlib
import sys

import exchange_tables
import exchanges
import paper_page
import results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", nargs="+", required=True, metavar="FILE", help="records, JSON lines")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    options = parser.parse_args()
    records = results.newest(results.load(options.results))
    contests = exchanges.contests(filter(exchanges.on_gpus, records))
    options.out.mkdir(parents=True, exist_ok=True)
    save(options.out, [exchange_tables.table(contest, place, "here", f"exchange_{place[0]}_{place[1]}")
                       for place, contest in contests.items()], why_not(records))


def why_not(records):
    """The reasons of the cases that have no time."""
    reasons = {results.why_no_time(record): results.method(record) for record in records if results.why_no_time(record)}
    return [f"- No time, `{name}`: {reason}." for reason, name in sorted(reasons.items())]


def save(folder, tables, reasons):
    page = paper_page.Page("Exchanges of states between GPUs", ["Medians, and the bound of each method's own traffic.",
                                                                *reasons],
                           [paper_page.Section(table.title.split(",")[0], [table]) for table in tables])
    (folder / "exchange.md").write_text(paper_page.markdown(page, {}), encoding="utf-8")
    for table in tables:
        paper_page.save_csv(folder, table)
    print(f"Table: {folder}/{', '.join(['exchange.md', *(f'{table.name}.csv' for table in tables)])}")


if __name__ == "__main__":
    try:
        main()
    except results.ResultsError as error:
        sys.exit(f"table_exchange: {error}")
