# SPDX-License-Identifier: Apache-2.0
"""Fits a machine to the published 8- and 16-GPU cells of ZeCO's table 2 alone, and writes it as topologies.

The model is the alpha-beta formula that the simulator keeps to on a uniform network: a call costs a constant, a hop
costs its bytes, and every hop costs the same. An all-gather around the ring makes P-1 hops of a map, All-Scan
P-2+K hops of a block. Two cells of a collective give its two numbers exactly; K is the whole number by which the two
collectives' hops differ. A third fit has one call and one hop for both collectives, by least squares.
"""

import collections
import json

from baton import files, results
from baton.paper import settings
from baton.paper.published import FOLDER, load_cells

PAPER = FOLDER / "zeco_table2.csv"
GATHER, SCAN = "AllGather (LASP-2)", "All-Scan (ZeCO)"
FITTED_RANKS = (8, 16)

# The paper's shape: 32 heads of 128 x 128 in fp32, and a decay for each of its rows.
ASKED = settings.flags("zeco-table2")
HEADS, WIDTH, ELEMENT_BYTES = ASKED["heads"], ASKED["d-k"], 4
STATE_BYTES = HEADS * WIDTH * WIDTH * ELEMENT_BYTES
MAP_BYTES = STATE_BYTES + HEADS * WIDTH * ELEMENT_BYTES

GATHER_FIT, SCAN_FIT, COMMON_FIT = "fitted-all-gather", "fitted-all-scan", "fitted-both"

# A machine on which a call costs `call` seconds and a link moves `rate` bytes a second, fitted to messages of
# `least_bytes` and more; `residual` as in a topology.
Fit = collections.namedtuple("Fit", "name call rate least_bytes residual")


def write(folder, path=PAPER):
    """Writes the topologies of the fits and returns K."""
    blocks, fits = fit(fitted_cells(path))
    files.write(folder, {f"{one.name}.json": json.dumps(topology(one), indent=2) + "\n" for one in fits})
    return blocks


def fitted_cells(path=PAPER):
    """Returns {(title, ranks): seconds} of the cells that the fit may see."""
    published = {(row["method"], int(row["gpus"])): row["value"]
                 for row in load_cells(path, texts=("method", "value"), numbers=("gpus",))}
    wanted = [(title, ranks) for title in (GATHER, SCAN) for ranks in FITTED_RANKS]
    missing = [f"{title} on {ranks} GPUs" for title, ranks in wanted if (title, ranks) not in published]
    if missing:
        raise results.ResultsError(f"{path}: no cell for {', '.join(missing)}")
    try:
        return {place: float(published[place]) * 1e-3 for place in wanted}
    except ValueError as error:
        raise results.ResultsError(f"{path}: value: expected milliseconds: {error}") from error


def fit(cells):
    """Returns K and the machines: one for each collective, and one for both."""
    slopes = {title: slope(cells, title) for title in (GATHER, SCAN)}
    blocks = round(slopes[GATHER] * STATE_BYTES / MAP_BYTES / slopes[SCAN])
    block_bytes = STATE_BYTES / blocks
    first = FITTED_RANKS[0]
    gather = Fit(GATHER_FIT, cells[GATHER, first] - (first - 1) * slopes[GATHER], MAP_BYTES / slopes[GATHER],
                 MAP_BYTES, 0)
    scan = Fit(SCAN_FIT, cells[SCAN, first] - (first - 2 + blocks) * slopes[SCAN], block_bytes / slopes[SCAN],
               round(block_bytes), 0)
    return blocks, [gather, scan, common_fit(cells, blocks)]


def slope(cells, title):
    """Returns the seconds of a hop."""
    first, second = FITTED_RANKS
    return (cells[title, second] - cells[title, first]) / (second - first)


def hop_bytes(title, ranks, blocks):
    """Returns the bytes that pass one after the other: the time without the call, times the rate."""
    return (ranks - 1) * MAP_BYTES if title == GATHER else (ranks - 2 + blocks) * STATE_BYTES / blocks


def common_fit(cells, blocks):
    """Fits one call and one rate to all four cells, by least squares of the relative errors."""
    # Each row is (1, bytes) / seconds, and should give 1.
    rows = [(1 / seconds, hop_bytes(title, ranks, blocks) / seconds) for (title, ranks), seconds in cells.items()]
    aa, ab, bb = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = (sum(row[i] for row in rows) for i in (0, 1))
    determinant = aa * bb - ab * ab
    call, pace = (a * bb - b * ab) / determinant, (aa * b - ab * a) / determinant
    worst = max(abs(call * row[0] + pace * row[1] - 1) for row in rows)
    return Fit(COMMON_FIT, call, 1 / pace, round(STATE_BYTES / blocks), worst)


# --- The topology ---------------------------------------------------------------------------------------


def topology(one):
    """Returns a topology with one link for every hop: two cells cannot separate links within and between nodes."""
    of = "published cells of ZeCO's table 2 (second-hand) at 8 and 16 GPUs"
    by = f"fitted to the {of}: {one.call * 1e6:.1f} us a call, {one.rate * 1e-9:.1f} GB/s a hop"
    link = {"latency_seconds": 0, "overhead_seconds": 0, "bytes_per_second": one.rate, "moved_by": "wire",
            "source": f"{by}; latency and overhead are in the rate"}
    rate = {"launch_seconds": 0, "flops_per_second": 1e18, "bytes_per_second": 1e18,
            "source": "assumed free: what it costs is in the fitted hop"}
    return {"name": one.name, "description": f"256 GPUs on links that are all alike, {by}.",
            "machine": {"nodes": 1, "ranks_per_node": 256, "round_seconds": one.call,
                        "source": f"ranks_per_node: the paper's 256 GPUs, as one node. round_seconds: {by}."},
            "links": {"intra_node": link},
            "device": {"kernel": rate, "combine": rate,
                       "copy": {key: value for key, value in rate.items() if key != "flops_per_second"}},
            "calibration": {"stands_on": of, "most_ranks": FITTED_RANKS[-1], "least_bytes": one.least_bytes,
                            "most_bytes": MAP_BYTES, "residual": one.residual}}

