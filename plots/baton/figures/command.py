# SPDX-License-Identifier: Apache-2.0
"""Draws one figure of records, or of a trace, as PNG and SVG."""

import argparse
import pathlib

from baton.figures import layers, ranks, sizes, trace

FIGURES = {"ranks": ranks, "sizes": sizes, "layers": layers, "trace": trace}


def main(arguments):
    parser = argparse.ArgumentParser(prog="./run figure", description=__doc__, allow_abbrev=False)
    kinds = parser.add_subparsers(required=True, metavar="|".join(FIGURES))
    for name, figure in FIGURES.items():
        about = figure.__doc__.splitlines()[0]
        own = kinds.add_parser(name, help=about.replace("%", "%%"), description=about)
        own.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
        figure.add_options(own)
        own.set_defaults(draw=figure.main)
    options = parser.parse_args(arguments)
    options.draw(options)
