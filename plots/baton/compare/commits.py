# SPDX-License-Identifier: Apache-2.0
"""Builds two commits and runs their launches in turns: A B, B A, A B, ...

Each commit is checked out in a folder of its own, build/compare/<commit>, and built with the preset of this machine.
The records of both sides are written with the key `pair`, which says which launches ran one after the other.
"""

import datetime
import json
import pathlib
import subprocess
import sys

from baton import cases

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = "."  # in place of a commit: this tree, with its changes
USAGE = 2


def run(commits, preset, launches, arguments):
    """Returns the files of the records of both commits, of `launches` launches each. Throws cases.Refused."""
    program, arguments = program_of(arguments)
    programs = [build(tree_of(commit), preset, program) for commit in commits]
    session = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H-%M-%SZ")
    return alternate(programs, arguments, launches, ROOT / "build/compare" / session)


def program_of(arguments):
    """Returns the bench and its arguments; a leading `operator` or `model` names another bench, as in ./run bench."""
    if arguments[:1] in (["operator"], ["model"]):
        return f"{arguments[0]}_bench", arguments[1:]
    return "collective_bench", arguments


def tree_of(commit):
    """Returns the folder with the sources of a commit. Throws Refused for a name that git does not know."""
    if commit == HERE:
        return ROOT
    found = _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    if found.returncode != 0:
        raise cases.Refused(f"--commits: git knows no commit '{commit}'")
    name = found.stdout.strip()[:12]
    tree = ROOT / "build/compare" / name
    if not (tree / "CMakeLists.txt").exists():
        _git("worktree", "prune")
        made = _git("worktree", "add", "--detach", "--force", str(tree), name)
        if made.returncode != 0:
            raise cases.Refused(f"git cannot check out {name}: {_last_line(made.stderr)}")
    return tree


def build(tree, preset, program):
    """Builds one program of a tree and returns its path. Throws Refused with the end of the log."""
    print(f"building {program} in {tree.relative_to(ROOT.parent)}, preset {preset}", file=sys.stderr, flush=True)
    for command in (["cmake", "--preset", preset], ["cmake", "--build", f"build/{preset}", "--target", program]):
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            end = (done.stdout + done.stderr).splitlines()[-20:]
            raise cases.Refused(f"{' '.join(command)} failed in {tree}:", *end)
    return tree / "build" / preset / "bin" / program


def alternate(programs, arguments, launches, folder):
    """Runs both programs `launches` times in turns and returns the files of their records. Throws Refused."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "A.jsonl", folder / "B.jsonl"]
    for number in range(launches):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            records = launch(programs[side], arguments, folder / "launch.jsonl")
            with open(files[side], "a", encoding="utf-8") as file:
                for record in records:
                    file.write(json.dumps({**record, "pair": f"{folder.name}-{number + 1}"}) + "\n")
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {launches} pairs of launches", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return files


def launch(program, arguments, path):
    """Runs one launch and returns its records, whatever became of it. Throws Refused where it left none."""
    path.unlink(missing_ok=True)
    done = subprocess.run([str(program), *arguments, "-J", str(path)], capture_output=True, text=True, check=False)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    records = [record for line in lines if (record := _record(line))]
    path.unlink(missing_ok=True)
    if not records or done.returncode == USAGE:
        raise cases.Refused(f"{program} ended with status {done.returncode}: {_last_line(done.stderr)}")
    if done.returncode != 0:
        print(f"{program} ended with status {done.returncode}: {_last_line(done.stderr)}", file=sys.stderr)
    return records


def _record(line):
    try:
        return json.loads(line)
    except ValueError:
        return None  # half a line of a launch that was killed


def _git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def _last_line(text):
    return (text.strip().splitlines() or ["no word"])[-1]
