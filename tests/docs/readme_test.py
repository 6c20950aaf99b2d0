# SPDX-License-Identifier: Apache-2.0
"""What README.md and docs/ show below a command is what it prints: python3 readme_test.py COLLECTIVE_BENCH [--write]

Commands of `./run` print the very text. Of schedules one rank's is shown, and simulated tables word by word, since the
widths of columns follow the longest registered name. Measured tables are left out. README.md also has the
source of All-Scan and a table of committed records. `--write` rewrites what differs. The other programs lie beside
collective_bench.
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys

import commands
from plots import example

ROOT = commands.ROOT
SHOWN = re.compile(r"^(    (?P<command>\S(?:[^\n]|\\\n)*)\n\n```text\n)(?P<text>.*?)```", re.DOTALL | re.MULTILINE)
MEDIANS = re.compile(r"(<!-- medians of (?P<records>results/\S+), checked by the test `readme` -->\n)(?P<text>.*?\n)\n", re.DOTALL)
SOURCE_LINE = re.compile(r" +\w+\.[ch]pp:\d+( in \w+)?$", re.MULTILINE)


def printed(words, programs):
    """What a shown command prints; None of a bench that measures."""
    if words[:2] in (["./run", "advise"], ["./run", "report"]):
        extra = [] if words[1] == "report" else ["--programs", programs]
        command = example.command(words[1], *extra, *words[2:])
    elif words[0].startswith("build/cpu/bin/") and ("simulator" in words or "--dry-run" in words):
        command = [programs / pathlib.Path(words[0]).name, *words[1:]]
    else:
        return None
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else done.stderr


def is_right(words, shown, text):
    if words[0] == "./run":
        return shown == text
    of_page, of_program = ("\n".join(" ".join(line.split()) for line in lines.splitlines()) for lines in (shown, text))
    return of_page in of_program if "--print-schedule" in words else of_page == of_program


def without_commit(text):
    """What a table shows on every machine: the first lines name the commit and the host."""
    lines = [line.rstrip() for line in text.splitlines()]
    first = next((number for number, line in enumerate(lines) if number and not line.startswith("#   ")), 0)
    return "\n".join(lines[first:]) + "\n"


def medians(path):
    """A table of records of one launch: a line for each collective and a column for each number of ranks, in milliseconds."""
    records = map(json.loads, (ROOT / path).read_text(encoding="utf-8").splitlines())
    times = {(one["name"], one["ranks"]): 1e3 * one["median_seconds"] for one in records}
    ranks = sorted({count for _, count in times})
    names = sorted({name for name, _ in times}, key=lambda name: times[name, ranks[-1]])
    rows = [["", *(f"{count} ranks" for count in ranks)], ["---", *["---:"] * len(ranks)],
            *([f"`{name}`", *(f"{times[name, count]:#.3g}".rstrip(".") for count in ranks)] for name in names)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def problems(page, programs, is_written):
    """What a page shows and no program prints, and how many of its texts are printed."""
    text, wrong, right = page.read_text(encoding="utf-8"), [], 0
    found = [(block, shlex.split(block["command"].replace("\\\n", " "))) for block in SHOWN.finditer(text)]
    found = [(block, words, made) for block, words in found if (made := printed(words, programs)) is not None]
    found += [(block, ["./run"], medians(block["records"])) for block in MEDIANS.finditer(text)]
    for block, words, made in sorted(found, key=lambda one: -one[0].start()):
        made = SOURCE_LINE.sub("", made) if "--print-schedule" in words else made
        made = without_commit(made) if "simulator" in words and "--dry-run" not in words else made
        right += 1
        if is_right(words, block["text"], made):
            continue
        wrong.append(f"{page} shows\n{block['text']}and {shlex.join(words)} prints\n{made}")
        if is_written and "--print-schedule" not in words:
            text = text[:block.start("text")] + made + text[block.end("text"):]
    if is_written:
        page.write_text(text, encoding="utf-8")
    return wrong, right


def main():
    shown = re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    if not shown or shown[1] not in (ROOT / "collectives/algorithms/all_scan.cpp").read_text(encoding="utf-8"):
        sys.exit("README.md does not show the all_scan of collectives/algorithms/all_scan.cpp")
    programs, is_written = pathlib.Path(sys.argv[1]).resolve().parent, "--write" in sys.argv[2:]
    found = [problems(page, programs, is_written) for page in commands.pages()]
    wrong, texts = [one for page, _ in found for one in page], sum(right for _, right in found)
    if texts < 8:
        sys.exit(f"only {texts} texts were found: {__doc__}")
    if wrong and not is_written:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
