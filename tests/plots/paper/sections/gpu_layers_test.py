# SPDX-License-Identifier: Apache-2.0
"""Layers on GPUs: our kernels beside other projects', what exchanges add, and what of it is hidden."""

import unittest

from baton.paper.sections import gpu_layers
from baton.paper.sources import Sources
from plots.example import layer, local, read
from plots.paper.shown import rows, tables

SHAPE = {"tokens": 16384, "heads": 16, "dtype": "bf16", "executor": "peer", "device": {"gpu": "Example GPU"}}
PUBLISHED = {"zeco_table_operator_16k": [], "zeco_table2": []}


def kernel(which="forward", milliseconds=1.0, **changes):
    return local(which=which, milliseconds=milliseconds, **{**SHAPE, "ranks": 1, "executor": "nccl", **changes})


def peer(which="forward", milliseconds=3.0, **changes):
    return {"peer": "other", "version": "1.0", "kernel": "chunk", "pass": which, "tokens": 16384, "heads": 16,
            "d_k": 128, "d_v": 128, "dtype": "bf16", "median_seconds": milliseconds / 1e3, "gpu": "Example GPU",
            "time": "2030-01-01T00:00:00Z", **changes}


def sources(records, peers=()):
    return Sources([], {"mine": read(records)}, PUBLISHED, {"mine": list(peers)})


class Layers(unittest.TestCase):
    def test_a_peer_stands_beside_ours_of_the_same_machine(self):
        found = rows(tables(gpu_layers.section(sources([kernel(milliseconds=1.5)], [peer()])))["kernels_16k_16"])
        self.assertEqual(found["other `chunk`, exact", "measured, mine"], ["3.00", None, None])
        self.assertEqual(found["other `chunk`, exact", "over `local`, mine, nccl"], ["2.00×", None, None])

    def test_a_peer_that_leaves_something_out_is_not_exact_and_a_note_says_what(self):
        for name, label, notes in (("other", "other `chunk`, exact", []),
                                   ("FlashQLA", "FlashQLA `chunk`, not exact", [f"Not exact: {gpu_layers.LEFT_OUT['FlashQLA']}."])):
            table = tables(gpu_layers.section(sources([], [peer(peer=name)])))["kernels_16k_16"]  # as of before it said so
            self.assertEqual(list(rows(table)), [(label, "measured, mine")])
            self.assertEqual(table.notes, notes)

    def test_a_method_in_python_stands_beside_ours_under_the_same_gates(self):
        records = [kernel(milliseconds=1.5, gates="mixed"), kernel(milliseconds=9),
                   *(kernel(milliseconds=9, gates="mixed", **{key: some}) for key, some in (("conv", 4), ("state", "both"), ("qk_heads", 4))),
                   {**kernel(milliseconds=3, gates="mixed"), "name": "chunk_gla", "implementation": "chunk_gla"}]
        found = rows(tables(gpu_layers.section(sources(records)))["kernels_16k_16"])
        self.assertEqual(found["`local`", "measured, mine, nccl"], ["1.50", None, None])
        self.assertEqual(found["`chunk_gla`, in Python", "measured, mine, nccl"], ["3.00", None, None])
        self.assertEqual(found["`chunk_gla`, in Python", "over `local`, mine, nccl"], ["2.00×", None, None])

    def test_flash_qla_by_its_adapter_is_not_exact_either(self):
        table = tables(gpu_layers.section(sources([{**kernel(), "name": "flash_qla", "implementation": "flash_qla"}])))["kernels_16k_16"]
        self.assertEqual([label for label, _ in rows(table)], ["`flash_qla`, in Python, not exact"])
        self.assertEqual(table.notes, [f"Not exact: {gpu_layers.LEFT_OUT['FlashQLA']}."])

    def test_overheads_and_hidden_shares(self):
        records = [local(milliseconds=2, **SHAPE), layer(milliseconds=3, hidden=0.25, **SHAPE),
                   layer(mode="exposed", milliseconds=4, **SHAPE),
                   layer("lasp2", scan="all_gather_scan", milliseconds=6, **SHAPE)]
        found = rows(tables(gpu_layers.section(sources(records)))["layers_mine_peer_isolated_16k"])
        self.assertEqual(found["`zeco`", "measured"], ["3.00"])
        self.assertEqual(found["`zeco`", "measured, exposed"], ["4.00"])
        self.assertEqual(found["`zeco`", "hidden"], ["25 %"])
        self.assertEqual(found["`zeco`", "over `local`"], ["1.500"])
        self.assertEqual(found["`lasp2`", "over `zeco`"], ["2.000"])
        self.assertNotIn(("`local`", "hidden"), found)

    def test_a_peer_on_several_gpus_stands_beside_the_methods_there(self):
        peers = [peer("both", 7, ranks=4), peer("both", 8, ranks=2), peer("both", 9, ranks=4, attention="kda")]
        found = rows(tables(gpu_layers.section(sources([layer(milliseconds=3, **SHAPE)], peers)))["layers_mine_peer_isolated_16k"])
        self.assertEqual(found["other `chunk`, exact", "measured"], ["7.00"])

    def test_softmax_stands_apart_from_linear_methods(self):
        records = [layer(milliseconds=3, **SHAPE),
                   layer("ring_attention_softmax", milliseconds=1, gate="none", scan="", **SHAPE)]
        found = tables(gpu_layers.section(sources(records)))
        self.assertEqual(list(rows(found["layers_mine_peer_isolated_16k"])), [
            ("`zeco`", "measured"), ("`zeco`", "measured, exposed"), ("`zeco`", "hidden"), ("`zeco`", "over `local`")])
        self.assertIn(("`ring_attention_softmax`", "measured"), rows(found["layers_mine_peer_isolated_16k_softmax"]))

    def hidden(self, share, exposed, compute_only=2.0):
        records = [layer(milliseconds=3, hidden=share, **SHAPE), layer(mode="exposed", milliseconds=exposed, **SHAPE),
                   layer(mode="compute_only", scan="", milliseconds=compute_only, **SHAPE)]
        table = tables(gpu_layers.section(sources(records)))["layers_mine_peer_isolated_16k"]
        text, = rows(table)["`zeco`", "hidden"]
        return text, [note for note in table.notes if note.startswith(text.partition(" (")[0])]

    def test_a_share_that_is_none_is_reported_in_words(self):
        for share, exposed, text in ((0.25, 4.0, "25 %"), (-3.63, 4.0, "none (363)"), (1.2, 4.0, "all"),
                                     (-3.63, 2.1, "lost in noise")):
            shown_text, notes = self.hidden(share, exposed)
            self.assertEqual(shown_text, text)
            self.assertEqual(len(notes), 0 if text == "25 %" else 1)

    def test_a_ratio_of_two_launches_is_marked(self):
        records = [local(milliseconds=2, run="b", **SHAPE), layer(milliseconds=3, **SHAPE)]
        table = tables(gpu_layers.section(sources(records)))["layers_mine_peer_isolated_16k"]
        self.assertEqual(rows(table)["`zeco`", "over `local`"], ["1.500*"])
        self.assertIn("* The two times are of different launches.", table.notes)


if __name__ == "__main__":
    unittest.main()
