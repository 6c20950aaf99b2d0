# SPDX-License-Identifier: Apache-2.0
"""What the tables share: cells as text, measured and published columns, writing Markdown beside CSV."""

import csv
import pathlib

from lib import results

PAPER = pathlib.Path(__file__).resolve().parents[2] / "results" / "paper"

MEASURED_COLUMNS = ("mean_ms", "median_ms", "ci95_low_ms", "ci95_high_ms", "blocks", "note", "run", "commit",
                    "time")


def load_published(path):
    """Returns {(title, ranks): row of the CSV}."""
    with open(path, encoding="utf-8", newline="") as file:
        return {(row["method"], int(row["gpus"])): row for row in csv.DictReader(file)}


def save(folder, name, markdown, columns, rows):
    """Writes NAME.md and NAME.csv and prints their names."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)
    (folder / f"{name}.md").write_text(markdown, encoding="utf-8")
    print(f"Table: {folder}/{name}.md, {folder}/{name}.csv")


def table_line(*columns):
    method, source, values = columns
    return f"| {method} | {source} | " + " | ".join(values) + " |"


def cell(record, text):
    if record is None:
        return ""
    return "no time" if results.why_no_time(record) else text(record)


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
    yield f"- Measured here: {'; '.join(results.describe(last))}; {last['warmup']} warm-up and " \
          f"{last['rounds']} measured rounds, each the maximum over ranks."
    yield f"- Newest of these records: {last['time']}, commit {last['commit']}."


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
