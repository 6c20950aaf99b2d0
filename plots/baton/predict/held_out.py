# SPDX-License-Identifier: Apache-2.0
"""What the topologies predict for the published cells of a library's calls, fitted, left out, and beyond them.

A cell is fitted if its topology was made of it. It is left out if the prediction comes of a fit that has not seen it:
every second size of each call is predicted from the others. Cells of more GPUs than were published are predicted alone.
"""

import csv
import io
import json
import pathlib
import tempfile

from baton import files
from baton.predict import cells, times

ROOT = pathlib.Path(__file__).resolve().parents[3]
CELLS = ROOT / "results" / "paper" / "nccl_cells.csv"
NAME = "library_times.csv"
FITTED_GPUS = (2, 4)
MORE_GPUS = 8
FITTED, LEFT_OUT, PREDICTED = FORMS = ("fitted", "left out", "predicted")
COLUMNS = ("system", "topology", "form", "native", "protocol", "gpus", "total_bytes", "microseconds")

# The topology of each system of the cells.
TOPOLOGIES = {"a100_sxm": "dgx-a100-8x8", "h100_sxm": "dgx-h100-8", "h200_sxm": "hgx-h200-8", "b200_sxm": "b200-8",
              "gb200": "gb200-4", "gb300": "gb300-4", "l40s": "l40s-8", "rtx_pro_6000_server": "rtx-pro-6000-8"}


def write(programs, folder):
    """Writes the predictions of all systems to a CSV in the folder. Throws ResultsError."""
    known = cells.read(CELLS)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for system, topology in TOPOLOGIES.items():
        writer.writerows((system, topology, *row) for row in rows(programs, known, system, topology))
    files.write(folder, {NAME: text.getvalue()})


def rows(programs, known, system, name):
    """Yields (form, native, protocol, gpus, bytes, microseconds) of a system."""
    path = ROOT / "topologies" / f"{name}.json"
    topology = json.loads(path.read_text(encoding="utf-8"))
    own = cells.of_system(known, system, FITTED_GPUS)
    sizes = sorted({cell.bytes for cell in own})
    forms = [(FITTED, path, FITTED_GPUS, sizes)]
    if topology["machine"]["ranks_per_node"] >= MORE_GPUS:
        forms.append((PREDICTED, path, (MORE_GPUS,), sizes))
    with tempfile.TemporaryDirectory() as folder:
        for half in (0, 1):
            without = pathlib.Path(folder) / f"{half}.json"
            without.write_text(json.dumps(refitted(topology, [cell for cell in own if cell.bytes not in sizes[half::2]])),
                               encoding="utf-8")
            forms.append((LEFT_OUT, without, FITTED_GPUS, sizes[half::2]))
        for form, machine, gpus, asked in forms:
            found = times.of_calls(programs, machine, sorted(topology["natives"]), gpus, asked)
            for (native, count, size), (seconds, protocol) in found.items():
                yield form, native, protocol, count, size, f"{seconds * 1e6:.3f}"


def refitted(topology, seen):
    from baton.predict import fitting  # needs scipy

    return {**topology, "natives": fitting.section(seen, fitting.kind_of(seen), "for a test")}
