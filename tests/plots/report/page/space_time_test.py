# SPDX-License-Identifier: Apache-2.0
"""The space-time diagram is drawn from a trace alone, with every step and message in its place."""

import json
import unittest

from baton import traces
from baton.report.page import space_time
from plots.example import InFolder, run_here


def span(rank, verb, start, finish, name=""):
    return {"ph": "X", "cat": verb, "name": name or verb, "pid": rank, "tid": 0, "ts": start,
            "dur": finish - start, "args": {}}


def arrow(number, sender, sent, receiver, received):
    common = {"cat": "message", "name": "message", "id": number, "tid": 0}
    return [{"ph": "s", **common, "pid": sender, "ts": sent},
            {"ph": "f", **common, "pid": receiver, "ts": received, "bp": "e"}]


def trace(*events, ranks=2):
    return {"traceEvents": [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "rank 0"}}, *events],
            "otherData": {"case": f"zeco/overlapped/mpi/ranks:{ranks}/forward/isolated/blocks:auto",
                          "executor": "mpi", "ranks": ranks, "blocks": 8, "rounds": 1, "commit": "abc"}}


ROUND = trace(span(0, "compute", 0, 50, "intra_output"), span(0, "send", 10, 30), span(1, "recv", 10, 40),
              *arrow(0, 0, 10, 1, 40), span(1, "combine", 40, 45), span(1, "send", 45, 70),
              span(0, "recv", 50, 80), *arrow(1, 1, 45, 0, 80))


def on_gpus(rank, verb, start, finish, **arguments):
    return {**span(rank, verb, start, finish), "args": {"region": "all_scan", **arguments}}


# Two kernels exchange two blocks under local work, whose steps all have the times of their kernel.
KERNELS = trace(span(0, "compute", 0, 100, "intra_output"),
                *(on_gpus(0, "send", 10, 30) for _ in range(2)),
                *(on_gpus(1, "recv", 10, 40, posted=8) for _ in range(2)), *(on_gpus(1, "combine", 8, 40) for _ in range(2)),
                *arrow(0, 0, 10, 1, 40), *arrow(1, 0, 10, 1, 40))
KERNELS["otherData"]["executor"] = "peer_bf16"


class SpaceTime(InFolder):
    def draw(self, text, *arguments):
        path = self.folder / "trace.json"
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return run_here("figure", "trace", "--trace", path, "--out", self.folder, *arguments)

    def figure(self, text, between=None):
        figure = space_time.draw(traces.parse(text), between)
        return figure.axes[0]

    def test_draws_both_formats_and_the_same_file_again(self):
        self.assert_draws_the_same("space_time", lambda: self.draw(ROUND))
        self.assert_draws_the_same("other", lambda: self.draw(ROUND, "--name", "other"))

    def test_arrows_go_from_send_to_receive(self):
        from matplotlib.quiver import Quiver
        quiver, = [artist for artist in self.figure(ROUND).collections if isinstance(artist, Quiver)]
        ends = [(x, round(y), x + u, round(y + v)) for x, y, u, v in zip(quiver.X, quiver.Y, quiver.U, quiver.V)]
        self.assertEqual(ends, [(10, 0, 40, 1), (45, 1, 80, 0)])

    def test_bars_have_the_colour_of_their_verb_and_lie_on_their_rank(self):
        from matplotlib.collections import PolyCollection
        from matplotlib.colors import to_rgba
        from matplotlib.quiver import Quiver

        from baton import style
        found = {}
        for artist in self.figure(ROUND).collections:
            if isinstance(artist, PolyCollection) and not isinstance(artist, Quiver):
                for path in artist.get_paths():
                    box = path.get_extents()
                    found.setdefault(tuple(artist.get_facecolor()[0]), []).append(
                        (round(box.x0), round(box.x1), round(box.y0), round(box.y1)))
        self.assertEqual(found[to_rgba(style.BLUE)], [(0, 50, 0, 0)])
        self.assertEqual(found[to_rgba(style.VERMILION)], [(40, 45, 1, 1)])
        self.assertCountEqual(found[to_rgba(style.SKY)],
                              [(10, 30, 0, 0), (50, 80, 0, 0), (10, 40, 1, 1), (45, 70, 1, 1)])

    def test_names_kernels_that_are_long_enough(self):
        texts = [text.get_text() for text in self.figure(ROUND).texts]
        self.assertEqual(texts, ["intra_output"])
        brief = trace(span(0, "compute", 0, 1, "intra_output"), span(1, "compute", 0, 1000, "chunk_states"))
        self.assertEqual([text.get_text() for text in self.figure(brief).texts], ["chunk_states"])

    def test_long_rounds_are_in_milliseconds(self):
        self.assertIn("µs", self.figure(ROUND).get_xlabel())
        axes = self.figure(trace(span(0, "compute", 0, 4e6)))
        self.assertIn("ms", axes.get_xlabel())
        self.assertAlmostEqual(axes.get_xlim()[1], 4040)

    def test_a_part_of_the_round(self):
        axes = self.figure(ROUND, between=(20, 60))
        self.assertEqual(axes.get_xlim(), (20, 60))
        self.assertEqual([text.get_position()[0] for text in axes.texts], [35], "in the middle of what is seen")
        self.assertIn("µs", self.figure(trace(span(0, "compute", 0, 4e6)), between=(5000, 5500)).get_xlabel())
        self.assertEqual(self.draw(ROUND, "--between", "20", "60").returncode, 0)
        backwards = self.draw(ROUND, "--between", "60", "20")
        self.assertEqual(backwards.returncode, 2)
        self.assertIn("FROM must be less than TO", backwards.stderr)

    def test_messages_that_overlap_are_under_way_once(self):
        spans = [traces.Span(0, "send", "", start, finish) for start, finish in ((5, 9), (0, 3), (2, 4), (9, 10))]
        self.assertEqual(space_time.union(spans), [[0, 4], [5, 10]])

    def test_thirty_two_ranks_all_to_all(self):
        pairs = [(a, b) for a in range(32) for b in range(32) if a != b]
        messages = [event for number, (a, b) in enumerate(pairs) for event in arrow(number, a, a, b, 40 + b)]
        spans = [span(rank, "send", rank, 70) for rank in range(32)]
        self.assertEqual(self.draw(trace(*spans, *messages, ranks=32)).returncode, 0)

    def test_an_exchange_on_gpus_is_one_bar_a_kernel_on_its_own_lane(self):
        one = traces.parse(KERNELS)
        self.assertEqual([(span.rank, span.verb, span.name, span.start, span.finish) for span in one.spans],
                         [(0, "compute", "intra_output", 0, 100), (0, "exchange", "all_scan", 10, 30),
                          (1, "exchange", "all_scan", 8, 40)])
        self.assertEqual(len(one.messages), 1)
        compute, exchange = (space_time.place(verb, ["compute", "exchange"]) for verb in ("compute", "exchange"))
        self.assertLess(sum(compute), exchange[0])
        self.assertEqual(self.draw(KERNELS).returncode, 0)

    def test_bad_traces_are_one_line(self):
        for text, said in (("{", "not JSON"), ("[" * 100000, "not JSON"), ("[]", "not a trace"), ("3", "not a trace"),
                           ('{"traceEvents": [{"ph": "X"}]}', "not a trace"),
                           ('{"traceEvents": [], "otherData": {}}', "not a trace"),
                           (trace(arrow(0, 0, 1, 1, 2)[0]), "not a trace"), (trace(), "no step to draw")):
            done = self.draw(text)
            self.assertEqual(done.returncode, 2, text)
            self.assertIn(said, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_file_that_is_not_there(self):
        done = run_here("figure", "trace", "--trace", self.folder / "none.json", "--out", self.folder)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1))
        self.assertIn("No such file", done.stderr)


if __name__ == "__main__":
    unittest.main()
