# SPDX-License-Identifier: Apache-2.0
"""Methods in Python with the wheel that `./run wheel` left: methods_test.py FOLDER_OF_THE_WHEEL

numpy_method.py is the method, right or with a fault that FAULT names. Each fault is one row with its reason, beside a row
of Baton's that is timed.
"""

import json
import pathlib

import wheels

PROGRAM = pathlib.Path(__file__).resolve().with_name("numpy_method.py")
SMALL = ["--tokens", "24", "--heads", "2", "--d-k", "8", "--d-v", "4", "-n", "10", "-w", "3"]
# The exit code of the run with each fault, and what its row says, which has no time: a regular expression.
WRONG, FAILED = 4, 5
FAULTS = {
    "o": (WRONG, "o: relative error 1.0e-02"), "last_token": (WRONG, "rank 1, o: relative error"),
    "dq": (WRONG, "dq: relative error 1.0e-02"), "dk": (WRONG, "dk: relative error 1.0e-02"),
    "dv": (WRONG, "dv: relative error 1.0e-02"), "dg": (WRONG, "dg: relative error 1.0e-02"),
    "nan": (WRONG, "is nan"), "unwritten": (WRONG, "o: element 0 was not written"), "stale": (WRONG, "relative error"),
    "sometimes": (WRONG, "left other results than"), "spoils_inputs": (WRONG, "relative error"),
    "shape": (FAILED, r"o is float32 \[23, 2, 4\], expected float32 \[24, 2, 4\]"),
    "type": (FAILED, r"o is float64 \[24, 2, 4\], expected float32 \[24, 2, 4\]"),
    "too_few": (FAILED, "expected the gradients dq, dk, dv, dg, found 2"),
    "raises": (FAILED, r"numpy_method.py:\d+: KeyError: 'the reason'"), "exits": (FAILED, r"rank 1: numpy_method.py:\d+: SystemExit: 3"),
    "dies": (FAILED, "rank 1 is gone"), "crashes": (FAILED, "rank 1: died of SIGSEGV"),
    "hangs": (FAILED, "exceeded the time limit"),
}


class Methods(wheels.Installed):
    def rows(self, *words, fault=""):
        """({name: [record]}, what the run said, its exit code)"""
        journal = pathlib.Path(self.folder.name) / "rows.jsonl"
        journal.unlink(missing_ok=True)
        done = self.run_program(PROGRAM, *SMALL, "-J", journal, *words, FAULT=fault)
        records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()] if journal.exists() else []
        by_name = {name: [one for one in records if one["name"] == name] for name in ("local", "zeco", "lasp2", "numpy_chain")}
        return by_name, done

    def test_a_right_one_is_timed_and_verified_beside_ours_in_every_pass(self):
        rows, done = self.rows("--ranks", "1,2,3", "--pass", "all", "--launches", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("local", "zeco", "lasp2", "numpy_chain"):
            self.assertEqual(sorted((one["ranks"], one["pass"], one["launch"]) for one in rows[name] if one["wrong"] == 0),
                             sorted((ranks, which, launch) for ranks in (1, 2, 3) for which in ("backward", "both", "forward")
                                    for launch in (1, 2)), name)
        self.assertIn("tcp Python", done.stdout)
        self.assertIn("a call of an empty function in Python takes", done.stdout)
        claimed = {(one["ranks"], one["pass"]): (one["sent_bytes"], one["hops"]) for one in rows["numpy_chain"]}
        state = 4 * 2 * 8 * 4
        self.assertEqual((claimed[3, "forward"], claimed[3, "both"]), ((state, 2), (2 * state, 4)))
        self.assertTrue(all(one["bound_seconds"] > 0 for one in rows["numpy_chain"] if one["ranks"] > 1))

    def test_a_fault_is_one_row_with_its_reason(self):
        for fault, (code, reason) in FAULTS.items():
            with self.subTest(fault):
                words = ["--timeout", "20"] if fault == "hangs" else []
                rows, done = self.rows("--ranks", "2", "--methods", "zeco,numpy_chain", *words, fault=fault)
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                self.assertIn("seconds", rows["zeco"][0])
                self.assertEqual(len(rows["numpy_chain"]), 1)
                self.assertNotIn("seconds", rows["numpy_chain"][0])
                self.assertRegex(" ".join(done.stderr.split()), reason)

    def test_what_ranks_print_stays_out_of_the_table(self):
        _, done = self.rows("--ranks", "2", "--methods", "numpy_chain", fault="prints")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("hello", done.stdout)
        for rank in (0, 1):
            self.assertIn(f"rank {rank} says hello", done.stderr)

    def test_a_missing_backward_pass_and_other_layers_are_refused_by_name(self):
        for words, fault, said in ((["--pass", "both"], "no_backward", "it has no backward pass"),
                                   (["--attention", "gdn"], "", "its text has the decay rule, not the delta rule"),
                                   (["--mode", "exposed"], "", "a method in Python runs as it is written")):
            _, done = self.rows("--ranks", "2", "--methods", "numpy_chain", *words, fault=fault)
            self.assertIn(f"skipped: {said}", " ".join(done.stdout.split()))

    def test_what_it_needs_and_does_not_find_is_the_reason_of_a_skipped_row(self):
        for words, said in (("needs='none_such'", "this Python has no module none_such"), ("most_ranks=1", "it takes at most 1 rank")):
            done = self.run_program("-c", f"import baton; baton.method('one', {words})(print); baton.main()", "--ranks", "2",
                                    "--pass", "forward", *SMALL)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"skipped: {said}", " ".join(done.stdout.split()))

    def test_a_program_whose_ranks_end_early_is_told(self):
        for program, ranks in (("baton.method('one')(print); baton.start_ranks()", "1,2"),
                               ("baton.method('one')(print); baton.start_ranks(); raise SystemExit(0)", "2")):
            done = self.run_program("-c", f"import baton; {program}", "--ranks", ranks, "--pass", "forward", *SMALL)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "baton: the ranks of this program ended before the end of baton.main()\n"))

    def test_methods_that_fail_take_no_rows_of_others(self):
        methods = "".join(f"baton.method('bad{i}')(lambda layer: 1 / 0); " for i in range(4))
        done = self.run_program("-c", f"import baton; {methods}baton.main()", "--ranks", "2", "--pass", "forward", *SMALL,
                                "--methods", "bad0,bad1,bad2,bad3,zeco")
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^zeco .* 24x2")
        self.assertEqual(" ".join(done.stdout.split()).count("ZeroDivisionError"), 4)

    def test_what_is_declared_wrongly_ends_in_one_line(self):
        for line, said in (("baton.method('one', attention='gnd')(print)", "unknown word 'gnd'; known: deltanet, gdn"),
                           ("baton.method('one', layout='zig')(print)", "unknown word 'zig'; known: contiguous"),
                           ("baton.method('zeco')(print)", "the method 'zeco' is registered twice"),
                           ("baton.method('one', attention='softmx')(print)", "or softmax alone"),
                           ("baton.method('one', hops=1)", "give both, or none")):
            done = self.run_program("-c", f"import baton; {line}; baton.main()")
            self.assertIn(said, done.stderr.splitlines()[-1])
            self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    wheels.main()
