# SPDX-License-Identifier: Apache-2.0
"""The settings of the tables are what --like asks of the benches, and what the records of the page show."""

import subprocess
import unittest

from baton import results
from baton.paper import measure, settings
from plots.example import BENCHES, ROOT, InFolder

NAMES = sorted(path.stem for path in settings.SETTINGS.glob("*.json"))
# Keys of records whose names are not those of their flags. A flag that takes a list has several records.
KEYS = {"d-k": "d_k", "d-v": "d_v", "kv-heads": "kv_heads", "methods": "name", "collectives": "name"}
PASSES = {"all": "forward,backward,both"}


def asked(flags):
    """{key of records: the values that the settings ask for}."""
    shown = {KEYS.get(flag, flag): value for flag, value in flags.items() if flag != "lines"}
    asked_for = {key: set(map(str, PASSES.get(value, value).split(","))) if isinstance(value, str) else {str(value)}
                 for key, value in shown.items()}
    if "lines" in flags:  # data-parallel is a method of its own
        asked_for["name"].add("local")
    return asked_for


class Settings(InFolder):
    def test_each_value_has_a_source(self):
        for name in NAMES:
            found = settings.load(name)
            self.assertEqual(found["name"], name)
            self.assertEqual(found["flags"].keys(), found["sources"].keys())
            self.assertTrue(all(found["sources"].values()))

    def test_the_rounds_are_those_of_the_papers_set_up(self):
        rounds = {number: settings.flags(settings.table(number)) for number in measure.TABLES}
        self.assertEqual({number: (flags["warmup"], flags["rounds"]) for number, flags in rounds.items()},
                         {2: (5, 50), 3: (5, 50), 4: (5, 50), 5: (5, 100), 6: (5, 100)})

    @unittest.skipUnless(BENCHES, "no benches")
    def test_the_benches_ask_for_them(self):
        for name in NAMES:
            found = settings.load(name)
            if found["bench"] not in BENCHES:
                continue
            heads = "2" if name.startswith("zeco") else "16"
            small = {"collective_bench": [], "operator_bench": ["--tokens", "16", "--dtype", "f32", "--heads", heads],
                     "model_bench": ["--tokens", "32", "--layers", "1", "--width", "64", "--heads", "2", "--mlp", "64"]}
            records = self.folder / f"{name}.jsonl"
            done = subprocess.run([BENCHES[found["bench"]], "--like", name, *small[found["bench"]], "--executor", "local",
                                   "--ranks", "2", "-J", records], capture_output=True, text=True, check=False)
            self.assertIn(done.returncode, (0, 6), done.stderr)
            self.compare(found["flags"], results.load([records]), overridden=small[found["bench"]])

    def test_records_of_the_tables_show_them(self):
        for number in measure.TABLES:
            name = settings.table(number)
            own = ["--tokens", "--model"]  # what --measure may ask for otherwise, as of blocks alone, in which nothing is exchanged
            own += ["--methods", "--lines"] * (settings.load(name)["bench"] == "model_bench")
            for path in (ROOT / "results").glob(f"*/{name}.jsonl"):
                self.compare(settings.flags(name), results.load([path]), overridden=own, whole=False)

    def compare(self, flags, records, overridden, whole=True):
        """That records show the values of the flags, all of them if `whole`, except those that were overridden."""
        self.assertTrue(records)
        for key, values in asked({flag: value for flag, value in flags.items() if f"--{flag}" not in overridden}).items():
            found = {str(record[key]) for record in records if "skipped" not in record or key not in ("warmup", "rounds")}
            self.assertLessEqual(found, values, key)
            if whole:
                self.assertEqual(found, values, key)


if __name__ == "__main__":
    unittest.main()
