# SPDX-License-Identifier: Apache-2.0
"""Numbers, lists, times, sizes and models as sentences and pages have them."""

MOST_NAMES = 4  # of a list; the others are counted
UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def seconds(value):
    """A time with three digits: 12.3 us, 845 us, 13.6 ms."""
    scale, unit = (1e6, "us") if value < 1e-3 else (1e3, "ms") if value < 1 else (1, "s")
    return f"{digits(value * scale)} {unit}"


def digits(value):
    """Three digits that count, as a plain decimal."""
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def time_of(row):
    """The row's median with its interval over launches, or `~` before it where it was simulated."""
    if row.is_simulated:
        return f"~{seconds(row.median)}"
    if row.interval is None:
        return seconds(row.median)
    scale, unit = (1e6, "us") if row.median < 1e-3 else (1e3, "ms") if row.median < 1 else (1, "s")
    low, high = (digits(end * scale) for end in row.interval)
    return f"{digits(row.median * scale)} {unit} [{low}, {high}]"


def times(ratio):
    """A Ratio as `1.04 [1.02, 1.07] times`."""
    if ratio.interval is None:
        return f"{factor(ratio.value)} times"
    places = 3 if max(abs(ratio.value - 1), *(abs(end - 1) for end in ratio.interval)) < 0.1 else None
    if factor(ratio.interval[0], places) == factor(ratio.interval[1], places) and ratio.value < 10:
        places = 3
    low, high = (factor(end, places) for end in ratio.interval)
    return f"{factor(ratio.value, places)} [{low}, {high}] times"


def factor(value, places=None):
    """A ratio with two decimals; with three where it is near 1, and with none where it is large."""
    if places is None:
        places = 3 if abs(value - 1) < 0.01 else 2 if value < 10 else 0
    return f"{value:.{places}f}"


def percent(share, places=1):
    return f"{100 * share:.{places if abs(share) < 0.1 else 0}f} %"


def names(words, most=MOST_NAMES):
    """`a`, `a and b`, or `a, b, c and 7 more`."""
    words = list(words)
    if len(words) > most + 1:
        words = [*words[:most], f"{len(words) - most} more"]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def count(number, word, plural=None):
    return f"{number} {word if number == 1 else plural or word + 's'}"


def span(ratios):
    """The least and the largest of ratios, such as `1.4 to 3.4`."""
    low, high = f"{min(ratios):.2g}", f"{max(ratios):.2g}"
    return low if low == high else f"{low} to {high}"


def lowered(sentence):
    """A sentence as it follows a colon."""
    return f"{sentence[:1].lower()}{sentence[1:]}"


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
    return binary_size(of_bytes, ("", "K", "M", "G"))


def binary_size(size, units=(" B", " KiB", " MiB", " GiB")):
    for unit in units[:-1]:
        if size < 1024:
            return f"{size:g}{unit}"
        size /= 1024
    return f"{size:g}{units[-1]}"


def model(record):
    """Returns the model of a record in words, and what it has beside its blocks."""
    beside = f", {record['beside']}" if record["beside"] else ""
    layers = "1 layer" if record["layers"] == 1 else f"{record['layers']} layers"
    return f"{record['model']}: {layers} of width {record['width']}{beside}"
