# SPDX-License-Identifier: Apache-2.0
"""The headers for softmax blocks by cuDNN are found where packages of a Python bring them."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FRONTEND, LIBRARY = "include/cudnn_frontend.h", "nvidia/cudnn/include/cudnn.h"


def said(headers, python="python3", variable=None):
    """What cmake/cudnn.cmake says if a Python of that name, in PATH or in the prefix that a variable names, has the headers."""
    with tempfile.TemporaryDirectory() as folder:
        packages = pathlib.Path(folder, "lib", "site-packages")
        for header in headers:
            (packages / header).parent.mkdir(parents=True, exist_ok=True)
            (packages / header).touch()
        stub = pathlib.Path(folder, "bin", python)
        stub.parent.mkdir()
        stub.write_text(f"#!/bin/sh\nprintf %s '{packages}'\n", encoding="utf-8")
        stub.chmod(0o755)
        unset = {"VIRTUAL_ENV", "CONDA_PREFIX", "CUDNN_ROOT", "CUDNN_FRONTEND_ROOT"}
        environment = {name: value for name, value in os.environ.items() if name not in unset}
        if variable:
            environment[variable] = folder
        else:
            environment["PATH"] = f"{stub.parent}:{environment['PATH']}"
        script = pathlib.Path(folder, "cmake", "cudnn.cmake")  # with no build folder beside it
        script.parent.mkdir()
        script.write_text((ROOT / "cmake/cudnn.cmake").read_text(encoding="utf-8"), encoding="utf-8")
        without_system = ("-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", "-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF")
        done = subprocess.run(["cmake", *without_system, "-P", script], env=environment, capture_output=True, text=True, timeout=120, check=True)
        return (done.stdout + done.stderr).replace(folder, "FOLDER")


class CudnnHeaders(unittest.TestCase):
    def test_both_of_one_python(self):
        for python, variable in (("python3", None), ("python", None), ("python3", "VIRTUAL_ENV"), ("python3", "CONDA_PREFIX")):
            text = said((FRONTEND, LIBRARY), python, variable)
            self.assertIn("by cuDNN too: FOLDER/lib/site-packages/include, FOLDER/lib/site-packages/nvidia/cudnn/include", text)

    def test_one_alone_is_not_enough(self):
        for headers in ((), (FRONTEND,), (LIBRARY,)):
            text = said(headers)
            if "cuDNN too" in text:
                self.skipTest("another Python of this machine has the other header")
            self.assertIn("by our own kernels alone: cudnn_frontend.h or cudnn.h was not found", text, headers)


if __name__ == "__main__":
    unittest.main()
