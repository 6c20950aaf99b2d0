# SPDX-License-Identifier: Apache-2.0
"""What the programs of plots/ and the page of the papers share."""

import pathlib
import sys

from lib.checks import ResultsError

BAD_INPUT = 2  # the exit code, as of the benches


def run(main):
    """Runs a program. An input or an output that cannot be used ends it with one line on standard error."""
    name = pathlib.Path(sys.argv[0]).stem
    try:
        main()
    except ResultsError as error:
        end(f"{name}: {error}")
    except OSError as error:
        end(f"{name}: {error.filename or 'output'}: {error.strerror or error}")


def end(line):
    print(line.encode("utf-8", "backslashreplace").decode("utf-8"), file=sys.stderr)
    sys.exit(BAD_INPUT)
