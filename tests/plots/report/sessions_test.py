# SPDX-License-Identifier: Apache-2.0
"""Which records are of one session, where no key says it."""

import unittest

from baton.report.sessions import session_of
from plots.example import record


class Sessions(unittest.TestCase):
    def test_runs_of_one_commit_are_launches_of_one_session(self):
        self.assertEqual(session_of(record(run="a")), session_of(record(run="b")))
        self.assertNotEqual(session_of(record(run="a")), session_of(record(run="a", commit="abc-dirty-12345678")))

    def test_an_unknown_commit_equals_no_other(self):
        runs = [record(run=one, commit="unknown") for one in ("a", "a", "b")]
        self.assertEqual(len(set(map(session_of, runs))), 2)
        self.assertEqual({session_of({**one, "session": "s"}) for one in runs}, {"s"})


if __name__ == "__main__":
    unittest.main()
