# SPDX-License-Identifier: Apache-2.0
"""ZeCO's table 2, method by ranks: what was measured here beside what was published.

Simulated records stand there only if none are measured, or if their executor is asked for, and are called so.

Writes table2.md and table2.csv. Published cells come from results/paper/, measured ones from the records;
a blank cell was neither measured nor published.
"""

import argparse
import collections
import pathlib

import lib
from lib import captions, launches, results, tables
from lib.tables import cell, mean_text, median_text, table_line

PAPER = tables.PAPER / "zeco_table2.csv"

# Our collective, the name of the same exchange in the paper, and whether its table has a row for it.
Row = collections.namedtuple("Row", "collective title published")
ROWS = (Row("all_gather_scan", "AllGather (LASP-2)", True),
        Row("ring_scan", "Ring (LASP-1)", False),
        Row("all_scan", "All-Scan (ZeCO)", True))

CSV_COLUMNS = ("method", "collective", "ranks", "published_ms", *tables.MEASURED_COLUMNS, "published_source")


def main():
    options = parse_arguments()
    records = results.newest(results.load(options.results))
    asked = {key: getattr(options, key)
             for key in ("heads", "d_k", "d_v", "direction", "executor", "cadence")}
    measured = results.widest_setting(
        [record for record in results.matching(records, **asked)
         if record["implementation"] == "schedule" and record["name"] in {row.collective for row in ROWS}])
    cells = results.points(measured)
    published = tables.load_published(options.published)

    tables.save(options.out, "table2", markdown(cells, published), CSV_COLUMNS, csv_rows(cells, published))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", nargs="+", required=True, metavar="FILE", help="records, JSON lines")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--published", type=pathlib.Path, default=PAPER, metavar="FILE.csv")
    shape = parser.add_argument_group("which records (the defaults are the paper's shape)")
    shape.add_argument("--heads", type=int, default=32)
    shape.add_argument("--d-k", type=int, default=128)
    shape.add_argument("--d-v", type=int, default=128)
    shape.add_argument("--direction", default="forward")
    shape.add_argument("--executor", help="default: the one with most rank counts")
    shape.add_argument("--cadence", help="default: the one with most rank counts")
    return parser.parse_args()


def rank_counts(cells, published):
    return sorted({ranks for _, ranks in cells} | {ranks for _, ranks in published})


# --- Markdown -------------------------------------------------------------------------------------------


def markdown(cells, published):
    ranks = rank_counts(cells, published)
    lines = ["# Communication time by ranks, in ms", "",
             "| method | source | " + " | ".join(str(count) for count in ranks) + " |",
             "| --- | --- |" + " ---: |" * len(ranks)]
    for row in ROWS:
        lines += markdown_rows(row, ranks, cells, published)
    return "\n".join([*lines, "", *footnotes(cells, published)]) + "\n"


def markdown_rows(row, ranks, cells, published):
    here = [cells.get((row.collective, count)) for count in ranks]
    of_launches, kind = launches.Launches(timed(cells)), captions.kind_word(cells.values())
    if row.published:
        yield table_line(row.title, "published mean",
                         [published.get((row.title, count), {}).get("value", "") for count in ranks])
    title = "" if row.published else row.title
    if not any(here):
        return
    if kind == "simulated":
        yield table_line(title, f"`{row.collective}` simulated here", [cell(one, mean_text, of_launches) for one in here])
        return
    yield table_line(title, f"`{row.collective}` measured here, mean", [cell(one, mean_text, of_launches) for one in here])
    yield table_line("", "median [95 % interval]", [cell(one, median_text, of_launches) for one in here])


def timed(cells):
    return [record for record in cells.values() if not results.why_no_time(record)]


def footnotes(cells, published):
    yield "A blank cell was neither measured nor published. The mean is the paper's figure."
    yield ""
    yield from measured_notes(cells)
    units = {(row["unit"], row["seq_per_gpu"]) for row in published.values()}
    for unit, tokens in sorted(units):
        yield f"- Published: results/paper/{PAPER.name}; a rank is a GPU with {tokens} tokens, in {unit}."
    for source in sorted({row["source"] for row in published.values()}):
        yield f"- Provenance of the published cells: {source}."
    yield "- The machines differ: compare how the rows grow, not a measured cell with a published one."


def measured_notes(cells):
    yield from tables.caption(cells.values())
    for (name, ranks), record in sorted(cells.items()):
        reason = results.why_no_time(record)
        if reason:
            yield f"- No time for `{name}` on {ranks} ranks: {reason}."


# --- CSV ------------------------------------------------------------------------------------------------


def csv_rows(cells, published):
    for row in ROWS:
        for ranks in rank_counts(cells, published):
            record = cells.get((row.collective, ranks))
            paper = published.get((row.title, ranks)) if row.published else None
            if record or paper:
                yield {"method": row.title, "collective": row.collective, "ranks": ranks,
                       **tables.measured_columns(record), **tables.published_columns(paper)}


if __name__ == "__main__":
    lib.run(main)
