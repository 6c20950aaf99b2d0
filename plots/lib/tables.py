# SPDX-License-Identifier: Apache-2.0
"""What the tables share: cells as text, measured and published columns, writing Markdown beside CSV."""

import csv
import io
import pathlib

from lib import captions, checks, files, launches, results
from lib.checks import ResultsError

PAPER = pathlib.Path(__file__).resolve().parents[2] / "results" / "paper"

MEASURED_COLUMNS = ("mean_ms", "median_ms", "ci95_low_ms", "ci95_high_ms", "blocks", "note", "run", "commit",
                    "time")


def load_cells(path, texts=(), numbers=()):
    """Returns the rows of a CSV. Throws ResultsError if one lacks a column, or has no whole number where it must."""
    try:
        with open(files.reading(path), encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (OSError, ValueError, csv.Error) as error:
        raise ResultsError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    missing = [name for name in (*texts, *numbers) if name not in (reader.fieldnames or ())]
    if missing:
        raise ResultsError(f"{path}:1: the table lacks the columns {', '.join(missing)}")
    for number, row in enumerate(rows, start=2):
        for name in (reader.fieldnames or ()):
            if not checks.is_text(row[name]) or (name in numbers and not row[name].isdecimal()):
                raise ResultsError(f"{path}:{number}: {name}: expected {'a whole number' if name in numbers else 'text'}, "
                                   f"found {checks.shown(row[name])}")
    return rows


def load_published(path, texts=("method", "value", "unit", "seq_per_gpu", "source")):
    """Returns {(title, ranks): row of the CSV}. Throws ResultsError."""
    rows = load_cells(path, texts=texts, numbers=("gpus",))
    return {(row["method"], int(row["gpus"])): row for row in rows}


def save(folder, name, markdown, columns, rows):
    """Writes NAME.md and NAME.csv and prints their names."""
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    files.write(folder, {f"{name}.csv": table.getvalue(), f"{name}.md": markdown})
    print(f"Table: {folder}/{name}.md, {folder}/{name}.csv")


def table_line(*columns):
    method, source, values = columns
    return f"| {method} | {source} | " + " | ".join(values) + " |"


def cell(record, text, of_launches):
    """Returns the text of a record, with the mark of another launch."""
    if record is None:
        return ""
    return ("no time" if results.why_no_time(record) else text(record)) + of_launches.mark(record)


def mean_text(record):
    return milliseconds(record["mean_seconds"])


def median_text(record):
    low, high = (milliseconds(seconds) for seconds in record["ci95_seconds"])
    return f"{milliseconds(record['median_seconds'])} [{low}, {high}]"


def milliseconds(seconds):
    return f"{seconds * 1e3:.3f}"


def caption(records):
    """Yields footnotes on where and how these records of one setting were measured."""
    timed = [record for record in records if not results.why_no_time(record)]
    if not timed:
        yield "- Measured here: nothing of this shape yet."
        return
    last = max(timed, key=lambda record: record["time"])
    rounds = "one round in virtual time" if results.is_simulated(last) else \
        f"{last['warmup']} warm-up and {last['rounds']} measured rounds, each the maximum over ranks"
    yield f"- {captions.kind_word(timed).capitalize()} here: {'; '.join(captions.describe(last))}; {rounds}."
    crowded = captions.crowded_ranks(timed)
    if crowded:
        yield f"- {crowded.capitalize()}."
    yield f"- From {launches.Launches(timed).told()}; newest of these records: {last['time']}."


def measured_columns(record):
    if record is None:
        return {}
    reason = results.why_no_time(record)
    origin = {"run": record["run"], "time": record["time"], "commit": record["commit"],
              "blocks": record["blocks"]}
    if reason:
        return {"note": reason, **origin}
    low, high = record["ci95_seconds"]
    return {"mean_ms": milliseconds(record["mean_seconds"]),
            "median_ms": milliseconds(record["median_seconds"]),
            "ci95_low_ms": milliseconds(low), "ci95_high_ms": milliseconds(high), **origin}


def published_columns(paper):
    return {} if paper is None else {"published_ms": paper["value"], "published_source": paper["source"]}
