# SPDX-License-Identifier: Apache-2.0
"""Several hosts give the table of one: python3 table_test.py COLLECTIVE_BENCH OPERATOR_BENCH

Times are printed and not judged: the hosts share the cores of this machine.
"""

import json
import math
import os
import statistics
import sys
import unittest

import hosts

OPERATOR_BENCH = os.path.abspath(sys.argv.pop(2))
BENCH = os.path.abspath(sys.argv.pop(1))
FEW_ROUNDS = ["-n", "5", "-w", "2"]


def unwrapped(output):
    """Without the breaks of long lines."""
    return " ".join(output.replace("\n#   ", " ").split())


class FourHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Clocks that are far apart: nothing may take them for one.
        cls.hosts = hosts.Hosts(4, clock_steps=(0, 1000, 2000, 0))
        cls.hosts.__enter__()
        cls.addClassCleanup(cls.hosts.__exit__)
        cls.journals = 0

    def bench(self, ranks, *arguments, slots=None, bench=BENCH, launcher=()):
        """The output of a bench on the hosts, and its records."""
        type(self).journals += 1
        path = f"{self.hosts.folder}/{self.journals}.jsonl"
        done = self.hosts.run([*self.hosts.mpirun(ranks, slots or ranks // 4, *launcher), bench, *arguments, "-J", path])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(path) as file:
            return done.stdout, [json.loads(line) for line in file]

    def assert_verified(self, records, least):
        timed = [record for record in records if "skipped" not in record]
        self.assertGreaterEqual(len(timed), least)
        for record in timed:
            self.assertEqual((record["wrong"], "seconds" in record), (0, True), record["case"])
        return timed

    def test_every_collective_is_verified(self):
        for ranks in (4, 8):
            _, records = self.bench(ranks, "--collectives", "all", "--heads", "2", "--d-k", "32", "--d-v", "32", "--tokens", "64",
                                    *FEW_ROUNDS)
            for record in self.assert_verified(records, 15):
                self.assertEqual(record["hosts"]["count"], 4)
                self.assertEqual(record["ranks_per_node"], ranks // 4)

    def test_layers_are_verified(self):
        for ranks in (4, 8):
            _, records = self.bench(ranks, "--methods", "zeco,lasp1,lasp2", "--heads", "2", "--d-k", "16", "--d-v", "16",
                                    "--tokens", "128", "--pass", "forward,backward", *FEW_ROUNDS, bench=OPERATOR_BENCH)
            self.assert_verified(records, 6)

    def test_the_report_says_how_ranks_lie_and_what_joins_them(self):
        output, records = self.bench(8, "--collectives", "ring_scan", *FEW_ROUNDS)
        self.assertRegex(unwrapped(output), r"# mpi, 8 ranks on 4 hosts of 2: alpha \S+ us, beta \S+ GB/s in a host by shared "
                                            r"memory; alpha \S+ us, beta \S+ GB/s between hosts by eth0, start skew")
        found = records[0]["hosts"]
        self.assertEqual((found["placement"], found["within_by"], found["between_by"]), ("4 hosts of 2", "shared memory", "eth0"))
        self.assertGreater(found["between_alpha_seconds"], records[0]["alpha_seconds"])

    def test_the_report_says_how_well_clocks_are_known_that_are_1000_seconds_apart(self):
        _, records = self.bench(4, "--collectives", "ring_scan", *FEW_ROUNDS)
        self.assertLess(records[0]["start_skew_seconds"], 1)
        self.assertGreater(records[0]["hosts"]["clock_error_seconds"], 0)
        self.assertLess(records[0]["hosts"]["clock_error_seconds"], 1)

    def test_the_bound_that_is_reported_counts_hops_between_hosts_at_their_price(self):
        _, records = self.bench(8, "--collectives", "ring_scan", "--heads", "1", "--d-k", "8", "--d-v", "8", *FEW_ROUNDS)
        one, found = records[0], records[0]["hosts"]
        least = 3 * found["between_alpha_seconds"] + 4 * one["alpha_seconds"]
        self.assertGreaterEqual(one["bound_seconds"], 0.99 * least)

    def test_the_report_says_that_ranks_are_dealt_out(self):
        output, records = self.bench(8, "--collectives", "hierarchical_scan", *FEW_ROUNDS, slots=2, launcher=("--map-by", "node"))
        self.assertIn("4 hosts (ranks 0 4, 1 5, 2 6, 3 7): they do not fill equal hosts one after the other", unwrapped(output))
        self.assertEqual(records[0]["ranks_per_node"], 0)
        self.assert_verified(records, 1)

    def calibrated(self, ranks, slots):
        """The topology that a calibration on `ranks` ranks wrote. Prints its predictions beside what was measured."""
        path = self.hosts.folder + "/found.json"
        output, records = self.bench(ranks, "--collectives", "all_scan,ring_scan,hierarchical_scan,two_shot,recursive_doubling,"
                                     "all_gather_scan,ring_all_gather", "-b", "64K", "-e", "1M", "-f", "16",
                                     "--calibrate", path, "-n", "20", slots=slots)
        timed = self.assert_verified(records, 14)
        errors = [abs(math.log(record["predicted_seconds"] / record["median_seconds"])) for record in timed]
        self.assertFalse([record["extrapolated"] for record in timed if record.get("extrapolated")])
        print(f"\nmeasured beside predicted, {len(errors)} rows: error {100 * (math.exp(statistics.mean(errors)) - 1):.0f} % "
              f"typical, {100 * (math.exp(max(errors)) - 1):.0f} % worst; delay of the links {self.hosts.delay_us} us\n{output}")
        with open(path) as file:
            return json.load(file)

    def test_a_calibration_has_two_classes_of_links_and_predicts(self):
        topology = self.calibrated(4, slots=2)
        self.assertEqual((topology["machine"]["nodes"], topology["machine"]["ranks_per_node"]), (2, 2))
        self.assertEqual(topology["calibration"]["most_nodes"], 2)
        links = topology["links"]
        self.assertGreater(links["inter_node"]["measured_idle"][0]["seconds"], links["intra_node"]["measured_idle"][0]["seconds"])

    def test_a_calibration_of_two_hosts_of_one_rank_has_no_shared_card_and_predicts(self):
        topology = self.calibrated(2, slots=1)
        self.assertEqual((topology["machine"]["nodes"], topology["machine"]["ranks_per_node"]), (2, 1))
        self.assertNotIn("node_measured", topology["links"]["inter_node"])


if __name__ == "__main__":
    hosts.skip_if(hosts.missing())
    unittest.main()
