# SPDX-License-Identifier: Apache-2.0
"""The one colour and mark of every method and collective, in all figures and pages. Needs the standard library alone.

The names that most figures have are chosen by hand: All-Scan is blue, gathers are red, the chain of whole states is green.
Any other name has a colour near that of its family, which is the chosen name within it, and else one that depends on the
name alone. So a new method or collective needs no line here.
"""

import collections
import colorsys
import zlib

# `colour` is #rrggbb, with a contrast of at least 3 to white, since it colours labels too. `mark` is matplotlib's name.
Look = collections.namedtuple("Look", "colour mark")

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")

COLLECTIVES = {
    "all_scan": Look("#0072B2", "o"), "all_scan_fused": Look("#12356B", "*"), "auto_scan": Look("#008C9E", "D"),
    "ring_scan": Look("#009E73", "^"), "recursive_doubling": Look("#C2549D", "v"), "two_shot": Look("#B88A00", "P"),
    "hierarchical_scan": Look("#5A2A9C", "D"), "mpi_exscan": Look("#7F7F7F", "X"), "all_gather_scan": Look("#D55E00", "s"),
    "nccl_all_gather_scan": Look("#C1121F", "o"), "all_to_all": Look("#29A309", "s"), "reduce_scatter": Look("#910547", "^"),
    "all_gather": Look("#8F3B00", "P"), "exchange": Look("#000000", "X")}
# A method of a layer looks like its exchange, which it never shares a figure with.
METHODS = {
    "zeco": COLLECTIVES["all_scan"], "lasp1": COLLECTIVES["ring_scan"], "lasp2": COLLECTIVES["all_gather_scan"],
    "local": Look("#4D4D4D", "X"), "ring_attention": Look("#C2549D", "D"), "ulysses": Look("#5A2A9C", "s"),
    "usp": Look("#12356B", "^"), "all_gather_kv": Look("#29A309", "*"), "mesh_attention": Look("#B88A00", "X"),
    "dist_flash_attention": Look("#C1121F", "P")}
LOOKS = {**COLLECTIVES, **METHODS}

FAMILY = 30 / 360  # the hues of a family, to both sides of that of its name
DARKEST, LIGHTEST = 0.03, 0.28  # shares of white's light; a contrast of 3 to white takes 0.3

NARROW = "_bf16"  # ends the names of executors whose messages are rounded


def look(name):
    """Returns the Look of a name, the same at every call."""
    if name in LOOKS:
        return LOOKS[name]
    digest = zlib.crc32(name.encode("utf-8"))
    where, how_light, how_full = (digest >> shift & 255 for shift in (0, 8, 16))
    family = max((known for known in LOOKS if known in name), key=len, default="")
    hue = (hue_of(LOOKS[family].colour) + FAMILY * (where / 127.5 - 1)) % 1 if family else where / 256
    light = DARKEST + (LIGHTEST - DARKEST) * how_light / 255
    return Look(shade(hue, 0.55 + 0.45 * how_full / 255, light), MARKS[digest >> 24 & 7])


def hue_of(colour):
    return colorsys.rgb_to_hls(*(int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)))[0]


def shade(hue, saturation, light):
    """The lightest colour of this hue that has no more than this share of white's light, as #rrggbb."""
    shades = (colorsys.hls_to_rgb(hue, step / 100, saturation) for step in range(100, -1, -1))
    return "#" + "".join(f"{int(255 * part):02X}" for part in next(one for one in shades if light_of(one) <= light))


def light_of(colour):
    """The share of white's light that a colour has, by the sRGB standard."""
    return sum(weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
               for weight, part in zip((0.2126, 0.7152, 0.0722), colour))


def is_narrow(executor):
    """Says whether an executor rounds its messages. Its lines are dashed, in the colour of the exact ones."""
    return executor.endswith(NARROW)
