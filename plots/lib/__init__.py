# SPDX-License-Identifier: Apache-2.0
"""What the programs of plots/ and the page of the papers share."""

import pathlib
import sys

from lib.results import ResultsError


def run(main):
    """Runs a program. An input that cannot be used ends it with one line on standard error."""
    try:
        main()
    except ResultsError as error:
        sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {error}")
