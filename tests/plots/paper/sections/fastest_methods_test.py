# SPDX-License-Identifier: Apache-2.0
"""The map of methods: who is the fastest where, who competes, and what a cell says."""

import unittest

from baton import stacks
from baton.paper.sections import fastest_methods as methods
from baton.paper.sections import maps
from baton.paper.sources import H100, Sources
from plots.example import skipped_layer
from plots.paper.shown import simulated_layer


def simulated(name, milliseconds, ranks=8, tokens=8192, **changes):
    return simulated_layer(name, milliseconds, **{
        "ranks": ranks, "tokens": tokens, "heads": methods.HEADS, "attention": "softmax", "blocks_asked": maps.BLOCKS, "sent_bytes": 5,
        "layout": "contiguous", **changes})


def found(*records, kind="softmax"):
    return methods.maps_of(Sources(list(records), {}, {}))[kind]


class Map(unittest.TestCase):
    def test_the_fastest_of_each_place(self):
        places = found(simulated("one", 1.0), simulated("other", 2.5), simulated("other", 1.0, 16), simulated("one", 1.1, 16))
        self.assertEqual({place: (one.name, maps.margin_text(one)) for place, one in places.items()},
                         {(8, 8192): ("one", "2.50×"), (16, 8192): ("other", "= 1")})

    def test_only_whole_attention_of_this_shape_competes(self):
        others = (simulated("local", 0.1, sent_bytes=0), simulated("linear", 0.1, attention="linear"),
                  simulated("exposed", 0.1, mode="exposed"), simulated("grouped", 0.1, kv_heads=8),
                  simulated("model's blocks", 0.1, blocks_asked="auto"), simulated("forward", 0.1, which="forward"),
                  simulated("heads", 0.1, heads=methods.HEADS + 1), simulated("ranks", 0.1, ranks=5),
                  skipped_layer("no", name="skipped", executor="simulator", topology=H100, attention="softmax"))
        (place, one), = found(simulated("one", 1.0), *others).items()
        self.assertEqual((place, one.name, maps.margin_text(one)), ((8, 8192), "one", ""))

    def test_a_stack_has_one_softmax_layer_and_three_linear_ones_of_alike_tokens(self):
        linear, zigzag = simulated("linear", 2.0, attention="linear"), simulated("zigzag", 1.0, layout="zigzag")
        (_, one), = found(simulated("one", 4.0), zigzag, linear, kind="hybrid").items()
        self.assertEqual((one.name, round(one.seconds * 1e3, 6), one.runner_up), ("one + 3 linear", 10.0, None))
        self.assertEqual(found(zigzag, linear, kind="hybrid"), {})

    def test_the_table_of_layouts_has_the_fastest_stack_of_each(self):
        move = {**simulated(stacks.MOVE, 0.25, heads=methods.HEADS * 64, d_k=1), "bench": "collective"}
        of_another_shape = {**simulated(stacks.MOVE, 9.0), "bench": "collective"}
        made = [simulated("slow", 9.0), simulated("one", 4.0), simulated("zigzag", 1.0, layout="zigzag"), move,
                of_another_shape,
                *(simulated(name, time, attention="linear", layout=layout)
                  for name, time, layout in (("linear", 2.0, "contiguous"), ("chain", 2.5, "zigzag")))]
        rows = methods.layouts_table(methods.stacks_of(Sources(made, {}, {}))).rows
        self.assertEqual([(float(row.cells[0].value), row.cells[0].note) for row in rows],
                         [(10.0, "one + 3 linear"), (8.5, "zigzag + 3 chain"), (8.0, "zigzag + 3 linear + 4 moves")])

    def test_a_cell_names_who_cannot_be_distinguished_from_it(self):
        table = maps.methods_table("fastest_softmax", "softmax attention", found(simulated("one", 1.0), simulated("other", 1.1), simulated("third", 9.0)))
        cell = table.rows[0].cells[0]
        self.assertEqual((cell.text, cell.value), ("one = 1", "one"))
        self.assertIn("cannot be told from it: other", cell.note)

    def test_names_fit_their_cells(self):
        from baton.paper import winners_map
        from plots.paper.figures_test import touching
        names = ("ring_attention_softmax", "dist_flash_attention", "mesh_attention_zigzag")
        layouts = ("contiguous", "contiguous", "zigzag")
        records = [simulated(name, 1.0 + 2 * ((place + row + column) % 3), ranks, tokens, attention=attention,
                             layout=layouts[place])
                   for place, name in enumerate(names) for attention in ("softmax", "linear")
                   for row, ranks in enumerate(methods.RANKS) for column, tokens in enumerate(methods.TOKENS)]
        for kind in methods.TITLES:
            drawn = winners_map.methods(found(*records, kind=kind))
            self.assertEqual(touching(drawn), [], kind)


if __name__ == "__main__":
    unittest.main()
