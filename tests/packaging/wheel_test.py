# SPDX-License-Identifier: Apache-2.0
"""The wheel that `./run wheel` left, in a bare virtual environment: wheel_test.py FOLDER_OF_THE_WHEEL"""

import pathlib
import re
import subprocess

import wheels
from harness.process.torchrun_like import start

ROOT = pathlib.Path(__file__).resolve().parents[2]

TEXT = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
WRONG = """
import baton
@baton.native("wrong_scan")
def wrong_scan(call):
    call.into[:] = 1
baton.main()
"""
ALL_MAPS = """
import baton
@baton.native("any_map")
def any_map(call):
    carry = call.state
    if call.rank > 0:
        call.receive(call.into, call.rank - 1)
        carry = (call.into @ call.matrix if call.map == "affine" else call.decay * call.into) + call.state
    if call.rank + 1 < call.ranks:
        call.send(carry, call.rank + 1)
baton.main()
"""


class Wheel(wheels.Installed):
    def in_venv(self, program, *words):
        return subprocess.run([self.python, "-I", "-c", program, *map(str, words)], cwd=self.folder.name, capture_output=True,
                              text=True, check=False)

    def ranks(self, count, *words):
        """(output, errors, exit code) of each of `count` ranks."""
        if not self.has_numpy:
            self.skipTest("numpy cannot be had here")
        processes = start(count, [self.python, *words], extra={"PYTHONPATH": ""}, cwd=self.folder.name, **TEXT)  # the wheel's package
        return [(*process.communicate(timeout=120), process.returncode) for process in processes.values()]

    def test_it_reads_records_without_the_source_tree(self):
        told = self.in_venv("import baton, sys; print(len(baton.read(sys.argv[1]).rows()) > 0)", ROOT / "results/two-cores")
        self.assertEqual((told.stdout, told.stderr), ("True\n", ""))

    def test_there_is_no_mpi_inside(self):
        module = self.in_venv("import baton._harness as module; print(module.__file__)").stdout.strip()
        self.assertNotIn("libmpi", subprocess.run(["ldd", module], check=True, capture_output=True, text=True).stdout)

    def test_the_registry_of_executors_is_there_for_those_of_gpus(self):
        told = self.in_venv("import ctypes, baton._harness as module; "
                            "ctypes.CDLL(module.__file__)._ZZN5baton17executor_registryEvE3all; print('there')")
        self.assertEqual((told.stdout, told.stderr), ("there\n", ""))

    def test_a_program_without_a_launcher_starts_its_ranks(self):
        if not self.has_numpy:
            self.skipTest("numpy cannot be had here")
        told = self.in_venv(WRONG, "--ranks", "3", "--collectives", "wrong_scan,all_scan", "--heads", "1", "-n", "5", "-J", "own.jsonl")
        self.assertEqual(told.returncode, 4, told.stdout + told.stderr)
        rows = self.in_venv("import baton; print([(r['name'], r['ranks']) for r in baton.read('own.jsonl')])")
        self.assertEqual(rows.stdout, "[('wrong_scan', 3), ('all_scan', 3)]\n", rows.stderr)

    def test_the_example_is_a_verified_row_beside_all_scan(self):
        lines = (ROOT / "docs/examples/numpy_chain.py").read_text().splitlines()
        self.assertLessEqual(len(lines), 25)
        ends = self.ranks(3, str(ROOT / "docs/examples/numpy_chain.py"), "--heads", "2", "-n", "20", "-J", "records.jsonl")
        self.assertEqual([code for _, _, code in ends], [0, 0, 0], ends)
        for name in ("my_scan", "all_scan"):
            self.assertTrue(re.search(rf"(?m)^!?{name} .* 96K$", ends[0][0]), ends[0][0])  # verified elements
        told = self.in_venv("import baton; print([(r['name'], r['hops'], r['wrong']) for r in baton.read('records.jsonl')])")
        self.assertEqual(told.stdout, "[('all_scan', 2, 0), ('my_scan', 2, 0)]\n", told.stderr)

    def test_a_wrong_result_has_no_time(self):
        ends = self.ranks(2, "-c", WRONG, "--collectives", "wrong_scan", "--heads", "1", "-n", "5")
        self.assertEqual(ends[0][2], 4, ends)
        self.assertIn("wrong", ends[0][0] + ends[0][1])

    def test_maps_of_every_kind_in_both_directions(self):
        for direction in ("forward", "reverse"):
            ends = self.ranks(3, "-c", ALL_MAPS, "--map", "diagonal,scalar,affine", "--direction", direction, "--heads", "2",
                              "--d-k", "8", "--d-v", "6", "-n", "5", "-J", "maps.jsonl")
            self.assertEqual([code for _, _, code in ends], [0, 0, 0], ends)
        told = self.in_venv("import baton; print(sorted((r.get('map', 'diagonal'), r['wrong'], 'seconds' in r) for r in "
                            "baton.read('maps.jsonl') if r['name'] == 'any_map'))")
        self.assertEqual(told.stdout, str(sorted(2 * [(kind, 0, True) for kind in ("affine", "diagonal", "scalar")])) + "\n",
                         told.stderr + ends[0][0])

    def test_an_affine_map_has_no_decay(self):
        program = WRONG.replace("call.into[:] = 1", "call.decay")
        ends = self.ranks(2, "-c", program, "--collectives", "wrong_scan", "--map", "affine", "--heads", "1", "-n", "5")
        self.assertNotIn(0, [code for _, _, code in ends])
        self.assertIn("an affine map has a matrix and no decay", ends[0][1] + ends[1][1])

    def test_an_exception_ends_all_ranks_in_one_line(self):
        program = WRONG.replace("call.into[:] = 1", "raise KeyError('the reason')")
        ends = self.ranks(2, "-c", program, "--collectives", "wrong_scan", "--heads", "1", "-n", "5")
        self.assertNotIn(0, [code for _, _, code in ends])
        self.assertIn("the reason", ends[0][1] + ends[1][1])


if __name__ == "__main__":
    wheels.main()
