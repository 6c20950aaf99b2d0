# SPDX-License-Identifier: Apache-2.0
"""Which bench a program that declares natives or methods is, and what it runs unless it says so."""

import unittest
from unittest import mock

import baton
from baton.own import start
from plots.example import InFolder


def declared(natives=(), methods=None):
    return mock.patch.multiple(start, natives=list(natives), methods=methods or {})


class Bench(unittest.TestCase):
    def test_it_is_that_of_what_is_declared_or_asked_for(self):
        for natives, methods, words, bench in (
                (["n"], "", [], "collective"), ([], "m", [], "operator"), (["n"], "m", ["--methods", "m"], "operator"),
                (["n"], "m", ["--collectives=n"], "collective"), ([], "", [], "collective"), (["n"], "m", ["--help"], "operator")):
            with declared(natives, {name: ["gdn"] for name in methods}):
                self.assertEqual(start._bench(words), bench)  # pylint: disable=protected-access

    def test_of_natives_and_methods_one_must_be_chosen(self):
        with declared(["n"], {"m": ["gdn"]}), self.assertRaisesRegex(baton.Error, "--collectives or --methods says what to run"):
            start._bench(["--ranks", "2"])  # pylint: disable=protected-access


class TorchsRanks(unittest.TestCase):
    def test_a_process_group_of_torch_is_ended_and_nothing_else_is_touched(self):
        for is_there, calls in ((True, 1), (False, 0)):
            torch = mock.MagicMock()
            torch.is_initialized.return_value = is_there
            with mock.patch.dict("sys.modules", {"torch.distributed": torch}):
                start._leave_torch()  # pylint: disable=protected-access
            self.assertEqual(torch.destroy_process_group.call_count, calls)
        with mock.patch.dict("sys.modules", {"torch.distributed": None}):
            start._leave_torch()  # pylint: disable=protected-access


class Instructions(InFolder):
    def lacking(self, needed, flags):
        for name, text in (("needed", needed), ("processor", f"vendor_id : X\nflags\t\t: {flags}\nbugs : none\n")):
            (self.folder / name).write_text(text, encoding="utf-8")
        return start._instructions_lacking(self.folder / "needed", self.folder / "processor")  # pylint: disable=protected-access

    def test_those_of_the_build_must_be_there(self):
        self.assertEqual(self.lacking("avx2;avx512vnni;fma", "fpu fma avx avx2 avx512f avx512_vnni"), [])
        self.assertEqual(self.lacking("avx2;avx512vnni;fma", "fpu fma avx avx2"), ["avx512vnni"])
        self.assertEqual(self.lacking("", "fpu"), [])

    def test_a_package_without_a_list_runs_anywhere(self):
        self.assertEqual(start._instructions_lacking(self.folder / "none"), [])  # pylint: disable=protected-access


class Words(unittest.TestCase):
    def words(self, bench, *given):
        return start._unless_given(bench, list(given))  # pylint: disable=protected-access

    def test_rivals_of_ours_stand_beside_what_is_declared(self):
        with declared(["n"]):
            self.assertEqual(self.words("collective", "-b", "1M"), ["--collectives", "all_scan,n"])
        with declared(methods={"m": ["gdn", "linear"], "m2": ["linear"], "m3": ["softmax"]}):
            self.assertEqual(self.words("operator"), ["--methods", "local,zeco,lasp2,m", "--attention", "gdn"])
            self.assertEqual(self.words("operator", "--attention=linear"), ["--methods", "local,zeco,lasp2,m,m2"])
            self.assertEqual(self.words("operator", "--attention", "linear,gdn"), ["--methods", "local,zeco,lasp2,m,m2"])
        with declared(methods={"m": ["softmax"], "m2": ["gdn"]}):
            self.assertEqual(self.words("operator"), ["--methods", "ring_attention_softmax,ulysses_softmax,m"])

    def test_what_the_user_says_is_all(self):
        with declared(methods={"m": ["gdn"]}):
            for given in (["--methods", "m"], ["--list"], ["--version"]):
                self.assertEqual(self.words("operator", *given), [])


if __name__ == "__main__":
    unittest.main()
