# SPDX-License-Identifier: Apache-2.0
"""What one GPU can tell: the time of layers and of a model without any exchange, beside what its data sheet allows."""

import collections

from baton import limits, words
from baton.report import axes, costs
from baton.report.comparisons import LINEAR, SOFTMAX

PASSES = {"forward": "forward", "backward": "backward alone", "both": "training"}
# The timed row of a layer or model on one GPU, its comparison, its limits.Limit or None, and the numbers of tokens that were measured.
Work = collections.namedtuple("Work", "comparison row limit lengths")
# What cuDNN takes of the time of our own softmax kernels, by pass: results/h200-2/softmax.jsonl, 16384 tokens, 16 heads of 128.
CUDNN_TAKES = {"forward": 0.49, "backward": 0.33, "both": 0.37}
ORDER = {name: place for place, name in enumerate((LINEAR, "gdn", "kda", "deltanet", "rwkv7", SOFTMAX, "forward", "backward", "both"))}


def works(session):
    """The Works of a session, by their attention or model and by pass; none if anything was measured on several GPUs."""
    found = [one for one in session.comparisons if not one.is_simulated and one.on_gpus]
    if any(one["ranks"] > 1 for one in found):
        return []
    chosen, lengths = {}, collections.defaultdict(list)
    for comparison in sorted(found, key=lambda one: one["tokens"]):
        rows = [row for row in comparison.rows if row.is_timed]
        if comparison.is_layer and rows:
            row = min(rows, key=lambda one: one.median)
            key = work_of(comparison), comparison.way
            lengths[key].append(comparison["tokens"])
            chosen[key] = Work(comparison, row, limits.least_time(row.records[-1]), lengths[key])
    return sorted(chosen.values(), key=lambda one: (one.comparison.is_model, *(ORDER.get(word, len(ORDER)) for word in
                                                                            (one.comparison.kind, one.comparison.way))))


def work_of(comparison):
    if comparison.is_model:
        return f"{words.count(comparison['layers'], 'block')} of {comparison['model']}"
    return axes.work(comparison).removesuffix(" attention")


def sentences(found):
    """What they have in common, and a sentence for each attention and model."""
    if not found:
        return []
    first = found[0].comparison
    by_work = collections.defaultdict(list)
    for one in found:
        by_work[work_of(one.comparison)].append(one)
    lengths = sorted({tokens for one in found for tokens in one.lengths})
    longest = f" (the most of {', '.join(map(str, lengths))})" if len(lengths) > 1 and first["tokens"] == lengths[-1] else ""
    shape = ", ".join([f"{first['tokens']} tokens{longest}", axes.heads(first), *filter(None, [first.dtype])])
    return [f"Layers alone, since an exchange takes two GPUs: {shape}. Training is forward and backward; percentages are of what "
            "the data sheet allows.",
            *(f"{name}{otherwise(them[0].comparison, first)}: {of_passes(them)}." for name, them in by_work.items()), *own_kernels(found)]


def own_kernels(found):
    """A sentence where softmax ran by our own kernels and nothing ran by cuDNN: what that would take, and how to get it."""
    layers = [one for one in found if one.comparison.kind == SOFTMAX and not one.comparison.is_model]
    kernels = {record.get("kernel") for one in layers for record in one.row.records}
    ways = [one.comparison.way for one in layers if one.comparison.way in CUDNN_TAKES]
    if kernels != {"own"} or not ways:
        return []
    takes = words.names([f"{CUDNN_TAKES[way]}{' of their time' * (way == ways[0])} {'in ' * (way == 'both')}{PASSES[way]}"
                         for way in ways], len(ways))
    return [f"Softmax ran by our own kernels: on an H200 cuDNN takes {takes} (docs/decisions/0020-softmax-blocks-by-cudnn.md). "
            "`pip install nvidia-cudnn-frontend nvidia-cudnn-cu13` brings what cuDNN needs."]


def otherwise(comparison, first):
    """The tokens of a work where they are not those of the first one."""
    return f" ({comparison['tokens']} tokens)" if comparison["tokens"] != first["tokens"] else ""


def of_passes(found):
    """The time of each pass, of a model with its tokens in a second, and its share of the data sheet's rate that binds it."""
    return ", ".join(
        f"{PASSES.get(comparison.way, comparison.way)} {words.time_of(row)}"
        + f", {comparison['tokens'] / row.median:,.0f} tokens/s" * comparison.is_model
        + (f" ({words.percent(limit.seconds / row.median, 0)}{f' {costs.SHARES[limit.by]}' * (number == 0)})" if limit else "")
        for number, (comparison, row, limit, _) in enumerate(found))
