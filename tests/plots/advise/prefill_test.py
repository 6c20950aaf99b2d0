# SPDX-License-Identifier: Apache-2.0
"""A prefill over the numbers of ranks, from made-up times: where more ranks stop to pay."""

import json
import unittest

from baton.advise import prefill

QUESTION = prefill.Question("somewhere.json", "a-model", [8192], [1, 2, 4, 8], "bf16")


class Prefill(unittest.TestCase):
    def said(self, **methods):
        head, margin, titles, *rows = prefill.lines(QUESTION, {8192: methods})
        self.assertIn("forward pass of a-model, bf16", head)
        self.assertIn("a gain below 23 %", margin)
        self.assertEqual(titles.split()[:5], ["tokens", "method", "P", "=", "1"])
        return rows

    def test_more_ranks_stop_to_pay_where_the_simulator_sees_no_gain(self):
        row, = self.said(zeco={1: 4.0, 2: 2.0, 4: 1.0, 8: 0.9})
        self.assertEqual(row.split()[:2], ["8,192", "zeco"])
        self.assertTrue(row.endswith("stop to pay at P = 4"), row)

    def test_small_gains_add_up_until_they_can_be_told(self):
        self.assertTrue(self.said(zeco={1: 1.0, 2: 0.9, 4: 0.8})[0].endswith("may pay"))
        self.assertEqual(prefill.last_that_pays({1: 1.0, 2: 0.9, 4: 0.8, 8: 0.79}), 4)

    def test_where_the_most_ranks_gain_more_may_pay(self):
        self.assertTrue(self.said(zeco={1: 4.0, 2: 2.0, 4: 1.0, 8: 0.5})[0].endswith("may pay"))

    def test_more_ranks_that_take_longer_do_not_pay(self):
        self.assertEqual(prefill.last_that_pays({1: 1.0, 2: 1.5, 4: 3.0}), 1)

    def test_a_number_of_ranks_without_a_time_is_left_out(self):
        row, = self.said(whole={1: 4.0, 4: 1.0, 8: 0.99})
        self.assertEqual(row.split()[2:8], ["4.00", "s", "-", "1.00", "s", "990"])
        self.assertTrue(row.endswith("stop to pay at P = 4"), row)

    def test_as_json_every_method_has_its_times(self):
        found, = json.loads(prefill.as_json({8192: {"zeco": {1: 1.0, 2: 0.5}}}))
        self.assertEqual(found, {"sequence": 8192, "name": "zeco", "seconds": {"1": 1.0, "2": 0.5}, "last_that_pays": 2})


if __name__ == "__main__":
    unittest.main()
