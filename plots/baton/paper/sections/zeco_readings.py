# SPDX-License-Identifier: Apache-2.0
"""What ZeCO's set-up leaves open about its model, and how far the answer moves: the other readings, simulated."""

import collections

from baton import results
from baton.paper import cells, settings
from baton.paper.cells import Row
from baton.paper.page import Table, Text, told
from baton.paper.sources import H100

RANKS = (8, 64, 128, 256)
SHARDED = "sharded weights"
# The paper has 20 layers of width 2048 and H = 32. The first reading is the one that the tables stand on.
MODEL = settings.flags("zeco-table6")["model"]
OTHER_MODELS = {"zeco-1b-h128": "32 heads of 128 x 128", "gla-1b": "24 layers, 4 heads of 256 x 512",
                "gla-1b-h16": "16 heads of 128 x 128"}
METHODS = (("ZeCO", "zeco"), ("LASP-2", "lasp2"))


def blocks(sources, tokens, published):
    """Yields the assumptions and how far they matter. `published` is {(method, ranks): ms} of the paper's steps."""
    yield Text("The paper does not tell how data, batch and weights were cut, the width of its heads and its MLP, or the type of "
               f"the states on the wire. Assumed: one sequence over all GPUs, sharded weights in fp32, states in fp32, and "
               f"`{MODEL}`, whose heads are width / H = 64 wide and whose MLP is that of flash-linear-attention's GLA-1B. The "
               "other reading, `zeco-1b-h128`, has the state of 16384 numbers that the paper names elsewhere, four times as "
               "large.")
    yield Table("zeco_readings", "Time over data-parallel, simulated, under what is not told", list(map(str, RANKS)),
                list(rows(sources, tokens, published)), [
                    "The other models are simulated with whole weights on each GPU; compare them with the second row.",
                    "A wire of bf16 halves the messages, and two sequences a GPU double them. If as much of them stays hidden, "
                    "half and twice the exposed exchange of the first row are the most and the least; that is arithmetic and "
                    "not simulated. The constant of the 8-GPU cell is in none of the rows."])
    yield from told(lambda: moves(sources, tokens))


def rows(sources, tokens, published):
    simulated = ratios(sources, tokens)
    for title, name in METHODS:
        assumed = shown(simulated[MODEL, SHARDED, name])
        yield Row(title, "as assumed", assumed)
        yield Row("", "weights not sharded", shown(simulated[MODEL, "", name]))
        for model, what in OTHER_MODELS.items():
            yield Row("", f"`{model}`, {what}, not sharded", shown(simulated[model, "", name]))
        for kind, factor in (("states of bf16 on the wire, at most", 0.5), ("two sequences a GPU, at least", 2)):
            yield Row("", kind, [cell and ratio_cell(1 + factor * (float(cell.value) - 1)) for cell in assumed])
        yield Row("", "published", shown({ranks: published[title, ranks] / published["DP baseline", ranks] for ranks in RANKS
                                          if {(title, ranks), ("DP baseline", ranks)} <= published.keys()}))


def ratios(sources, tokens):
    """Returns {(model, what is beside it, method): {ranks: time over that of data-parallel}}."""
    times = {(record["model"], record["beside"], record["name"], record["ranks"]): record["median_seconds"]
             for record in sources.on(H100, bench="model", tokens=tokens)
             if record["line"] in ("dp", "full") and results.why_no_time(record) is None}
    found = collections.defaultdict(dict)
    for (model, beside, name, ranks), seconds in times.items():
        if (model, beside, "local", ranks) in times:
            found[model, beside, name][ranks] = seconds / times[model, beside, "local", ranks]
    return found


def shown(found):
    return [ratio_cell(found[ranks]) if ranks in found else None for ranks in RANKS]


def ratio_cell(value):
    return cells.derived(value, f"{value:.3f}", "", "time / time of data-parallel")


def moves(sources, tokens):
    """Says how far the ratio of LASP-2 to ZeCO moves from one reading to another. Throws KeyError if one is missing."""
    simulated, most = ratios(sources, tokens), RANKS[-1]
    lead = {model: simulated[model, "", "lasp2"][most] / simulated[model, "", "zeco"][most] for model in (MODEL, *OTHER_MODELS)}
    others = ", ".join(f"{lead[model]:.3f} for `{model}`" for model in OTHER_MODELS)
    return (f"**How far the answer moves.** On {most} GPUs with whole weights LASP-2's step takes {lead[MODEL]:.3f} times as long "
            f"as ZeCO's for `{MODEL}`, and {others}.")
