# SPDX-License-Identifier: Apache-2.0
"""Where NCCL and the executors of GPUs are looked for, and what is said where they are not."""

import importlib
import unittest
from unittest import mock

from baton.own import devices
from plots.example import InFolder


class Devices(InFolder):
    def setUp(self):
        super().setUp()
        importlib.reload(devices)
        self.enterContext(mock.patch.object(devices, "LIBRARY", self.folder / "_cuda.so"))

    def test_a_package_without_cuda_says_how_to_build_it_in(self):
        devices.load()
        self.assertIn("./run wheel --cuda", devices.missing)

    def test_a_library_that_cannot_be_opened_is_no_error_and_is_named(self):
        devices.LIBRARY.write_text("no library")
        with mock.patch.object(devices, "_nccl", lambda: None):
            devices.load()
        self.assertIn("_cuda.so", devices.missing)

    def test_a_machine_without_nccl_says_so(self):
        devices.LIBRARY.write_text("no library")
        with mock.patch.object(devices, "_nccl", lambda: "libnccl-that-is-not-here.so.2"):
            devices.load()
        self.assertIn("libnccl-that-is-not-here.so.2", devices.missing)

    def test_nccl_is_that_of_the_package_where_there_is_one(self):
        library = self.folder / "nvidia/nccl/lib/libnccl.so.2"
        library.parent.mkdir(parents=True)
        library.touch()
        spec = mock.Mock(submodule_search_locations=[str(self.folder / "nvidia/nccl")])
        with mock.patch("importlib.util.find_spec", lambda name: spec if name == "nvidia.nccl" else None):
            self.assertEqual(devices._nccl(), str(library))  # pylint: disable=protected-access

    def test_nccl_is_otherwise_that_of_the_system(self):
        with mock.patch("importlib.util.find_spec", side_effect=ModuleNotFoundError):
            self.assertEqual(devices._nccl(), "libnccl.so.2")  # pylint: disable=protected-access


if __name__ == "__main__":
    unittest.main()
