# SPDX-License-Identifier: Apache-2.0
"""What the answer says of measured exchanges and layers, and that it never says more than the intervals do."""

import unittest

from baton.report import layout
from plots.example import ROOT
from plots.report.example import (
    SCANS,
    answer,
    crowded,
    failed,
    gpu_scan,
    layer,
    local,
    methods,
    paragraphs,
    scan,
    scans,
    session,
    sessions,
    simulated,
    answer_text,
    with_conditions,
)


class Exchanges(unittest.TestCase):
    def test_a_winner_is_named_with_runner_up_and_lasp2(self):
        text = paragraphs(scans())["Exchange"]
        self.assertRegex(text, r"fastest is all_scan, 100 us \[97\.\d, 10\d\]; the next, two_shot, takes 1\.100 \[1\.09")
        self.assertRegex(text, r"all_gather_scan, takes 1\.500 \[1\.49\d, 1\.50\d\] times as long as all_scan\.")
        self.assertRegex(text, r"all_scan reaches \d+ % of what the link allows\.")

    def test_who_loses_is_named_with_how_much(self):
        tie = [*scan("all_scan", 100, 0.1), *scan("two_shot", 101, -0.1)]
        self.assertRegex(paragraphs(tie, scan("ring_scan", 200))["Exchange"],
                         r"Slower: ring_scan, 2\.\d+ \[1\.\d+, 2\.\d+\] times as long\.")
        self.assertIn("Slower: ring_scan and chain, 2 to 4 times as long.",
                         paragraphs(tie, scan("ring_scan", 200), scan("chain", 400))["Exchange"])
        self.assertNotIn("Slower", answer_text(tie))
        self.assertNotIn("Slower", answer_text(scan("all_scan", 100), scan("two_shot", 200)))  # the next, and said already
        self.assertNotIn("Slower", answer_text(scan("all_scan", 100, factors=(1.0,)), scan("two_shot", 200, factors=(1.0,))))

    def test_what_launches_do_not_repeat_is_no_winner(self):
        text = paragraphs(scan("all_scan", 100, 0.1), scan("two_shot", 110, -0.1), scan("all_gather_scan", 500))["Exchange"]
        self.assertIn("3 compared: cannot tell all_scan, ", text)
        self.assertIn("from two_shot, which takes", text)
        self.assertNotIn("fastest is", text)

    def test_lasp2_within_the_noise_is_said_so(self):
        text = answer_text(scan("all_scan", 100, 0.1), scan("two_shot", 101, -0.05), scan("all_gather_scan", 104, -0.1))
        self.assertRegex(text, r"all_gather_scan, takes 1\.\d+ \[0\.\d+, 1\.\d+\] times as long as \w+: the launches cannot tell")

    def test_one_launch_names_nobody(self):
        text = answer_text(scans(factors=(1.0,)))
        self.assertIn("one launch cannot tell a winner; all_scan took least, 100 us, and two_shot 1.10 times as long; the slowest, all_gather_scan, 1.50 times.", text)
        self.assertNotIn("fastest is", text)
        self.assertNotIn("[", text)
        self.assertIn("Exchange in 1 launch only: another launch may say otherwise", text)

    def test_what_lies_within_the_margin_is_a_tie(self):
        text = answer_text(scan("all_scan", 100), scan("two_shot", 100.8, 0.0001), scan("all_gather_scan", 150))
        self.assertIn("a tie of all_scan, 100 us [97.5, 103], and two_shot, which takes 1.008 [1.00", text)

    def test_the_only_equal_is_named_with_its_own_ratio(self):
        text = answer_text(scan("all_scan", 100), scan("two_shot", 105, 0.0001), scan("ring_scan", 110, 0.2),
                    scan("all_gather_scan", 150))
        self.assertRegex(text, r"from ring_scan, which takes 1\.1\d \[0\.\d+, 1\.\d+\] times as long")

    def test_gpus_come_before_processors_and_both_are_said(self):
        found = paragraphs(scans(), gpu_scan("all_scan_fused", 10), gpu_scan("all_gather_scan", 12, 0.001))
        self.assertIn("2 MiB a rank, 4 GPUs, 2 compared: fastest is all_scan_fused, 10.0 us", found["Exchange"])
        self.assertIn("Exclusive scan, 4 ranks on processors, 3 compared: fastest is all_scan", found["Exchange"])

    def test_another_winner_at_another_size_is_said(self):
        small = dict(state_bytes=65536, heads=1)
        made = [scan("all_scan", 9, **small), scan("two_shot", 5, 0.001, **small), scan("all_gather_scan", 9, **small)]
        text = answer_text(scans(), *made)
        self.assertIn("Exclusive scan, 2 MiB a rank, 4 ranks on processors, 3 compared: fastest is all_scan", text)
        self.assertIn("At 64 KiB: fastest is two_shot, 5.00 us [", text)

    def test_one_row_is_the_same_at_sizes_with_fewer_executors(self):
        both = [gpu_scan(name, time, executor=executor) for name, time in (("all_scan", 10), ("two_shot", 20))
                for executor in ("peer", "nccl")]
        small = [gpu_scan(name, time, state_bytes=size, size=size) for name, time in (("all_scan", 5), ("two_shot", 9), ("x", 8))
                 for size in (65536, 131072, 262144)]
        text = answer_text(*both, *small)
        self.assertIn("at all 4 sizes (64 KiB to 2 MiB), nothing is measurably faster than all_scan on peer. Fastest is all_scan on peer in 3 of 4 "
                      "(64 KiB, 128 KiB and 256 KiB). Always slower: two_shot on peer, 1.8 to 2 times as long.", text)

    def test_the_fastest_of_each_executor_is_named(self):
        both = [gpu_scan(name, time * slower, executor=executor) for name, time in (("all_scan", 10), ("two_shot", 20))
                for executor, slower in (("peer", 1), ("nccl", 1.5))]
        self.assertRegex(answer_text(*both), r"On nccl all_scan has the lowest median, 1\.50\d? \[[^]]*\] times as long as all_scan on peer\.")

    def test_an_interrupted_run_says_so(self):
        found = session(scans())
        found.interrupted = True
        self.assertIn("Caveats The run was interrupted, so rows or launches are missing: the same command with --resume", " ".join(" ".join(answer.lines(found)).split()))

    def test_rows_that_ran_in_different_launches_are_compared_as_groups(self):
        text = answer_text(scan("all_scan", 100, factors=(1, 1.2, 0.8)),
                    scan("all_gather_scan", 110, run="b", factors=(1, 0.8, 1.2)))
        self.assertIn("cannot tell all_scan", text)

    def test_numbers_of_blocks_do_not_compete_with_the_chosen_one(self):
        swept = [one for blocks in (1, 4) for one in scan(microseconds=50, blocks_asked=blocks, blocks=blocks)]
        text = answer_text(scan("all_scan", 100, blocks_asked="auto"), swept, scan("all_gather_scan", 150, 0.001))
        self.assertIn("2 compared: fastest is all_scan, 100 us", text)

    def test_wires_that_round_are_a_comparison_of_their_own(self):
        rounding = [gpu_scan(name, 5 + number, executor="peer_bf16", wire_dtype="bf16")
                    for number, name in enumerate(("all_scan", "two_shot", "all_gather_scan"))]
        text = answer_text(gpu_scan("all_scan_fused", 10), gpu_scan("all_gather_scan", 12, 0.001), *rounding)
        self.assertIn("fastest is all_scan_fused, 10.0 us", text)


class Layers(unittest.TestCase):
    def test_methods_within_a_percent_are_said_to_be(self):
        text = paragraphs(methods(noise=0.0))["Layer"]
        self.assertRegex(text, r"a tie of 3; zeco has the lowest median, 1\.02 ms \[[^]]*\]; lasp1 and lasp2 are within 2 % of it\.")
        self.assertNotIn("confidence", text)  # one figure for one uncertainty
        self.assertRegex(text, r"exchange of zeco would cost at most 3\.\d % of a layer's time, so it hardly matters\.")

    def test_an_exchange_that_matters(self):
        self.assertRegex(answer_text(methods(exchange=0.4, zeco=1.2)), r"cost \d+ % of a layer's time, so it matters\.")

    def test_an_exchange_that_may_matter(self):
        noisy = layer("zeco", 1.05, mode="exposed", noise=0.1)
        made = [one for one in methods() if (one["name"], one["mode"]) != ("zeco", "exposed")]
        self.assertIn("of a layer's time, too wide to say whether it matters.", answer_text(made, noisy))

    def test_without_other_modes_the_layer_without_exchange_stands_beside(self):
        self.assertRegex(answer_text(local(1.0), layer("zeco", 1.02), layer("lasp2", 1.04)),
                         r"zeco takes 1\.020 \[1\.0\d\d, 1\.0\d\d\] times as long as without any exchange\.")

    def test_softmax_is_ranked_apart(self):
        softmax = [layer(name, milliseconds, gate="none", scan="") for name, milliseconds in
                   (("ring_attention_softmax", 0.5), ("ring_attention_zigzag", 0.4))]
        found = paragraphs(methods(), *softmax)
        self.assertIn("3 compared: a tie of 3; zeco", found["Layer"])
        self.assertIn("Softmax attention, 2 compared: fastest is ring_attention_zigzag", found["Layer"])

    def test_local_work_alone_does_not_compete(self):
        self.assertNotRegex(answer_text(methods()), r"(fastest is |the next, )local")


def without_breaks(text):
    return "".join(text.split())


class Layout(unittest.TestCase):
    def assert_whole(self, made):
        """That each finding, caveat and failure is printed whole, and that what is left out is counted."""
        lines = answer.lines(made)
        text = without_breaks("".join(line[layout.INDENT:] for line in lines))
        left = [one for one in answer.sentences(made) if without_breaks(one.text) not in text]
        self.assertFalse([one for one in left if one.worth == layout.MUST or one.heading == answer.CERTAINTY], lines)
        counted = [line for line in lines if line.startswith(layout.LEFT_OUT)]
        self.assertEqual([int(line.split()[2]) for line in counted], [len(left)] * bool(left), lines)
        ends = [line for line, then in zip(lines, [*lines[1:], "X"]) if then[0] != " "]  # the last one of each paragraph
        self.assertFalse([line for line in ends if not line.endswith(".")], lines)
        self.assertLessEqual(max(map(len, lines)), layout.COLUMNS)

    def test_answers_of_the_records_of_this_tree_are_whole(self):
        found = [one for place in sessions.folders_of(ROOT / "results") for one in sessions.every(place)]
        self.assertGreater(len(found), 5)
        for made in found:
            with self.subTest(path=made.path, session=made.name):
                self.assert_whole(made)

    def test_every_kind_of_session_is_answered_whole(self):
        two_cores = [scans(ranks=2), [{**one, "threads_per_rank": 1} for one in methods(ranks=2)]]
        simulated_ones = [simulated(scan(name, time, ranks=ranks)) for name, time in SCANS for ranks in (2, 64, 256)]
        kinds = {"two cores": two_cores, "tcp": [scans(executor="tcp")], "simulated": simulated_ones, "failed": [failed(), scans()],
                 "GPUs": [gpu_scan(), gpu_scan("two_shot", 12), methods(device={"gpu": "Example GPU"}, executor="peer")],
                 "one launch": [scan(factors=(1.0,)), scan("two_shot", factors=(1.1,))], "crowded": [crowded(scans(ranks=9), 2)]}
        for kind, made in kinds.items():
            with self.subTest(kind):
                self.assert_whole(session(*made))
        self.assertIn("2 ranks on processors, one thread a rank, 3 compared: ", answer_text(*two_cores))

    def test_findings_that_need_more_lines_are_printed_whole(self):
        """One GPU in a host whose layers are simulated beside three measured benches."""
        long = [f"{name}_of_a_machine_with_a_long_name" for name in ("all_scan", "two_shot", "ring_scan", "tree_scan", "other")]
        more = [{**one, "topology": "a topology of a long name with its links and kernels"} for ranks in (2, 16, 256)
                for number, name in enumerate(long) for one in simulated(layer(name, 1 + number * ranks / 64, ranks=ranks))]
        one_gpu = local(0.826, executor="nccl", ranks=1, device={"gpu": "Example GPU"}, dtype="bf16")
        scans_of_five = [one for number, name in enumerate(long) for one in scan(name, 100 + number, 0.1 / (1 + number))]
        slow = [{**one, "conditions": {"cores": 64, "busy_threads": 4, "oversubscribed": False, "other_load": 9.0}}
                for name in long for one in layer(name, 2.0, 0.2)]
        made = session(one_gpu, scans_of_five, slow, local(1.0), failed(long[0], "it waited " * 20), more)
        self.assertGreater(len(answer.lines(made)), layout.WANTED_LINES)
        self.assert_whole(made)

    def test_a_caveat_stays_where_optional_sentences_go(self):
        made = with_conditions(scans(0.1) + methods(noise=0.2), load=4.3)
        made += crowded(scan(ranks=9), 2) + gpu_scan("x" * 300, 10, 0.1) + gpu_scan("y" * 300, 10, -0.1)
        text = "\n".join(answer.lines(session(made)))
        self.assertIn("Other processes used up to 4.3 of 64 cores meanwhile.", text)
        self.assertRegex(text, r"\nLeft out +\d+ sentences; the page has them\.\nVerified ")

    def test_the_answer_fits_its_lines(self):
        long = "a_collective_of_an_unusually_long_name_"
        made = [scan(f"{long}{size}_{number}", 100 + number, 0.1 if size % 2 else 0.001 * number,
                     state_bytes=65536 << size) for size in range(6) for number in range(8)]
        made += [scan("all_gather_scan", 200, 0.001), methods(noise=0.2), crowded(scan(ranks=9), 2),
                 gpu_scan(long, 10, 0.1), gpu_scan("all_gather_scan", 10, -0.1)]
        lines = answer.lines(session(*made))
        self.assertLessEqual(len(lines), layout.WANTED_LINES)
        self.assertLessEqual(max(map(len, lines)), layout.COLUMNS)
        self.assertTrue(lines[-1].startswith("Verified"), lines)

    def test_names_of_any_length_are_printed_whole(self):
        made = [scan("x" * 1500 + str(number), 100 + number, 0.1) for number in range(8)]
        lines = answer.lines(session(*made))
        self.assertEqual(max(map(len, lines)), layout.COLUMNS)
        self.assertIn("x" * 1500 + "0", "".join(line.strip() for line in lines))
        self.assertIn("Verified", lines[-1])

    def test_sentences_have_lines_of_their_own_where_they_fit(self):
        lines = answer.lines(session(scans()))
        self.assertIn(True, [line.startswith("Exchange     Exclusive scan, 2 MiB a rank, 4 ranks on processors, 3 compared: fastest") for line in lines], lines)
        self.assertIn("LASP-2's gather here, all_gather_scan, takes", "".join(line for line in lines if "LASP-2" in line), lines)

    def test_a_session_of_nothing_but_failures(self):
        lines = answer_text([{**one, "wrong": 3} for one in scan()])
        self.assertIn("Exchange No row has a time.", lines)
        self.assertIn("1 wrong of 1 row: all_scan", lines)


if __name__ == "__main__":
    unittest.main()
