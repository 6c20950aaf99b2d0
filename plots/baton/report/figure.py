# SPDX-License-Identifier: Apache-2.0
"""Draws one figure of records, or of a trace, as PNG and SVG.

A figure of records is the one that the page of ./run report has first of its kind, of the newest session of each file.
"""

import argparse
import collections
import pathlib

from baton import results, schema, style, traces, words
from baton.checks import PASSES
from baton.report import sessions
from baton.report.page import bars, charts, figures, lines, space_time

# `make` finds the charts of comparisons, `look` is the module that draws them, `bench` that of the records, `name` of the files.
Kind = collections.namedtuple("Kind", "about make look bench name")
KINDS = {"ranks": Kind("Time against ranks, one line a method.", charts.against_ranks, lines, "collective", "time_against_ranks"),
         "sizes": Kind("Time against the size of the state, one line a method.", charts.against_size, lines, "collective",
                       "time_against_size"),
         "layers": Kind("Where a layer's time goes, one bar a method: its local work, and what the exchange adds.", charts.layers, bars,
                        "operator", "operator_time")}
ASKED = ("ranks", "tokens", "heads", "d_k", "d_v", "state_bytes", "direction", "chunk", "groups", "rounds", "gate", "gates", "executor",
         "cadence")


def main(arguments):
    parser = argparse.ArgumentParser(prog="./run figure", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True, metavar=f"{'|'.join(KINDS)}|trace")
    for name, kind in KINDS.items():
        own = kinds.add_parser(name, help=kind.about, description=kind.about)
        own.add_argument("--results", nargs="+", required=True, metavar="FILE", help="records, JSON lines")
        which = own.add_argument_group("which records (default: all of the newest session)")
        which.add_argument("--names", type=lambda text: text.split(","), metavar="NAME,...")
        which.add_argument("--pass", choices=PASSES)
        schema.add_options(which, ASKED)
        own.set_defaults(draw=lambda options, kind=kind: draw(kind, options))
    own = kinds.add_parser("trace", help=space_time.ABOUT, description=space_time.ABOUT)
    own.add_argument("--trace", required=True, metavar="FILE", help="what a bench wrote with --trace")
    own.add_argument("--name", default="space_time", help="of the files (default: %(default)s)")
    own.add_argument("--between", nargs=2, type=float, metavar=("FROM", "TO"), help="only this time, in µs (default: the whole round)")
    own.set_defaults(draw=draw_trace)
    for own in kinds.choices.values():
        own.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    options = parser.parse_args(arguments)
    options.draw(options)


def draw(kind, options):
    found = sessions.read(options.results)
    for session in found:
        session.records = [one for one in session.records if one["bench"] == kind.bench and is_asked(one, options)]
    made = [(*one, session) for session in found for one in kind.make(session.comparisons)]
    if not made:
        raise results.ResultsError(f"{', '.join(options.results)}: nothing to draw, which takes two timed methods")
    _, chart, session = min(made, key=lambda one: figures.order(one[0], [one[1]]))
    left_out = kind.look.left_out(chart)
    drawn, _ = kind.look.draw(chart, kind.look.times(chart))
    style.add_heading(drawn, chart.title, "\n".join([chart.about, *[f"Not drawn: {words.names(left_out)}."] * bool(left_out),
                                                     f"Commit {', '.join(session.commits)}, session {session.name}."]))
    style.save(drawn, options.out, kind.name, bbox_inches="tight")


def is_asked(record, options):
    wanted = {key: getattr(options, key) for key in ("pass", *ASKED)}
    return record["name"] in (options.names or [record["name"]]) and all(
        value is None or record.get(key) == value for key, value in wanted.items())


def draw_trace(options):
    if options.between and not options.between[0] < options.between[1]:
        raise traces.TraceError("--between: FROM must be less than TO")
    one = traces.load(options.trace)
    if not one.spans:
        raise traces.TraceError(f"{options.trace}: no step to draw")
    style.save(space_time.draw(one, options.between), options.out, options.name)
