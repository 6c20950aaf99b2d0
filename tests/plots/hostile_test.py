# SPDX-License-Identifier: Apache-2.0
"""A thousand records with one key missing, odd or hostile: the readers give one line or a page, and never a traceback."""

import contextlib
import io
import json
import unittest

from baton.checks import ResultsError
from baton.compare import command as compare
from baton.report import answer, page, sessions
from plots.example import InFolder, layer, model, on_gpus, read, record, skipped

try:
    import hypothesis
    from hypothesis import strategies
except ImportError:  # a Debian package that ./run test asks for
    hypothesis = None

ATTACK = "<!--<script><img src=x onerror=alert(1)>\"'&"
RECORDS = [{**read([made])[0], **more} for made in (record("ring_scan"), layer(), model(), on_gpus(), skipped("too few cores"))
           for more in ({}, {"conditions": {"cores": 2, "busy_threads": 4, "oversubscribed": True, "other_load": 0.5}})]
PAGES = 30  # of a thousand: one takes a second


def odd_values():
    leaves = strategies.one_of(strategies.none(), strategies.booleans(), strategies.integers(), strategies.floats(),
                               strategies.text(max_size=20), strategies.sampled_from([ATTACK, "", "\ud800", "\u202e", "\x1b[31m", "auto"]))
    return strategies.recursive(leaves, lambda inner: strategies.one_of(
        strategies.lists(inner, max_size=3), strategies.dictionaries(strategies.text(max_size=5), inner, max_size=3)), max_leaves=5)


def like(value):
    """Odd values of the type that a key has, which the checks of types let through."""
    if isinstance(value, str):
        return strategies.sampled_from([ATTACK, "", "x" * 300, "none/all", "simulator", "local", "linear", "2031-01-01T00:00:00Z"])
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return strategies.sampled_from([0, 1, 2, 3, 2**40, -1, 1e-12, 0.5, 1e14])
    if isinstance(value, dict) and value:
        return strategies.sampled_from(sorted(value)).flatmap(
            lambda key: like(value[key]).map(lambda odd: {**value, key: odd}))
    if isinstance(value, list) and value:
        return strategies.sampled_from([[], value[:1], value * 3, [1e-6] * 7])
    return odd_values()


@unittest.skipUnless(hypothesis, "no hypothesis here: install the package python3-hypothesis")
class Hostile(InFolder):
    def test_a_record_with_one_odd_key_is_refused_in_one_line_or_answered(self):
        pages = iter(range(PAGES))

        @hypothesis.settings(max_examples=1000, deadline=None, derandomize=True, database=None,
                             suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(strategies.data())
        def holds(data):
            made = dict(data.draw(strategies.sampled_from(RECORDS)))
            key = data.draw(strategies.sampled_from(sorted(made)))
            kind = data.draw(strategies.sampled_from(("missing", "odd", "like", "like", "like")))
            if kind == "missing":
                del made[key]
            else:
                made[key] = data.draw(like(made[key]) if kind == "like" else odd_values())
            path = self.folder / "r.jsonl"
            rival = {**made, "name": "lasp2"} if data.draw(strategies.booleans()) else RECORDS[0]
            path.write_text(json.dumps(rival) + "\n" + json.dumps(made) + "\n", encoding="utf-8")
            self.answered(path, next(pages, None) if "onerror" in json.dumps(made) else None)
            self.compared(path)

        holds()

    def answered(self, path, with_page):
        try:
            found = sessions.read([path], sessions.ALL)
        except ResultsError as error:
            self.assertNotIn("\n", str(error))
            return
        for session in found:
            self.assertTrue(answer.lines(session))
        if with_page is not None:
            html = page.html(found[:1], self.folder / "page.html")
            self.assertFalse("<img" in html)
            self.assertFalse("<!--<" in html)

    def compared(self, path):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                compare.main([str(path), str(path)])
        except ResultsError as error:
            self.assertNotIn("\n", str(error))


if __name__ == "__main__":
    unittest.main()
