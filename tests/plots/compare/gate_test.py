# SPDX-License-Identifier: Apache-2.0
"""The gate: which changes it finds, and that it never passes what it could not read."""

import contextlib
import io
import json
import unittest

from baton import cases
from baton.compare import gate
from plots.compare.example import InFolder, simulated, skipped

DRY_RUN = """case (blocks:auto counted as 16)      busiest sends   hops   messages
all_scan/mpi/ranks:3/blocks:auto    2097152      2         32
mpi_exscan/mpi/ranks:3/blocks:1     unknown unknown          0
butterfly/mpi/ranks:3/blocks:1      skipped: needs a power of two
# a remark about all of them
"""


class Figures(unittest.TestCase):
    def test_of_a_dry_run(self):
        self.assertEqual(gate.counted(DRY_RUN), {
            "all_scan/mpi/ranks:3/blocks:auto": {"sent_bytes": 2097152, "hops": 2, "messages": 32},
            "mpi_exscan/mpi/ranks:3/blocks:1": {"sent_bytes": "unknown", "hops": "unknown", "messages": 0},
            "butterfly/mpi/ranks:3/blocks:1": "skipped: needs a power of two"})

    def test_changes_say_what_changed(self):
        figures = {"sent_bytes": 8, "hops": 3, "us": 1.5}
        self.assertIsNone(gate.change_of(figures, dict(figures)))
        self.assertIsNone(gate.change_of(figures, {**figures, "us": 1.5 * (1 + 1e-9)}), "the last bits of a compiler")
        self.assertEqual(gate.change_of(figures, {**figures, "hops": 2, "us": 1.4}), "hops 3 -> 2, us 1.5 -> 1.4")
        self.assertEqual(gate.change_of(figures, None), "missing, was in the baseline")
        self.assertEqual(gate.change_of(figures, "skipped: why"), "bytes 8, hops 3, us 1.5 -> skipped: why")


class Runs(InFolder):
    """The gate with a bench that copies made-up records to the file of its last argument."""

    def setUp(self):
        super().setUp()
        self.baseline = self.folder / "baseline.json"
        self.records = self.write("made.jsonl", [simulated(), simulated("ring_scan"), simulated("two_shot")])
        self.bench('cp "$(dirname "$0")/made.jsonl" "${@: -1}"')

    def bench(self, body):
        path = self.folder / "bench"
        path.write_text(f"#!/usr/bin/env bash\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run_gate(self, accept=False):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = gate.run(self.folder, accept, self.baseline, [("bench", "--executor", "simulator")])
        return code, said.getvalue()

    def test_nothing_changed(self):
        self.assertEqual(self.run_gate(accept=True)[0], 0)
        self.assertEqual(self.run_gate(), (0, "gate: 3 cases, 0 changed, 0 new\n"))
        self.assertEqual(len(self.baseline.read_text(encoding="utf-8").splitlines()), 5, "one line a case")

    def test_changes_fail_until_they_are_accepted(self):
        self.run_gate(accept=True)
        self.write("made.jsonl", [simulated(hops=7), simulated("ring_scan", seconds=101e-6)])
        code, said = self.run_gate()
        self.assertEqual(code, 5)
        self.assertRegex(said, r"(?m)^all_scan/.*: hops 1 -> 7$")
        self.assertRegex(said, r"(?m)^ring_scan/.*: us 100\.0 -> 101\.0$")
        self.assertRegex(said, r"(?m)^two_shot/.*: missing, was in the baseline$")
        self.assertRegex(said, r"3 changed, 0 new; if that is wanted: ./run compare --gate --accept")
        self.run_gate(accept=True)
        self.assertEqual(self.run_gate()[0], 0)

    def test_a_new_case_is_said_and_is_no_change(self):
        self.run_gate(accept=True)
        with open(self.records, "a", encoding="utf-8") as file:
            file.write(json.dumps(simulated("my_scan")) + "\n")
        code, said = self.run_gate()
        self.assertEqual(code, 0)
        self.assertRegex(said, r"(?m)^my_scan/.*: new, not in the baseline\ngate: 3 cases, 0 changed, 1 new; ")

    def test_a_skipped_case_keeps_its_reason(self):
        row = {**skipped("refused"), "executor": "simulator", "topology": "somewhere"}
        self.write("made.jsonl", [row])
        self.run_gate(accept=True)
        self.assertEqual(list(json.loads(self.baseline.read_text(encoding="utf-8")).values()), ["skipped: refused"])

    def test_what_cannot_be_looked_at_never_passes(self):
        with self.assertRaisesRegex(cases.Refused, "cannot read the baseline"):
            self.run_gate()
        self.run_gate(accept=True)
        self.bench("echo 'no luck' >&2; exit 3")
        with self.assertRaisesRegex(cases.Refused, "status 3: no luck"):
            self.run_gate()
        (self.folder / "bench").unlink()
        with self.assertRaisesRegex(cases.Refused, "cannot run bench"):
            self.run_gate()


class Committed(unittest.TestCase):
    def test_the_baseline_holds_collectives_methods_and_natives(self):
        cases = json.loads(gate.BASELINE.read_text(encoding="utf-8"))
        self.assertGreater(len(cases), 200)
        self.assertLessEqual({"all_scan", "two_shot", "ring_all_gather", "mpi_exscan", "zeco", "ring_attention"},
                             {case.split("/")[0] for case in cases})
        self.assertIsInstance(gate.change_of(next(iter(cases.values())), None), str)


if __name__ == "__main__":
    unittest.main()
