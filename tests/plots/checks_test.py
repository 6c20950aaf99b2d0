# SPDX-License-Identifier: Apache-2.0
"""Checks of records and of outputs: each error names the file, the line and the key."""

import json
import math
from unittest import mock

from baton import checks, files
from baton.checks import ResultsError
from baton.paper import published
from plots.example import InFolder, layer, on_gpus, record


class Kinds(InFolder):
    def refusal(self, **changes):
        with self.assertRaises(ResultsError) as caught:
            checks.check({**record(), **changes}, (), "r.jsonl:3")
        return str(caught.exception)

    def test_good_records_pass(self):
        for good in (record(), layer(), on_gpus(), record(bound_seconds=None, blocks_asked="auto", hidden=None)):
            self.assertIs(checks.check(good, (), "r.jsonl:1"), good)

    def test_what_no_computation_survives(self):
        for key, value in (("median_seconds", None), ("median_seconds", math.nan), ("median_seconds", 0),
                           ("median_seconds", 10**400), ("mean_seconds", "1"), ("ranks", 0), ("ranks", 2.5), ("ranks", True),
                           ("ci95_seconds", [1]), ("ci95_seconds", [2.0, 1.0]), ("ci95_seconds", [math.inf, math.inf]),
                           ("name", "a\nb"), ("name", "\ud800"), ("commit", ["abc"]), ("machine", {"cpu": 5}),
                           ("machine", []), ("device", {"driver": "1"}), ("schema", 2), ("blocks_asked", "many"),
                           ("bound_seconds", -1), ("pass", "sideways"), ("mask", "half"), ("mask", "window:0"), ("mask", 3), ("state", "some"), ("rank_seconds", ["x"]), ("rank_seconds", [[1e-6], []]), ("rank_seconds", [[1e-6], [True]]),
                           ("seconds", [1e-6, math.nan]), ("seconds", [math.inf]), ("seconds", [True]), ("rounds_as_last", ["x"]), ("rounds_as_last", [None, 1]),
                           ("commit", "a\u200fb"), ("commit", "\u2028"), ("machine", {"environment": {"OMPI_x": "\x1b[31m"}})):
            said = self.refusal(**{key: value})
            self.assertRegex(said, rf"^r\.jsonl:3: {key}(\.[\w.]+)?: expected ")
            self.assertLess(len(said), 200)

    def test_the_part_of_an_object_that_is_wrong_is_named(self):
        for machine, said in (({"environment": {"OMP_PLACES": "cores", "OMP_X": "a\tb"}}, "machine.environment.OMP_X: expected one line"),
                              ({"settings": {"btl": "\u2028"}}, "machine.settings.btl: expected one line"),
                              ({"cores": "two", "cpu": "c"}, "machine.cores: expected a whole number"),
                              ({"environment": {"OMP_\n": "a"}}, "machine.environment: expected an object of texts"), ([], "machine: expected")):
            self.assertIn(f"r.jsonl:3: {said}", self.refusal(machine=machine))

    def test_an_interval_holds_its_median(self):
        self.assertIn("ci95_seconds: expected the median in it", self.refusal(ci95_seconds=[2.0, 3.0]))

    def test_torn_lines_are_none(self):
        path = self.folder / "r.jsonl"
        whole = json.dumps({"a": "line\u2028separator"}, ensure_ascii=False).encode("utf-8")
        path.write_bytes(whole + b'\n{"b": \n\xff\xfe\n' + b"[" * 5000 + b"\n\0\0\0\n\n" + whole)
        self.assertEqual([value is checks.NO_JSON for value, _ in checks.json_lines(path)], [False, True, True, True, True, False])
        self.assertEqual([where for _, where in checks.json_lines(path)][-1], f"{path}:7")

    def test_a_line_without_an_end_is_read_no_further(self):
        with mock.patch.object(checks, "LONGEST_LINE", 1 << 20), self.assertRaisesRegex(checks.ResultsError, "/dev/zero:1: the line is longer"):
            list(checks.json_lines("/dev/zero"))

    def test_published_cells(self):
        path = self.folder / "cells.csv"
        for text, said in (("method\nx\n", "1: the table lacks the columns value"),
                           ("method,value,gpus\na,b\n", ":2: gpus: expected a whole number"),
                           ("method,value,gpus\na,b,x\n", ":2: gpus: expected a whole number"),
                           ("method,value,gpus\na,b,3,4\n", "")):
            path.write_text(text, encoding="utf-8")
            if said:
                with self.assertRaisesRegex(ResultsError, said):
                    published.load_cells(path, texts=("method", "value"), numbers=("gpus",))
            else:
                self.assertEqual(len(published.load_cells(path, texts=("method", "value"), numbers=("gpus",))), 1)


class OverLaunches(InFolder):
    def test_an_interval_over_two_launches_may_be_of_any_width(self):
        is_kind, _ = checks.KINDS["over_launches"]
        over = {"launches": 2, "median_seconds": 2e-3, "ci95_seconds": [3.7e-16, 1.1e10], "ratio": None, "ratio_ci95": None,
                "hidden": None}
        self.assertTrue(is_kind(over))
        self.assertFalse(is_kind({**over, "ci95_seconds": [2, 1]}))


class Outputs(InFolder):
    def test_a_place_that_is_a_file_is_one_line(self):
        place = self.folder / "out"
        place.write_text("mine", encoding="utf-8")
        with self.assertRaises(OSError) as caught:
            files.write(place, {"a.csv": "text"})
        self.assertEqual(caught.exception.filename, str(place))
        self.assertEqual(place.read_text(encoding="utf-8"), "mine")

    def test_names_are_no_formulas(self):
        odd = [record(ranks=ranks, machine={"cpu": "$\\frac{1}$ & $x", "cores": 2}) for ranks in (2, 4)]
        done = self.figure_of([*odd, *({**one, "name": "two_shot"} for one in odd)], "ranks")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
