# SPDX-License-Identifier: Apache-2.0
"""The schema of records is one: harness/schema/fields.hpp, which a bench prints, its committed copy and the docs agree.

  tests/docs/keys_test.py BENCH            tests it
  tests/docs/keys_test.py --write BENCH    rewrites the copy and the table of docs/metrics/keys.md: run it to mend a failure

So are the flags of the benches, which plots/baton/arguments/flags.json lists for ./run.
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLAGS = ROOT / "plots" / "baton" / "arguments" / "flags.json"
BENCHES = ("collective_bench", "operator_bench", "model_bench")
COPY, KEYS, METRICS = ROOT / "plots/baton/fields.json", ROOT / "docs/metrics/keys.md", ROOT / "docs/metrics.md"
TABLE = re.compile(r"(?<=<!-- keys -->\n).*(?=<!-- end of keys -->)", re.DOTALL)
HEAD = "| key | role | unit | flag | meaning |\n| --- | --- | --- | --- | --- |\n"
BENCH = sys.argv.pop()


def printed():
    return subprocess.run([BENCH, "--schema"], capture_output=True, text=True, timeout=60, check=True).stdout


def flags():
    """The lists of flags of the benches that are built, in one JSON object, and the committed ones of the others."""
    lists = dict(re.findall(r'(?ms)^("(?:\w+)": )(\{.*?^\]\})', FLAGS.read_text() if FLAGS.exists() else ""))
    for name in BENCHES:
        if (bench := pathlib.Path(BENCH).with_name(name)).exists():
            key, text = re.fullmatch(r'(?s)("\w+": )(.*)\n', subprocess.run([bench, "--flags"], capture_output=True, text=True,
                                                                          timeout=60, check=True).stdout).groups()
            lists[key] = text
    return "{" + ",\n".join(key + lists[key] for key in sorted(lists)) + "}\n"


def row(field):
    """The line of a key; a value other than null that its absence stands for stands behind the sentence."""
    absent = field.get("absent")
    without = "" if absent in (None, "", []) else f" Without the key: {json.dumps(absent)}."
    flag = ", ".join(f"`{flag}`" for flag in field["flag"].split(", ") if flag)
    return f"| `{field['key']}` | {field['role']} | {field['unit']} | {flag} | {field['help']}{without} |\n"


def table(fields):
    return HEAD + "".join(map(row, fields))


def columns(text):
    """The keys in the second column of the tables of columns."""
    cells = re.findall(r"(?<=\n)\|[^|\n]*\|([^|\n]*)\|", text)
    return {key for cell in cells for key in re.findall(r"`([a-z][a-z0-9_]*)`", cell)}


class Keys(unittest.TestCase):
    def test_the_copy_is_what_benches_print(self):
        self.assertTrue(COPY.read_text() == printed(), f"{COPY} is another schema; {__doc__}")

    def test_the_list_of_flags_is_what_benches_print(self):
        # Elsewhere another executor is the default, which --help shows.
        if "=mpi" not in subprocess.run([BENCH, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout:
            self.skipTest("built without MPI")
        self.assertTrue(FLAGS.read_text() == flags(), f"{FLAGS} lists other flags; {__doc__}")

    def test_the_table_is_made_from_it(self):
        self.assertTrue(TABLE.search(KEYS.read_text()).group() == table(json.loads(printed())), __doc__)

    def test_columns_name_keys_that_there_are(self):
        found = columns(METRICS.read_text())
        self.assertGreater(len(found), 40, "the pattern finds the tables")
        self.assertLessEqual(found, {field["key"] for field in json.loads(printed())})

    def test_benches_have_the_flags_that_it_names(self):
        named = {flag for field in json.loads(printed()) for flag in field["flag"].split(", ") if flag}
        self.assertGreater(len(named), 20)
        self.assertLessEqual(named, set(re.findall(r"--[a-z][a-z-]*", FLAGS.read_text())))


def write():
    COPY.write_text(printed())
    FLAGS.write_text(flags())
    KEYS.write_text(TABLE.sub(lambda _: table(json.loads(printed())), KEYS.read_text()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        unittest.main()
