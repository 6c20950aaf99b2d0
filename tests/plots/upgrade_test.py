# SPDX-License-Identifier: Apache-2.0
"""Old records compete with those that they always competed with, and one of today is what an old one becomes."""

import json
import re
import subprocess
import unittest
import zlib

from baton import results
from baton.report.sessions import session_of
from baton.upgrade import is_case_known, renamed, upgraded
from plots.example import BENCHES, ROOT, InFolder, layer, model, on_gpus, record

# Of each file of records: how many groups of rows that compete its sessions have, and a digest of which record is in which. They were made
# before records had the key `contest`, by what then decided in its place.
CONTESTS = {
    "h200-2/exchange": (13, "72f51aef"),
    "h200-2/operator": (5, "a25fedeb"),
    "h200-2/softmax": (13, "1ebb2ec2"),
    "h200-4/all_gather": (26, "19d05e59"),
    "h200-4/exchange": (28, "de13aa0b"),
    "h200-4/operator": (5, "f260b35f"),
    "h200-4/predicted-nccl": (10, "f259fa42"),
    "h200-4/predicted-peer": (10, "f259fa42"),
    "xeon-32/every_method": (4, "6918697a"),
    "xeon-64/bench": (29, "a50fd0bb"),
    "xeon-64/by_hand": (18, "d458e9d8"),
    "xeon-64/operators": (4, "0914fa0d"),
    "xeon-64/ranks": (6, "fe09c153"),
    "xeon-64/zeco_lasp1": (1, "59791aad"),
}


def contests_of(path):
    """The number of groups in a file, and the digest."""
    numbers, places = {}, []
    for line in path.read_text(encoding="utf-8").splitlines():
        if "bench" in (one := json.loads(line)):
            one = upgraded(renamed(one))
            places.append(numbers.setdefault((session_of(one), results.group_of(one)), len(numbers)))
    return len(numbers), f"{zlib.crc32(repr(places).encode()):08x}"


def committed():
    """Yields the records of all folders of results, with present keys."""
    for path in sorted((ROOT / "results").glob("*/*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "bench" in (one := json.loads(line)):
                yield renamed(one)


class Committed(unittest.TestCase):
    def test_each_is_of_a_tree_that_can_be_built_again(self):
        changed = {path.relative_to(ROOT) for path in (ROOT / "results").rglob("*.json*") if path.parent.name != "local"
                   for line in path.read_text(encoding="utf-8").splitlines() if re.search(r'"commit": *"[^"]*-dirty', line)}
        self.assertFalse(changed)

    def test_cases_are_those_that_younger_records_say(self):
        count = 0
        for one in committed():
            if "case" in one and is_case_known(one):
                count += 1
                without = upgraded({key: value for key, value in one.items() if key not in ("case", "contest")})
                self.assertEqual(without["case"], one["case"])
        self.assertGreater(count, 1900)

    def test_every_committed_record_has_a_case(self):
        self.assertEqual({one["commit"] for one in committed() if "case" not in upgraded(one)}, set())

    def test_contests_are_those_of_before(self):
        paths = {f"{path.parent.name}/{path.stem}": path for path in (ROOT / "results").glob("*/*.jsonl")}
        for name, expected in CONTESTS.items():
            with self.subTest(name):
                self.assertEqual(contests_of(paths[name]), expected)


class Upgraded(unittest.TestCase):
    def test_a_record_of_today_stays_as_it_is(self):
        today = {**record(), "family": "mpi", "contest": "mpi/ranks:4"}
        self.assertIs(upgraded(today), today)

    def test_what_it_lacks_is_what_its_absence_says(self):
        old = upgraded(layer())
        self.assertEqual([old[key] for key in ("attention", "dtype", "wire_dtype", "family")], ["linear", "f32", "f32", "mpi"])
        self.assertEqual(old["contest"], "mpi/ranks:4/both/linear/vector/gates:layer/tokens:1024/heads:4/d_k:128/d_v:128/"
                                         "chunk:64/groups:1/f32/isolated/warmup:5/rounds:2")
        self.assertEqual(upgraded(layer("ring_attention_zigzag"))["attention"], "softmax")

    def test_keys_and_names_of_cases_have_their_present_words(self):
        self.assertEqual(renamed({"ranks_a_node": 4, "case": "a/ranks_a_node:4/b", "machine": {"cores": 2}}),
                         {"ranks_per_node": 4, "case": "a/ranks_per_node:4/b", "machine": {"cores": 2}})
        self.assertEqual(renamed({"links": {"intra_node": {"bytes_a_second": 1}}}, 3),
                         {"links": {"intra_node": {"bytes_per_second": 1}}})

    def test_layouts_had_another_key(self):
        self.assertEqual([upgraded(layer(contiguous=one))["layout"] for one in (True, False)], ["contiguous", "other"])

    def test_executors_of_gpus_compete_but_for_those_that_round(self):
        found = [upgraded(on_gpus(executor=one))["family"] for one in ("peer", "nccl", "peer_bf16")]
        self.assertEqual(found, ["GPUs", "GPUs", "peer_bf16"])

    def test_blocks_by_a_library_and_maps_have_their_names(self):
        self.assertIn("/f32/kernel:cudnn/", upgraded(layer(kernel="cudnn"))["contest"])
        self.assertEqual(upgraded(layer(kernel="own"))["contest"], upgraded(layer())["contest"])
        self.assertIn("/map:affine/", upgraded(record(map="affine"))["contest"])

    def test_the_word_of_a_delta_rule_says_its_gate(self):
        self.assertNotIn("vector", upgraded(layer(attention="gdn"))["contest"])

    def test_rounds_of_the_simulator_are_none(self):
        self.assertNotIn("rounds", upgraded(record(executor="simulator", topology="t"))["contest"])

    def test_the_case_of_a_model_says_its_layers(self):
        case = "zeco/full/mpi/ranks:4/tiny/layers:3+1/width:128/mlp:256/blocks:1"
        self.assertIn("/linear/tiny/layers:3+1/width:128/mlp:256/tokens:256/", upgraded(model(case=case))["contest"])
        self.assertIn("/tiny/layers:2/width:128/tokens:256/", upgraded(model())["contest"])

    def test_a_case_that_the_record_does_not_tell_stays_away(self):
        one, of_model = record(blocks_asked="auto"), model(blocks_asked="auto")
        del of_model["case"]
        self.assertIn("case", upgraded(one))
        for lacking in ({**one, "ranks_per_node": 2}, record(), of_model):
            self.assertNotIn("case", upgraded(lacking))


@unittest.skipUnless(BENCHES, "no benches")
class Twins(InFolder):
    """Records of the benches, and the same without what old ones lacked."""

    LAUNCHES = ("collective_bench --collectives all_scan,direct_to_zigzag --map diagonal,affine -b 128K -e 256K",
                "collective_bench --executor simulator --topology topologies/dgx-h100-32x8.json --collectives all --ranks 16",
                "operator_bench --methods all --pass all --tokens 128 --heads 4 --d-k 16 --d-v 16",
                "operator_bench --methods lasp2,usp --kv-heads 2 --packed 40 --heads 4 --d-k 16 --d-v 16 --tokens 128",
                "operator_bench --methods zeco --attention gdn,kda --gates weak --tokens 128 --heads 2 --d-k 16 --d-v 16",
                "model_bench --methods zeco --tokens 128")

    def test_both_are_of_one_contest(self):
        path = self.folder / "records.jsonl"
        for words in self.LAUNCHES:
            name, *arguments = words.split()
            if "--executor" not in words:
                arguments += ["--executor", "local", "--ranks", "2", "--rounds", "2"]
            subprocess.run([BENCHES[name], *arguments, "-J", path], cwd=ROOT, capture_output=True, timeout=120)
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.assertEqual({one["bench"] for one in found}, set(results.BENCHES))
        self.assertGreater(len({one["contest"] for one in found}), 12)
        for one in found:
            twin = upgraded({key: value for key, value in one.items() if key not in lacked(one)})
            keys = ["case"] * is_case_known(one) + [key for key in ("contest", "family", "layout", "attention") if key in one]
            self.assertEqual([twin[key] for key in keys], [one[key] for key in keys])


def lacked(record):
    """What old records lacked: of a model, which is younger, less than of others."""
    always = ["family", "contest", "wire_dtype"]
    is_plain = record.get("attention") == ("softmax" if "softmax" in record["name"] else "linear")
    of_others = ["case", *["attention"] * is_plain, *["dtype"] * (record.get("dtype") == "f32")]
    return always + (of_others if record["bench"] != "model" else [])


if __name__ == "__main__":
    unittest.main()
