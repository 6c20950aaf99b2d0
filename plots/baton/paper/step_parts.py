# SPDX-License-Identifier: Apache-2.0
"""Published steps of a model beside simulated ones: speeds, fits by one constant, and the parts of a step."""

from baton.paper import cells
from baton.paper.cells import DERIVED, Cell, Row, digits, signed

NAMES = BLOCKS, SHARDING, EXCHANGE, FITTED, REST = "block times", "sharding", "exchange", "fitted", "rest"
NEAR = 0.15  # what a fitted cell may be off


def or_none(make, *arguments):
    """Returns what the function makes, None if it misses a number."""
    try:
        return make(*arguments)
    except KeyError:
        return None


def fitted_rows(kind, steps, tokens, unit, published):
    """Yields the speeds of fitted steps in ms, None where one is not known, and how far they are from the published ones."""
    fitted = [step and Cell(digits(1e3 * count / step), f"{1e3 * count / step:.6g}", unit, DERIVED, "the simulated step and a constant")
              for step, count in zip(steps, tokens)]
    yield Row("", kind, fitted)
    yield Row("", "fitted / published − 1", list(map(cells.difference, fitted, published)))


def part_cells(found, name):
    """Returns the cells of one part of [{part: ms} or None]."""
    return [part and cells.derived(part[name], shown(part[name]), "ms", "published − simulated") for part in found]


def shown(value):
    """Milliseconds with a true minus."""
    return "0" if abs(value) < 5e-4 else digits(value) if value > 0 else f"−{digits(-value)}"


def within(errors):
    """Says how many of {place: relative error} are near enough, and which is the worst. Throws KeyError for none."""
    if not errors:
        raise KeyError("no cell")
    (title, ranks), worst = max(errors.items(), key=lambda item: abs(item[1]))
    inside = sum(abs(error) <= NEAR for error in errors.values())
    return (f"{inside} of {len(errors)} other cells are within {100 * NEAR:.0f} %; the worst is {title} on {ranks} GPUs, "
            f"{signed(100 * worst)}")
