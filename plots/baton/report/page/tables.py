# SPDX-License-Identifier: Apache-2.0
"""Tables of comparisons: a row a case, the fastest of each comparison first; sessions stand in columns side by side."""

import collections

from baton import cases, words
from baton.report import axes, ranking
from baton.report.page.charts import origin, without_machine
from baton.report.page.sections import Section
from baton.report.rows import COMPUTE_ONLY, EXPOSED, LOCAL

# A cell: `sort` is what its column is sorted by, `kind` a class of the style, `title` what a pointer shows.
Cell = collections.namedtuple("Cell", "text sort kind title", defaults=("", "", ""))

# `number` is that of the row's rounds, `is_first` true where a comparison begins.
TableRow = collections.namedtuple("TableRow", "cells is_first number")
Table = collections.namedtuple("Table", "subjects notes letters names outcomes about rows")

MEDIAN, AGAINST, BOUND, VERIFIED = "median [95 % interval]", "against the lowest", "% of bound", "verified"
ABOUT = {MEDIAN: "over launches", AGAINST: "of those it is compared with", BOUND: "the least time that the links allow, of the median; more than 100 where the measured latency or bandwidth errs",
         VERIFIED: "elements, or tokens x heads"}
MODES = {EXPOSED: 1, COMPUTE_ONLY: 2}  # their order behind the ranked rows


def tables(sessions, letters, number_of):
    """Yields the Tables. `letters` names the sessions; `number_of(shown)` numbers rows for strips,
    where `shown` are [(letter, comparison, row)]."""
    families = collections.defaultdict(dict)
    for letter, session in zip(letters, sessions):
        for comparison in session.comparisons:
            entries = families[comparison["bench"], comparison.run_by, comparison.group.topology, comparison.kind, comparison.wire, comparison.model]
            beside = without_machine(comparison.group)
            taken = letter in entries.get(beside, ())  # several machines of one session are no columns
            entries.setdefault(comparison.group if taken else beside, {})[letter] = comparison
    for of_family in sorted(families.values(), key=lambda entries: axes.importance(first_of(next(iter(entries.values()))))):
        shown = {key: entry for key, entry in of_family.items() if any(rows_of(one) for one in entry.values())}
        if shown:
            yield table(shown, [letter for letter in letters
                                if any(letter in entry for entry in shown.values())], number_of)


def first_of(entry):
    return next(iter(entry.values()))


def rows_of(comparison):
    """The rows that a table shows: all but those that could not run here, and those that are ranked first."""
    ranked = comparison.competitors
    others = [row for row in comparison.rows if row.state != cases.SKIPPED and row not in ranked]
    return ranked + sorted(others, key=lambda row: MODES.get(row.name.mode, 0))


def table(entries, letters, number_of):
    firsts = [first_of(entry) for entry in entries.values()]
    named, is_layer = axes.columns(firsts), firsts[0].is_layer
    marks = Marks({letter: collections.Counter(
        origin(record) for entry in entries.values() if letter in entry for record in entry[letter].records)
        for letter in letters})
    body = [row for entry in entries.values() for row in rows(entry, letters, named, marks, number_of)]
    subjects = " · ".join(dict.fromkeys(axes.subject(comparison) for entry in entries.values() for comparison in entry.values()))
    skipped = sum(row.state == cases.SKIPPED for entry in entries.values() for one in entry.values() for row in one.rows)
    notes = [f"All of them: {axes.constants(firsts, named)}."]
    notes += [f"{words.count(skipped, 'row')} could not run here; the records say why."] * bool(skipped) + marks.notes()
    names = ["method" if is_layer else "collective", *["mode"] * is_layer, "run by",
             *map(axes.title_of, named)]
    return Table(subjects, " ".join(notes), letters, names, outcomes(is_layer), ABOUT, body)


def outcomes(is_layer):
    """The columns of each session. The bound is that of an exchange, so a layer has none."""
    return [MEDIAN, AGAINST, *[BOUND] * (not is_layer), VERIFIED]


def rows(entry, letters, named, marks, number_of):
    """Yields the TableRows of a comparison, over the sessions."""
    found = collections.defaultdict(list)
    for letter, comparison in entry.items():
        for row in rows_of(comparison):
            found[row.name].append((letter, comparison, row))
    is_first, ranked = True, {letter: ranking.rank(comparison) for letter, comparison in entry.items()}
    for name, shown in found.items():
        _, comparison, row = shown[0]
        cells = [Cell(label(comparison, row), name.name)]
        cells += [Cell("" if name.name == LOCAL else name.mode.replace("_", " "))] * comparison.is_layer
        cells += [Cell("simulator ~" if row.is_simulated else name.executor)]
        cells += [Cell(axes.value(comparison, axis), axes.value_of(comparison, axis)) for axis in named]
        here = {letter: (comparison_of, row_of) for letter, comparison_of, row_of in shown}
        for letter in letters:
            made = outcome(*here[letter], ranked[letter], marks) if letter in here else {}
            cells += [made.get(column, Cell("")) for column in outcomes(comparison.is_layer)]
        yield TableRow(cells, is_first, number_of(shown))
        is_first = False


def label(comparison, row):
    return comparison.label_of(row) + (" ~" if row.is_simulated else "")


def outcome(comparison, row, ranked, marks):
    """Returns {column: Cell}."""
    if not row.is_timed:
        return {MEDIAN: Cell(row.state, "", "lost", row.reason)}
    of = marks.of(row.records)
    simulated = "simulated" if row.is_simulated else ""
    median = Cell(words.time_of(row) + (f" {of}" if of else ""), row.median, simulated,
                  "" if row.interval or row.is_simulated else "one launch: no interval over launches")
    share = Cell(f"{100 * row.bound_share:.0f}", row.bound_share) if row.bound_share else Cell("")
    return {MEDIAN: median, AGAINST: against(comparison, row, ranked), BOUND: share, VERIFIED: Cell(verified(row.records[-1]))}


def against(comparison, row, ranked):
    """The ratio to the fastest, and whether the launches separate them."""
    if comparison.is_oversubscribed:
        return Cell("oversubscribed", 1e9, "over", "fewer cores than busy threads: no measure of the methods")
    if row not in comparison.competitors:
        return Cell("")
    ratio = row.ratio_to(ranked.first)
    if row is ranked.first:
        return Cell("fastest" if ranking.has_winner(ranked) else "lowest", 1, "best",
                    "" if not ranked.unbeaten else "as fast as those marked ≈; those marked ? cannot be told from it")
    number = words.factor(ratio.value) if row.is_simulated else words.times(ratio).removesuffix(" times")
    if not ranked.judged or row in ranked.beaten:
        return Cell(number, ratio.value)
    if row in ranked.tied:
        return Cell(f"≈ {number}", ratio.value, "tied", "within the margin of the lowest")
    return Cell(f"? {number}", ratio.value, "undecided", "cannot be told from the lowest: the interval crosses the margin")


def verified(record):
    if record["executor"] == "simulator":
        return "a small copy"
    if "verified_elements" in record:
        return words.count(record["verified_elements"], "element")
    return f"{words.count(record['verified_tokens'], 'token')} x {words.count(record['verified_heads'], 'head')}" if "verified_heads" in record else ""


class Marks:
    """Letters for the launches and commits that are not those of most rows of their session in a table."""

    def __init__(self, sessions):
        """`sessions` is {letter of a session: Counter of origins}."""
        others = [one for origins in sessions.values() for one, _ in origins.most_common()[1:]]
        self.letters = {one: chr(ord("a") + index % 26) for index, one in enumerate(dict.fromkeys(others))}

    def of(self, records):
        return "".join(sorted({self.letters[origin(one)] for one in records if origin(one) in self.letters}))

    def notes(self):
        return [f"{letter}: of another launch, {run}, commit {commit}." for (run, commit), letter in self.letters.items()]


SECTIONS = (Section(4, "cases", "Every case", "Every case", "report/page/cases.html",
                    lambda page: list(tables(page.sessions, page.letters, page.rows.add))),)
