# SPDX-License-Identifier: Apache-2.0
"""The sections of the page, one a file, in the order of the page; each makes its Section of the Sources."""

from baton.paper.sections import (
    at_a_glance,
    delta_layers,
    fastest_methods,
    gpu_exchanges,
    gpu_layers,
    headlines,
    lasp2_lengths,
    lasp2_throughput,
    measured_against_predicted,
    method_volumes,
    predicted_from_two_cells,
    published_softmax,
    scaling,
    volumes,
    winners,
    zeco_operators,
    zeco_table2,
    zeco_throughput,
)

SECTIONS = (headlines.section, at_a_glance.section, zeco_table2.section, predicted_from_two_cells.section, gpu_exchanges.section,
            zeco_operators.section, gpu_layers.section, volumes.section, method_volumes.section,
            fastest_methods.section, delta_layers.section, lasp2_lengths.section, zeco_throughput.section,
            lasp2_throughput.section, published_softmax.section, scaling.section, winners.section,
            measured_against_predicted.section)
