# SPDX-License-Identifier: Apache-2.0
"""Goals of the exchange on four GPUs, and what it reaches: ratios of medians of one launch."""

import collections

from baton import captions
from baton.exchanges import AUTO, FEW_MULTIPROCESSORS, FUSED, INTERPRETED, LASP1, LASP2, NARROW, TWO_SHOT
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Table, Text

RANKS, CADENCE = 4, "isolated"
KIB, MIB = 2**10, 2**20
PAPER_STATE = 2 * MIB
SMALLEST, LARGEST = 256 * KIB, 16 * MIB
SWEEP = (SMALLEST, LARGEST)
COLUMNS = ("goal", "here", "held")

# A goal: `ratio` gives its Ratio at a size, `asked` is [(least size, most size, limit)], and `limits` says what limits
# the worst Ratio.
Goal = collections.namedtuple("Goal", "title ratio asked at_most limits")
# A ratio of seconds at a size, and the records of both.
Ratio = collections.namedtuple("Ratio", "over under size records")
# A line of a table of goals: its title, where it holds, its cells by COLUMNS, and the text if the goal is missed.
Asked = collections.namedtuple("Asked", "title where cells short")


def asked(title, where, limit, here=None, text="", of="", limits=None, at_most=True):
    """Returns the line of a goal. `here` is None if nothing was measured, and `limits` says why a goal is missed."""
    wanted = cells.derived(limit, f"{'at most' if at_most else 'at least'} {limit:.2f}", "", "goal")
    if here is None:
        return Asked(title, where, [wanted, None, None], None)
    held = here <= limit if at_most else here >= limit
    verdict = cells.derived(int(held), "yes" if held else "no", "", "comparison")._replace(off=not held)
    return Asked(title, where, [wanted, cells.derived(here, text, "", of), verdict], None if held else limits())


def table(name, title, lines, notes):
    """Yields the table, and a paragraph for each goal that is missed."""
    lines = list(lines)
    labels = [line.title if number == 0 or lines[number - 1].title != line.title else ""
              for number, line in enumerate(lines)]
    rows = [Row(label, line.where, line.cells) for label, line in zip(labels, lines)]
    yield Table(name, title, list(COLUMNS), rows, notes)
    for short, line in {line.short: line for line in reversed(lines) if line.short}.items():
        yield Text(f"**Short of it: {line.title} ({line.where}).** {short}")


# --- The exchange ---------------------------------------------------------------------------------------


def blocks(machine, sweep):
    yield from table(
        f"exchange_goals_{machine}", f"Goals of the exchange on {RANKS} GPUs ({machine})",
        [line(goal, sweep, limit) for goal in GOALS for limit in goal.asked],
        ["Ratios of medians of isolated rounds of one launch, fp32 on the wire unless said; over a range of sizes the "
         "worst of it, and in the second column where that is.",
         f"All-Scan is `{FUSED.name}` unless said. A blank cell has no record.",
         "The goals were set before there were executors for GPUs, from what a prototype of the chain and NCCL's calls took "
         "on such a machine: 14.2 and 50 µs for 2 MiB."])


def line(goal, sweep, limit):
    """Returns the line of a goal for the sizes of one of its limits."""
    worst = worst_ratio(goal, sweep, limit)
    if worst is None:
        return asked(goal.title, where(limit, worst), limit[2], at_most=goal.at_most)
    behind = " over ".join(f"{record['name']} on {record['executor']}" for record in worst.records)
    return asked(goal.title, where(limit, worst), limit[2], value(worst),
                 f"{value(worst):.2f}{sweep.elsewhere(*worst.records)}", f"measured: {behind}",
                 lambda: goal.limits(worst), goal.at_most)


def value(ratio):
    return ratio.over / ratio.under


def worst_ratio(goal, sweep, limit):
    """Returns the Ratio furthest from the goal among the measured sizes, None without any."""
    least, most, _ = limit
    there = [ratio for size in sweep.sizes() if least <= size <= most
             and (ratio := goal.ratio(sweep, size)) is not None]
    return (max if goal.at_most else min)(there, key=value, default=None)


def where(limit, worst):
    least, most, _ = limit
    if least == most:
        return captions.binary_size(least)
    worst_at = f", worst at {captions.binary_size(worst.size)}" if worst else ""
    return f"{captions.binary_size(least)} to {captions.binary_size(most)}{worst_at}"


# --- Ratios -------------------------------------------------------------------------------------------


def over(one, other):
    """Returns a function that gives the ratio of two methods' medians."""
    return lambda sweep, size: of_records(sweep.at(one, size), sweep.at(other, size), size)


def of_records(one, other, size):
    if one is None or other is None:
        return None
    return Ratio(one["median_seconds"], other["median_seconds"], size, [one, other])


def over_its_bound(sweep, size):
    record = sweep.at(FUSED, size)
    return record and Ratio(record["median_seconds"], record["bound_seconds"], size, [record])


def fastest_gather_over(executor, base):
    """Compares the fastest form of LASP-2 on an executor, by schedule or library, with `base`."""
    return lambda sweep, size: of_records(
        fastest(sweep, size, gathers(sweep, executor)), sweep.at(base, size), size)


def gathers(sweep, executor):
    return [one for one in sweep.methods() if "all_gather_scan" in one.name and one.executor == executor]


def fastest(sweep, size, methods):
    found = filter(None, (sweep.at(one, size) for one in methods))
    return min(found, key=lambda record: record["median_seconds"], default=None)


def auto_over_best(sweep, size):
    return of_records(sweep.at(AUTO, size), fastest(sweep, size, (FUSED, TWO_SHOT)), size)


# --- What limits ----------------------------------------------------------------------------------------


def us(seconds):
    return f"{cells.digits(seconds * 1e6)} µs"


def parts_of_the_bound(ratio):
    """Says what a round's time consists of, for a ratio whose first record has a bound."""
    record = ratio.records[0]
    floor, wire = record["floor_seconds"], record["sent_bytes"] / record["beta_bytes_per_second"]
    flags = record["hops"] * record["alpha_seconds"]
    rest = record["median_seconds"] - record["bound_seconds"]
    return (f"{us(record['median_seconds'])}, of which the empty round is {us(floor)}, {record['hops']} flags are "
            f"{us(flags)} and the state on one link is {us(wire)}; {us(rest)} are the kernel's own: every packet is "
            "polled, added to and stored again on each GPU in between.")


def what_a_bound_allows(ratio):
    """Says how far a ratio to All-Scan can grow: no further than the ratio to All-Scan's bound."""
    other, scan = ratio.records
    allowed = other["median_seconds"] / scan["bound_seconds"]
    floor = scan["floor_seconds"]
    without = (other["median_seconds"] - floor) / (scan["median_seconds"] - floor)
    return (f"`{other['name']}` takes {us(other['median_seconds'])} and All-Scan {us(scan['median_seconds'])}, its "
            f"bound being {us(scan['bound_seconds'])}: on the bound itself the ratio would be {allowed:.2f}. The empty "
            f"round of {us(floor)} is in both; without it the ratio is {without:.2f}.")


def few_multiprocessors(ratio):
    """Says which rate a few multiprocessors reach, if all else takes as long as with all of them."""
    few, scan = ratio.records
    state = few["state_bytes"]
    fixed = few["floor_seconds"] + (RANKS - 1) * few["alpha_seconds"]
    rate_of_few, rate = (state / (record["median_seconds"] - fixed) * 1e-9 for record in (few, scan))
    return (f"Sixteen multiprocessors move the state at {rate_of_few:.0f} GB/s, all of them at {rate:.0f}, the empty "
            f"round and {RANKS - 1} flags taken off: with so few threads too few packets are under way to cover a "
            "link's latency.")


def chosen_by_measuring(ratio):
    """Says how `auto` chose, for a choice that was not the best."""
    chosen, best = ratio.records
    return (f"`{chosen['name']}` takes {us(chosen['median_seconds'])} and `{best['name']}` "
            f"{us(best['median_seconds'])}; it chooses by a few rounds of each when the case is prepared.")


GOALS = (
    Goal("All-Scan over its bound", over_its_bound, [(PAPER_STATE, PAPER_STATE, 1.08), (*SWEEP, 1.12)], True,
         parts_of_the_bound),
    Goal("All-Scan interpreted over hand-tuned", over(INTERPRETED, FUSED), [(PAPER_STATE, PAPER_STATE, 1.10)], True,
         parts_of_the_bound),
    Goal("LASP-2 by one plain ncclAllGather over All-Scan", over(LASP2, FUSED), [
        (PAPER_STATE, PAPER_STATE, 3.4), (SMALLEST, SMALLEST, 2.1), (MIB, LARGEST, 3.4)], False, what_a_bound_allows),
    Goal("the same over All-Scan with bf16 on the wire", over(LASP2, NARROW), [
        (PAPER_STATE, PAPER_STATE, 4.4), (LARGEST, LARGEST, 6.0)], False, what_a_bound_allows),
    Goal("LASP-2 by the fastest form on NCCL over All-Scan", fastest_gather_over("nccl", FUSED), [
        (PAPER_STATE, PAPER_STATE, 2.3)], False, what_a_bound_allows),
    Goal("LASP-1 by ncclSend and ncclRecv over All-Scan", over(LASP1, FUSED), [(PAPER_STATE, PAPER_STATE, 5.5)], False,
         what_a_bound_allows),
    Goal("fastest all-gather and fold on `peer` over All-Scan interpreted, the algorithm alone",
         fastest_gather_over("peer", INTERPRETED), [(PAPER_STATE, PAPER_STATE, 1.5)], False, what_a_bound_allows),
    Goal("All-Scan on 16 multiprocessors over All-Scan on all", over(FEW_MULTIPROCESSORS, FUSED), [
        (PAPER_STATE, PAPER_STATE, 1.30)], True, few_multiprocessors),
    Goal("`auto_scan` over the better of chain and slice owners", auto_over_best, [(*SWEEP, 1.05)], True,
         chosen_by_measuring),
)
