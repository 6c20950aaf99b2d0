# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/adding_a_collective.md and docs/adding_a_method.md, dropped into a scratch copy of the sources, are
found and proved by tests that nobody wrote for them: python3 adding_examples_test.py SOURCE_DIR BUILD_DIR"""

import pathlib
import re
import shutil
import subprocess
import sys

# The page, the test of what is registered, the program that lists it, and the least number of cases.
EXAMPLES = (("docs/adding_a_collective.md", "every_collective_test", "collective_bench", 16),
            ("docs/adding_a_method.md", "every_method_test", "operator_bench", 50))
TARGETS = [target for _, test, bench, _ in EXAMPLES for target in (test, bench)]
DEVICE_BODY = "sp_methods/kernels/device/elementwise.cu"  # shown by the page of methods


def example(source, page):
    text = (source / page).read_text(encoding="utf-8")
    name = re.search(r"Save it as `(\w+/\w+\.cpp)`", text).group(1)
    return name, re.search(r"```cpp\n(.*?)```", text, re.DOTALL).group(1)


def check_shown_device_body(source):
    shown = re.findall(r"```cuda\n(.*?)```", (source / "docs/adding_a_method.md").read_text(encoding="utf-8"), re.DOTALL)
    text = (source / DEVICE_BODY).read_text(encoding="utf-8")
    if not shown or any(one not in text for one in shown):
        sys.exit(f"docs/adding_a_method.md shows a device body that is not in {DEVICE_BODY}")


def copy_sources(source, scratch):
    """Copies what the build reads, keeping times so that a second run compiles only what changed."""
    for name in ("CMakeLists.txt", "CMakePresets.json"):
        shutil.copy2(source / name, scratch / name)
    for folder in ("cmake", "collectives", "sp_methods", "models", "harness", "doctor", "micro", "tests"):
        if not (source / folder).exists():
            continue
        shutil.rmtree(scratch / folder, ignore_errors=True)
        shutil.copytree(source / folder, scratch / folder)


def run(*command):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}")
    return ended.stdout


def prove(programs, stem, every_test, bench, least):
    ran = run(programs / every_test, "local", f"--gtest_filter={stem}.*")
    passed = re.search(r"PASSED.*?(\d+) tests", ran)
    if not passed or int(passed.group(1)) < least:
        sys.exit(f"{stem} was not covered:\n{ran[-3000:]}")
    run(programs / every_test, "mpi", f"--gtest_filter={stem}.*")
    if stem not in run(programs / bench, "--list"):
        sys.exit(f"--list of {bench} does not show {stem}")
    print(f"{stem}: {passed.group(1)} cases passed")


def check_claim(operator_bench, stem):
    """A dry run ends if a claim is not the count, which every_method_test does not ask."""
    for dtype in ("f32", "bf16"):
        run(operator_bench, "--methods", stem, "--ranks", "1,2,3,4,7,8", "--pass", "all", "--mode", "overlapped,exposed",
            "--dtype", dtype, "--tokens", "64", "--dry-run")


def main():
    source, build = (pathlib.Path(word) for word in sys.argv[1:3])
    scratch = build / "scratch"
    scratch.mkdir(exist_ok=True)
    check_shown_device_body(source)
    copy_sources(source, scratch)
    stems = []
    for page, *_ in EXAMPLES:
        name, text = example(source, page)
        (scratch / name).write_text(text, encoding="utf-8")
        stems.append(pathlib.Path(name).stem)
    # Debug: compiling is most of the time, and the cases are small.
    run("cmake", "-S", scratch, "-B", scratch / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DBATON_NATIVE=OFF")
    run("cmake", "--build", scratch / "build", "--target", *TARGETS)
    programs = scratch / "build/bin"
    for stem, (_, every_test, bench, least) in zip(stems, EXAMPLES):
        prove(programs, stem, every_test, bench, least)
    check_claim(programs / "operator_bench", stems[1])


if __name__ == "__main__":
    main()
