# SPDX-License-Identifier: Apache-2.0
"""Judges the simulator anew on all measured and published contests, in about three minutes, and keeps the findings."""

import argparse
import datetime
import pathlib

from baton import files
from baton.regret import contests, measured, published

HEAD = (
    "Made by `PYTHONPATH=plots python3 -m baton regret --programs build/cpu/bin` on {day}, of the records in results/,",
    "the tables in results/paper/ and what the simulator says of their rows. plots/baton/regret/contests.py says what",
    "the columns mean. Not judged: `xeon-64`, of whose records its topology was made; `two-cores`, whose calibration",
    "was not kept; TokenRing's table, to which a rate of its topology was fitted; exchanges of a delta rule, on machines",
    "without a topology; rows on a bf16 wire; settings of one method.")


def main(arguments):
    parser = argparse.ArgumentParser(prog="baton regret", description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True, metavar="DIR", help="where the benches are")
    options = parser.parse_args(arguments)
    found = []
    for sources, judged in ((measured.SOURCES, measured.of_source), (published.TABLES, published.of_table)):
        for source in sources:
            print(f"      {source[0]} on {source.topology}", flush=True)
            found += judged(source, options.programs)
    head = [line.format(day=datetime.date.today().isoformat()) for line in HEAD]
    files.write(contests.KEPT.parent, {contests.KEPT.name: contests.as_text(head, found)})
    print(contests.sentence(found))
