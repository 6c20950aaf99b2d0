# SPDX-License-Identifier: Apache-2.0
"""Fits the times of a library's calls to cells of few GPUs, in the form that a topology has them.

The simulator evaluates that form. Here are its unknowns alone, so no formula of it stands here: for each
protocol the seconds on the fewest GPUs, and what each further GPU adds, both at every size of a GPU's share. Both may
only rise with the size. docs/decisions/0040-times-of-a-library.md says why this form and not another one.
"""

import collections
import json
import pathlib
import statistics

import numpy
from scipy.optimize import lsq_linear

LIBRARY = json.loads(pathlib.Path(__file__).with_name("library.json").read_text(encoding="utf-8"))
SMOOTHNESS = 0.3  # both by leaving out one cell after the other of those with 2 and 4 GPUs
ROBUST_FROM = 0.03  # relative deviations above this one count less
ROUNDS = 8  # of the weights of outliers
MESSAGES = {"nccl_all_to_all"}  # calls of a message between each pair of GPUs; the others are rings
LEAST_BYTES = 2**16  # a share from which LL128 is worth while

# Seconds by `shares`: `few` on the fewest GPUs, `each` more for each further one.
Curves = collections.namedtuple("Curves", "shares few each")


def estimate(kind, protocol, gpus, share):
    base, step, rate = LIBRARY["kinds"][kind][protocol]
    return base + (gpus - 1) * (step + share / rate)


def protocol_of(kind, gpus, share):
    """Returns the protocol in which a cell was measured. None of those that are fitted has LL128."""
    return min((name for name in LIBRARY["kinds"][kind] if name != "LL128"),
               key=lambda name: estimate(kind, name, gpus, share))


def kind_of(cells):
    """Returns the kind of links: the slowest that is as fast as a ring was on the system."""
    reached = max(cell.bytes * (cell.gpus - 1) / cell.gpus / cell.seconds for cell in cells
                  if cell.call not in MESSAGES)
    rates = {name: protocols["Simple"][2] for name, protocols in LIBRARY["kinds"].items()}
    fast_enough = [name for name in rates if rates[name] >= reached]
    return min(fast_enough or [max(rates, key=rates.get)], key=rates.get)


def curves_of(cells):
    """Fits (gpus, share, seconds) of one protocol by least squares of relative deviations."""
    shares = sorted({share for _, share, _ in cells})
    few = min(gpus for gpus, _, _ in cells)
    count = len(shares)
    place = {share: i for i, share in enumerate(shares)}
    sums = numpy.zeros((len(cells), 2 * count))  # unknowns are the rises of both curves from share to share
    for row, (gpus, share, _) in enumerate(cells):
        sums[row, : place[share] + 1] = 1
        sums[row, count : count + place[share] + 1] = gpus - few
    seconds = numpy.array([cell[2] for cell in cells])
    smooth = smoothness(cells, shares)
    weights = 1 / seconds
    for _ in range(ROUNDS):
        rises = lsq_linear(numpy.vstack([sums * weights[:, None], smooth]),
                           numpy.concatenate([seconds * weights, numpy.zeros(len(smooth))]), bounds=(0, numpy.inf)).x
        deviation = (sums @ rises - seconds) / seconds
        weights = 1 / seconds / numpy.sqrt(1 + (deviation / ROBUST_FROM) ** 2)
    return Curves(shares, numpy.cumsum(rises[:count]), numpy.cumsum(rises[count:]))


def smoothness(cells, shares):
    """Returns the rows that ask a curve to go on with its slope."""
    count = len(shares)
    scale = numpy.maximum.accumulate(
        [statistics.median(seconds for _, share, seconds in cells if share == one) for one in shares])
    rows = []
    for first in (0, count):
        for k in range(2, count):
            row = numpy.zeros(2 * count)
            row[first + k] = SMOOTHNESS / scale[k]
            row[first + k - 1] = -row[first + k] * min(2, (shares[k] - shares[k - 1]) / (shares[k - 1] - shares[k - 2]))
            rows.append(row)
    return numpy.array(rows).reshape(-1, 2 * count)


def fitted(cells, call, kind):
    """Returns {protocol: Curves} of a call. Pairs of GPUs need no ring, so an all-to-all has one set of curves."""
    groups = collections.defaultdict(list)
    for cell in cells:
        if cell.call == call:
            share = cell.bytes / cell.gpus
            protocol = "messages" if call in MESSAGES else protocol_of(kind, cell.gpus, share)
            groups[protocol].append((cell.gpus, share, cell.seconds))
    curves = {protocol: curves_of(group) for protocol, group in groups.items()}
    if "LL128" in LIBRARY["kinds"][kind] and {"LL", "Simple"} <= curves.keys():
        curves["LL128"] = ll128(curves["LL"], curves["Simple"], LIBRARY["kinds"][kind])
    return curves


def ll128(small, large, kind):
    """Derives LL128's curves, which no cell of few GPUs has."""
    shares = [share for share in sorted({*small.shares, *large.shares}) if share >= LEAST_BYTES]
    floor = [float(numpy.interp(LEAST_BYTES, small.shares, curve)) for curve in (small.few, small.each)]
    step = kind["LL128"][1] - kind["LL"][1]
    rate = LIBRARY["ll128_share"] * large.shares[-1] / large.each[-1]
    few, each = (numpy.array([start + step + share / rate for share in shares]) for start in floor)
    return Curves(shares, few, each)


def section(cells, kind, origin):
    """Returns the section `natives` of a topology: the calls that `cells` have, fitted."""
    return {call: call_section(cells, call, kind, origin) for call in sorted({cell.call for cell in cells})}


def call_section(cells, call, kind, origin):
    here = [cell for cell in cells if cell.call == call]
    few, more = min(cell.gpus for cell in here), max(cell.gpus for cell in here)
    start = min(LIBRARY["start_seconds"]["messages" if call in MESSAGES else "ring"],
                *(cell.seconds / cell.gpus for cell in here))
    protocols = {}
    for name, curves in sorted(fitted(cells, call, kind).items()):
        base, step, rate = LIBRARY["kinds"][kind].get(name, (0, 0, 1e18))
        protocols[name] = {"base_seconds": base, "step_seconds": step, "bytes_per_second": rate,
                           "few": points(curves.shares, curves.few),
                           "more": points(curves.shares, curves.few + (more - few) * curves.each)}
    notes = [f"few, more: fitted to {len(here)} cells of {few} to {more} GPUs, {origin}"]
    if "LL128" in protocols:
        notes.append(LIBRARY["ll128_source"])
    if call not in MESSAGES:
        notes.append(f"base_seconds, step_seconds, bytes_per_second: published, {LIBRARY['source']}, kind {kind}")
    return {"few_ranks": few, "more_ranks": more, "start_seconds": float(f"{start:.4g}"), "protocols": protocols,
            "source": "; ".join([*notes, LIBRARY["start_source"]]) + "."}


def points(shares, seconds):
    """Returns a curve of a topology, in which the last point must be later than the one before."""
    rounded = [float(f"{value:.5g}") for value in seconds]
    if rounded[-1] <= rounded[-2]:
        rounded[-1] = float(f"{rounded[-2] * 1.0001:.5g}")
    return [{"bytes": share, "seconds": value} for share, value in zip(shares, rounded)]
