# SPDX-License-Identifier: Apache-2.0
"""Which competitors, what proves nothing, and that nothing simulated stands under a measured heading."""

import re
import unittest

from baton import results
from baton.report import axes, certainty
from plots.example import ROOT
from plots.report.example import (
    crowded,
    failed,
    gpu_scan,
    launches,
    layer,
    local,
    paragraphs,
    scan,
    session,
    simulated,
    answer_text,
    with_conditions,
)
from plots.report.page.pages import html_of


def rivals(**changes):
    return scan("all_scan", 100, **changes) + scan("all_gather_scan", 150, 0.001, **changes)


class Rows(unittest.TestCase):
    def keys(self, *groups):
        return [comparison.group for comparison in session(*groups).comparisons]

    def test_algorithms_modes_and_blocks_share_a_comparison(self):
        self.assertEqual(len(self.keys(rivals(), scan(blocks_asked=4, blocks=4))), 1)
        modes = [layer(mode=mode) for mode in ("exposed", "overlapped")]
        self.assertEqual(len(self.keys(local(), *modes)), 1)

    def test_executors_of_gpus_share_a_comparison(self):
        self.assertEqual(len(self.keys(gpu_scan(), gpu_scan("all_gather_scan", executor="nccl"))), 1)

    def test_what_is_not_the_algorithm_parts_comparisons(self):
        for changes in ({"ranks": 2}, {"state_bytes": 65536}, {"direction": "reverse"}, {"cadence": "streaming"},
                        {"kind": "all_gather"}, {"rounds": 50}, {"executor": "peer_bf16"}):
            self.assertEqual(len(self.keys(scan(), scan(**changes))), 2, changes)
        for changes in ({"which": "forward"}, {"tokens": 2048}, {"heads": 8}, {"kv_heads": 4}, {"latent": True}, {"gates": "mixed"},
                        {"dtype": "bf16"}, {"packed": 100}):
            self.assertEqual(len(self.keys(layer(), layer(**changes))), 2, changes)
        self.assertEqual(len(self.keys(layer(), layer("ring_attention_softmax"))), 2)

    def test_tokens_part_exchanges_of_tokens(self):
        for kind in ("exchange", "all_to_all", "to_zigzag"):
            self.assertEqual(len(self.keys(scan(kind=kind), scan(kind=kind, tokens=1))), 2)

    def test_a_row_has_its_launches_and_their_geometric_mean(self):
        (comparison,) = session(scan(microseconds=100, factors=(1, 4))).comparisons
        (row,) = comparison.rows
        self.assertEqual(len(row.launches), 2)
        self.assertAlmostEqual(row.median, 200e-6)
        self.assertLess(row.interval[0], row.median)

    def test_a_ratio_pairs_the_launches_that_both_rows_ran_in(self):
        drifting = (1, 2, 4)
        (comparison,) = session(scan(factors=drifting), scan("two_shot", 110, factors=drifting)).comparisons
        ratio = comparison.rows[1].ratio_to(comparison.rows[0])
        self.assertAlmostEqual(ratio.value, 1.1)
        self.assertLess(ratio.interval[1], 1.11)
        self.assertEqual(ratio.launches, 3)

    def test_a_row_that_failed_in_one_launch_has_no_time(self):
        made = scan("ring_scan")[:2] + [{**failed()[0], "launch": 3}]
        (comparison,) = session(made, rivals()).comparisons
        self.assertEqual([row.name.name for row in comparison.lost], ["ring_scan"])
        self.assertNotIn("ring_scan", [row.name.name for row in comparison.competitors])


class Executors(unittest.TestCase):
    """Each executor that the benches register, also those that only a build for GPUs has."""

    def registered(self):
        """Returns {name: whether it is one of GPUs}, and the number of all registrations."""
        found, count = {}, 0
        header = (ROOT / "collectives/executors/device_names.hpp").read_text(encoding="utf-8")
        names = dict(re.findall(r'(\w+) = "(\w+)";', header))  # of the variables that registrations name
        for path in (ROOT / "collectives/executors").rglob("*.c*"):
            text = path.read_text(encoding="utf-8")
            count += len(re.findall(r"^const RegisteredExecutor \w+", text, re.MULTILINE))
            for name in re.findall(r'^const RegisteredExecutor \w+(?: =\s+\w+\(\s*|\{\{\s*\.name = )("?\w+)', text, re.MULTILINE):
                found[name[1:] if name.startswith('"') else names[name]] = path.suffix == ".cu"
        return found, count

    def rows(self, executor, is_gpu, make, names):
        device = {"device": {"gpu": "Example GPU"}} if is_gpu else {}
        return [one for number, name in enumerate(names)
                for one in make(name, 100 + 50 * number, 0.001, executor=executor, ranks=2, **device)]

    def test_rows_of_each_executor_compete(self):
        found, count = self.registered()
        self.assertEqual(len(found), count, "a registration is spelled in a way that this test does not know")
        self.assertLessEqual({"local", "mpi", "tcp", "nccl", "peer", "peer_bf16"}, set(found))
        for executor, is_gpu in found.items():
            for make, names in ((scan, ("all_scan", "all_gather_scan")), (layer, ("zeco", "lasp2"))):
                rows = self.rows(executor, is_gpu, make, names)
                (comparison,), text = session(rows).comparisons, answer_text(rows)
                with self.subTest(executor=executor, names=names):
                    self.assertEqual(len(comparison.competitors), 2)
                    self.assertRegex(html_of(session(rows)), f'{names[0]}</button>.*<td class="best"[^>]*>fastest')
                    self.assertNotIn("Nothing to compare", text)
                    if executor in results.FOR_CHECKS:
                        self.assertIn(f"Nothing can be said of speed: {executor} runs all ranks in one process", text)
                    else:
                        self.assertIn(f"fastest is {names[0]}", text)
                        self.assertEqual("bf16 on the wire" in text, comparison.wire == "bf16")
                    self.assertEqual(comparison.on_gpus, is_gpu)

    def test_other_kinds_are_answered_too(self):
        for rows, said in ((rivals(direction="reverse"), "Exclusive scan, reverse, 2 MiB a rank, 4 ranks on processors, 2 compared: fastest is all_scan"),
                           (rivals(kind="all_gather") + rivals(kind="all_gather", ranks=2), "At 2 ranks: fastest is all_scan"),
                           (layer(attention="gdn") + layer("lasp2", 2, attention="gdn"), "GDN attention, both passes, .*: fastest is zeco")):
            self.assertRegex(answer_text(rows), said)

    def test_axes_in_which_comparisons_differ_are_said_of_each(self):
        rows = [one for chunk in (64, 128) for name in ("zeco", "lasp2") for one in layer(name, 1, chunk=chunk, kv_heads=2)]
        found = [axes.heading(one) for one in session(rows).comparisons]
        self.assertEqual([one.rpartition(", ")[2] for one in found], ["chunk 128", "chunk 64"])
        self.assertNotIn("chunk", axes.heading(session(layer()).comparisons[0]))

    def test_executors_of_hosts_are_comparisons_of_their_own(self):
        text = answer_text(rivals(executor="tcp"), rivals(executor="mpi"))
        self.assertIn("4 ranks on processors, 2 compared: fastest is all_scan", text)
        self.assertIn("4 ranks on tcp, 2 compared: fastest is all_scan", text)


class Oversubscribed(unittest.TestCase):
    def test_a_run_of_four_ranks_on_two_cores_proves_nothing(self):
        for made in (crowded(rivals(), 2), with_conditions(rivals(), cores=2)):
            text = answer_text(made)
            self.assertIn("THIS RUN PROVES NOTHING ABOUT SPEED: exchanges of 4 ranks on 2 cores had more busy threads", text)
            self.assertNotRegex(text, r"Fastest|least|times as long")

    def test_a_rank_of_a_layer_has_two_busy_threads(self):
        made = [{**one, "ranks": 2} for one in layer() + layer("lasp2", 1.2)]
        text = answer_text(rivals(ranks=2), crowded(made, 2))
        self.assertIn("Layer Nothing can be said: its ranks had more busy threads than cores.", text)
        self.assertIn("(layers of 2 ranks with two busy threads each on 2 cores)", text)
        self.assertIn("fastest is zeco", answer_text(crowded(made, 4)))

    def test_a_rank_of_a_gpu_has_one(self):
        made = [one for name in ("zeco", "lasp2") for one in layer(name, len(name), executor="peer", ranks=2, device={"gpu": "Example GPU"})]
        self.assertIn("fastest is zeco", answer_text(crowded(made, 2)))

    def test_oversubscribed_rows_are_left_out_and_the_others_answer(self):
        wrong_way = [scan("all_scan", 300, ranks=4), scan("all_gather_scan", 200, ranks=4)]
        text = answer_text(rivals(ranks=2), *(crowded(made, 2) for made in wrong_way))
        self.assertIn("2 ranks on processors, 2 compared: fastest is all_scan", text)
        self.assertIn("2 oversubscribed rows left out: more busy threads than cores (exchanges of 4 ranks on 2", text)

    def test_benches_that_shared_cores_alike_are_named_together(self):
        made = crowded(scan(ranks=4) + scan("ring_scan", ranks=2) + layer(ranks=4), 2)
        self.assertEqual(certainty.ranks_on_cores(made),
                         "exchanges of 2 and 4 ranks, layers of 4 ranks with two busy threads each on 2 cores")
        alike = [{**one, "bench": bench} for one in layer(ranks=2) for bench in ("operator", "model")]
        self.assertEqual(certainty.ranks_on_cores(crowded(alike, 2)),
                         "layers and models of 2 ranks with two busy threads each on 2 cores")

    def test_a_quota_of_processor_time_is_named_and_what_it_held_back(self):
        made = [with_conditions(rivals(ranks=2), cores=2, busy=2, oversubscribed=True, quota=1.0, throttled=35)]
        text = answer_text(*made)
        self.assertIn("PROVES NOTHING ABOUT SPEED: exchanges of 2 ranks on 1 of 2 cores (quota) had", text)
        self.assertIn("The quota of processor time (1 of the cores) held processes back in 2 rows", text)
        self.assertIn("up to 35 times", text)

    def test_a_quota_that_had_time_for_all_ranks_leaves_the_answer(self):
        text = answer_text(with_conditions(rivals(ranks=2), cores=4, busy=2, quota=2.5, throttled=1))
        self.assertIn("fastest is all_scan", text)
        self.assertIn("The quota of processor time (2.5 of the cores) held processes back in 2 rows", text)
        self.assertIn("up to 1 time:", text)

    def test_what_the_record_says_counts_more_than_the_machine(self):
        self.assertFalse(results.is_oversubscribed(with_conditions(crowded(scan(), 2), cores=8)[0]))

    def test_several_ranks_on_one_gpu_are_no_measure_of_a_link(self):
        made = gpu_scan(ranks_per_gpu=4) + gpu_scan("all_gather_scan", 12, ranks_per_gpu=4)
        text = answer_text(made)
        self.assertNotIn("Fastest", text)
        self.assertIn("several ranks on one GPU left out: no measure of a link", text)


class Simulated(unittest.TestCase):
    def growing(self):
        """all_scan leads to 16 ranks, two_shot from 64 on."""
        return [simulated(scan(name, 31.7 * ranks * factor, ranks=ranks)) for ranks in (16, 64, 256)
                for name, factor in (("all_scan", 1 if ranks < 64 else 3), ("two_shot", 2), ("all_gather_scan", 5))]

    def test_no_simulated_number_stands_under_a_measured_heading(self):
        only_simulated = simulated(scan("hierarchical_scan", 3.21, ranks=4))
        layers = [simulated(layer(name, 7.77, ranks=8)) for name in ("zeco", "lasp2")]
        found = paragraphs(rivals(), layer(), layer("lasp2", 1.2), *self.growing(), only_simulated, *layers)
        mark = found.pop("~ Simulated")
        self.assertIn("somewhere-32x8", mark)
        self.assertNotRegex(" ".join(found.values()), r"~|hierarchical|3\.21|7\.77|two_shot|256|somewhere")
        self.assertNotRegex(re.sub(r"~[\d.]+", "", mark), r"\d us|\d ms|\[")

    def test_where_it_changes_as_ranks_grow(self):
        mark = paragraphs(rivals(), *self.growing())["~ Simulated"]
        self.assertEqual(mark, "~ exchange of 2 MiB simulated on somewhere-32x8: all_scan fastest at 16 ranks; "
                               "two_shot fastest at 64 to 256; LASP-2 (all_gather_scan) ~2.50 times as long as two_shot at 256.")

    def test_methods_that_only_part_at_more_ranks(self):
        made = [simulated(layer(name, milliseconds, ranks=ranks)) for ranks, times in ((4, (1, 1.01)), (64, (1, 2)))
                for name, milliseconds in zip(("zeco", "lasp2"), times)]
        self.assertEqual(paragraphs(rivals(), *made)["~ Simulated"], "~ layer simulated on somewhere-32x8: zeco and lasp2 tie within "
                         "23 % at 4 ranks; zeco fastest at 64; LASP-2 ~2.00 times as long as zeco "
                         "at 64.")

    def test_what_the_model_cannot_tell_is_no_change(self):
        made = [simulated(scan(name, microseconds, ranks=ranks)) for ranks, times in ((16, (10, 10.5)), (64, (10.5, 10)))
                for name, microseconds in zip(("all_scan", "two_shot"), times)]
        self.assertIn("all_scan and two_shot tie within 23 % at 16 to 64 ranks.", paragraphs(rivals(), *made)["~ Simulated"])

    def test_a_simulated_session_measured_nothing(self):
        found = paragraphs(*self.growing())
        self.assertIn("Nothing was measured: all rows are simulated.", found["ANSWER"])
        self.assertEqual(set(found), {"ANSWER", "~ Simulated", "Verified"})

    def test_the_error_of_predictions_is_said(self):
        predicted = [{**one, "predicted_seconds": 0.8 * one["median_seconds"]} for one in rivals()]
        misled = [{**one, "ranks": 128, "predicted_seconds": 1e-9} for one in predicted]
        self.assertIn("Predictions of the measured rows are off by 25 % in the mean.",
                      answer_text(predicted, misled, *self.growing()))

    def test_measured_and_simulated_rows_never_share_a_comparison(self):
        made = [launches(scan()[0], executor="simulator", topology=name) for name in ("one", "other")]
        self.assertEqual(len(session(scan(), *made).comparisons), 3)


if __name__ == "__main__":
    unittest.main()
