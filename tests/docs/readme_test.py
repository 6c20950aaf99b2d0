# SPDX-License-Identifier: Apache-2.0
"""The table of README.md is what its command prints, and its All-Scan is that of collectives/all_scan.cpp:
python3 readme_test.py COLLECTIVE_BENCH [--write]

Column widths follow the longest registered name, so lines are compared word by word. `--write` puts the program's lines
into README.md.
"""

import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = re.compile(r"(<!-- the test `readme` .*?-->\n +\S*collective_bench (?P<arguments>.*?)\n\n```text\n)(?P<rows>.*?)```",
                    re.DOTALL)


def printed(bench, arguments):
    """The head of the table, the simulated machine and the rows, without the lines that name this machine."""
    done = subprocess.run([bench, *shlex.split(arguments.replace("\\\n", ""))], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{bench} {arguments} ended with status {done.returncode}:\n{done.stderr}")
    return [line.rstrip() for line in done.stdout.splitlines() if line.startswith("# simulator") or line[:1] not in ("#", "")]


def check_all_scan(text):
    shown = re.search(r"```cpp\n(.*?)```", text, re.DOTALL)
    if not shown or shown[1] not in (ROOT / "collectives/all_scan.cpp").read_text(encoding="utf-8"):
        sys.exit("README.md does not show the all_scan of collectives/all_scan.cpp")


def words(lines):
    return [line.split() for line in lines]


def main():
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    check_all_scan(text)
    sample = SAMPLE.search(text)
    if not sample:
        sys.exit("README.md has no sample of the table")
    rows = printed(sys.argv[1], sample["arguments"])
    if "--write" in sys.argv[2:]:
        made = sample[1] + "\n".join(rows) + "\n```"
        readme.write_text(text[:sample.start()] + made + text[sample.end():], encoding="utf-8")
    elif words(rows) != words(sample["rows"].splitlines()):
        sys.exit("README.md shows\n" + sample["rows"] + "and the program prints\n" + "\n".join(rows) +
                 "\nTo put these lines into README.md: python3 tests/docs/readme_test.py COLLECTIVE_BENCH --write")
    else:
        print(f"{len(rows)} lines of README.md are what the program prints")


if __name__ == "__main__":
    main()
