# SPDX-License-Identifier: Apache-2.0
"""Time of an exchange against the size of the state on GPUs, one line a method, beside what the wire allows.

Medians and their 95 % intervals at one rank count and kind of rounds, of the methods that exchanges.py has titles for; the
bound is that of All-Scan.
"""

import matplotlib.ticker

from baton import exchanges, looks, style, words


def lines(sweep):
    """[(method, its records by rising size)] of the methods with a title."""
    found = {one: [record for size in sweep.sizes() if (record := sweep.at(one, size))] for one in exchanges.TITLES}
    return [(one, records) for one, records in found.items() if records]


def draw(sweep):
    figure, axes = style.subplots((9, 5))
    axes.set(xscale="log", yscale="log")
    ends = [draw_line(axes, sweep, one, records) for one, records in lines(sweep)] + draw_bound(axes, sweep)
    shape_axes(axes, sweep)
    style.label_lines(axes, ends)
    return figure


def draw_line(axes, sweep, one, records):
    """Draws a method's line and returns its end for `style.label_lines`."""
    colour, marker = looks.look(one.name)
    narrow = {"linestyle": "--", "fillstyle": "none"} if looks.is_narrow(one.executor) else {}
    middles = [record["median_seconds"] * 1e6 for record in records]
    intervals = [[middle - record["ci95_seconds"][0] * 1e6 for middle, record in zip(middles, records)],
                 [record["ci95_seconds"][1] * 1e6 - middle for middle, record in zip(middles, records)]]
    axes.errorbar([record["state_bytes"] for record in records], middles, yerr=intervals, color=colour, marker=marker,
                  markersize=4.5, linewidth=1.6, capsize=2.5, elinewidth=1, **narrow)
    style.hollow(axes, [(record["state_bytes"], middle) for record, middle in zip(records, middles)
                        if sweep.elsewhere(record)], colour, marker, 4.5)
    return records[-1]["state_bytes"], middles[-1], exchanges.title(one), colour


def draw_bound(axes, sweep):
    records = [record for size in sweep.sizes() if (record := sweep.at(exchanges.FUSED, size))]
    if not records or records[0]["cadence"] != exchanges.BOUND_TIMING:
        return []
    bounds = [record["bound_seconds"] * 1e6 for record in records]
    axes.plot([record["state_bytes"] for record in records], bounds, color=style.INK, linestyle=":", linewidth=1.4)
    return [(records[-1]["state_bytes"], bounds[-1], "bound of All-Scan, fp32", style.INK)]


def shape_axes(axes, sweep):
    shown = [record for _, records in lines(sweep) for record in records]
    sizes = sorted({record["state_bytes"] for record in shown})
    axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
    medians = [record["median_seconds"] * 1e6 for record in shown]
    axes.set_ylim(min(medians) / 1.3, max(medians) * 1.3)
    axes.set_xticks(sizes, [words.binary_size(size) for size in sizes])
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.set_xlabel("state of a rank")
    axes.set_ylabel("time of a round, µs")
    style.add_grid(axes, "y")

