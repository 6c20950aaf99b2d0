# SPDX-License-Identifier: Apache-2.0
"""What README.md and docs/ show is what the programs print: python3 readme_test.py COLLECTIVE_BENCH [--write]

<<<<<<< HEAD
README.md has the text of All-Scan and a table of committed records, docs/reading_results.md a table, docs/tour.md schedules,
docs/topologies.md what `./run advise` and `./run predict` print. Column widths follow the longest registered name, so lines
of benches are compared word by word. `--write` rewrites both tables. The other programs lie beside collective_bench.
=======
README.md has the text of All-Scan, docs/reading_results.md a table, docs/tour.md schedules, docs/topologies.md what
`./run advise` says. Column widths follow the longest registered name, so lines of benches are
compared word by word. `--write` puts the program's lines into that table. The other programs lie beside collective_bench.
>>>>>>> 8f5a452 (WIP cut)
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys

from plots import example

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = re.compile(r"(<!-- the test `readme` .*?-->\n +\S*collective_bench (?P<arguments>.*?)\n\n```text\n)"
                    r"(?P<rows>.*?)```", re.DOTALL)
MEDIANS = re.compile(r"(<!-- medians of (results/\S+), checked by the test `readme` -->\n)(.*?\n)\n", re.DOTALL)
SCHEDULE = re.compile(r"^    build/cpu/bin/(\w+) ([^\n]* --print-schedule)\n\n```text\n(.*?)```", re.DOTALL | re.MULTILINE)
SAID = re.compile(r"^    \./run (advise [^\n]*)\n\n```text\n(.*?)```", re.DOTALL | re.MULTILINE)
SOURCE_LINE = re.compile(r" +\w+\.[ch]pp:\d+( in \w+)?$")


def output(bench, arguments):
    done = subprocess.run([bench, *shlex.split(arguments.replace("\\\n", ""))], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{bench} {arguments} ended with status {done.returncode}:\n{done.stderr}")
    return done.stdout.splitlines()


def printed(bench, arguments):
    """Returns what a run prints, but for the first lines, which name the commit."""
    lines = [line.rstrip() for line in output(bench, arguments)]
    first = next(number for number, line in enumerate(lines) if number > 0 and not line.startswith("#   "))
    return lines[first:]


def check_schedules(benches):
    text = (ROOT / "docs/tour.md").read_text(encoding="utf-8")
    shown = SCHEDULE.findall(text)
    if not shown:
        sys.exit("docs/tour.md shows no schedule")
    for bench, arguments, schedule in shown:
        lines = words(SOURCE_LINE.sub("", line) for line in output(benches / bench, arguments))
        for line in words(schedule.splitlines()):
            if line not in lines:
                sys.exit(f"docs/tour.md shows a step that {bench} {arguments} does not print:\n{' '.join(line)}")


def check_said(benches):
    text = (ROOT / "docs/topologies.md").read_text(encoding="utf-8")
    shown = SAID.findall(text)
    if not shown:
        sys.exit("docs/topologies.md shows no answer of advise")
    for command, answer in shown:
        name, *rest = shlex.split(command)
        done = subprocess.run(example.command(name, "--programs", benches, *rest), cwd=ROOT, text=True,
                              capture_output=True, check=False)
        if done.returncode or done.stdout != answer:
            sys.exit(f"docs/topologies.md shows\n{answer}and ./run {command} says\n{done.stdout}{done.stderr}")


def check_all_scan(text):
    shown = re.search(r"```cpp\n(.*?)```", text, re.DOTALL)
    if not shown or shown[1] not in (ROOT / "collectives/algorithms/all_scan.cpp").read_text(encoding="utf-8"):
        sys.exit("README.md does not show the all_scan of collectives/algorithms/all_scan.cpp")


def medians(path):
    """A table of records of one launch: a line for each collective and a column for each number of ranks, in milliseconds."""
    records = map(json.loads, (ROOT / path).read_text(encoding="utf-8").splitlines())
    times = {(one["name"], one["ranks"]): 1e3 * one["median_seconds"] for one in records}
    ranks = sorted({count for _, count in times})
    names = sorted({name for name, _ in times}, key=lambda name: times[name, ranks[-1]])
    rows = [["", *(f"{count} ranks" for count in ranks)], ["---", *["---:"] * len(ranks)],
            *([f"`{name}`", *(f"{times[name, count]:.3g}" for count in ranks)] for name in names)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def check_medians(text, is_written):
    shown = MEDIANS.search(text)
    if not shown:
        sys.exit("README.md shows no medians")
    made = medians(shown[2])
    if is_written:
        (ROOT / "README.md").write_text(text[:shown.start(3)] + made + text[shown.end(3):], encoding="utf-8")
    elif made != shown[3]:
        sys.exit(f"README.md shows\n{shown[3]}and {shown[2]} has\n{made}")


def words(lines):
    return [line.split() for line in lines]


def main():
    is_written = "--write" in sys.argv[2:]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    check_all_scan(readme)
    check_medians(readme, is_written)
    benches = pathlib.Path(sys.argv[1]).resolve().parent
    check_schedules(benches)
    check_said(benches)
    page = ROOT / "docs/reading_results.md"
    text = page.read_text(encoding="utf-8")
    sample = SAMPLE.search(text)
    if not sample:
        sys.exit(f"{page} has no sample of the table")
    rows = printed(sys.argv[1], sample["arguments"])
    if is_written:
        made = sample[1] + "\n".join(rows) + "\n```"
        page.write_text(text[:sample.start()] + made + text[sample.end():], encoding="utf-8")
    elif words(rows) != words(sample["rows"].splitlines()):
        sys.exit(f"{page} shows\n" + sample["rows"] + "and the program prints\n" + "\n".join(rows) +
                 "\nTo put these lines into it: python3 tests/docs/readme_test.py COLLECTIVE_BENCH --write")
    else:
        print(f"{len(rows)} lines of {page} are what the program prints")


if __name__ == "__main__":
    main()
