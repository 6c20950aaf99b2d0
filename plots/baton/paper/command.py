# SPDX-License-Identifier: Apache-2.0
"""The tables and figures of the papers, published, simulated and measured cells side by side, as one page.

Writes index.html, which stands alone, and one CSV a table. Numbers come from records and from
results/paper/ alone; a blank cell was neither published, simulated nor measured.
"""

import argparse
import pathlib

from baton import files
from baton.paper import figures, findings, html, published, sources
from baton.paper.page import Page, Table, as_csv, blocks
from baton.paper.sections import SECTIONS


def main(arguments):
    options = options_of(arguments)
    found = sources.load(options.simulated, options.machines, options.published, options.local)
    page = Page("Sequence parallelism of linear attention: what its papers say, beside what is simulated and measured here",
                lead(found), [section(found) for section in SECTIONS], list(findings.findings_of(found)))
    files.write(options.out, dict(map(as_csv, blocks(page, Table))))
    pictures = figures.draw_all(page, options.out)
    files.write(options.out, {"index.html": html.page(page, pictures)})
    print(f"Page: {options.out}/index.html, with one CSV a table beside it")


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="baton paper", description=__doc__.splitlines()[0])
    parser.add_argument("--simulated", type=pathlib.Path, required=True, metavar="DIR",
                        help="records of simulations.py")
    parser.add_argument("--machines", type=pathlib.Path, default=sources.RESULTS, metavar="DIR",
                        help="a folder of records a machine (default: results/)")
    parser.add_argument("--local", action="store_true", help="show the folder `local` of the machines too")
    parser.add_argument("--published", type=pathlib.Path, default=published.FOLDER, metavar="DIR")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    return parser.parse_args(arguments)


def lead(found):
    topologies = sorted({record["topology"] for record in found.simulated})
    commits = sorted({record["commit"] for record in found.simulated})
    newest = max(record["time"] for record in found.simulated)
    machines = [machine for machine, measured in found.measured.items() if measured]
    return [
        "How to read this page: every cell is **published**, **simulated**, **measured**, **counted** or **derived** from "
        "such cells, and no number mixes them. A small letter leads to the source below its table: machine, commit and "
        "launch, topology, or where a published cell was read. Cells of another launch than their row bear a letter of "
        "their own.",
        f"Simulated cells stand on {', '.join(f'`{name}`' for name in topologies)}: `topologies/*.json` "
        "name the source of every figure, and none is fitted to a table on this page except in `fitted-*`, "
        "which the test of prediction makes, and the link's rate of `pcie-4xa10`. They come of the very schedules that real "
        "executors run, "
        f"in virtual time: deterministic, one round. Commit {', '.join(commits)}, {newest[:10]}. Measured cells are medians "
        f"of rounds, each the slowest rank's, of {', '.join(f'`results/{name}`' for name in machines) or 'no machine yet'}. "
        "Published cells are copied from `results/paper/*.csv`; those of ZeCO are second-hand. A cell that nobody "
        "published is blank."]

