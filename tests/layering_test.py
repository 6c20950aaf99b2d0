# SPDX-License-Identifier: Apache-2.0
"""A floor stands only on those below it: who may include what, as the table of docs/design.md says.

Also what holds in all shared files: no conditional compilation for a backend, no macros, and in every source
its licence.
"""

import re
import unittest

from source_tree import FLOORS, ROOT, all_sources, cpp_files

# Which library a system header belongs to; a name with neither dot nor slash is the standard library's.
LIBRARIES = (("MPI", r"mpi\.h"), ("NCCL", r"nccl\w*\.h"), ("CUDA", r"cuda.*|cooperative_groups.*|cub/.*"),
             ("CLI11", r"CLI/.*"), ("fmt", r"fmt/.*"), ("JSON", r"nlohmann/.*"),
             ("Google Benchmark", r"benchmark/.*"), ("Eigen", r"Eigen/.*"),
             ("the standard library", r"\w+"), ("the operating system", r".*\.h"))

# An executor is a family of files that share the first word of their names, and has libraries of its own.
EXECUTORS = {"local": set(), "simulator": {"JSON"}, "mpi": {"MPI"}, "cuda": {"NCCL", "CUDA", "MPI"},
             "nccl": {"NCCL", "CUDA", "MPI"}, "peer": {"NCCL", "CUDA", "MPI"}}
# Files of one family that other families stand on.
GROUND = {"cuda": {"nccl", "peer"}}
# MPI's errors are for whoever uses MPI.
MPI_ERROR = "collectives/executors/mpi/communicator.hpp"

# Project headers, as patterns.
SCHEDULE = r"collectives/schedule/\w+\.hpp"
COLLECTIVE = r"collectives/collective\.hpp"
ANY_EXECUTOR = r"collectives/executors/\w+\.(hpp|cuh)"
KERNEL = r"collectives/schedule/(slice|kernel)\.hpp|sp_methods/kernels/\w+\.hpp"
KERNEL_ON_DEVICE = rf"{KERNEL}|sp_methods/kernels/\w+\.cuh|collectives/executors/cuda_(kernel|error)\.cuh"
HARNESS = (rf"{SCHEDULE}|{COLLECTIVE}|collectives/executors/(executor|timing|process_state|simulator|simulator_topology)\.hpp|sp_methods/\w+\.hpp"
           r"|harness/.*\.hpp|baton_build\.hpp")  # the last is written by CMake

STD = {"the standard library"}
SYSTEM = STD | {"the operating system"}
ASKING = SYSTEM | {"CLI11", "fmt", "JSON", "Google Benchmark"}

# (files, project headers they may include, libraries they may use); the first match decides.
RULES = (
    (r"collectives/schedule/.*", SCHEDULE, STD),
    (r"collectives/executors/.*", rf"{SCHEDULE}|{ANY_EXECUTOR}", SYSTEM),
    (r"collectives/native/.*", rf"{SCHEDULE}|{COLLECTIVE}|{ANY_EXECUTOR}", STD),
    (r"collectives/.*", rf"{SCHEDULE}|{COLLECTIVE}|collectives/slice_owners\.hpp", STD),
    (r"sp_methods/kernels/.*\.cuh?", KERNEL_ON_DEVICE, STD | {"CUDA"}),
    (r"sp_methods/kernels/.*", KERNEL, STD | {"Eigen"}),
    (r"sp_methods/.*", rf"{SCHEDULE}|{COLLECTIVE}|sp_methods/(kernels/)?\w+\.hpp", STD),
    (r"harness/launch.*", rf"{HARNESS}|collectives/executors/mpi_error\.hpp", ASKING | {"MPI"}),
    (r"harness/.*", HARNESS, ASKING),
)

INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
BACKEND_SWITCH = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif)\b.*(CUDA|NCCL|MPI)")
MACRO = re.compile(r"\s*#\s*define\b")


def violations(path, text):
    """What is wrong with the C++ file `path` of a floor, one file:line: message each."""
    found = []
    families = {family_of(path)} - {None}
    for number, line in enumerate(text.splitlines(), start=1):
        include = INCLUDE.match(line)
        complaint = (include_complaint(path, families, *include.groups()) if include
                     else line_complaint(path, line))
        if complaint:
            found.append(f"{path}:{number}: {complaint}")
    return found


def include_complaint(path, families, project_header, system_header):
    headers, libraries = next((rule[1:] for rule in RULES if re.fullmatch(rule[0], path)))
    if system_header:
        library = next(name for name, pattern in LIBRARIES if re.fullmatch(pattern, system_header))
        own = set().union(*(EXECUTORS[family] for family in families or natives_families(path)))
        return None if library in libraries | own else f"no business with {library}: <{system_header}>"
    if not re.fullmatch(headers, project_header):
        hint = "" if "/" in project_header else ": paths start at the root"
        return f'may not include "{project_header}"{hint}'
    if project_header == MPI_ERROR and families and all("MPI" in EXECUTORS[family] for family in families):
        return None
    families.update({family_of(project_header)} - {None})
    return f"mixes executors: {', '.join(sorted(families))}" if len(above_ground(path, families)) > 1 else None


def above_ground(path, families):
    """The families without that which all the others may stand on; ground itself stands on nothing."""
    return {family for family in families
            if family == family_of(path) or not families - {family} <= GROUND.get(family, set())}


def family_of(path):
    """The executor that a file under executors/ belongs to, or None if all share it."""
    match = re.fullmatch(r"collectives/executors/([a-z]+)\w*\.\w+", path)
    return match[1] if match and match[1] in EXECUTORS else None


def natives_families(path):
    """A native may use any one executor's library; which one, its include of that executor's header says."""
    return EXECUTORS if path.startswith("collectives/native/") else ()


def line_complaint(path, line):
    if BACKEND_SWITCH.match(line) and not path.endswith((".cu", ".cuh")):
        return "a backend that is not built is a file that is not compiled, not a branch of the preprocessor"
    if MACRO.match(line):
        return "no macros of our own"
    return None


class Layering(unittest.TestCase):
    longMessage = False

    def test_every_floor_stands_on_those_below(self):
        found = [complaint for path in cpp_files(*FLOORS)
                 for complaint in violations(path.as_posix(), (ROOT / path).read_text(encoding="utf-8"))]
        self.assertFalse(found, "\n" + "\n".join(found))

    def test_every_source_names_its_licence(self):
        bare = [f"{path}:1: no SPDX-License-Identifier" for path in all_sources()
                if "SPDX-License-Identifier: Apache-2.0" not in
                "".join((ROOT / path).read_text(encoding="utf-8").splitlines(keepends=True)[:3])]
        self.assertFalse(bare, "\n" + "\n".join(bare))

    def test_there_is_something_to_check(self):
        self.assertGreater(len(cpp_files("collectives")), 10)


class TheCheckItself(unittest.TestCase):
    """A check that cannot fail proves nothing."""

    FORBIDDEN = (
        ("collectives/schedule/slice.hpp", "#include <mpi.h>"),
        ("collectives/schedule/slice.hpp", "#include <unistd.h>"),
        ("collectives/schedule/slice.hpp", '#include "collectives/collective.hpp"'),
        ("collectives/schedule/slice.hpp", '#include "errors.hpp"'),
        ("collectives/all_scan.cpp", '#include "collectives/executors/executor.hpp"'),
        ("collectives/all_scan.cpp", "#include <fmt/core.h>"),
        ("collectives/all_scan.cpp", "#ifdef BATON_CUDA"),
        ("collectives/all_scan.cpp", "#define P 4"),
        ("collectives/executors/host/local.cpp", "#include <mpi.h>"),
        ("collectives/executors/host/local.cpp", '#include "collectives/executors/mpi/communicator.hpp"'),
        ("collectives/executors/mpi/executor.cpp", '#include "collectives/collective.hpp"'),
        ("collectives/executors/mpi/executor.cpp", '#include "collectives/executors/cuda/error.cuh"'),
        ("collectives/executors/cuda/error.cu", '#include "collectives/executors/nccl/native.cuh"'),
        ("collectives/executors/nccl/executor.cu", '#include "collectives/executors/peer/native.cuh"'),
        ("sp_methods/kernels/scores.cu", '#include "collectives/executors/nccl/native.cuh"'),
        ("collectives/executors/mpi/natives/exscan.cpp", '#include "harness/cases/case.hpp"'),
        ("sp_methods/kernels/scores.cpp", '#include "collectives/schedule/schedule.hpp"'),
        ("sp_methods/zeco.cpp", "#include <Eigen/Dense>"),
        ("harness/measure/rounds.cpp", "#include <mpi.h>"),
        ("harness/measure/rounds.cpp", '#include "collectives/executors/mpi/communicator.hpp"'),
    )
    ALLOWED = (
        ("collectives/schedule/slice.hpp", "#include <vector>"),
        ("collectives/executors/mpi/executor.cpp", "#include <mpi.h>"),
        ("collectives/executors/mpi/executor.cpp", '#include "collectives/executors/host/memory.hpp"'),
        ("collectives/executors/mpi/natives/exscan.cpp", "#include <mpi.h>"),
        ("collectives/executors/nccl/executor.cu", "#include <nccl.h>"),
        ("collectives/executors/nccl/executor.cu", '#include "collectives/executors/cuda/error.cuh"'),
        ("collectives/executors/cuda/ranks.cu", '#include "collectives/executors/mpi/communicator.hpp"'),
        ("sp_methods/kernels/scores.cu", "#include <cuda_runtime.h>"),
        ("sp_methods/kernels/scores.cu", '#include "collectives/executors/cuda/kernel.cuh"'),
        ("harness/process/launch.cpp", "#include <mpi.h>"),
        ("harness/options.cpp", "#include <CLI/CLI.hpp>"),
    )

    def test_sees_what_is_forbidden(self):
        for path, line in self.FORBIDDEN:
            self.assertEqual(len(violations(path, line)), 1, f"{path}: {line}")

    def test_lets_pass_what_is_allowed(self):
        for path, line in self.ALLOWED:
            self.assertEqual(violations(path, line), [])

    def test_a_file_belongs_to_one_executor(self):
        both = [f'#include "collectives/executors/{family}_error.hpp"' for family in ("mpi", "nccl")]
        self.assertEqual(violations("collectives/native/mix.cpp", "\n".join(both)),
                         ["collectives/native/mix.cpp:2: mixes executors: mpi, nccl"])

    def test_a_native_may_use_the_ground_of_its_executor(self):
        both = [f'#include "collectives/executors/{header}"' for header in ("cuda_error.cuh", "nccl_native.cuh")]
        self.assertEqual(violations("collectives/native/all_gather.cu", "\n".join(both)), [])


if __name__ == "__main__":
    unittest.main()
