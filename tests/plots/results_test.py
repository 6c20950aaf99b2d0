# SPDX-License-Identifier: Apache-2.0
"""Which records a table or figure is made of."""

import contextlib
import io
import math
import statistics
import unittest

from baton import results
from plots.example import InFolder, layer, local, model, read, record, skipped, write


class Loading(InFolder):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "r.jsonl"

    def test_leaves_out_half_a_line_and_says_where(self):
        write(self.path, [record()])
        with open(self.path, "a", encoding="utf-8") as file:
            file.write('{"name": "all_sc')
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(len(results.load([self.path])), 1)
        self.assertIn("r.jsonl:2:", said.getvalue())

    def test_many_broken_lines_are_one_word(self):
        self.path.write_bytes(b"\xff\n" * 300)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(results.load([self.path]), [])
            self.assertEqual(results.load([self.path], "operator"), [])
        self.assertEqual(said.getvalue(), f"{self.path}: 300 lines are not whole records, left out; the first is line 1\n")

    def test_null_is_no_record(self):
        self.path.write_text("null\n", encoding="utf-8")
        with self.assertRaisesRegex(results.ResultsError, r"r\.jsonl:1: a record is an object, this is null"):
            results.load([self.path])

    def test_models_are_a_bench_of_their_own_whose_keys_are_checked(self):
        write(self.path, [record(), model()])
        self.assertEqual(results.load([self.path], "model"), read([model()]))
        for key, value in (("line", "half"), ("layers", 0), ("beside", 3), ("model", None)):
            write(self.path, [model(**{key: value})])
            with self.assertRaisesRegex(results.ResultsError, rf"r\.jsonl:1: {key}: expected"):
                results.load([self.path], "model")

    def test_lines_and_what_is_beside_the_blocks_are_no_equals(self):
        found = [model(), model(line="split"), model("local", line="dp"), model(beside="sharded weights"), model(layers=4)]
        self.assertEqual(len(results.newest(read(found))), 5)

    def test_names_the_line_and_the_missing_key(self):
        broken = record()
        del broken["median_seconds"]
        write(self.path, [record(), broken])
        with self.assertRaisesRegex(results.ResultsError, r"r\.jsonl:2: .*median_seconds"):
            results.load([self.path])

    def test_wrong_results_need_no_timings(self):
        wrong = record(wrong=1)
        del wrong["median_seconds"]
        write(self.path, [wrong])
        self.assertEqual(results.load([self.path]), read([wrong]))

    def test_each_bench_reads_its_own_records(self):
        write(self.path, [record(), layer(), {"bench": "another"}])
        self.assertEqual(results.load([self.path], "collective"), read([record()]))
        self.assertEqual(results.load([self.path], "operator"), read([layer()]))

    def test_what_other_projects_measured_is_no_record_of_ours(self):
        row = {"peer": "other", "version": "1", "kernel": "k", "pass": "forward", "tokens": 1, "heads": 1, "d_k": 1,
               "d_v": 1, "dtype": "bf16", "median_seconds": 1.0, "gpu": "g", "time": "2030-01-01T00:00:00Z"}
        exchange = {"peer": "other", "collective": "all_gather", "median_seconds": 1.0}
        write(self.path, [row, exchange, record()])
        self.assertEqual(results.load([self.path]), read([record()]))
        self.assertEqual(results.load_peers([self.path]), [row])
        write(self.path, [{"peer": "other"}])
        with self.assertRaisesRegex(results.ResultsError, r"r\.jsonl:1: .*median_seconds"):
            results.load_peers([self.path])

    def test_names_a_record_of_no_bench(self):
        write(self.path, [{"name": "all_scan"}])
        with self.assertRaisesRegex(results.ResultsError, r"r\.jsonl:1: .*bench"):
            results.load([self.path])


class Choosing(unittest.TestCase):
    def test_the_newest_run_of_a_case_counts(self):
        old = record(milliseconds=1, time="2030-01-01T00:00:00Z")
        new = record(milliseconds=2, time="2030-01-02T00:00:00Z", run="b")
        self.assertEqual(results.newest(read([old, new])), read([new]))
        self.assertEqual(results.newest(read([new, old])), read([new]))

    def test_cases_of_an_older_run_stay(self):
        old = record(ranks=2)
        new = record(ranks=4, time="2030-01-02T00:00:00Z", run="b")
        self.assertCountEqual(results.newest(read([old, new])), read([old, new]))

    def test_cycles_of_one_run_are_one_case(self):
        first, second = record(cycle=0), record(cycle=1)
        self.assertEqual(results.newest(read([first, second])), read([second]))

    def test_launches_of_one_run_are_one_case(self):
        older = record(milliseconds=9, run="before", launch=1)
        launches = [record(milliseconds=one, launch=number, over_launches={"ci95_seconds": [0.0, number]})
                    for number, one in enumerate((1, 4, 2), start=1)]
        (found,) = results.newest(read([older, *launches]))
        self.assertAlmostEqual(found["median_seconds"], 2e-3, msg="the geometric mean of the launches")
        self.assertAlmostEqual(found["mean_seconds"], 7e-3 / 3, msg="that of all rounds")
        self.assertEqual(found["seconds"], launches[2]["seconds"])

    def test_an_interval_over_launches_holds_the_time_beside_it(self):
        """Whatever the last launch knew: it may have been run again, without those before it."""
        launches = [record(milliseconds=one, launch=number, over_launches={"launches": 2, "ci95_seconds": [1.9e-3, 2.1e-3]})
                    for number, one in enumerate((1, 1.1, 8), start=1)]
        (found,) = results.newest(read(launches))
        low, high = found["ci95_seconds"]
        self.assertTrue(low < found["median_seconds"] < high, found)
        self.assertAlmostEqual(found["median_seconds"], 8.8e-9 ** (1 / 3))
        logarithms = [math.log(one) for one in (1e-3, 1.1e-3, 8e-3)]
        half = 4.302653 * statistics.stdev(logarithms) / math.sqrt(3)
        self.assertAlmostEqual(math.log(high), statistics.fmean(logarithms) + half, places=5)

    def test_what_stands_beside_a_time_is_of_the_same_launches(self):
        over = {"launches": 2, "ratio": 1.5, "ratio_ci95": [1.4, 1.6], "hidden": 0.5}
        launches = [record(launch=number, ratio=2.0, ratio_ci95=[2.0, 2.0], hidden=0.1, bound_seconds=bound, over_launches=over)
                    for number, bound in ((1, 1e-4), (2, 4e-4))]
        (found,) = results.newest(read(launches))
        self.assertEqual((found["ratio"], found["ratio_ci95"], found["hidden"]), (1.5, [1.4, 1.6], 0.5))
        self.assertAlmostEqual(found["bound_seconds"], 2e-4)
        (found,) = results.newest(read([*launches, record(launch=3, ratio=2.0, ratio_ci95=[2.0, 2.0], hidden=0.1, over_launches=over)]))
        self.assertEqual((found["ratio"], found["ratio_ci95"], found["hidden"]), (None, None, None))

    def test_simulated_launches_are_exact(self):
        made = [record(launch=number, executor="simulator", topology="t") for number in (1, 2, 3)]
        (found,) = results.newest(read(made))
        self.assertEqual((found["median_seconds"], found["ci95_seconds"]), (made[0]["median_seconds"], made[0]["ci95_seconds"]))

    def test_a_launch_without_a_time_stands_for_all(self):
        launches = [record(launch=1), {**skipped(""), "failed": "signal 9", "launch": 2}, record(launch=3)]
        del launches[1]["skipped"]
        (found,) = results.newest(read(launches))
        self.assertEqual(results.why_no_time(found), "failed: signal 9")

    def test_an_operators_cases_are_distinguished(self):
        cases = [layer(), layer(which="forward"), layer(mode="exposed"), layer(scan="two_shot"),
                 layer(gate="none"), layer(tokens=512), local()]
        self.assertCountEqual(results.newest(read(cases)), read(cases))

    def test_an_automatic_block_count_may_change_between_runs(self):
        old = record(blocks=8, blocks_asked="auto")
        new = record(blocks=16, blocks_asked="auto", time="2030-01-02T00:00:00Z", run="b")
        self.assertEqual(results.newest(read([old, new])), read([new]))

    def test_automatic_blocks_stand_for_their_method(self):
        automatic = record(blocks=8, blocks_asked="auto", milliseconds=3)
        faster = record(blocks=4, milliseconds=1)
        self.assertEqual(results.points([faster, automatic], results.method), {"all_scan": automatic})

    def test_without_automatic_blocks_the_fastest_stand(self):
        slow, fast = record(blocks=1, milliseconds=3), record(blocks=4, milliseconds=1)
        self.assertEqual(results.points([slow, fast], results.method), {"all_scan": fast})

    def test_a_native_in_a_schedules_place_is_another_method(self):
        self.assertEqual(results.method(record(implementation="by_hand")), "all_scan (by_hand)")
        self.assertEqual(results.method(record(name="mpi_exscan", implementation="mpi_exscan")), "mpi_exscan")

    def test_where_ranks_lie_parts_groups(self):
        on = {"hosts": {"placement": "ranks 0 to 3 on a"}}
        groups = {results.group_of(one) for one in read([record(), record(ranks_per_node=2), record(**on), record(machine={})])}
        self.assertEqual(len(groups), 4)

    def test_a_free_number_takes_no_text_that_reads_alike(self):
        one = {**record(), "tokens": 64, "contest": "GPUs/64/tokens:64/both/both"}
        self.assertEqual(results.alike(one, "tokens").axes, "GPUs/64/both/both")
        self.assertEqual(results.alike({**one, "pass": "both"}, "pass").axes, "GPUs/64/tokens:64/both")

    def test_what_differs_in_free_axes_alone_is_alike(self):
        one, other, forward = read([layer(), layer(tokens=512, ranks=8, ranks_per_node=4, hosts={"placement": "4 on a, 4 on b"}),
                                    layer(which="forward")])
        self.assertEqual(results.alike(one, "ranks", "ranks_per_node", "tokens"), results.alike(other, "ranks", "ranks_per_node", "tokens"))
        self.assertNotEqual(results.alike(one, "ranks", "tokens"), results.alike(forward, "ranks", "tokens"))
        self.assertEqual(results.alike(one, "pass"), results.alike(forward, "pass"))

    def test_wrong_results_have_no_time(self):
        self.assertEqual(results.why_no_time(record(wrong=3)), "3 wrong elements")
        self.assertEqual(results.why_no_time(skipped("too many ranks")), "too many ranks")
        self.assertIsNone(results.why_no_time(record()))
        self.assertEqual(results.why_no_time(record(ranks_per_gpu=4)), "4 ranks share a GPU, which measures no link")


class Crowded(unittest.TestCase):
    def test_ranks_that_share_a_gpu_replace_no_others(self):
        alone, crowd = record(time="2030-01-01T00:00:00Z"), record(ranks_per_gpu=4, run="b", time="2031-01-01T00:00:00Z")
        self.assertEqual(len(results.newest(read([alone, crowd]))), 2)


if __name__ == "__main__":
    unittest.main()
