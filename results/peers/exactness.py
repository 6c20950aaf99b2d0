# SPDX-License-Identifier: Apache-2.0
"""Whether a project's kernels compute everything. It is kept where the tables read it, in plots/baton/peers/kernels.py."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "plots"))

from baton.peers import kernels  # pylint: disable=wrong-import-position

of = kernels.exactness
