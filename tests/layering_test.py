# SPDX-License-Identifier: Apache-2.0
"""Each folder includes only what its rule allows: one rule a folder, as the table of docs/design.md says.

All shared files also do without conditional compilation for a backend and without macros.
"""

import ast
import collections
import graphlib
import re
import unittest

from source_tree import PRODUCT, ROOT, cpp

# Which library a system header belongs to; a name with neither dot nor slash is the standard library's.
LIBRARIES = (("MPI", r"mpi\.h"), ("NCCL", r"nccl\w*\.h"), ("NVML", r"nvml\.h"),
             ("cuDNN", r"cudnn.*\.h"), ("cuBLAS", r"cublas.*\.h"), ("CUDA", r"cuda.*|cooperative_groups.*|cub/.*"),
             ("the version of CLI11", r"CLI/Version\.hpp"), ("CLI11", r"CLI/.*"), ("fmt", r"fmt/.*"), ("JSON", r"nlohmann/.*"),
             ("Google Benchmark", r"benchmark/.*"), ("Eigen", r"Eigen/.*"), ("BLAS", r"cblas\.h"), ("protocol buffers", r"google/protobuf/.*"),
             ("the standard library", r"\w+"), ("the operating system", r".*\.h"))

STD = frozenset({"the standard library"})
SYSTEM = STD | {"the operating system"}
DEVICES = SYSTEM | {"CUDA", "NCCL", "NVML"}
WRITING = SYSTEM | {"fmt", "JSON", "the version of CLI11"}

Rule = collections.namedtuple("Rule", "headers libraries")


def rule(*headers, libraries=STD):
    """Headers of the project: `folder/` for those of a folder, `folder/**` for all below it, else one file each."""
    return Rule(headers, libraries)


SCHEDULE = "collectives/schedule/"
COLLECTIVE = "collectives/collective.hpp"
SLICES = "collectives/slice_owners.hpp"  # a native cuts a state as the collective does that it stands for
DRAWN = "collectives/drawn_numbers.hpp"
EXECUTOR = "collectives/executors/"
TIMES = ("collectives/executors/timing.hpp",)
LAUNCH_PLAN = "collectives/executors/cuda/launch_plan.hpp"  # host code, as the compiler that makes plans
MATRICES = "collectives/executors/cuda/matrices.hpp"  # host code: which product composes two matrices
CUDA_STEPS = ("collectives/executors/cuda/kernel.cuh", "collectives/executors/cuda/error.cuh")
SHAPES = ("collectives/schedule/slice.hpp", "collectives/schedule/kernel.hpp", "collectives/schedule/errors.hpp")

ROOMS = tuple(f"harness/{room}" for room in ("", "cases/", "layers/", "machine/", "measure/", "models/", "options/", "process/",
                                             "record/", "run/", "runners/", "schema/"))

# A folder's own headers may always be included; the most specific folder decides about the others.
RULES = {
    "collectives": rule(SCHEDULE),
    "collectives/algorithms": rule(SCHEDULE, COLLECTIVE, SLICES),
    "collectives/schedule": rule(),
    "collectives/executors": rule(SCHEDULE, libraries=SYSTEM),
    "collectives/executors/host": rule(SCHEDULE, EXECUTOR, libraries=SYSTEM),
    "collectives/executors/mpi": rule(SCHEDULE, EXECUTOR, "collectives/executors/host/", libraries=SYSTEM | {"MPI"}),
    "collectives/executors/mpi/natives": rule(SCHEDULE, COLLECTIVE, EXECUTOR, "collectives/executors/mpi/",
                                              libraries=SYSTEM | {"MPI"}),
    "collectives/executors/tcp": rule(SCHEDULE, EXECUTOR, "collectives/executors/host/", libraries=SYSTEM),
    "collectives/executors/cuda": rule(SCHEDULE, EXECUTOR, "collectives/executors/host/", libraries=DEVICES),
    "collectives/executors/nccl": rule(SCHEDULE, EXECUTOR, "collectives/executors/cuda/", libraries=DEVICES),
    "collectives/executors/nccl/natives": rule(SCHEDULE, COLLECTIVE, EXECUTOR, "collectives/executors/cuda/",
                                               "collectives/executors/nccl/", libraries=DEVICES),
    "collectives/executors/peer": rule(SCHEDULE, EXECUTOR, "collectives/executors/cuda/",
                                       "collectives/executors/peer/compiler/", "collectives/executors/peer/device/",
                                       libraries=DEVICES),
    "collectives/executors/peer/compiler": rule(SCHEDULE, LAUNCH_PLAN, MATRICES),
    "collectives/executors/peer/device": rule(SCHEDULE, "collectives/executors/cuda/",
                                              "collectives/executors/peer/compiler/", libraries=STD | {"CUDA"}),
    "collectives/executors/peer/natives": rule(SCHEDULE, COLLECTIVE, SLICES, EXECUTOR, "collectives/executors/cuda/",
                                               "collectives/executors/peer/**", libraries=DEVICES),
    "collectives/simulator": rule(SCHEDULE, *TIMES, "collectives/simulator/topology/"),
    "collectives/simulator/topology": rule(SCHEDULE, libraries=STD | {"JSON"}),
    "sp_methods": rule(SCHEDULE, COLLECTIVE, DRAWN, "sp_methods/kernels/", "sp_methods/kernels/reference/"),
    "sp_methods/passes": rule(SCHEDULE, COLLECTIVE, "sp_methods/", "sp_methods/kernels/"),
    "sp_methods/methods": rule(SCHEDULE, COLLECTIVE, "sp_methods/", "sp_methods/passes/", "sp_methods/kernels/"),
    "sp_methods/kernels": rule(*SHAPES),
    "sp_methods/kernels/reference": rule(*SHAPES, DRAWN, "sp_methods/kernels/", libraries=STD | {"Eigen"}),
    "sp_methods/kernels/host": rule(*SHAPES, "sp_methods/kernels/", "sp_methods/kernels/host/**",
                                    libraries=STD | {"Eigen"}),
    # Memory: what lasts between the kernels of a body.
    "sp_methods/kernels/device": rule(*SHAPES, *CUDA_STEPS, "collectives/executors/cuda/memory.cuh",
                                      "sp_methods/kernels/", "sp_methods/kernels/device/**",
                                      libraries=STD | {"CUDA"}),
    # Blocks of Mamba-2 have a convolution around any method.
    "sp_methods/models": rule(SCHEDULE, COLLECTIVE, "sp_methods/", "sp_methods/passes/convolution.hpp", "sp_methods/kernels/",
                              "sp_methods/models/kernels/"),
    "sp_methods/models/kernels": rule(*SHAPES, "sp_methods/kernels/"),
    "sp_methods/models/kernels/host": rule(*SHAPES, "sp_methods/kernels/", "sp_methods/models/kernels/",
                                           libraries=STD | {"Eigen", "BLAS"}),
    "sp_methods/models/reference": rule(SCHEDULE, DRAWN, "sp_methods/", "sp_methods/kernels/", "sp_methods/kernels/reference/",
                                        "sp_methods/models/", "sp_methods/models/kernels/", libraries=STD | {"Eigen"}),
    "harness": rule(SCHEDULE, COLLECTIVE, DRAWN, EXECUTOR, "collectives/executors/host/process_state.hpp",
                    "collectives/simulator/**", *ROOMS, libraries=WRITING),
}
# A library that is opened when a program runs.
SEARCH = "collectives/executors/cuda/library_search.hpp"
DEVICE = RULES["sp_methods/kernels/device"]
RULES["sp_methods/kernels/device/cudnn"] = rule(*DEVICE.headers, SEARCH, libraries=SYSTEM | {"CUDA", "cuDNN"})
RULES["sp_methods/models/kernels/device"] = rule(*DEVICE.headers, SEARCH, "sp_methods/models/kernels/",
                                                 libraries=SYSTEM | {"CUDA", "cuBLAS"})
RULES["harness/doctor"] = rule(SCHEDULE, EXECUTOR, "harness/machine/", "harness/process/", "harness/options/",
                               "harness/measure/", "harness/record/cells.hpp", libraries=SYSTEM | {"fmt", "JSON"})
# What one room of the harness may include beside what all of them may.
RULES["harness/options"] = RULES["harness"]._replace(libraries=WRITING | {"CLI11"})
RULES["harness/layers"] = RULES["harness"]._replace(headers=(*RULES["harness"].headers, "sp_methods/"))
RULES["harness/models"] = RULES["harness/layers"]._replace(
    headers=(*RULES["harness/layers"].headers, "sp_methods/kernels/reference/", "sp_methods/models/",
             "sp_methods/models/kernels/", "sp_methods/models/reference/"))
RULES["harness/run"] = RULES["harness"]._replace(libraries=WRITING | {"Google Benchmark"})
RULES["harness/record"] = RULES["harness"]._replace(libraries=WRITING | {"protocol buffers"})
RULES["harness/schema"] = rule(libraries=STD | {"fmt", "JSON"})
RULES["harness/machine"] = rule(*RULES["harness"].headers, "baton_build.hpp", libraries=WRITING)  # written by CMake

INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
BACKEND_SWITCH = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif)\b.*(CUDA|NCCL|MPI)")
MACRO = re.compile(r"\s*#\s*define\b")


def violations(path, text):
    """What is wrong with the C++ file `path`, one file:line: message each."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        include = INCLUDE.match(line)
        complaint = include_complaint(path, *include.groups()) if include else line_complaint(path, line)
        if complaint:
            found.append(f"{path}:{number}: {complaint}")
    return found


def include_complaint(path, project_header, system_header):
    folder = deciding_folder(path)
    if folder in (None, "harness/micro"):  # the latter stands on everything
        return None
    allowed = RULES[folder]
    if system_header:
        library = next(name for name, pattern in LIBRARIES if re.fullmatch(pattern, system_header))
        return None if library in allowed.libraries else f"{folder}/ may not use {library}: <{system_header}>"
    if any(covers(pattern, project_header) for pattern in (own_folder(path), folder + "/", *allowed.headers)):
        return None
    hint = "" if "/" in project_header else ": paths start at the root"
    return f'{folder}/ may not include "{project_header}"{hint}'


def deciding_folder(path):
    """The most specific folder with a rule that holds the file, or None."""
    return max((folder for folder in (*RULES, "harness/micro") if path.startswith(folder + "/")), key=len, default=None)


def own_folder(path):
    return path.rsplit("/", 1)[0] + "/"


def covers(pattern, header):
    if pattern.endswith("/**"):
        return header.startswith(pattern[:-2])
    if pattern.endswith("/"):
        return own_folder(header) == pattern
    return header == pattern


def line_complaint(path, line):
    if BACKEND_SWITCH.match(line) and not path.endswith((".cu", ".cuh")):
        return "a backend that is not built is a file that is not compiled, not a branch of the preprocessor"
    if MACRO.match(line):
        return "no macros of our own"
    return None


class Layering(unittest.TestCase):
    longMessage = False

    def test_every_folder_keeps_to_its_rule(self):
        found = [complaint for path, text in cpp(*PRODUCT).items() for complaint in violations(path, text)]
        self.assertFalse(found, "\n" + "\n".join(found))

    def test_every_rule_is_of_a_folder_that_is_there(self):
        folders = {own_folder(path) for path in cpp(*PRODUCT)}
        self.assertFalse([folder for folder in RULES if not any(one.startswith(folder + "/") for one in folders)])

    def test_no_folders_include_one_another_in_a_circle(self):
        floors = graphlib.TopologicalSorter()
        for path, text in cpp(*PRODUCT).items():
            folders = {floor_of(header) for header in re.findall(r'#include "([^"]+)"', text) if "/" in header}
            floors.add(floor_of(path), *(folders - {floor_of(path)}))
        floors.prepare()  # throws CycleError


def floor_of(path):
    """The folder of a file by its first two names: what lies below is a part of it."""
    return "/".join(path.split("/")[:-1][:2])


def python_imports(path):
    """Yields (module, name) of each `from module import name`, also within functions, where it would hide a circle."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, one.name) for one in node.names)


class PythonPackage(unittest.TestCase):
    def test_neither_folders_nor_modules_import_one_another_in_a_circle(self):
        modules = {".".join(path.relative_to(ROOT / "plots").with_suffix("").parts).removesuffix(".__init__"): path
                   for path in (ROOT / "plots" / "baton").rglob("*.py")}
        for depth in (2, 9):
            floors = graphlib.TopologicalSorter()
            for name, path in modules.items():
                found = (f"{module}.{one}" if f"{module}.{one}" in modules else module for module, one in python_imports(path))
                own, others = (set(".".join(one.split(".")[:depth]) for one in some) for some in ([name], found))
                floors.add(*own, *(others - own - {"baton"}))
            floors.prepare()  # throws CycleError


class TheCheckItself(unittest.TestCase):
    """A check that cannot fail proves nothing."""

    FORBIDDEN = (
        ("collectives/schedule/slice.hpp", "#include <unistd.h>"),
        ("collectives/schedule/slice.hpp", '#include "collectives/collective.hpp"'),
        ("collectives/schedule/slice.hpp", '#include "errors.hpp"'),
        ("collectives/algorithms/all_scan.cpp", '#include "collectives/executors/executor.hpp"'),
        ("collectives/algorithms/all_scan.cpp", "#ifdef BATON_CUDA"),
        ("collectives/executors/cuda/ranks.cu", "#include <mpi.h>"),
        ("collectives/executors/cuda/ranks.cu", '#include "collectives/executors/mpi/communicator.hpp"'),
        ("sp_methods/kernels/device/gla/scores.cu", '#include "sp_methods/kernels/host/tiles.hpp"'),
        ("sp_methods/methods/zeco.cpp", '#include "sp_methods/kernels/device/gla/layer.cuh"'),
        ("harness/cases/case.cpp", "#include <CLI/CLI.hpp>"),
        ("harness/process/world.cpp", '#include "collectives/executors/tcp/handshake.hpp"'),
        ("harness/micro/kernels_bench.cpp", "#define P 4"),
    )
    ALLOWED = (
        ("collectives/schedule/slice.hpp", "#include <vector>"),
        ("collectives/executors/mpi/natives/exscan.cpp", "#include <mpi.h>"),
        ("collectives/executors/mpi/natives/exscan.cpp", '#include "collectives/executors/mpi/communicator.hpp"'),
        ("sp_methods/kernels/device/ring/steps.cu", '#include "sp_methods/kernels/device/tile/tile.cuh"'),
        ("harness/micro/kernels_bench.cpp", '#include "sp_methods/kernels/host/tiles.hpp"'),
    )

    def test_sees_what_is_forbidden(self):
        for path, line in self.FORBIDDEN:
            self.assertEqual(len(violations(path, line)), 1, f"{path}: {line}")

    def test_lets_pass_what_is_allowed(self):
        for path, line in self.ALLOWED:
            self.assertEqual(violations(path, line), [])


if __name__ == "__main__":
    unittest.main()
