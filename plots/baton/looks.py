# SPDX-License-Identifier: Apache-2.0
"""The one colour and mark of every method and collective, in all figures and pages. Needs the standard library alone.

Related names have related colours: All-Scan is blue, gathers are red, the chain of whole states is green. Names that can
share a figure never look alike. A method of a layer looks like its exchange, which it never shares a figure with.
"""

import collections
import zlib

# `colour` is #rrggbb, with a contrast of at least 3 to white, since it colours labels too. `mark` is matplotlib's name.
Look = collections.namedtuple("Look", "colour mark")

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")

COLLECTIVES = {
    "all_scan": Look("#0072B2", "o"),
    "all_scan_fused": Look("#12356B", "*"),
    "all_scan_fused_16": Look("#5B8DEF", "^"),
    "all_scan_by_hand": Look("#57707F", "s"),
    "auto_scan": Look("#008C9E", "D"),
    "ring_scan": Look("#009E73", "^"),
    "recursive_doubling": Look("#C2549D", "v"),
    "doubling_123": Look("#F4089B", "*"),
    "two_shot": Look("#B88A00", "P"),
    "two_shot_fused": Look("#6B4E00", "*"),
    "hierarchical_scan": Look("#5A2A9C", "D"),
    "hierarchical_scan_chain": Look("#9B6FD1", "s"),
    "mpi_exscan": Look("#7F7F7F", "X"),
    "all_gather_scan": Look("#D55E00", "s"),
    "all_gather_scan_bruck": Look("#8F3B00", "P"),
    "all_gather_scan_direct": Look("#D96C50", "X"),
    "all_gather_scan_trimmed": Look("#B56675", "o"),
    "mpi_allgather": Look("#A0763A", "^"),
    "nccl_all_gather_scan": Look("#C1121F", "o"),
    "nccl_all_gather_scan_window": Look("#F0386B", "v"),
    "nccl_all_gather_scan_copy_engine": Look("#6A040F", "D"),
    "ring_all_gather": Look("#6B6B00", "o"),
    "direct_all_gather": Look("#8A9618", "^"),
    "bruck_all_gather": Look("#4F5D2F", "v"),
    "nccl_all_gather": Look("#2E7D32", "P"),
    "ring_reduce_scatter": Look("#4E084C", "P"),
    "direct_reduce_scatter": Look("#CB5EF0", "o"),
    "mpi_reduce_scatter": Look("#5E6CFB", "X"),
    "nccl_reduce_scatter": Look("#910547", "^"),
    "ring_exchange": Look("#000000", "X"),
    "direct_all_to_all": Look("#050FFD", "P"),
    "pairwise_all_to_all": Look("#FE11DD", "X"),
    "bruck_all_to_all": Look("#29A309", "s"),
    "mpi_alltoall": Look("#0109B4", "v"),
    "nccl_all_to_all": Look("#BE09FE", "*"),
    "direct_to_zigzag": Look("#FF0001", "D")}

METHODS = {
    "zeco": COLLECTIVES["all_scan"],
    "zeco_zigzag": Look("#188AFF", "P"),
    "zeco_corrected": Look("#BD6AC3", "^"),
    "linear_doubling": Look("#125FBB", "X"),
    "linear_two_shot": Look("#F20C2B", "*"),
    "lasp1": COLLECTIVES["ring_scan"],
    "lasp1_as_released": Look("#1B5E20", "v"),
    "lasp2": COLLECTIVES["all_gather_scan"],
    "lasp2_as_released": Look("#8F3B00", "P"),
    "lasp2_zigzag": Look("#FF1A00", "P"),
    "local": Look("#4D4D4D", "X"),
    "chunkwise_local": Look("#777777", "D"),
    "chunkwise_local_softmax": Look("#983139", "s"),
    "ring_attention": Look("#C2549D", "D"),
    "ring_attention_softmax": Look("#5A2A9C", "*"),
    "ring_attention_zigzag": Look("#9B6FD1", "o"),
    "ring_attention_striped": Look("#12356B", "s"),
    "ring_attention_burst": Look("#D0006F", "^"),
    "ulysses": Look("#0A03FD", "s"),
    "ulysses_softmax": Look("#4D0A32", "v"),
    "usp": Look("#000414", "^"),
    "usp_zigzag": Look("#AE03F2", "D"),
    "usp_zigzag_across": Look("#092608", "o"),
    "all_gather_kv": Look("#15A70C", "*"),
    "all_gather_kv_zigzag": Look("#BF7E6D", "*"),
    "all_gather_kv_direct": Look("#199AA9", "P"),
    "ulysses_all_gather": Look("#8A9367", "s"),
    "ulysses_all_gather_zigzag": Look("#BA5CF4", "v"),
    "mesh_attention": Look("#184FFB", "X"),
    "mesh_attention_zigzag": Look("#FC16CE", "s"),
    "mesh_attention_striped": Look("#A4019B", "X"),
    "double_ring": Look("#9D89B1", "P"),
    "double_ring_zigzag": Look("#482602", "o"),
    "token_ring": Look("#B88A00", "P"),
    "token_ring_zigzag": Look("#6B6B00", "v"),
    "dist_flash_attention": Look("#C1121F", "X")}

LOOKS = {**COLLECTIVES, **METHODS}

# For names that are not registered here, such as a user's own collective.
OTHER_COLOURS = ("#3D3DFF", "#B5179E", "#7A4B3A", "#2A9D3A", "#D0006F", "#5C3D00", "#A86FFF", "#00706B")

NARROW = "_bf16"  # ends the names of executors whose messages are rounded


def look(name):
    """Returns the Look of a registered name, and for any other name one that depends on the name alone."""
    if name in LOOKS:
        return LOOKS[name]
    turn, place = divmod(zlib.crc32(name.encode("utf-8")), len(OTHER_COLOURS))
    return Look(OTHER_COLOURS[place], MARKS[turn % len(MARKS)])


def is_narrow(executor):
    """Says whether an executor rounds its messages. Its lines are dashed, in the colour of the exact ones."""
    return executor.endswith(NARROW)
