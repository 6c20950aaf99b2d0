# SPDX-License-Identifier: Apache-2.0
"""What the padding of documents costs against unequal shares: each padded to a multiple of 2 P tokens, or none."""

import collections
import math

from baton import cases, estimates, results, schema
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Section, Table, Text
from baton.paper.sections import maps
from baton.paper.sources import A100, H100

B200, PCIE = "b200-8", "rtx-pro-6000-8"
PLACES = ((H100, 8), (H100, 64), (A100, 64), (B200, 8), (PCIE, 8))  # topologies and their ranks
# Tokens of a rank, mean tokens of a document, and heads of 128.
SHARE, MEAN, HEADS, BLOCKS = 8000, 1090, 64, maps.BLOCKS
SIMULATED = (f"--packed {MEAN} --packed-draw lognormal --shares padded,even --pass both --dtype bf16 --heads {HEADS} "
             f"--blocks {BLOCKS}")
# The methods that take unequal shares and packed documents, but for forms of the same exchange.
METHODS = ("zeco", "lasp1", "lasp2", "linear_doubling", "linear_two_shot", "zeco_zigzag", "ulysses", "ring_attention_softmax",
           "ring_attention_zigzag", "ring_attention_striped", "all_gather_kv", "all_gather_kv_zigzag", "ulysses_softmax")


def section(sources):
    simulated = {place: pairs(sources.on(place[0], bench="operator", ranks=place[1])) for place in PLACES}
    measured = {machine: pairs(record for session in sessions for record in session.measured)
                for machine, sessions in sources.sessions.items()}
    return Section("What padding costs", [
        Text("Packed documents, each padded to a multiple of 2 P tokens as systems do that cut each document into two pieces a "
             "rank, beside the same documents unpadded in shares that differ by one token at most (`--shares even`). Lengths "
             f"are lognormal with a mean of {MEAN:,} tokens where simulated: 47 % of the documents have at most 500. A number is "
             "the time of a padded layer, forward and backward, over that of the unpadded one. Methods that take equal shares alone "
             "have no row."),
        *([simulated_table(simulated)] if any(simulated.values()) else []),
        *(measured_table(machine, found) for machine, found in measured.items() if found)])


def pairs(records):
    """{(layer, ranks): ({launch: record} padded, {launch: record} even)} of the layers that were run both ways, each of the
    newest contest that has both."""
    found = collections.defaultdict(lambda: collections.defaultdict(lambda: ({}, {})))
    for one in records:
        shares = schema.value(one, "shares")
        padded = shares.startswith("padded:")
        if one.get("packed_draw") == "lognormal" and results.why_no_time(one) is None and (padded or shares == "even"):
            found[label_of(one), one["ranks"]][one.get("contest")][0 if padded else 1][cases.launch_of(one)] = one
    whole = {place: list(filter(all, contests.values())) for place, contests in found.items()}
    return {place: max(some, key=lambda both: newest(both[0])["time"]) for place, some in whole.items() if some}


def label_of(record):
    """The method, and the layer's word if it is no plain one."""
    attention = schema.value(record, "attention")
    return f"`{record['name']}`" + f", {attention}" * (attention not in (None, "linear", "softmax"))


def labels(found):
    """The labels that are among `found`, in the order of METHODS."""
    order = [f"`{name}`" for name in METHODS]
    return sorted({label for label, _ in found}, key=lambda label: (order.index(label) if label in order else len(order), label))


def newest(launches):
    return max(launches.values(), key=lambda record: record["time"])


def padding_cell(found, ranks):
    """The tokens of padding, in percent of the sequence, of the methods on so many ranks."""
    shares = [newest(padded)["padding"] for (_, of), (padded, _) in found.items() if of == ranks]
    if not shares:
        return None
    return cells.derived(100 * max(shares), f"{100 * max(shares):.2f} %", "%", "tokens with padding / tokens - 1")


def simulated_table(found):
    def ratio(place, label):
        both = found[place].get((label, place[1]))
        return both and cells.ratio(*(cells.timed(newest(side)) for side in both))

    rows = [Row("tokens of padding", "derived", [padding_cell(found[place], place[1]) for place in PLACES]),
            *(Row(label, "padded / even", cells.plain(ratio(place, label) for place in PLACES))
              for label in labels([key for of_place in found.values() for key in of_place]))]
    title = f"Time of padded documents over unpadded ones, simulated, {SHARE:,} tokens a rank, {HEADS} heads of 128, bf16"
    return Table("padding_simulated", title, [f"{topology}, P={ranks}" for topology, ranks in PLACES], rows, [
        f"A state that is cut has {BLOCKS} blocks. Documents are padded to multiples of 16 on 8 ranks and of 128 on 64."])


def measured_table(machine, found):
    """Times of all launches and their ratios, with intervals over launches."""
    counts = sorted({ranks for _, ranks in found})
    rows = [Row("tokens of padding", "derived", [padding_cell(found, ranks) for ranks in counts])]
    for label in labels(found):
        both = [found.get((label, ranks)) for ranks in counts]
        rows += [Row(label, "measured, padded, ms", [sides and time_of(sides[0], machine) for sides in both]),
                 Row("", "measured, even, ms", [sides and time_of(sides[1], machine) for sides in both]),
                 Row("", "padded / even", [sides and measured_ratio(*sides) for sides in both])]
    one = newest(next(iter(found.values()))[0])
    return Table(f"padding_{machine}", f"The same as measured: {machine}", [f"P={ranks}" for ranks in counts], rows, [
        f"Mean length {one['packed']} tokens, documents padded to multiples of {one['pad_documents']}, {one['heads']} heads of "
        f"{one['d_k']}, {one.get('dtype', 'f32')}, executor {one['executor']}; geometric means of launches' medians, and ratios launch "
        "by launch with their 95 % interval. An interval that has 1 in it tells no difference."])


def time_of(launches, machine):
    one = newest(launches)
    return cells.timed({**one, "median_seconds": estimates.mean(each["median_seconds"] for each in launches.values())}, machine)


def measured_ratio(padded, even):
    log_ratio, estimate, _ = estimates.of_launches(
        *({run: one["median_seconds"] for run, one in side.items()} for side in (even, padded)))
    value = math.exp(log_ratio)
    ends = "" if estimate is None else " [{:.2f}, {:.2f}]".format(*map(math.exp, estimates.interval(estimate)))
    return cells.derived(value, f"{value:.2f}{ends}", "", "measured padded / measured even, launch by launch")
