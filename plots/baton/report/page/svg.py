# SPDX-License-Identifier: Apache-2.0
"""SVG as text: elements, scales, ticks, and labels that keep apart.

Lengths are pixels of the view box. Text is TEXT high; widths of text are estimates from above, since no font is known.
"""

import html
import math

TEXT = 12  # height of all text in figures
LINE = 14  # from one line of text to the next
LETTER = 0.62 * TEXT  # no less than the mean width of a letter of a wide sans-serif font
STEPS = (1, 2, 5, 10)  # nice steps of ticks, times a power of ten


def element(name, inside="", **attributes):
    """An element. Underscores in names of attributes become hyphens, and numbers have two decimals at most."""
    told = "".join(f' {key.strip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items()
                   if value is not None)
    return f"<{name}{told}>{inside}</{name}>" if inside else f"<{name}{told}/>"


def _value(value):
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else html.escape(str(value))


def text(x, y, words, **attributes):
    return element("text", html.escape(words, quote=False), x=x, y=y, **attributes)


def title(words):
    """What a pointer that rests on the element around it is told."""
    return element("title", html.escape(words, quote=False))


def path(points, **attributes):
    """A line through points, [(x, y)]."""
    steps = " ".join(f"{'L' if index else 'M'}{_value(float(x))} {_value(float(y))}"
                     for index, (x, y) in enumerate(points))
    return element("path", d=steps, fill="none", **attributes)


def picture(width, height, parts, about):
    """A whole figure: `about` is what it shows, for those who do not see it."""
    return (f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{html.escape(about)}">'
            + "".join(parts) + "</svg>")


class Log:
    """Places values from `low` to `high` on pixels from `start` to `end`, by their logarithms."""

    def __init__(self, low, high, start, end):
        self.low, self.high = low, high
        self.start, self.end = start, end

    def __call__(self, value):
        if self.high <= self.low:
            return (self.start + self.end) / 2
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)


    def inside(self, value):
        """The value, or the end of the scale that it is beyond."""
        return min(max(value, self.low), self.high)


class Linear(Log):
    """Places values by themselves."""

    def __call__(self, value):
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def log_ticks(low, high, most=6):
    """Round values from `low` to `high`: powers of ten, or with 2 and 5 between them, or even steps if the range is
    less than a power of ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [digit * 10.0**power for power in powers for digit in digits
                 if 0.999 * low <= digit * 10.0**power <= 1.001 * high]
        if len(found) <= most:
            break
    while len(found) > most:
        found = found[::2]
    return found if len(found) > 2 else linear_ticks(low, high, most)


def linear_ticks(low, high, most=6):
    """Multiples of a round step from `low` to `high`, at most `most` of them."""
    raw = (high - low) / most
    if raw <= 0:
        return [low]
    power = 10.0**math.floor(math.log10(raw))
    step = next(digit * power for digit in STEPS if digit * power >= 0.999 * raw)
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def spread(wanted, heights, top, bottom):
    """Moves the centres of labels apart: `wanted` are y from above, `heights` how high each label is.

    Returns y in the same order. Labels keep their order, and stay between `top` and `bottom` if there is room.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed, edge = {}, top
    for index in order:
        placed[index] = max(wanted[index], edge + heights[index] / 2)
        edge = placed[index] + heights[index] / 2
    edge = bottom
    for index in reversed(order):
        placed[index] = min(placed[index], edge - heights[index] / 2)
        edge = placed[index] - heights[index] / 2
    return [placed[index] for index in range(len(wanted))]


def wrapped(name, letters):
    """Cuts a name with underscores or spaces into lines of at most `letters` letters, where that can be."""
    lines, rest = [], name
    while len(rest) > letters:
        cut = max(rest.rfind(sign, 0, letters) for sign in "_ -")
        if cut <= 0:
            cut = letters - 1
        lines.append(rest[:cut + 1])
        rest = rest[cut + 1:]
    return [*lines, rest]
