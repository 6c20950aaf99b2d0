# SPDX-License-Identifier: Apache-2.0
"""The files whose functions run between the parsed case and the printed row: the way of the value.

  cmake -S . -B build/coverage -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS="-O0 --coverage"
  cmake --build build/coverage --target collective_bench
  python3 tests/value_path.py build/coverage collective_bench --collectives all_scan --executor mpi --ranks 2

The program runs twice under gcov: as given, and with --list, which parses the same flags and prints no row. A function
is on the way if the row enters it more often than as many processes with --list do.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

# What is no work on the value, by the names of files: it comes before the case or beside its row.
ASIDE = {
    "parsing of flags": r"harness/options/",
    "heading of the table": r"harness/(run/heading|runners/link_lines)\.",
    "report of a failure": r"harness/process/(watchdog|heartbeat|started_ranks|last_words|error_lines|report)\.|harness/run/failure\.",
    "resume": r"harness/run/(resume|journal)\.",
    "progress": r"harness/\w+/progress\.",
    "export": r"harness/record/(chakra|export|csv)\.",
    "probes of the machine": r"harness/measure/(probes|alpha_beta|hosts|prediction)\.|harness/runners/calibrator\."
                             r"|harness/machine/|harness/process/(obstacles|shared_folder|surroundings)\."
                             r"|collectives/executors/(mpi/)?(control_group|control_variables|cores|settings_in_force|transport)\.",
}


def calls(build, command):
    """How often each function of the project runs, as {(file, line, name): (last line, calls)}."""
    for old in build.rglob("*.gcda"):
        old.unlink()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    root = source_of(build)
    data = [path.as_posix() for path in build.rglob("*.gcda")]
    text = subprocess.run(["gcov", "--json-format", "--stdout", *data], check=True, capture_output=True, text=True).stdout
    found = collections.defaultdict(lambda: [0, 0])
    for line in text.splitlines():
        unit = json.loads(line)
        for file in unit["files"]:
            path = pathlib.Path(unit["current_working_directory"], file["file"]).resolve()  # ccache makes it relative
            if not path.is_relative_to(root) or path.is_relative_to(build):
                continue
            for one in file["functions"]:
                entry = found[path.relative_to(root).as_posix(), one["start_line"], one["demangled_name"]]
                entry[0] = one["end_line"]
                entry[1] += one["execution_count"]
    return found


def source_of(build):
    """The checkout that a build folder was made from."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    return pathlib.Path(re.search(r"^CMAKE_HOME_DIRECTORY:\w+=(.*)$", cache, re.MULTILINE)[1])


def processes(found):
    return sum(count for (_, _, name), (_, count) in found.items() if name == "main")


def entered(row, listing):
    """By file, the lines of the functions that only the row runs, or that it runs more often."""
    ratio = processes(row) // processes(listing)
    lines = collections.defaultdict(set)
    for key, (last, count) in row.items():
        if count > ratio * listing.get(key, (0, 0))[1]:
            lines[key[0]].update(range(key[1], last + 1))
    return lines


def aside(path):
    return next((f"aside: {why}" for why, pattern in ASIDE.items() if re.match(pattern, path)), "on the way")


def main():
    build, program, *arguments = sys.argv[1:]
    build = pathlib.Path(build).resolve()
    command = [build / "bin" / program, *arguments]
    row, listing = calls(build, command), calls(build, [*command, "--list"])
    totals = collections.defaultdict(collections.Counter)
    for path, lines in sorted(entered(row, listing).items()):
        size = len((source_of(build) / path).read_text(encoding="utf-8").splitlines())
        totals[aside(path)].update({"files": 1, "lines": size, "lines of the functions entered": len(lines)})
        print(f"{path:60} {size:4} {len(lines):4}  {aside(path)}")
    for where, total in sorted(totals.items()):
        print(f"{where}: {', '.join(f'{value} {name}' for name, value in total.items())}")


if __name__ == "__main__":
    main()
