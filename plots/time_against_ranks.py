# SPDX-License-Identifier: Apache-2.0
"""Time against ranks, one line a method: the median and its 95 % interval.

Writes time_against_ranks.png and .svg. Methods measured at a single rank count make no line and stay out,
unless no method has more.
"""

import argparse
import collections
import pathlib

import matplotlib.ticker

import lib
from lib import results, style
from lib.style import plt

# The scale is logarithmic only if times differ by this factor.
LOG_FROM_RATIO = 20


def main():
    options = parse_arguments()
    asked = {key: getattr(options, key)
             for key in ("heads", "d_k", "d_v", "direction", "executor", "cadence", "state_bytes")}
    timed = [record for record in results.newest(results.load(options.results))
             if results.why_no_time(record) is None]
    records = results.widest_setting(results.matching(timed, **asked))
    lines = lines_by_method(records, options.names)
    if not lines:
        raise results.ResultsError(f"{', '.join(options.results)}: no timed record to draw")

    style.save(draw(lines, subtitle(records)), options.out, "time_against_ranks")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", nargs="+", required=True, metavar="FILE", help="records, JSON lines")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    which = parser.add_argument_group("which records (default: the newest setting of those with most points)")
    which.add_argument("--names", type=lambda text: text.split(","), metavar="NAME,...")
    for name in ("heads", "d-k", "d-v", "state-bytes"):
        which.add_argument(f"--{name}", type=int)
    for name in ("direction", "executor", "cadence"):
        which.add_argument(f"--{name}")
    return parser.parse_args()


def lines_by_method(records, names):
    """{method: its records by rising rank count}."""
    lines = collections.defaultdict(list)
    for (method, _), record in sorted(results.points(records).items()):
        if names is None or record["name"] in names:
            lines[method].append(record)
    longer = {method: line for method, line in lines.items() if len(line) > 1}
    return longer or dict(lines)


def subtitle(records):
    newest = max(records, key=lambda record: record["time"])
    machine, *setting = results.describe(newest)
    statistic = f"median of {newest['rounds']} rounds, each the slowest rank's, with its 95 % interval"
    return "\n".join([machine, ", ".join(setting), statistic])


def draw(lines, subtitle_text):
    style.use()
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    ends = []
    for index, (method, records) in enumerate(lines.items()):
        colour = style.COLOURS[index % len(style.COLOURS)]
        # Neighbours stand a little apart, so that one interval does not hide another.
        shift = 2 ** (0.008 * (index - (len(lines) - 1) / 2))
        draw_line(axes, records, shift, colour, style.MARKERS[index % len(style.MARKERS)])
        ends.append((records[-1]["median_seconds"] * 1e3, method, colour))
    shape_axes(axes, lines)
    label_ends(axes, ends)
    style.add_titles(figure, axes, "Time against ranks", subtitle_text)
    return figure


def draw_line(axes, records, shift, colour, marker):
    middles = [record["median_seconds"] * 1e3 for record in records]
    lows = [m - record["ci95_seconds"][0] * 1e3 for m, record in zip(middles, records)]
    highs = [record["ci95_seconds"][1] * 1e3 - m for m, record in zip(middles, records)]
    axes.errorbar([record["ranks"] * shift for record in records], middles, yerr=[lows, highs],
                  color=colour, marker=marker, markersize=6, linewidth=1.8, capsize=4, elinewidth=1.2)


def shape_axes(axes, lines):
    records = [record for line in lines.values() for record in line]
    medians = [record["median_seconds"] for record in records]
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({record["ranks"] for record in records}))
    axes.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    if max(medians) > LOG_FROM_RATIO * min(medians):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel("ranks")
    axes.set_ylabel("time of a round, ms")
    style.add_grid(axes, "y")


def label_ends(axes, ends):
    """Names each line at its right end. Names that would overlap move apart."""
    to_axes = axes.transData + axes.transAxes.inverted()
    labels = sorted((to_axes.transform((1, value))[1], name, colour) for value, name, colour in ends)
    lowest = 0.0
    for height, name, colour in labels:
        height = max(height, lowest)
        axes.text(1.01, height, name, color=colour, transform=axes.transAxes, va="center", fontweight="bold")
        lowest = height + 0.055


if __name__ == "__main__":
    lib.run(main)
