# SPDX-License-Identifier: Apache-2.0
"""Text, times and sizes as the page writes them. Times are written as the answer writes them, in s, ms and us."""

import html

from rows import captions

UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def escaped(text):
    return html.escape(text, quote=False)


def time_unit(seconds):
    """Returns (name, seconds) of the unit that a time is written in: the first of which there is at least one."""
    return next((unit for unit in UNITS if seconds >= 0.9995 * unit[1]), UNITS[-1])


def in_unit(seconds, unit, with_name=True):
    """Returns a round time in a unit, such as "12.5 ms"."""
    value = seconds / unit[1]
    digits = f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    return f"{digits} {unit[0]}" if with_name else digits


def axis_time(seconds):
    return in_unit(seconds, time_unit(seconds))


def size(of_bytes):
    """Returns "512K" for 524288, as the benches write and read sizes."""
    return captions.binary_size(of_bytes, ("", "K", "M", "G"))
