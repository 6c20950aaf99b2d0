# SPDX-License-Identifier: Apache-2.0
"""results/peers/layers.py without PyTorch and without a GPU: a stand-in for PyTorch takes any call."""

import contextlib
import importlib
import io
import pathlib
import sys
import types
import unittest
from unittest import mock

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "results/peers"
TORCH = mock.MagicMock(__version__="0")
sys.modules |= {f"torch{part}": TORCH for part in ("", ".distributed", ".nn", ".nn.functional", ".nn.attention")}
sys.path.insert(0, str(SCRIPTS))
layers = importlib.import_module("layers")
PEERS = importlib.import_module("baton.peers.kernels").PEERS  # the tree's own, which the script finds

OPTIONS = types.SimpleNamespace(tokens=16384, heads=16, d=128, kernel="")


class Layers(unittest.TestCase):
    def test_they_are_those_that_the_command_measures(self):
        self.assertEqual({name: (kernel.attention, kernel.package) for name, kernel in layers.KERNELS.items()},
                         {name: (layer, library) for layer, kernels in PEERS.items() for name, library in kernels.items()})

    def ungated(self, name, heads):
        """The heads whose log gates are set to 0 in the inputs of a kernel."""
        gates = layers.F.logsigmoid.return_value.__truediv__.return_value
        gates.__setitem__.reset_mock()
        layers.drawn(layers.KERNELS[name], types.SimpleNamespace(tokens=64, heads=heads, d=128))
        places = [place for (place, value), _ in gates.__setitem__.call_args_list if value == 0]
        self.assertTrue(all(place[:2] == (slice(None), slice(None)) for place in places), "of all tokens")
        return [head for place in places for head in range(heads)[place[2]]]

    def test_a_quarter_of_the_heads_has_no_gates_the_compared_one_among_them(self):
        self.assertEqual(self.ungated("flash_qla_quarter_ungated", 16), [3, 7, 11, 15])
        self.assertEqual(self.ungated("flash_qla_quarter_ungated", 4), [3])
        self.assertEqual(self.ungated("flash_qla", 16), [])

    def test_heads_that_have_no_quarter_are_refused(self):
        said = io.StringIO()
        with mock.patch.object(sys, "argv", ["layers.py", "flash_qla_quarter_ungated", "--out", "-", "--heads", "6"]), \
                contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            layers.parse()
        self.assertIn("flash_qla_quarter_ungated takes a multiple of 4 heads, not 6", said.getvalue())

    def test_a_line_says_whether_the_kernel_is_exact(self):
        for name, kernel in layers.KERNELS.items():
            with mock.patch.object(layers.rounds, "seconds_of", return_value=[1.0]), \
                    mock.patch.object(layers, "state_of_gpu", return_value=[None, None]):
                row = layers.measured(kernel, mock.MagicMock(), OPTIONS, "forward")
            self.assertEqual(row["exact"], not name.startswith("flash_qla"), name)
            self.assertEqual("sum to -10" in row.get("left_out", ""), not row["exact"], name)


if __name__ == "__main__":
    unittest.main()
