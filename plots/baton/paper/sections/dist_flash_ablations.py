# SPDX-License-Identifier: Apache-2.0
"""DistFlashAttention's two ablations beside its schedule simulated: how ranks that help balance it, what overlap hides."""

from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.links import Links
from baton.paper.page import Table, told
from baton.paper.sections.dist_flash import CARDS, CONTIGUOUS, HEADS, NODE, OURS, model, number, plain, record_of, seconds
from baton.paper.sources import A100, A100_PAIR, having

ABLATIONS = (("8 GPUs, 256K", 8, 256), ("16 GPUs, 128K", 16, 128), ("16 GPUs, 512K", 16, 512))


def blocks(sources):
    return [ablations_table(sources), *told(lambda: balance_text(sources), lambda: overlap_text(sources))]


def ablations_table(sources):
    rows = []
    for title, method, name in (("idle ranks do not help", "unbalanced", CONTIGUOUS), ("they help", "balanced", OURS)):
        rows += [Row(f"times as fast as one GPU, {title}", "published", [ablation(sources, method, *one) for one in ABLATIONS]),
                 Row(f"`{name}`, forward", "simulated / simulated", [speed_up(sources, name, *one[1:]) for one in ABLATIONS[:1]]
                     + [None] * 2)]
    for title, method, mode in (("waiting for messages", "no overlap", "exposed"), ("overlapped", "overlap", "overlapped")):
        rows.append(Row(f"overhead of messages, {title}", "published, %",
                        [ablation(sources, method, *one) for one in ABLATIONS]))
        rows += [Row(f"`{OURS}`, forward and backward", f"simulated / simulated − 1, {words}",
                     [None, *(overhead(sources, topology, mode, *one[1:]) for one in ABLATIONS[1:])])
                 for topology, words in CARDS.items()]
    return Table("dist_flash_ablations", "DistFlashAttention's balance and overlap", [one[0] for one in ABLATIONS], rows, [
        "Overhead: over the work alone, which is (P+1)/P² of one GPU's time: a block of the own tokens is half a block.",
        "The overhead at 512K without overlap is second-hand. Whether the published ones have the backward pass, and that "
        "they are of 16 GPUs, is not told in what was read."])


def ablation(sources, method, _title, gpus, length):
    rows = having(sources.published["dist_flash_attention"], method=method, gpus=str(gpus), seq_len=f"{length}K")
    return next(map(cells.published, rows), None)


def speed_up(sources, name, gpus, length):
    times = (record_of(sources, A100_PAIR, *case, which="forward") for case in ((OURS, 1, length), (name, gpus, length)))
    return plain([cells.ratio(*map(model, times))])[0]


def work_seconds(sources, gpus, length, which="both"):
    """Returns the time of the work alone: P/2 + 1/2 blocks in a row of P*P/2, of an even number P of GPUs."""
    return seconds(sources, A100_PAIR, OURS, 1, length, which=which) * (gpus + 1) / gpus**2


def overhead(sources, topology, mode, gpus, length):
    try:
        value = 100 * (seconds(sources, topology, OURS, gpus, length, mode=mode) / work_seconds(sources, gpus, length) - 1)
    except KeyError:
        return None
    return cells.derived(value, f"{value:.0f}", "%", "simulated / simulated − 1")


def balance_text(sources):
    title, gpus, length = ABLATIONS[0]
    theirs = [number(ablation(sources, method, title, gpus, length)) for method in ("unbalanced", "balanced")]
    ours = [number(speed_up(sources, name, gpus, length)) for name in (CONTIGUOUS, OURS)]
    most = [gpus**2 / turns for turns in (2 * gpus - 1, gpus + 1)]
    return (f"**DistFlashAttention: balance.** The published {theirs[0]:g} and {theirs[1]:g} are the paper's closed form, "
            f"{gpus} times 1 - (P²-P)/(2P²) and 1 - 1/(2P), which take a block of the own tokens for a whole one. "
            f"Such a block has half the pairs, so no schedule of these turns is more than {most[0]:.2f} and {most[1]:.2f} "
            f"times as fast as one GPU of the same rate; simulated are {ours[0]:.2f} and {ours[1]:.2f}, with merges and "
            "first messages.")


def overlap_text(sources):
    _, gpus, length = ABLATIONS[1]
    theirs = {mode: number(ablation(sources, mode, *ABLATIONS[1])) for mode in ("no overlap", "overlap")}
    ours = {topology: [number(overhead(sources, topology, mode, gpus, length)) for mode in ("exposed", "overlapped")]
            for topology in CARDS}
    keys = 2 * length * 1024 // gpus * HEADS * 128 * 2
    work = work_seconds(sources, gpus, length, "forward")
    across = NODE * keys / Links(A100_PAIR).card
    return (f"**DistFlashAttention: overlap.** The paper tells {theirs['no overlap']:.0f} % of overhead at {length}K, and "
            f"{theirs['overlap']:.0f} % when it overlaps. With the 100 Gb/s that it names, a card for each GPU, simulated ones "
            f"are {ours[A100_PAIR][0]:.0f} and {ours[A100_PAIR][1]:.0f} %: the last rank of the first node sends its keys and "
            f"values, {keys * 1e-6:.0f} MB, to {NODE} ranks of the other, which is {across * 1e3:.0f} ms forward, and the work "
            f"of a forward pass is {work * 1e3:.0f} ms. So 100 Gb/s a GPU do not allow the published overhead, if it is "
            f"attention's. With cards of 200 Gb/s, which the vendor builds in, they are {ours[A100][0]:.0f} and "
            f"{ours[A100][1]:.0f} %.")
