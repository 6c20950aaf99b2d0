# SPDX-License-Identifier: Apache-2.0
"""Time against ranks, one line a method: the median and its 95 % interval.

Writes time_against_ranks.png and .svg. Methods measured at a single rank count make no line and stay out,
unless no method has more. Of more methods than a figure has room for, the papers' and the fastest at the most ranks are
drawn. Simulated records are drawn only if none are measured, or if their executor is asked for, and are called so.
"""

import collections

import matplotlib.ticker

from baton import looks, results, schema, style
from baton.figures import captions, launches

# The scale is logarithmic only if times differ by this factor.
LOG_FROM_RATIO = 20
SETTING = ("heads", "d_k", "d_v", "state_bytes", "direction", "executor", "cadence")
PAPERS = ("all_scan", "ring_scan", "all_gather_scan")  # ZeCO, LASP-1 and LASP-2


def main(options):
    asked = {key: getattr(options, key) for key in SETTING}
    timed = [record for record in results.newest(results.load(options.results, "collective"))
             if results.why_no_time(record) is None]
    records = results.widest(results.matching(timed, **asked), "ranks", "ranks_per_node")
    lines = lines_by_method(records, options.names)
    if not lines:
        raise results.ResultsError(f"{', '.join(options.results)}: no timed record to draw")

    style.save(draw(room_for(lines), subtitle(records, lines)), options.out, "time_against_ranks")


def add_options(parser):
    parser.add_argument("--results", nargs="+", required=True, metavar="FILE", help="records, JSON lines")
    which = parser.add_argument_group("which records (default: the newest setting of those with most points)")
    which.add_argument("--names", type=lambda text: text.split(","), metavar="NAME,...")
    schema.add_options(which, SETTING)


def lines_by_method(records, names):
    """{method: its records by rising rank count}."""
    lines = collections.defaultdict(list)
    for (method, _), record in sorted(results.points(records, lambda one: (results.method(one), one["ranks"])).items()):
        if names is None or record["name"] in names:
            lines[method].append(record)
    longer = {method: line for method, line in lines.items() if len(line) > 1}
    return longer or dict(lines)


def room_for(lines):
    """Returns the lines of the papers' methods and of the fastest at their most ranks, at most style.MOST_LINES."""
    order = sorted(lines, key=lambda method: (method not in PAPERS, -lines[method][-1]["ranks"],
                                              lines[method][-1]["median_seconds"]))
    chosen = set(order[:style.MOST_LINES])
    return {method: line for method, line in lines.items() if method in chosen}


def subtitle(records, lines):
    newest = max(records, key=lambda record: record["time"])
    machine, *setting = captions.describe(newest)
    statistic = "one round in virtual time" if results.is_simulated(newest) else (
        f"median of {newest['rounds']} rounds, each the slowest rank's, with its 95 % interval")
    drawn = room_for(lines)
    left_out = [f"{len(drawn)} of {len(lines)} methods: the papers' and the fastest"] * (len(drawn) < len(lines))
    crowded = [text] if (text := captions.crowded_ranks(records)) else []
    return "\n".join([machine, ", ".join(setting), "; ".join([statistic, *left_out]), *crowded,
                      origin(drawn).label("filled marks")])


def origin(lines):
    return launches.Launches([record for line in lines.values() for record in line])


def draw(lines, subtitle_text):
    figure, axes = style.subplots((8, 5))
    ends, of_launches = [], origin(lines)
    for index, (method, records) in enumerate(lines.items()):
        # Neighbours stand a little apart, so that one interval does not hide another.
        shift = 2 ** (0.008 * (index - (len(lines) - 1) / 2))
        draw_line(axes, records, shift, of_launches)
        ends.append((records[-1]["ranks"] * shift, records[-1]["median_seconds"] * 1e3, method,
                     looks.look(records[-1]["name"]).colour))
    shape_axes(axes, lines)
    style.label_lines(axes, ends)
    kind = captions.kind_word([record for line in lines.values() for record in line])
    style.add_titles(figure, axes, "Time against ranks" + (", simulated" if kind == "simulated" else ""), subtitle_text)
    return figure


def draw_line(axes, records, shift, of_launches):
    colour, marker = looks.look(records[0]["name"])
    middles = [record["median_seconds"] * 1e3 for record in records]
    lows = [m - record["ci95_seconds"][0] * 1e3 for m, record in zip(middles, records)]
    highs = [record["ci95_seconds"][1] * 1e3 - m for m, record in zip(middles, records)]
    places = [record["ranks"] * shift for record in records]
    axes.errorbar(places, middles, yerr=[lows, highs], color=colour, marker=marker, markersize=6, linewidth=1.8, capsize=4,
                  elinewidth=1.2)
    style.hollow(axes, [(place, middle) for place, middle, record in zip(places, middles, records)
                        if of_launches.is_elsewhere(record)], colour, marker, 6)


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

