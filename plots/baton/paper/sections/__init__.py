# SPDX-License-Identifier: Apache-2.0
"""The sections of the page, one a module, in the order of the page; each makes its Section of the Sources."""

import importlib

ORDER = ("headlines", "zeco_table2", "predicted_from_two_cells", "gpu_exchanges", "zeco_operators", "gpu_layers", "volumes",
         "method_volumes", "padding", "fastest_methods", "delta_layers", "lasp2_lengths", "zeco_throughput", "lasp2_throughput",
         "published_softmax", "scaling", "winners", "measured_against_predicted")
SECTIONS = tuple(importlib.import_module(f"{__name__}.{name}").section for name in ORDER)
