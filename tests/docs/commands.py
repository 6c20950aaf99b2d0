# SPDX-License-Identifier: Apache-2.0
"""The commands that README.md and the pages of docs/ show, and how each of them is checked.

A block of commands is indented by four spaces, or fenced as bash. A comment of HTML before it may say why a test does not
run its commands as they stand; MARKS has all that it may say. Every other command runs, benches with --dry-run. Commands
of `./run` run whole in .ci/run: here only their words are checked, and those for a bench by the bench.
"""

import collections
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARKS = ("no command", "not run here: needs GPUs", "not run here: needs several hosts", "not run here: needs minutes",
         "not run here: needs Docker")
RUN_BY = re.compile(r"run by the test (\w+)")
MARKED = re.compile(r"<!-- ((?:no command|not run here|run by)\b.*?) -->")
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<fenced>.*?)^```$|(?<=\n\n)(?P<indented>(?:    \S[^\n]*\n(?: {4,}[^\n]*\n)*))"
                   r"|(?<=-->\n)(?P<below>(?:    \S[^\n]*\n(?: {4,}[^\n]*\n)*))", re.MULTILINE | re.DOTALL)
BENCH = re.compile(r"^(?:build/cpu/bin/)?(\w+_bench)$")
LAUNCHERS = ("mpirun", "srun", "torchrun")
PLACE = "results/two-cores"  # stands for A and B, records of one's own
EXIT_CODES = {"compare": (0, 6)}  # equal records may be too noisy to tell
BATON = (sys.executable, str(ROOT / "plots/baton"))
# The words that a command of ./run takes.
FLAGS = {"wheel": {"--cuda"}, "paper": {"--local", "--measure", "--tables", "2,3"}, "compare": {"--gate", "--accept"}}

# A command as it is typed on one line, and the mark of its block, which may be empty.
Command = collections.namedtuple("Command", "page text mark")


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands_of(page):
    """Returns the Commands of a page."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in BLOCK.finditer(text):
        lines = block["indented"] or block["below"] or (block["fenced"] if block["language"] in ("bash", "sh", "console") else "")
        before = text[:block.start()].rstrip("\n").rpartition("\n")[2]
        mark = MARKED.fullmatch(before)
        name = os.path.relpath(page, ROOT)
        found += [Command(name, line.strip(), mark[1] if mark else "") for line in
                  re.sub(r"\\\n\s*", "", lines).splitlines() if line.strip()]
    return found


def is_known(mark):
    """True if a block may bear the mark; a test that runs its commands must be there."""
    by = RUN_BY.fullmatch(mark)
    registered = (ROOT / "tests/CMakeLists.txt").read_text(encoding="utf-8")
    return mark in MARKS or bool(by and re.search(rf"\(\s*(?:NAME )?{by[1]}\b", registered))


def problem(command, programs, folder):
    """What is wrong with a command, or an empty text. `folder` looks like the root of the sources, and is written to."""
    try:
        asked = checked(shlex.split(command.text, comments=True), programs, folder)
    except (ValueError, StopIteration) as error:
        return f"{command.page}: {command.text}\n  {error}"
    for words in asked:
        if pathlib.Path(words[0]).name == "model_bench" and not pathlib.Path(words[0]).exists():
            continue  # it is built only where OpenBLAS is
        done = subprocess.run(list(map(str, words)), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=600)
        if done.returncode not in EXIT_CODES.get(str(words[len(BATON)]) if tuple(words[:len(BATON)]) == BATON else "", (0,)):
            return f"{command.page}: {command.text}\n  {' '.join(map(str, words))}\n  exit code {done.returncode}: {done.stderr[-600:]}"
    return ""


def checked(words, programs, folder):
    """Returns the runs that check a typed command; none where its words are all that is checked. Throws ValueError."""
    if words[0] in LAUNCHERS:  # other ranks take the same flags
        words = words[next(number for number, word in enumerate(words) if BENCH.match(word)):]
    bench = BENCH.match(words[0])
    if bench and not words[0].startswith("build/cpu/bin/"):
        raise ValueError("a bench is typed with its path, build/cpu/bin/")
    if any(word.startswith("[") for word in words):
        require_flags(words, programs)
        return []
    if words[0] == "./run":
        return of_run(words[1:], programs, folder)
    if bench:
        return [dry_run(programs / bench[1], words[1:])]
    if words[0] == "python3":
        return [[sys.executable, *words[1:]]]
    raise ValueError("no rule checks it; tests/docs/commands.py has the rules, and the marks that say why none does")


def dry_run(bench, words):
    """The run of a bench that moves nothing. Such a run refuses to calibrate."""
    if "--calibrate" in words:
        place = words.index("--calibrate")
        words = words[:place] + words[place + 2:]
    return [bench, *words, "--dry-run"]


def of_run(words, programs, folder):
    """The runs that check `./run WORDS...`."""
    name, rest = words[0], words[1:]
    if not re.search(rf"^    (?:\w+ \| )*{name}(?: \| \w+)*\) shift && ", (ROOT / "run").read_text(encoding="utf-8"), re.MULTILINE):
        raise ValueError(f"./run has no command {name}")
    if name == "bench" and rest:
        is_named = rest[0] in ("operator", "model")
        return [dry_run(programs / f"{rest[0] if is_named else 'collective'}_bench", rest[is_named:])]
    if name in ("report", "figure", "grow", "selfcheck") or (name, rest) == ("compare", ["A", "B"]):
        page = ["--out", folder / "page.html"] if name == "report" and "--out" not in rest else []
        return [[*BATON, name, *page, *(PLACE if word in ("A", "B") else word for word in rest)]]
    if name in ("advise", "predict"):
        return [[*BATON, name, "--programs", programs, *rest]]
    if set(rest) - FLAGS.get(name, set()):
        raise ValueError(f"./run {name} takes {', '.join(sorted(FLAGS.get(name, ()))) or 'nothing'}")
    return []


def require_flags(words, programs):
    """Throws ValueError if a synopsis names a flag that is not in the program's --help."""
    told = subprocess.run([*BATON, words[1], "--help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    missing = [flag for flag in re.findall(r"--[\w-]+", " ".join(words)) if flag not in told]
    if missing:
        raise ValueError(f"--help does not have {', '.join(missing)}")


def problems(commands, programs):
    """What is wrong with these commands, each run in a folder that looks like the root of the sources."""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "build"):
                (folder / entry.name).symlink_to(entry)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return [*filter(None, pool.map(lambda one: problem(one, programs, folder), commands))]
