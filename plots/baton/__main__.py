# SPDX-License-Identifier: Apache-2.0
"""The commands of the package: `python3 -m baton COMMAND ...`, or this folder in place of `-m baton`, as ./run has it."""

import importlib
import os
import sys

if not __package__:  # it was named by its folder, which Python has put first; PYTHONPATH cannot name one with a colon
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from baton import program  # pylint: disable=wrong-import-position

# Where each command lies. Its `main` takes the words behind the command and returns the exit code, None for 0.
COMMANDS = {"report": "baton.report.command", "compare": "baton.compare.command", "advise": "baton.advise.command",
            "doctor": "baton.doctor.command", "simulate": "baton.paper.simulations", "measure": "baton.paper.measure",
            "paper": "baton.paper.command", "figure": "baton.report.figure", "predict": "baton.predict.command",
            "peers": "baton.peers", "grow": "baton.grow", "selfcheck": "baton.compare.selfcheck", "suite": "baton.suite",
            "arguments": "baton.arguments.command"}


def main():
    name, arguments = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if name not in COMMANDS:
        program.end(f"baton: unknown command '{name}'; known: {', '.join(COMMANDS)}")
    program.run(name, lambda: importlib.import_module(COMMANDS[name]).main(arguments))


if __name__ == "__main__":
    main()
