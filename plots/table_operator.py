# SPDX-License-Identifier: Apache-2.0
"""The operator of one layer, method by ranks: forward, backward and both, and how far over `local`.

Writes operator.md and operator.csv, one table for each number of tokens a rank, in the layout of ZeCO's
tables 3 and 4. Nothing is added up: "both" is a measured pass of its own. Published cells come from
results/paper/; a blank cell was neither measured nor published.
"""

import argparse
import collections
import pathlib
import re

import lib
from lib import captions, launches, operators, results, tables
from lib.tables import cell, mean_text, median_text, table_line

PAPER = tables.PAPER / "zeco_table_operator_16k.csv"

PUBLISHED_PASS = "pass not stated"
ELSEWHERE = "*"  # marks a ratio of two launches

CSV_COLUMNS = ("method", "name", "gate", "scan", "tokens", "heads", "ranks", "pass", "published_ms",
               *tables.MEASURED_COLUMNS, "over_local", "local_run", "published_source")

Shape = collections.namedtuple("Shape", "tokens heads attention", defaults=("linear",))
Column = collections.namedtuple("Column", "pass_ ranks")


def main():
    options = parse_arguments()
    points = results.points(operators.measured(options.results, operators.asked_setting(options)))
    sections = {}
    for record in filter(operators.stands_for_its_method, points.values()):
        sections.setdefault(shape(record), Section(points)).measured.append(record)
    for paper in tables.load_published(options.published).values():
        if not re.fullmatch(r"\d+K?", paper["seq_per_gpu"]):
            raise results.ResultsError(f"{options.published}: seq_per_gpu: expected thousands of tokens such as 16K, "
                                       f"found {paper['seq_per_gpu']!r}")
        sections.setdefault(published_shape(paper), Section(points)).published.append(paper)

    rows = [row for of, section in sorted(sections.items()) for row in section.csv_rows(of)]
    tables.save(options.out, "operator", markdown(sections, points), CSV_COLUMNS, rows)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", nargs="+", required=True, metavar="FILE", help="records, JSON lines")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--published", type=pathlib.Path, default=PAPER, metavar="FILE.csv")
    operators.add_setting_options(parser)
    return parser.parse_args()


def shape(record):
    return Shape(record["tokens"], record["heads"], results.attention(record))


def published_shape(paper):
    """Returns the tokens a rank and the heads of a published cell. Heads are 0 if its source does not say them."""
    tokens = int(paper["seq_per_gpu"].removesuffix("K")) * 1024
    heads = re.search(r"\bH=(\d+)", paper["source"])
    return Shape(tokens, int(heads[1]) if heads else 0)


def over_local(points, record):
    """Returns the record's median over that of `local`, and the record of `local`, or None."""
    local = operators.local_beside(points, record)
    if local is None or record["name"] == operators.LOCAL:
        return None
    return record["median_seconds"] / local["median_seconds"], local


# --- One table ------------------------------------------------------------------------------------------


class Section:
    """The measured and the published cells of one shape."""

    def __init__(self, points):
        self.points = points
        self.launches = launches.Launches([one for one in points.values() if not results.why_no_time(one)])
        self.measured = []
        self.published = []

    def columns(self):
        measured = {Column(record["pass"], record["ranks"]) for record in self.measured}
        published = {Column(PUBLISHED_PASS, int(paper["gpus"])) for paper in self.published}
        order = (*operators.PASSES, PUBLISHED_PASS)
        return sorted(measured | published, key=lambda column: (order.index(column.pass_), column.ranks))

    def lines(self):
        columns = self.columns()
        yield table_line("method", "source", [f"{column.pass_}, P={column.ranks}" for column in columns])
        yield "| --- | --- |" + " ---: |" * len(columns)
        labels = operators.labels({operators.row(record) for record in self.measured})
        told = {row.method for row in labels}
        for method in operators.TITLES:
            if method not in told:
                yield from self.published_lines(method)
        for row, label in labels.items():
            yield from self.published_lines(row.method)
            yield from self.measured_lines(row, label)

    def published_lines(self, method):
        title = operators.TITLES.get(method)
        cells = {Column(PUBLISHED_PASS, int(paper["gpus"])): paper["value"] for paper in self.published
                 if paper["method"] == title}
        if cells:
            yield table_line(title, "published mean", [cells.get(column, "") for column in self.columns()])

    def measured_lines(self, row, label):
        records = {Column(record["pass"], record["ranks"]): record for record in self.measured
                   if operators.row(record) == row}
        here = [records.get(column) for column in self.columns()]
        kind = captions.kind_word(self.measured)
        yield table_line(f"`{label}`", f"{kind} here, mean", [cell(record, mean_text, self.launches) for record in here])
        if kind == "measured":
            yield table_line("", "median [95 % interval]", [cell(record, median_text, self.launches) for record in here])
        ratios = [self.ratio_text(record) if record and not results.why_no_time(record) else "" for record in here]
        if any(ratios):
            yield table_line("", "over `local`", ratios)

    def ratio_text(self, record):
        found = over_local(self.points, record)
        if found is None:
            return ""
        ratio, local = found
        return f"{ratio:.2f}{ELSEWHERE if local['run'] != record['run'] else ''}"

    def csv_rows(self, of):
        for paper in self.published:
            yield {"name": paper["method"], "tokens": of.tokens, "heads": of.heads or "",
                   "ranks": paper["gpus"], "pass": PUBLISHED_PASS, **tables.published_columns(paper)}
        for record in sorted(self.measured, key=results.point):
            known = {key: record[key] for key in ("name", "gate", "scan", "tokens", "heads", "ranks", "pass")}
            timed = results.why_no_time(record) is None
            ratio = over_local(self.points, record) if timed else None
            yield {"method": results.method(record), **known, **tables.measured_columns(record),
                   **({"over_local": f"{ratio[0]:.3f}", "local_run": ratio[1]["run"]} if ratio else {})}


# --- Markdown -------------------------------------------------------------------------------------------


def markdown(sections, points):
    lines = ["# Operator time of one layer, in ms", ""]
    for of, section in sorted(sections.items()):
        heads = f", H={of.heads}" if of.heads else ""
        attention = "" if of.attention == "linear" else f", {of.attention} attention"
        lines += [f"## {of.tokens} tokens a rank{heads}{attention}", "", *section.lines(), ""]
    return "\n".join([*lines, *footnotes(sections, points)]) + "\n"


def footnotes(sections, points):
    yield "A blank cell was neither measured nor published. The mean is the paper's figure. The pass both " \
          "is forward and then backward, measured as one; nothing here is a sum of two cells."
    yield ""
    shown = [record for section in sections.values() for record in section.measured]
    yield from tables.caption(shown)
    yield from measured_notes(shown, points)
    published = [paper for section in sections.values() for paper in section.published]
    if published:
        yield from published_notes(published)


def measured_notes(shown, points):
    timed = [record for record in shown if not results.why_no_time(record)]
    if timed:
        yield "- Exchanges overlapped as published; `local`, the same operator on a rank's own tokens, has " \
              "none. Over `local`: median over median at the same pass, ranks and gate, or else blank."
    ratios = [(record, over_local(points, record)) for record in timed]
    if any(ratio and ratio[1]["run"] != record["run"] for record, ratio in ratios):
        yield f"- {ELSEWHERE} The two times are of different launches."
    for gate in sorted({record["gate"] for record in timed}):
        yield f"- Gate {gate}: {names(record for record in timed if record['gate'] == gate)}."
    for scan in sorted({record["scan"] for record in timed} - {""}):
        yield f"- States carried by `{scan}`: {names(record for record in timed if record['scan'] == scan)}."
    yield from untimed_notes(shown)


def names(records):
    return ", ".join(f"`{name}`" for name in sorted({results.method(record) for record in records}))


def untimed_notes(shown):
    places = collections.defaultdict(list)
    for record in sorted(shown, key=results.point):
        reason = results.why_no_time(record)
        if reason:
            places[results.method(record), reason].append(
                f"{record['pass']} of {record['tokens']} tokens on {record['ranks']} ranks")
    for (method, reason), where in places.items():
        yield f"- No time for `{method}` ({'; '.join(where)}): {reason}."


def published_notes(published):
    units = sorted({paper["unit"] for paper in published})
    yield f"- Published: results/paper/{PAPER.name}; P is GPUs, in {', '.join(units)}. Not stated: whether " \
          "forward, backward or their sum, and which form of LASP-1 and LASP-2 ran; so they stand in " \
          "columns of their own, by `lasp1` and `lasp2`."
    for source in sorted({paper["source"] for paper in published}):
        yield f"- Provenance of the published cells: {source}."
    yield "- The machines differ: compare how the rows grow, not a measured cell with a published one."


if __name__ == "__main__":
    lib.run(main)
