# SPDX-License-Identifier: Apache-2.0
"""Layers of the model of ZeCO's tables 5 and 6 as measured, on every machine that has records of them."""

from baton.paper import cells, local_measurements, settings
from baton.paper.cells import Row, digits
from baton.paper.page import Table
from baton.paper.sources import timed_cells

MODEL = settings.flags("zeco-table6")["model"]
# Other readings of what the paper says of its model, which is what machines here measured too.
OTHER_MODELS = ("zeco-1b-h128", "gla-1b", "gla-1b-h16")
LAYERS = 20  # of the paper's model
LINES = {"dp": "no exchange", "split": "without its exchange", "full": "whole"}


def tables(sources, of_tables):
    """Yields a table of measured steps for each of {number: tokens}."""
    for number, tokens in of_tables.items():
        groups = list(measured(sources, tokens, settings.flags(settings.table(number))["rounds"]))
        columns = sorted({record["ranks"] for *_, records in groups for record in records})
        if groups:
            yield Table(f"zeco_table{number}_measured", f"Table {number}, measured: a step forward and backward, ms",
                        [str(ranks) for ranks in columns], list(rows(groups, columns)),
                        ["Ranks in the head of each column. Sizes that are less than the table's stand in the row.",
                         f"Tokens/s of {LAYERS} layers is arithmetic: a rank's tokens over {LAYERS} times the measured layer."])


def measured(sources, tokens, rounds):
    """Yields (machine, model, words, records) of the readings of the paper's model."""
    for model in (MODEL, *OTHER_MODELS):
        for machine in sources.measured:
            for label, records in local_measurements.groups(sources, tokens, machine, bench="model", model=model, rounds=rounds, beside=""):
                yield machine, model, label, records


def rows(groups, columns):
    for machine, model, label, records in groups:
        for layers in sorted({record["layers"] for record in records}):
            of_size = [record for record in records if record["layers"] == layers]
            where = label + local_measurements.smaller(layers, LAYERS, "layers")
            for name, line in dict.fromkeys((record["name"], record["line"]) for record in of_size):
                found = timed_cells([one for one in of_size if (one["name"], one["line"]) == (name, line)], columns, machine)
                yield Row(f"`{model}`, `{name}`", f"{where}, {LINES[line]}", found)
                yield Row("", f"derived: tokens/s of {LAYERS} layers", [
                    cell and speed(of_size[0]["tokens"] * layers / LAYERS / (1e-3 * float(cell.value))) for cell in found])


def speed(value):
    return cells.derived(value, digits(value), "tokens/s", "tokens / step")
