# SPDX-License-Identifier: Apache-2.0
"""`--export chakra` as Chakra's own schema reads it, beside what a dry run prints of the same schedules:
python3 chakra_test.py BENCH... . The schema is the package mlc-chakra's; without it all is skipped."""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    from chakra.schema.protobuf import et_def_pb2 as schema
except ImportError:
    schema = None

BENCHES = {}
RANKS = 4
COLLECTIVE = ("--collectives", "hierarchical_scan", "--ranks-per-node", "2", "--heads", "2", "--d-k", "8", "--d-v", "8")
LAYER = ("--methods", "zeco", "--tokens", "128", "--heads", "2", "--d-k", "16", "--d-v", "16", "--blocks", "2", "--pass",
         "both")
MODEL = ("--methods", "lasp2", "--lines", "full", "--tokens", "64", "--fsdp")
CASES = {"collective_bench": COLLECTIVE, "operator_bench": LAYER, "model_bench": MODEL}
STEP = re.compile(r"^(\d+)\s+(send|recv|copy|combine|compute) ")
AFTER = re.compile(r" after ([\d,]+)")
SUMMARY = re.compile(r"^.*/blocks:\S+\s+(\d+)\s+\d+\s+(\d+)$")


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          env={**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1"})


def messages(data):
    """Yields each message of a file: its length as a varint, then its bytes."""
    at = 0
    while at < len(data):
        length, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield data[at:at + length]
        at += length


def trace(path):
    """The metadata and the nodes of a file."""
    first, *nodes = messages(path.read_bytes())
    return schema.GlobalMetadata.FromString(first), [schema.Node.FromString(node) for node in nodes]


def attributes(message):
    return {one.name: getattr(one, one.WhichOneof("value")) for one in message.attr}


def printed(text):
    """The steps of each rank, [(number, verb, numbers of the steps that it waits for)], and (most bytes sent, messages)."""
    ranks, counted = [], None
    for line in text.splitlines():
        if line.startswith("rank "):
            ranks.append([])
        elif ranks and (step := STEP.match(line)):
            after = AFTER.search(line)
            ranks[-1].append((int(step[1]), step[2], [int(one) for one in after[1].split(",")] if after else []))
        elif not ranks and (summary := SUMMARY.match(line)):
            counted = tuple(map(int, summary.groups()))
    return ranks, counted


class Chakra(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def exported(self, bench, *more):
        """What the bench prints, and {rank: (metadata, nodes)} of its files."""
        done = run(BENCHES[bench], *CASES[bench], "--ranks", RANKS, "--export", "chakra", self.folder / "t", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        files = {int(path.suffixes[-2][1:]): trace(path) for path in self.folder.glob("t.*.et")}
        self.assertEqual(sorted(files), list(range(RANKS)))
        return done.stdout, files

    def test_nodes_kinds_and_dependencies_are_those_of_the_schedule(self):
        kinds = {"send": schema.COMM_SEND_NODE, "recv": schema.COMM_RECV_NODE}
        for bench in BENCHES:
            text, files = self.exported(bench, "--dry-run", "--print-schedule")
            ranks, _ = printed(text)
            self.assertEqual(len(ranks), RANKS)
            for rank, steps in enumerate(ranks):
                metadata, nodes = files[rank]
                self.assertIn(f"ranks:{RANKS}", attributes(metadata)["case"])
                self.assertEqual([node.id for node in nodes], [number for number, _, _ in steps])
                self.assertEqual([node.type for node in nodes],
                                 [kinds.get(verb, schema.COMP_NODE) for _, verb, _ in steps])
                self.assertEqual([list(node.data_deps) for node in nodes], [after for _, _, after in steps])

    def test_bytes_and_messages_are_those_that_a_dry_run_counts(self):
        for bench in BENCHES:
            text, files = self.exported(bench, "--dry-run", "--print-schedule")
            sends = {rank: [attributes(node) for node in nodes if node.type == schema.COMM_SEND_NODE]
                     for rank, (_, nodes) in files.items()}
            _, (most, count) = printed(text)
            self.assertGreater(count, 0)
            self.assertEqual(max(sum(one["comm_size"] for one in of_rank) for of_rank in sends.values()), most)
            self.assertEqual(sum(map(len, sends.values())), count)

    def test_every_message_has_both_ends(self):
        for bench in BENCHES:
            _, files = self.exported(bench, "--dry-run")
            ends = collections.defaultdict(list)
            for rank, (_, nodes) in files.items():
                for node in nodes:
                    if node.type in (schema.COMM_SEND_NODE, schema.COMM_RECV_NODE):
                        told = attributes(node)
                        sends = node.type == schema.COMM_SEND_NODE
                        self.assertEqual(told["comm_src" if sends else "comm_dst"], rank)
                        ends[tuple(told[key] for key in ("comm_src", "comm_dst", "comm_tag", "comm_size"))].append(sends)
            self.assertTrue(ends)
            self.assertEqual({tuple(sorted(both)) for both in ends.values()}, {(False, True)})

    def test_local_work_has_its_operations_and_bytes(self):
        _, files = self.exported("operator_bench", "--dry-run")
        work = [attributes(node) for _, nodes in files.values() for node in nodes if node.type == schema.COMP_NODE]
        self.assertTrue(all(one["tensor_size"] > 0 and not one["is_cpu_op"] for one in work))
        self.assertTrue(any(one["num_ops"] > 0 for one in work))

    def test_a_run_leaves_the_blocks_that_ran(self):
        done = run(BENCHES["collective_bench"], "--collectives", "all_scan", "--executor", "local", "--ranks", 3, "--blocks",
                   5, "-n", 3, "-w", 1, "--launches", 1, "--export", "chakra", self.folder / "t")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("execution traces of Chakra, a file a rank", done.stdout)
        _, nodes = trace(self.folder / "t.0.et")
        self.assertEqual([node.type for node in nodes], [schema.COMM_SEND_NODE] * 5)

    def test_what_cannot_be_exported_is_said(self):
        bench = BENCHES["collective_bench"]
        for words, told in ((("chakra", "x"), "--export takes a single case"), (("json", "x"), "this build knows only chakra"),
                            (("chakra",), "--export")):
            done = run(bench, "--ranks", "2,3", "--dry-run", "--export", *words)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(told, done.stderr)
        done = run(bench, "--collectives", "all_scan", "--executor", "local", "--ranks", 2, "--export", "chakra",
                   self.folder / "none" / "t")
        self.assertEqual(done.returncode, 2, "before anything runs")
        self.assertIn("--export", done.stderr)
        done = run(bench, "--collectives", "mpi_exscan", "--executor", "mpi", "--ranks", 2, "--dry-run", "--export", "chakra",
                   self.folder / "t")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is a native, whose messages are not in its schedule", done.stderr)
        done = run(bench, "--collectives", "mpi_exscan", "--executor", "mpi", "--ranks", 2, "--export", "chakra", self.folder / "t")
        self.assertEqual(done.returncode, 2, "before anything runs")
        self.assertIn("is a native, whose messages are not in its schedule", done.stderr)


if __name__ == "__main__":
    BENCHES = {pathlib.Path(path).name: path for path in sys.argv[1:]}
    if schema is None:
        print("no schema of Chakra here: pip install --no-deps mlc-chakra protobuf")
        sys.exit(0)
    if "knows no format" in run(BENCHES["collective_bench"], "--dry-run", "--export", "chakra", "x").stderr:
        print("no libprotobuf here")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1])
