# SPDX-License-Identifier: Apache-2.0
"""Answers from records of the benches: which exchange is fastest, by how much, and what makes that less certain."""

import argparse
import pathlib
import shlex
import sys
import textwrap

from baton import program, words
from baton.report import answer, between, layout, sessions, trace_runs

USAGE = "./run report [--terminal] [--session S] [--out FILE] FILES_OR_FOLDERS..."
EPILOG = """The newest session of each file or folder is answered. A folder without *.jsonl stands for the folders below
it that have some. Of two sessions a sentence says which is faster where both measured the same. docs/reading_results.md says what the words of the answer mean."""


def main(arguments):
    options = arguments_of(arguments)
    found = sessions.read(options.paths, options.session)
    for session in found:
        session.interrupted = options.interrupted
    if options.traces:
        for bench, run in (one for session in found for one in trace_runs.wanted(session)):
            print(shlex.join([bench, *run]))
        return
    if options.out:
        from baton.report import page  # pylint: disable=import-outside-toplevel
        page.write(options.out, found)
        print(f"Page: {options.out}")
    if options.terminal or not options.out:
        print(program.printable(terminal(found), sys.stdout))


def arguments_of(given):
    parser = argparse.ArgumentParser(prog="./run report", usage=USAGE, description=__doc__, epilog=EPILOG,
                                     allow_abbrev=False)
    parser.add_argument("paths", nargs="+", metavar="FILES_OR_FOLDERS", help="files of records, or folders of *.jsonl")
    parser.add_argument("--terminal", action="store_true", help="print the answer (also without --out)")
    parser.add_argument("--session", metavar="S", help="answer this session, or all (default: the newest of each)")
    parser.add_argument("--interrupted", action="store_true", help="say that the run ended before its time, which no record "
                        "tells")
    parser.add_argument("--traces", action="store_true", help="print the runs that leave the traces which the page "
                        "shows, of the fastest and of the slowest, and end")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="write the page to this file")
    return parser.parse_args(given)


def hint(session):
    """Which older sessions the file or folder has."""
    if not session.others:
        return []
    return textwrap.wrap(f"{words.count(len(session.others), 'older session')} in {session.path}: add --session all, or --session "
                         f"'{session.others[0]}'.", layout.COLUMNS, break_on_hyphens=False)


def terminal(found):
    """The answers of all sessions; where there are several, each under the name of its records, and of two how they differ."""
    blocks, letters = [], ["A: ", "B: "] if len(found) == 2 else [""] * len(found)
    for letter, session in zip(letters, found):
        heading = [f"# {letter}{session.path}, session {session.name}"] if len(found) > 1 else []
        blocks.append("\n".join([*heading, *answer.lines(session), *hint(session)]))
    if len(found) == 2:
        blocks.append("\n".join(textwrap.wrap(between.sentence(*found), layout.COLUMNS, break_on_hyphens=False)))
    return "\n\n".join(blocks)

