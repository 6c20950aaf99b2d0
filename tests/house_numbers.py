# SPDX-License-Identifier: Apache-2.0
"""Numbers of the tree that say how hard it is to enter; structure_test.py bounds them.

  python3 tests/house_numbers.py [ROOT]      prints them all for a checkout
"""

import collections
import pathlib
import re
import sys

from function_size import functions_of
from header_owners import shared_headers
from source_tree import CPP, FOLDERS, PRODUCT, ROOT, all_sources, cpp_files, files_below, text_of
from units import Units

SMALL = 40  # lines of a file that rather belongs to another
COMMENT_COLUMNS = 100

# Readings: the files where a reader starts, and units that lie beside the path, since other rows take them or since they
# serve all of them. The patterns also know the names of files at commit 010fce5, so that both trees can be counted.
OTHER_ROWS = r"sp_methods/|harness/(model/|\w+/)?(operator|calibration)|"
READINGS = {
    "a CPU row": (
        r"harness/collective_bench\.cpp|collectives/(algorithms/)?all_scan\.cpp|collectives/executors/mpi(/executor)?\.cpp",
        OTHER_ROWS + r"harness/(run/simulat|measure/prediction$)|collectives/(simulator/|executors/"
        r"(simulator|compute_worker|step_recorder|mpi_native|host/(compute_worker|step_recorder)|mpi/native))"),
    "a peer round with its preparation": (
        r"collectives/executors/(peer/executor|peer)\.cu",
        r"collectives/(schedule/|executors/((host|mpi)/|[a-z0-9]+$|process_state|mpi_)(?<!/peer)|"
        r"executors/cuda[/_](wire|link|hardware|gpu|monitor)$)"),
    "a simulated row": (
        r"harness/(collective_bench|run/simulated_runner)\.cpp|collectives/(algorithms/)?all_scan\.cpp|"
        r"collectives/(simulator/simulate|executors/simulator)\.cpp",
        OTHER_ROWS + r"collectives/executors/(mpi/|mpi_(?!error))"),
    "a GLA forward on the device": (
        r"sp_methods/((segmented|linear)_passes\.cpp|passes/segmented_pass\.hpp|kernels/(device/gla/|gla_)(?!\w*gradient)\w+\.cu)",
        r"collectives/schedule/|sp_methods/kernels/(host/(?!gla_segment)|host/left|causal_block|chunk_states|edge_state"
        r"|gates|inter_|intra_|left_product|parallel_for|tiles)"),
}

POSITIONAL = re.compile(r"\bp\[[0-9]+\]|(?:read|written)(?:<Bf16>)?\(x, |\.(?:reads|writes)\[[0-9]")


def lines_of(root=ROOT):
    """Lines of each source, in whatever language, tests too."""
    return {path: len(text_of(path, root).splitlines()) for path in all_sources(root)}


def product_lines(root=ROOT):
    """Lines of each C++ and CUDA file that is no test."""
    return {path: len(text_of(path, root).splitlines()) for path in cpp_files(*PRODUCT, root=root)}


def files_a_thousand_lines(root=ROOT):
    lines = product_lines(root)
    return 1000 * len(lines) / sum(lines.values())


def small_files(root=ROOT):
    """Small ones, where a header and the source beside it that has its name count together."""
    units = collections.Counter()
    for path, lines in product_lines(root).items():
        units[path.with_suffix("")] += lines
    return sorted((lines, path) for path, lines in units.items() if lines <= SMALL)


def sources_without_header(*folders, root=ROOT):
    """Sources that no header of their name stands beside, but for programs, benchmarks and what registers itself before main."""
    files = cpp_files(*folders, root=root)
    headers = {path.with_suffix("") for path in files if path.suffix in (".hpp", ".cuh")}
    return [f"{path}: give it a header of its name, or make it a part of a source that has one" for path in files
            if path.suffix in (".cpp", ".cu") and path.with_suffix("") not in headers
            and not re.search(r"^int main\(|^const Registered\w+ |^BENCHMARK", text_of(path, root), re.MULTILINE)]


def folder_sizes(root=ROOT):
    """How many files each folder holds itself, the largest first."""
    return collections.Counter(path.parent for path in files_below(FOLDERS, root)).most_common()


def repeated_names(root=ROOT):
    """Files whose name begins with that of their folder, as in peer/peer_plan.cpp; schedule/schedule.hpp is fine."""
    return [path for path in files_below(FOLDERS, root) if path.name.removesuffix(path.suffix).removesuffix("_test")
            .startswith((path.parent.name + "_", path.parent.name.removesuffix("s") + "_"))]


def function_sizes(root=ROOT):
    """(lines, where) of every function in every language, the longest first."""
    return sorted(((one.lines, f"{path}:{one.line}: {one.head}") for path in all_sources(root)
                   for one in functions_of(path, text_of(path, root))), reverse=True)


def long_comments(*folders, root=ROOT):
    return [f"{path}:{number}: {len(line)} columns" for path in cpp_files(*(folders or (*PRODUCT, "tests")), root=root)
            for number, line in enumerate(text_of(path, root).splitlines(), start=1)
            if line.lstrip().startswith("//") and len(line) > COMMENT_COLUMNS]


def positional_accesses(root=ROOT):
    """Operands of kernels that are reached by their number."""
    return _matches(POSITIONAL, root)


def const_casts(root=ROOT):
    return _matches(re.compile(r"\bconst_cast\b"), root)


def _matches(pattern, root):
    return [f"{path}:{number}: {line.strip()}" for path in cpp_files("sp_methods", root=root)
            for number, line in enumerate(text_of(path, root).splitlines(), start=1) for _ in pattern.finditer(line)]


def table(root):
    units = Units.of_tree(root)
    lines = product_lines(root)
    folder, own = folder_sizes(root)[0]
    longest_file = max((count, path) for path, count in lines_of(root).items())
    functions = function_sizes(root)
    yield "C++/CUDA without tests", f"{len(lines)} files, {sum(lines.values())} lines"
    yield "files a thousand lines", f"{files_a_thousand_lines(root):.1f}"
    yield "largest folder's own files", f"{own} ({folder})"
    yield f"files of at most {SMALL} lines that stand alone", len(small_files(root))
    for reading, (entries, without) in READINGS.items():
        opened = units.closure(entries, without)
        files = [pathlib.Path(path) for unit in opened for path in units.files[unit]]
        yield f"units to open for {reading}", (f"{len(opened)} ({len(files)} files, "
                                                f"{sum(lines[path] for path in files)} lines)")
    yield "positional operand accesses in sp_methods/", len(positional_accesses(root))
    yield "const_cast in sp_methods/", len(const_casts(root))
    yield "headers that several sources implement", len(shared_headers(root=root))
    yield "circles between units", len(units.circles())
    yield f"comment lines past {COMMENT_COLUMNS} columns, with tests", len(long_comments(root=root))
    yield "files named after their folder", len(repeated_names(root))
    yield "files over 300 lines", sum(count > 300 for count in lines_of(root).values())
    yield "longest file", f"{longest_file[0]} ({longest_file[1]})"
    yield "functions over 50 lines", sum(count > 50 for count, _ in functions)
    yield "longest function", f"{functions[0][0]} ({functions[0][1][:90]})"


def main():
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    for name, value in table(root):
        print(f"{name:56} {value}")


if __name__ == "__main__":
    main()
