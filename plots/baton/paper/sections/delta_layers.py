# SPDX-License-Identifier: Apache-2.0
"""Which exchange of a layer with a delta rule is the fastest where, for the shapes of models, beside published timings of
such exchanges, which contradict one another."""

import collections

from baton import fastest, results
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Section, Table, Text
from baton.paper.sections import maps
from baton.paper.sections.maps import BLOCKS
from baton.paper.sources import MANY_H100, having

Model = collections.namedtuple("Model", "name title attention heads")
MODELS = (Model("kimi_linear", "Kimi Linear", "kda", 32), Model("qwen3_5", "Qwen3.5", "gdn", 48),
          Model("k3", "K3", "kda", 96))
RANKS = (8, 64, 512, 4096, 16384)
TOKENS = (512, 2048, 8192, 32768)  # of a rank
METHODS = ("zeco,zeco_corrected,linear_doubling,linear_two_shot,lasp1,lasp1_as_released,lasp2,lasp2_as_released,ulysses")
OWN_SCAN, SCAN = "all_scan", "hierarchical_scan"  # of zeco, which takes another one too
PUBLISHED = "delta_exchanges"
AS_HERE = {"all-gather of maps": "`lasp2_as_released`", "all-to-all of heads": "`ulysses`",
           "chain of whole states": "`lasp1`", "gather of the whole sequence": "none"}


def section(sources):
    of_models = {model: places(sources, model) for model in MODELS}
    return Section("Which exchange of a delta rule wins where", [
        Text("One layer with a delta rule, forward and backward, heads of 128 in bf16, by ranks and tokens of a rank, on "
             f"`topologies/{MANY_H100}.json`. Maps have matrices, so a chain sends one state, and a gather the states and "
             "matrices of all ranks. A state that is cut has "
             f"{BLOCKS} blocks. Gathers and `linear_two_shot` have a number of messages that grows with the square of "
             "the ranks, and no cell from 4096 ranks on: more steps than are simulated. "
             f"{zeco_name(SCAN)} is All-Scan's method with another scan."),
        Text("The rates of the kernels were measured on one H200 at 16384 tokens, and are taken for other lengths and for the "
             "H100, which has the same multiprocessors. The products of an exchange have the peak of fp32 without tensor "
             "cores, of which ours reach two thirds at most. So times are for comparing exchanges, and where the local work "
             f"hides them, methods cannot be told apart. A difference below {100 * fastest.TYPICAL_ERROR:.0f} % is none."),
        *(maps.figure(f"delta_{model.name}", title(model), f"simulated: {MANY_H100}; rates of kernels measured on one H200", found)
          for model, found in of_models.items()),
        *(maps.methods_table(f"delta_{model.name}", title(model), found, MANY_H100) for model, found in of_models.items()),
        *published(sources)])


def title(model):
    return f"{model.title}: {model.attention}, {model.heads} heads"


def zeco_name(scan):
    return f"zeco + {scan}"


def places(sources, model):
    """{(ranks, tokens of a rank): fastest.Fastest}"""
    found = maps.layers(sources, MANY_H100, RANKS, TOKENS, heads=model.heads, attention=model.attention)
    return {place: fastest.among({name_of(one): one["median_seconds"] for one in records}) for place, records in sorted(found.items())}


def name_of(record):
    name = results.method(record)
    return zeco_name(record["scan"]) if name == "zeco" and record["scan"] != OWN_SCAN else name


def published(sources):
    """Yields what others measured, one row a setting, each ratio derived from its two cells."""
    rows = sources.published.get(PUBLISHED, [])
    settings = list(dict.fromkeys((row["project"], row["setting"]) for row in rows))
    exchanges = list(dict.fromkeys(row["exchange"] for row in rows))
    if not rows:
        return
    yield Text("What others measured contradicts itself: an all-gather of maps is faster than an all-to-all of heads in four "
               "rows and slower in one. The settings differ in more than the exchange, and none names all of it. No cell "
               "here is held against a simulated one.")
    yield Table("delta_published", "Published timings of exchanges of a delta rule",
                [f"{one}, here {AS_HERE[one]}" for one in exchanges],
                [Row(project, f"published, {setting}, {unit_of(rows, project, setting)}",
                     [next(map(cells.published, having(rows, project=project, setting=setting, exchange=one)), None)
                      for one in exchanges]) for project, setting in settings],
                ["In ms and s less is faster, in tokens/s more."])


def unit_of(rows, project, setting):
    return having(rows, project=project, setting=setting)[0]["unit"]
