# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/adding_a_collective.md and docs/adding_a_method.md are found by the build and proved by tests that
nobody wrote for them: python3 adding_examples_test.py SOURCE_DIR BUILD_DIR

CMake is asked, in a scratch copy of the sources, whether it would compile the examples. They are then compiled as their
neighbours in BUILD_DIR are, and linked with the objects that are there.
"""

import collections
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import commands

# A page, a source that is compiled as its example is, the test of what is registered, the program that lists it, and the
# least number of cases.
Example = collections.namedtuple("Example", "page neighbour test bench least")
EXAMPLES = (Example("docs/adding_a_collective.md", "collectives/algorithms/all_scan.cpp", "every_collective_test", "collective_bench", 16),
            Example("docs/adding_a_method.md", "sp_methods/methods/ulysses.cpp", "every_method_test", "operator_bench", 50))
DEVICE_BODY = "sp_methods/kernels/device/elementwise.cu"  # shown by the page of methods


def example(source, page):
    text = (source / page).read_text(encoding="utf-8")
    name = re.search(r"Save it as `([\w/]+\.cpp)`", text).group(1)
    return name, re.search(r"```cpp\n(.*?)```", text, re.DOTALL).group(1)


def check_shown_device_body(source):
    shown = re.findall(r"```cuda\n(.*?)```", (source / "docs/adding_a_method.md").read_text(encoding="utf-8"), re.DOTALL)
    text = (source / DEVICE_BODY).read_text(encoding="utf-8")
    if not shown or any(one not in text for one in shown):
        sys.exit(f"docs/adding_a_method.md shows a device body that is not in {DEVICE_BODY}")


def copy_sources(source, scratch):
    """Copies what CMake reads."""
    for name in ("CMakeLists.txt", "CMakePresets.json"):
        shutil.copy2(source / name, scratch / name)
    for folder in ("cmake", "collectives", "sp_methods", "harness", "tests"):
        shutil.copytree(source / folder, scratch / folder)


def commands_of(build):
    """How each source of a build is compiled."""
    return {one["file"]: one["command"] for one in json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))}


def require_found(scratch, names):
    """Ends the test if CMake does not find the sources that were added."""
    run("cmake", "-S", scratch, "-B", scratch / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release")
    found = commands_of(scratch / "build")
    for name in names:
        if str(scratch / name) not in found:
            sys.exit(f"CMake does not find {name}")


def compiled(build, neighbour, added):
    """Compiles the added source as its neighbour is compiled. Returns the object."""
    words = shlex.split(commands_of(build)[str(neighbour)])
    made = added.with_suffix(".o")
    words[words.index("-o") + 1], words[words.index("-c") + 1] = made, added
    run(*words, folder=build)
    return made


def linked(build, target, added, folder):
    """Links a target of the build once more, with an added object, into the folder."""
    command = run("ninja", "-C", build, "-t", "commands", "-s", f"bin/{target}").splitlines()[-1]
    output = f" -o bin/{target} "
    if output not in command:
        sys.exit(f"no link of {target} in: {command}")
    run("sh", "-c", command.replace(output, f" {shlex.quote(str(added))} -o {shlex.quote(str(folder / target))} "), folder=build)


def run(*command, folder=None):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=folder)
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


def check_commands(page, programs):
    """The page's own commands, which need its example."""
    shown = [one for one in commands.commands_of(commands.ROOT / page) if one.mark == "run by the test adding_examples"]
    wrong = commands.problems(shown, programs)
    if not shown or wrong:
        sys.exit("\n".join(wrong) or f"{page} shows no command for its example")


def main():
    source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    scratch = build / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    programs = scratch / "bin"
    programs.mkdir(parents=True)
    check_shown_device_body(source)
    copy_sources(source, scratch)
    names = []
    for shown in EXAMPLES:
        name, text = example(source, shown.page)
        (scratch / name).write_text(text, encoding="utf-8")
        names.append(name)
    require_found(scratch, names)
    for shown, name in zip(EXAMPLES, names):
        added = compiled(build, source / shown.neighbour, scratch / name)
        for target in (shown.test, shown.bench):
            linked(build, target, added, programs)
        prove(programs, pathlib.Path(name).stem, shown.test, shown.bench, shown.least)
        check_commands(shown.page, programs)
    check_claim(programs / EXAMPLES[1].bench, pathlib.Path(names[1]).stem)


if __name__ == "__main__":
    main()
