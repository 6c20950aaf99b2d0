# SPDX-License-Identifier: Apache-2.0
"""What NCCL's calls take on the systems whose times NVIDIA published, beside what the topologies predict."""

import collections
import statistics

from baton import captions
from baton.paper import cells
from baton.paper.cells import PUBLISHED, SIMULATED, Cell, Row
from baton.paper.page import Figure, Section, Table, Text
from baton.predict.cells import NATIVES
from baton.predict.held_out import FITTED, FITTED_GPUS, LEFT_OUT, MORE_GPUS, PREDICTED

TITLE = "NCCL's calls, published and predicted"
SOURCE = "aiconfigurator-core 0.12.0, NVIDIA, nccl-tests, one number a cell, unverified"
QUANTITIES = ("cells", "fitted: median error, %", "fitted: worst, %", "left out: median error, %", "left out: worst, %")

# A place is (system, native, GPUs, bytes).
Known = collections.namedtuple("Known", "published predicted")


def section(sources):
    known = Known(published_cells(sources), predicted_cells(sources))
    if not known.published or not known.predicted:
        return Section(TITLE, [Text("The published cells or their predictions are missing.")])
    return Section(TITLE, [
        Text(f"NVIDIA published what NCCL's calls take on {' and '.join(map(str, FITTED_GPUS))} GPUs of eight systems. The "
             "topologies have curves that were **fitted** to these cells, and docs/topologies.md says in which form. A cell "
             "is **left out** where the prediction comes of a fit that has not seen it: every second size of each call is "
             f"predicted from the other sizes. For {MORE_GPUS} GPUs the topologies have **predictions** alone. No cell of so "
             "many was read, so nothing here says how good they are."),
        summary(known), figure(known), *tables(known)])


def published_cells(sources):
    return {(row["system"], NATIVES[row["collective"]], int(row["gpus"]), int(row["total_bytes"])):
            Cell(cells.digits(float(row["microseconds"])), row["microseconds"], "us", PUBLISHED,
                 f"{SOURCE}: {row['device']}, NCCL {row['nccl']}")
            for row in sources.published.get("nccl_cells", ()) if row["collective"] in NATIVES}


def predicted_cells(sources):
    """Returns {form: {place: cell}}."""
    found = collections.defaultdict(dict)
    for row in sources.library:
        place = (row["system"], row["native"], int(row["gpus"]), int(row["total_bytes"]))
        how = ", fitted without this size" if row["form"] == LEFT_OUT else ""
        found[row["form"]][place] = Cell(cells.digits(float(row["microseconds"])), row["microseconds"], "us", SIMULATED,
                                         f"topology {row['topology']}{how}", note=row["protocol"])
    return found


def errors(known, form, system="", native=""):
    """Returns the errors in percent of the cells of a form, by their places."""
    return {place: abs(100 * (float(cell.value) / float(known.published[place].value) - 1))
            for place, cell in known.predicted[form].items()
            if place in known.published and place[0].startswith(system) and place[1].startswith(native)}


# --- The blocks -----------------------------------------------------------------------------------------


def summary(known):
    systems = list(dict.fromkeys(place[0] for place in known.published))
    natives = sorted({place[1] for place in known.published})
    rows = [summary_row(f"`{native}`, {system}", known, system, native) for native in natives for system in systems]
    rows += [summary_row(f"`{native}`, all", known, "", native) for native in natives]
    return Table("library_errors", "Errors of predicted calls", list(QUANTITIES), rows,
                 ["An error is |predicted / published - 1|. Fitted cells show how well the form holds the numbers, and cells "
                  "that were left out how well it holds what it has not seen between their sizes."])


def summary_row(label, known, system, native):
    found = {form: errors(known, form, system, native).values() for form in (FITTED, LEFT_OUT)}
    of = "predicted and published calls"
    numbers = [cells.derived(value, f"{value:.1f}", "%", of)
               for form in (FITTED, LEFT_OUT) for value in (statistics.median(found[form]), max(found[form]))]
    return Row(label, "derived", [cells.derived(len(found[FITTED]), str(len(found[FITTED])), "cells", of), *numbers])


def figure(known):
    points = [(place[1], float(known.published[place].value) * 1e-3, float(cell.value) * 1e-3)
              for place, cell in sorted(known.predicted[LEFT_OUT].items()) if place in known.published]
    return Figure("library_calls", "Calls that were left out, against published ones",
                  f"published: {SOURCE}; predicted: the topologies, fitted without the size", "published_calls", points,
                  "One mark a cell of 2 and 4 GPUs that the fit has not seen; the band is a fifth to either side.")


def tables(known):
    """Yields a table for each system, with a row for each call and number of GPUs."""
    for system in dict.fromkeys(place[0] for place in known.published):
        sizes = sorted({place[3] for place in known.published if place[0] == system})
        natives = sorted({place[1] for place in known.published if place[0] == system})
        yield Table(f"library_{system}", f"NCCL's calls on {system}, us, by bytes as nccl-tests counts them",
                    [captions.binary_size(size) for size in sizes],
                    [row for native in natives for row in rows_of(known, system, native, sizes)], [], True)


def rows_of(known, system, native, sizes):
    for gpus in FITTED_GPUS:
        places = [(system, native, gpus, size) for size in sizes]
        published = [known.published.get(place) for place in places]
        yield Row(f"`{native}`, {gpus} GPUs", "published", published)
        for form, words in ((FITTED, "predicted, fitted to it"), (LEFT_OUT, "predicted, left out of the fit")):
            predicted = [known.predicted[form].get(place) for place in places]
            yield Row("", words, predicted)
            yield Row("", "predicted / published − 1", list(map(cells.difference, predicted, published)))
    more = [known.predicted[PREDICTED].get((system, native, MORE_GPUS, size)) for size in sizes]
    if any(more):
        yield Row(f"`{native}`, {MORE_GPUS} GPUs", "predicted, nothing published here", more)
