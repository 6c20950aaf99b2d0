# SPDX-License-Identifier: Apache-2.0
"""A published step taken apart into what the simulation has and what it lacks, and words on how far cells are off."""

from baton.paper.cells import digits, signed

NAMES = BLOCKS, SHARDING, EXCHANGE, FITTED, REST = "block times", "sharding", "exchange", "fitted", "rest"


def parts(published, blocks, without, whole, constant):
    """Returns {part: ms}; the sum is `published`. `without` and `whole` are the simulated steps of the data-parallel line
    and of the method, `blocks` is what block_times.step returns, `constant` what fits the simulated step. Throws KeyError
    where `blocks` is not known."""
    if blocks is None:
        raise KeyError("blocks")
    simulated, known = blocks
    return {BLOCKS: known, SHARDING: without - simulated, EXCHANGE: whole - without,
            FITTED: constant - (known - simulated), REST: published - whole - constant}


def shown(value):
    """Milliseconds with a true minus."""
    return "0" if abs(value) < 5e-4 else digits(value) if value > 0 else f"−{digits(-value)}"


def within(errors, near):
    """Says how many of {place: relative error} are near enough, and which is the worst. Throws KeyError for none."""
    if not errors:
        raise KeyError("no cell")
    (title, ranks), worst = max(errors.items(), key=lambda item: abs(item[1]))
    inside = sum(abs(error) <= near for error in errors.values())
    return (f"{inside} of {len(errors)} other cells are within {100 * near:.0f} %; the worst is {title} on {ranks} GPUs, "
            f"{signed(100 * worst)}")
