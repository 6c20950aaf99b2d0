# SPDX-License-Identifier: Apache-2.0
"""Sentences on what times mean: beside the link's bound, the layer without an exchange, and the hardware's peak."""

import collections

from baton import estimates, limits, words
from baton.report import ranking
from baton.report.rows import COMPUTE_ONLY, EXPOSED, LEVEL, LOCAL

MATTERS = 0.05  # of a layer: an exchange that costs less when it is waited for hardly matters
SHARES = {limits.MEMORY: "bandwidth", limits.TENSOR_CORES: "MFU"}  # what a share of the data sheet's rate is called
IMPOSSIBLE = 1 + estimates.MARGIN  # of a bound or a peak: more than measurements of it err

# The share of a layer's time that the exchange costs when it is waited for; `interval` is None for one launch.
Cost = collections.namedtuple("Cost", "row share interval")


def over_bound(comparison):
    """How far the fastest row that has a bound is from it; a library's own collectives and choices have none."""
    ranks = ranking.rank(comparison)
    row = next((one for one in (ranks.first, *ranks.unbeaten, *ranks.beaten) if one.bound_share is not None), None)
    return f"{comparison.label_of(row)} {of_bound(row)}." if row else ""


def of_bound(row):
    """The share of what the link allows, and why it may be more than all of it."""
    more = ": latency and bandwidth of the bound are measured too, and err by as much" if round(100 * row.bound_share) > 100 else ""
    return f"reaches {words.percent(row.bound_share, 0)} of what the link allows{more}"


def row_of(comparison):
    """The competitor with the least time, or where none competes the row of local work."""
    return comparison.best or min((one for one in comparison.rows if one.is_timed), key=lambda one: one.median)


def alone(comparison):
    """The time of a method that nothing competes with, and what share of a bound, a peak or a layer's time it is."""
    row = row_of(comparison)
    what = "" if row.name.mode != COMPUTE_ONLY else ", local work without any exchange," if row.name.name != LOCAL \
        else ", the model without any exchange," if comparison.is_model else ", the layer without any exchange,"
    label = f"{comparison.label_of(row)}{what}"
    return f"{label} takes {', '.join([words.time_of(row), *shares(comparison, row)])}; nothing was measured that competes with it."


def shares(comparison, row):
    """What a row's time is beside the layer without an exchange, the bound of the link and the hardware's rates."""
    local, limit = comparison.beside(row, COMPUTE_ONLY) or comparison.local_of(row), limits.least_time(row.records[-1])
    parts = [over_local(row, local)] if local and local is not row else []
    parts += [of_bound(row)] if row.bound_share is not None and not comparison.is_layer and comparison["ranks"] > 1 else []
    parts += [f"{comparison['tokens'] / row.median:,.0f} tokens/s a rank"] if comparison.is_model else []
    return parts + ([of_limit(limit, row, SHARES[limit.by])] if limit else [])


def over_local(row, local):
    """How much longer a row takes than the same work without any exchange; less is no effect of an exchange."""
    ratio = row.ratio_to(local)
    low, high = ratio.interval or (ratio.value, ratio.value)
    without, number = "without any exchange", words.times(ratio)
    if low > 1 / IMPOSSIBLE and high < IMPOSSIBLE and low <= 1:
        return f"as long as {without} ({number})"
    if low > 1 or high < 1:
        return f"{number} as long as {without}" + ", which cannot be: times err by as much" * (high < 1)
    return f"a time that the launches cannot tell from that {without} ({number})"


def of_limit(limit, row, rate):
    """The share of a rate of the hardware; more than all of it means that the rate is wrong."""
    share = limit.seconds / row.median
    return f"{words.percent(share)} {rate}" + " (which cannot be: that rate is too low)" * (share > IMPOSSIBLE)


def throughput(comparison):
    """Tokens a second of the fastest method in a model, the utilisation if a peak is known, and its time over dp."""
    best, record, local = comparison.best, comparison.best.records[-1], comparison.local_of(comparison.best)
    text = f"{comparison.label_of(best)} makes {record['tokens'] / best.median:,.0f} tokens/s a rank"
    if limit := limits.least_time(record):
        text += f", {of_limit(limit, best, 'of the peak')}"
    return f"{text}, and takes {over_local(best, local)} (dp)." if local else f"{text}."


def cost_of_exchange(comparison):
    """The Cost of the first method that ran in all three modes, or None."""
    for row in comparison.competitors:
        exposed = comparison.beside(row, EXPOSED)
        alone_of = comparison.beside(row, COMPUTE_ONLY) or comparison.local_of(row)
        common = [launch for launch in row.launches
                  if exposed and alone_of and launch in exposed.launches and launch in alone_of.launches]
        if common:
            found = [(exposed.launches[launch] - alone_of.launches[launch]) / row.launches[launch] for launch in common]
            interval = estimates.interval(estimates.paired(found), LEVEL) if len(found) > 1 else None
            return Cost(row, sum(found) / len(found), interval)
    return None


def matters(comparison):
    """Whether the exchange matters for this layer at all."""
    cost = cost_of_exchange(comparison)
    if cost is None:
        local = comparison.local_of(comparison.best)
        return f"{comparison.label_of(comparison.best)} takes {over_local(comparison.best, local)}." if local else ""
    exchange = f"Without overlap the exchange of {comparison.label_of(cost.row)} would cost"
    if cost.interval is None:
        return f"{exchange} {words.percent(max(cost.share, 0))} of a layer's time, in one launch."
    low, high = (max(end, 0) for end in cost.interval)
    if high > 1:
        return f"{exchange} a share of a layer's time that the launches cannot tell."
    if high < MATTERS:
        return f"{exchange} at most {words.percent(high)} of a layer's time, so it hardly matters."
    share = f"{words.percent(low)[:-2]} to {words.percent(high)}" if words.percent(low) != words.percent(high) else words.percent(high)
    return f"{exchange} {share} of a layer's time, {'so it matters' if low > MATTERS else 'too wide to say whether it matters'}."
