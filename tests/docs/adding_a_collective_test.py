# SPDX-License-Identifier: Apache-2.0
"""The example of docs/adding_a_collective.md, dropped into a scratch copy of the sources, is found and proved by tests
that nobody wrote for it: python3 adding_a_collective_test.py SOURCE_DIR BUILD_DIR"""

import pathlib
import re
import shutil
import subprocess
import sys


def example(source):
    text = (source / "docs/adding_a_collective.md").read_text()
    name = re.search(r"Save it as `(collectives/\w+\.cpp)`", text).group(1)
    return name, re.search(r"```cpp\n(.*?)```", text, re.DOTALL).group(1)


def copy_sources(source, scratch):
    """Copies what the build reads, keeping times so that a second run compiles only what changed."""
    for name in ("CMakeLists.txt", "CMakePresets.json"):
        shutil.copy2(source / name, scratch / name)
    for folder in ("cmake", "collectives", "sp_methods", "harness", "doctor", "micro", "tests"):
        if not (source / folder).exists():
            continue
        shutil.rmtree(scratch / folder, ignore_errors=True)
        shutil.copytree(source / folder, scratch / folder)


def run(*command):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}")
    return ended.stdout


def main():
    source, build = (pathlib.Path(word) for word in sys.argv[1:3])
    scratch = build / "scratch"
    scratch.mkdir(exist_ok=True)
    copy_sources(source, scratch)
    name, text = example(source)
    (scratch / name).write_text(text)
    # Debug: compiling is most of the time, and the cases are small.
    run("cmake", "-S", scratch, "-B", scratch / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DBATON_NATIVE=OFF")
    run("cmake", "--build", scratch / "build", "--target", "every_collective_test", "collective_bench")
    stem = pathlib.Path(name).stem
    test = scratch / "build/bin/every_collective_test"
    ran = run(test, "local", f"--gtest_filter={stem}.*")
    passed = re.search(r"PASSED.*?(\d+) tests", ran)
    if not passed or int(passed.group(1)) < 16:
        sys.exit(f"{stem} was not covered:\n{ran}")
    run(test, "mpi", f"--gtest_filter={stem}.*")
    if stem not in run(scratch / "build/bin/collective_bench", "--list"):
        sys.exit(f"--list does not show {stem}")
    print(f"{stem}: {passed.group(1)} cases passed")


if __name__ == "__main__":
    main()
