# SPDX-License-Identifier: Apache-2.0
"""Time against ranks, one line a method: the median and its 95 % interval.

Writes time_against_ranks.png and .svg. Methods measured at a single rank count make no line and stay out,
unless no method has more.
"""

import argparse
import collections
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend must be chosen first)
import matplotlib.ticker  # noqa: E402

import results  # noqa: E402

# Okabe and Ito's colours and a grey, told apart by colour-blind readers; markers tell them apart in grey too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK = "#333333"

# Logarithmic time is for readers who must compare across orders of magnitude, and only then.
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

    options.out.mkdir(parents=True, exist_ok=True)
    figure = draw(lines, subtitle(records))
    for suffix in ("png", "svg"):
        figure.savefig(options.out / f"time_against_ranks.{suffix}", dpi=160,
                       metadata={"Date": None} if suffix == "svg" else None)
    print(f"Figure: {options.out}/time_against_ranks.png, {options.out}/time_against_ranks.svg")


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
    plt.rcParams.update({"svg.hashsalt": "baton", "font.size": 10, "text.color": INK, "axes.edgecolor": INK,
                         "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK})
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    ends = []
    for index, (method, records) in enumerate(lines.items()):
        colour = COLOURS[index % len(COLOURS)]
        # Neighbours stand a little apart, so that one interval does not hide another.
        shift = 2 ** (0.008 * (index - (len(lines) - 1) / 2))
        draw_line(axes, records, shift, colour, MARKERS[index % len(MARKERS)])
        ends.append((records[-1]["median_seconds"] * 1e3, method, colour))
    shape_axes(axes, lines)
    label_ends(axes, ends)
    axes.set_title(subtitle_text, loc="left", fontsize=8)
    title = figure.suptitle("Time against ranks", ha="left", fontsize=13, fontweight="bold")
    figure.draw_without_rendering()
    title.set_x(axes.get_position().x0)
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
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def label_ends(axes, ends):
    """Names each line at its right end, moved apart where two would overlap."""
    to_axes = axes.transData + axes.transAxes.inverted()
    labels = sorted((to_axes.transform((1, value))[1], name, colour) for value, name, colour in ends)
    lowest = 0.0
    for height, name, colour in labels:
        height = max(height, lowest)
        axes.text(1.01, height, name, color=colour, transform=axes.transAxes, va="center", fontweight="bold")
        lowest = height + 0.055


if __name__ == "__main__":
    try:
        main()
    except results.ResultsError as error:
        sys.exit(f"time_against_ranks: {error}")
