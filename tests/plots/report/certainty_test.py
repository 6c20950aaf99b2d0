# SPDX-License-Identifier: Apache-2.0
"""What makes an answer less certain is said, and what failed."""

import unittest

from plots.report.example import failed, gpu_scan, layer, local, paragraphs, scan, answer_text, with_conditions


def rivals(**changes):
    return scan("all_scan", 100, **changes) + scan("all_gather_scan", 150, 0.001, **changes)


def gpus(readings):
    return [{**one, "device_after": readings} for one in gpu_scan() + gpu_scan("all_gather_scan", 12, 0.001)]


class Less(unittest.TestCase):
    def doubts(self, *groups):
        return paragraphs(*groups).get("Caveats", "")

    def test_a_quiet_session_has_no_doubts(self):
        self.assertEqual(self.doubts(with_conditions(rivals())), "")

    def test_load_of_others(self):
        self.assertEqual(self.doubts(with_conditions(rivals(), load=12.3)), "Other processes used up to 12.3 of 64 cores "
                         "meanwhile.")
        self.assertEqual(self.doubts(with_conditions(rivals(), load=0.4)), "")
        self.assertEqual(self.doubts(with_conditions(rivals(), load=None)), "")

    def test_messages_past_shared_memory(self):
        self.assertEqual(self.doubts(with_conditions(rivals(transport="shared memory, copied twice"))), "")
        self.assertEqual(self.doubts(with_conditions(rivals(transport="lo"))), "Messages of MPI between ranks of one host took "
                         "lo in place of shared memory in 2 rows: /dev/shm may be too small, or a setting turns it off.")
        self.assertEqual(self.doubts(with_conditions(rivals(transport="sockets", executor="tcp"))), "")

    def test_lowered_clocks(self):
        self.assertEqual(self.doubts(gpus({"throttle_reasons": [1.0, 4.0], "sm_clock_mhz": [1980.0, 1410.0]})),
                         "GPU clocks fell to 1410 of 1980 MHz (power cap).")
        self.assertEqual(self.doubts(gpus({"throttle_reasons": [0.0, 64.0]})), "GPU clocks were lowered (heat).")
        self.assertEqual(self.doubts(gpus({"throttle_reasons": [0.0, 1.0], "sm_clock_mhz": [1980.0, 1980.0]})), "")

    def test_rounds_that_began_before_their_host(self):
        self.assertEqual(self.doubts(gpus({"late_starts": [0.0, 2.0]})), "2 rows of GPUs began rounds, warm-up rounds among them, before "
                         "the host had enqueued them: their times include the host's.")
        self.assertEqual(self.doubts(gpus({"late_starts": [0.0, 0.0]})), "")
        earlier = [{**one, "device_before": {"late_starts": [0.0, 2.0]}} for one in gpus({"late_starts": [0.0, 2.0]})]
        self.assertEqual(self.doubts(earlier), "")

    def test_equal_work_in_unequal_times(self):
        made = layer("zeco", 1.2) + layer("zeco", 1.1, mode="compute_only", scan="") + layer("lasp2", 1.3, 0.001)
        self.assertEqual(self.doubts(made, local(1.05)), "")
        self.assertIn("Equal local work took 1.37 times as long in zeco as in local (4 ranks, both)",
                      self.doubts(made, local(0.8)))

    def test_unequal_local_work_of_a_delta_rule_is_a_doubt_too(self):
        made = [{**one, "attention": "gdn"} for one in layer("zeco", 1.2) + layer("lasp2", 1.3, 0.001) + local(0.8)
                + layer("zeco", 1.1, mode="compute_only", scan="")]
        self.assertIn("in zeco as in local (GDN attention, 4 ranks, both)", self.doubts(made))

    def test_rows_for_checks_beside_others_are_left_out_with_a_word(self):
        self.assertEqual(self.doubts(rivals(), rivals(executor="local")), "2 rows of local left out: all ranks in one process, for checks.")

    def test_faster_than_no_exchange_at_all(self):
        made = layer("zeco", 1.2, 0.001) + layer("lasp1", 0.6, 0.001)
        self.assertIn("Faster than no exchange at all, which cannot be: lasp1 at 4 ranks.", self.doubts(made, local(1.0)))

    def test_one_launch_of_a_layer_alone(self):
        self.assertEqual(self.doubts(rivals(), layer(factors=(1,)), layer("lasp2", 1.2, factors=(1,))),
                         "Layer in 1 launch only: another launch may say otherwise.")


class Failed(unittest.TestCase):
    def test_a_case_that_hung_is_named(self):
        self.assertEqual(paragraphs(rivals(), failed())["Failures"], "1 failed of 3 rows: ring_scan on mpi (Exclusive scan, "
                         "2 MiB a rank, 4 ranks on processors): exceeded its limit of 60 s. The other 2 computed the right values.")

    def test_a_record_that_failed_has_no_count_of_wrong_elements(self):
        lost = [{key: value for key, value in one.items() if key != "wrong"} for one in failed()]
        self.assertIn("1 failed of 3 rows: ring_scan on mpi", answer_text(rivals(), lost))

    def test_a_wrong_row_comes_first(self):
        wrong = [{**one, "wrong": 7} for one in scan("two_shot")]
        self.assertIn("1 failed and 1 wrong of 4 rows, among them two_shot on mpi (Exclusive scan, 2 MiB a rank, 4 ranks on processors): 7 wrong elements.",
                      answer_text(rivals(), failed(), wrong))

    def test_a_wrong_layer_is_reported_by_attention_pass_tensor_error_and_tolerance(self):
        wrong = [{**one, "wrong": 1, "first_wrong": "rank 1, dg: relative error 1.6e-02, at most 1.5e-02 is right"}
                 for one in layer("ulysses", which="backward", attention="gdn")]
        self.assertIn("1 wrong of 2 rows: ulysses on mpi (GDN attention, backward pass, 1024 tokens a rank, 4 heads of 128, f32, 4 ranks on "
                      "processors): 1 wrong tensor: rank 1, dg: relative error 1.6e-02, at most 1.5e-02 is right. The other one computed",
                      answer_text(wrong, layer("zeco", which="backward", attention="gdn")))

    def test_one_of_anything_has_no_plural(self):
        text = answer_text([{**one, "wrong": 1} for one in scan("two_shot")], layer(heads=1))
        self.assertIn("1 wrong element.", text)
        self.assertIn("1 head of 128", text)

    def test_a_skipped_row_is_no_failure(self):
        skipped = [{**failed()[0], "skipped": "not here"}]
        del skipped[0]["failed"]
        self.assertIn("Verified All 2 measured rows computed the right values.", answer_text(rivals(), skipped))


if __name__ == "__main__":
    unittest.main()
