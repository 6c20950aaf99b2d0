# SPDX-License-Identifier: Apache-2.0
"""The executors of GPUs, a library beside the compiled part that needs NCCL: opened where there is one.

  NCCL of the package nvidia-nccl, which torch uses, else that of the system;  then the library of `./run wheel --cuda`
"""

import ctypes
import functools
import importlib.util
import os
import pathlib

LIBRARY = pathlib.Path(__file__).parents[1] / "_cuda.so"

missing = ""  # why the executors are not there, after `load`


@functools.cache
def load():
    """Opens the library, once. Afterwards `missing` says why there are no executors, if there are none."""
    global missing  # pylint: disable=global-statement
    if not LIBRARY.exists():
        missing = "this package was built without CUDA; ./run wheel --cuda builds it in"
        return
    # A kernel that is loaded when it is first needed would wait for a round that waits for that kernel.
    os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
    try:
        ctypes.CDLL(_nccl())
        ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        missing = str(error)


def _nccl():
    """The library that torch loads, or has loaded: two of one process would not share their state."""
    try:
        package = importlib.util.find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        package = None
    for folder in package.submodule_search_locations if package else ():
        path = pathlib.Path(folder) / "lib/libnccl.so.2"
        if path.exists():
            return str(path)
    return "libnccl.so.2"
