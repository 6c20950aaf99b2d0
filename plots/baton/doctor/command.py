# SPDX-License-Identifier: Apache-2.0
"""Is this machine fit to measure on, and which link or rank is slow?"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys

from baton import checks, program
from baton.doctor import judges, report

PROGRAM = "doctor_readings"
FIT, NOT_FIT = 0, 1
EPILOG = """Exit code 0: fit, 1: not fit, 2: wrong usage. Started by your own mpirun or srun, once for each rank, it examines
those ranks. docs/doctor.md has what is read and what is a finding."""


class Refused(checks.ResultsError):
    """No readings can be taken; the text says why in one line."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(f"{message}; try ./run doctor --help")


def main(arguments):
    options = arguments_of(arguments)
    if options.check:
        return FIT
    if options.version:
        print(output_of(options.programs / PROGRAM, ["--version"])[0], end="")
        return FIT
    words = [word for flag in ("ranks", "executors", "repeats") if (value := getattr(options, flag)) is not None
             for word in (f"--{flag}", str(value))]
    written, code = output_of(options.programs / PROGRAM, words)
    if not written:  # another rank writes the readings, or the program has said why there are none
        return code
    readings = json.loads(written)
    findings = judges.findings_of(readings)
    fit = judges.is_fit(findings) and code == 0
    if options.json:
        print(json.dumps({"fit": fit, "findings": [one._asdict() for one in findings], "readings": readings}, indent=2))
    else:
        print(program.printable(report.text(readings, findings), sys.stdout))
    return FIT if fit else NOT_FIT


def arguments_of(given):
    parser = Parser(prog="./run doctor", description=__doc__, epilog=EPILOG, allow_abbrev=False)
    parser.add_argument("--ranks", type=int, metavar="N", help="ranks (default: one a core, at most 8, or one a GPU if there are more)")
    parser.add_argument("--executor", "--executors", dest="executors", metavar="NAME,...",
                        help="executors whose links are measured (default: those of mpi and nccl that can run)")
    parser.add_argument("--repeats", type=int, metavar="N", help="how often everything is read, 3 to 100 (default: 7)")
    parser.add_argument("--json", action="store_true", help="print the findings and all readings as JSON")
    parser.add_argument("--version", action="store_true", help="print the version and the commit")
    parser.add_argument("--programs", type=pathlib.Path, default="build/cpu/bin", metavar="DIR", help=f"where {PROGRAM} is")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # the arguments alone, before a build
    return parser.parse_args(given)


def output_of(path, words):
    """Runs a program. Returns what it wrote and its exit code. Throws Refused."""
    try:
        with subprocess.Popen([path, *words], stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
            # Ctrl-C reaches the program too. It ends its ranks, and then itself.
            signal.signal(signal.SIGINT, lambda *_: None)
            signal.signal(signal.SIGTERM, lambda *_: process.terminate())
            written = process.stdout.read()
    except OSError as error:
        raise Refused(f"cannot run {path}: {error.strerror}; ./run doctor builds it, and --programs says where it is") from error
    if process.returncode >= 0:
        return written, process.returncode
    print(f"doctor: {path} was ended by signal {-process.returncode}", file=sys.stderr)
    return written, 128 - process.returncode
