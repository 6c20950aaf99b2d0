# SPDX-License-Identifier: Apache-2.0
"""What every method sends: counted cells beside closed forms."""

import unittest

from baton.paper import cells
from baton.paper.sections import megatron
from baton.paper.sections import method_volumes as volumes
from baton.paper.sources import H100, Sources, load_cells
from plots.example import ROOT, layer, skipped_layer

FORMS = load_cells(ROOT / "results/paper/volumes.csv")
U = 8192 * 64 * 128 * 2  # bytes of a rank's queries


def counted(name="ring_attention_softmax", ranks=8, sent=14 * U, which="forward", **changes):
    return layer(name, which, **{"ranks": ranks, "executor": "simulator", "topology": H100, "heads": 64, "tokens": 8192,
                                 "dtype": "bf16", "sent_bytes": sent, "hops": 7, "messages": 56, "state_bytes": 2**22,
                                 "blocks_asked": 64, **changes})


def sources(*records):
    return Sources(list(records), {}, {"volumes": FORMS})


def rows(*records, ranks=8):
    return [(row.label, row.kind, [cell and cell.text for cell in row.cells])
            for row in volumes.table(sources(*records), ranks).rows]


class ClosedForms(unittest.TestCase):
    def test_each_is_arithmetic_over_known_terms(self):
        for form in FORMS:
            with self.subTest(form):
                self.assertGreater(volumes.value_of(form["bytes"], counted()), 0)
                self.assertTrue(form["hops"] == "" or volumes.value_of(form["hops"], counted()) > 0)
                self.assertIn(form["form"], ("published", "derived"))
                self.assertRegex(form["source"], r"https://")

    def test_the_terms(self):
        terms = volumes.terms(counted(ranks=12, kv_heads=16))
        self.assertEqual((terms["a"], terms["b"], terms["f"], terms["H"], terms["u"]), (3, 4, 1 / 4, 64, U))

    def test_ranks_that_share_a_head_of_keys_each_get_it(self):
        form = next(form for form in FORMS if (form["method"], form["pass"], form["form"]) ==
                    ("ulysses_softmax", "forward", "derived"))
        for ranks, sent in ((8, 33030144), (64, 66060288)):  # as counted for 1024 tokens a rank
            self.assertEqual(volumes.value_of(form["bytes"], counted(ranks=ranks, kv_heads=8, tokens=1024)), sent)

    def test_a_count_stands_above_its_form_and_equals_it(self):
        self.assertEqual(rows(counted()), [
            ("`ring_attention_softmax`", "counted, forward", [None, "1,792", None, None, "7.0", "7"]),
            ("", "closed form, derived", [None, "1,792", None, None, None, "7"])])

    def test_the_memory_of_records_that_tell_it_stands_below_the_count(self):
        one = counted("chunkwise_local", sent=0, tensor_bytes=3 * 2**20, scratch_bytes=2**20)
        self.assertEqual(rows(one)[1], ("", "memory, counted, forward", [None, "4.00", None, None, None, None]))
        self.assertEqual(len(rows(counted("chunkwise_local", sent=0))), 1)

    def test_each_form_is_shown_with_its_source(self):
        table = volumes.forms_table(FORMS)
        self.assertEqual(len(table.rows), len(FORMS))
        for form, row in zip(FORMS, table.rows):
            self.assertEqual(row.cells[0].value, form["bytes"])
            self.assertTrue(row.cells[0].kind == cells.PUBLISHED or any(form["source"] in note for note in table.notes))

    def test_forms_of_methods_that_were_not_counted_are_left_out(self):
        self.assertEqual({form["method"] for form in volumes.counted_forms(sources(counted()))}, {"ring_attention_softmax"})

    def test_a_form_that_is_far_from_the_count_is_marked(self):
        table = volumes.table(sources(counted(sent=10 * U, hops=1)), 8)
        bytes_cell, hops_cell = table.rows[1].cells[1], table.rows[1].cells[5]
        self.assertTrue(bytes_cell.off and hops_cell.off)
        self.assertEqual(bytes_cell.kind, cells.DERIVED)
        self.assertFalse(table.rows[0].cells[1].off)

    def test_what_cannot_run_is_named_and_other_heads_of_keys_are_left_out(self):
        table = volumes.table(sources(counted(kv_heads=8), skipped_layer(
            "3 heads", name="a_cut", executor="simulator", topology=H100, heads=64, ranks=8)), 8)
        self.assertEqual(table.rows, [])
        self.assertIn("`a_cut` (3 heads)", table.notes[-1])


class HiddenStates(unittest.TestCase):
    """Megatron's rows are sums of an all-gather's and a reduce-scatter's records."""

    def moved(self, name, **changes):
        made = counted(name, sent=7 * U, bench="collective", d_k=1, d_v=megatron.D_V, heads=megatron.maps_of(8192, 64, 128), tokens=0,
                       milliseconds=2.0, **changes)
        del made["pass"]
        return made

    def test_both_passes_are_counted_timed_and_equal_to_their_forms(self):
        shown = rows(self.moved(megatron.GATHER), self.moved(megatron.SCATTER))
        self.assertEqual(shown, [
            ("`megatron_sp`", "counted, forward", [None, "1,792", None, None, "14.0", "14"]),
            ("", "simulated, forward, exchange alone, ms", [None, "4.00", None, None, None, None]),
            ("", "closed form, derived", [None, "1,792", None, None, None, "14"]),
            ("`megatron_sp`", "counted, backward", [None, "2,688", None, None, "21.0", "21"]),
            ("", "simulated, backward, exchange alone, ms", [None, "6.00", None, None, None, None]),
            ("", "closed form, derived", [None, "2,688", None, None, None, "21"])])

    def test_a_missing_collective_leaves_them_out(self):
        self.assertEqual(rows(self.moved(megatron.GATHER)), [])


if __name__ == "__main__":
    unittest.main()
