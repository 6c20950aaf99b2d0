# SPDX-License-Identifier: Apache-2.0
"""What a run of the tests takes of a long list: a fifth that the commit draws, or with BATON_ALL_TESTS all of it."""

import os
import pathlib
import subprocess
import zlib


def drawn(items):
    if "BATON_ALL_TESTS" in os.environ:
        return list(items)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=pathlib.Path(__file__).parent, capture_output=True, check=False).stdout
    return [item for item in items if zlib.crc32(commit + repr(item).encode()) % 5 == 0]
