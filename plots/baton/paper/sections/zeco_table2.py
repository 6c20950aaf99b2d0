# SPDX-License-Identifier: Apache-2.0
"""ZeCO's table 2: published, simulated and measured, every cell's ratio, and the arithmetic of the difference."""

import statistics

from baton.paper import cells, fitting, here, settings
from baton.paper.cells import Row, digits
from baton.paper.links import Links
from baton.paper.page import Figure, Section, Table, Text, told
from baton.paper.sources import H100, LOCAL, PAPER_RANKS, by, published_cells, timed_cells, where_measured

COLUMNS = (2, 4, *PAPER_RANKS)
GATHER, SCAN = fitting.GATHER, fitting.SCAN
STATE, MAP = fitting.STATE_BYTES, fitting.MAP_BYTES
ASKED = settings.flags("zeco-table2")
SHAPE = {"heads": fitting.HEADS, "d_k": fitting.WIDTH, "d_v": fitting.WIDTH, "direction": "forward"}
# The paper's exchanges in a machine's records, and two that nobody published.
MEASURED = ("all_gather_scan", "ring_scan", "all_scan", "two_shot", "hierarchical_scan")


def section(sources):
    links = Links(H100)
    return Section("Communication: ZeCO's table 2", [
        Text("One exchange of a layer's states, forward: 32 heads of 128 x 128, 8K tokens a GPU. "
             "`ring_all_gather` is LASP-2's gather alone, as the paper's row says; `all_gather_scan` folds "
             "what it gathered, as any use of it must. The simulated cells follow from the links of "
             "`topologies/dgx-h100-32x8.json`; nothing in that file is fitted to this table."),
        table(sources, links),
        *arithmetic(sources, links),
        measured_table(sources)])


# --- Published beside simulated -------------------------------------------------------------------------


def table(sources, links):
    rows = [*exchange_rows(sources, GATHER, "ring_all_gather", least_gather(links)),
            *exchange_rows(sources, SCAN, "all_scan", least_chain(links)),
            *unpublished_rows(sources)]
    return Table("table2", "Time of one exchange, published and simulated, ms", [str(ranks) for ranks in COLUMNS], rows, [
        "GPUs in the head of each column. A blank cell was neither published nor simulated. Published cells are means.",
        "A ratio in red is more than a quarter away from 1; what explains it stands below.",
        "Half the bytes: the same schedule with a state of 1 MiB, as many bytes as 32 heads in bf16. The "
        "paper does not say which type its states have on the wire; every public implementation ships fp32.",
        "Least: what the links allow whatever the algorithm. All-gather: all other ranks' maps through a "
        "GPU's NVLink port, those of other nodes through the eight cards of its node. All-Scan: the latency "
        "of every hop of the chain and the state once through the slowest link, however finely cut."])


def exchange_rows(sources, title, name, least):
    published = published_cells(sources.published["zeco_table2"], COLUMNS, method=title)
    simulated = timed_cells(sources.on(H100, name=name, **SHAPE), COLUMNS)
    half = timed_cells(sources.on(H100, name=name, **{**SHAPE, "heads": SHAPE["heads"] // 2}), COLUMNS)
    yield Row(title, "published", published)
    yield Row(f"`{name}`", "simulated", simulated)
    yield Row("", "simulated / published", ratios(simulated, published))
    yield from measured_here(sources, name)
    yield Row(f"`{name}`, half the bytes", "simulated", half)
    yield Row("", "simulated / published", ratios(half, published))
    yield Row("least that the links allow", "derived", [least(ranks) for ranks in COLUMNS])
    yield Row("", "published / least", [cell and cell._replace(off=False) for cell in ratios(
        published, [least(ranks) for ranks in COLUMNS])])


def ratios(over, under):
    return [cells.ratio(one, other) for one, other in zip(over, under)]


def least_gather(links):
    return lambda ranks: least(links.gather_seconds(ranks, MAP), "all-gather")


def least_chain(links):
    return lambda ranks: least(links.chain_seconds(ranks, STATE), "chain")


def least(seconds, what):
    return cells.derived(seconds * 1e3, digits(seconds * 1e3), "ms", f"links of {H100}, any {what}")


def unpublished_rows(sources):
    for name, remark in (("all_gather_scan", " (LASP-2 with its fold)"), ("ring_scan", " (LASP-1)"), ("two_shot", ""),
                       ("recursive_doubling", ""), ("hierarchical_scan", "")):
        yield Row(f"`{name}`{remark}", "simulated", timed_cells(sources.on(H100, name=name, **SHAPE), COLUMNS))
        yield from measured_here(sources, name)


def measured_here(sources, name):
    """Yields the rows of this checkout's records."""
    for told, records in here.groups(sources, ASKED["tokens"], bench="collective", name=name, rounds=ASKED["rounds"], **SHAPE):
        yield Row("", told, timed_cells(records, COLUMNS, LOCAL))


# --- The arithmetic of the difference -------------------------------------------------------------------


def arithmetic(sources, links):
    most = PAPER_RANKS[-1]
    published = {(row["method"], int(row["gpus"])): float(row["value"])
                 for row in sources.published["zeco_table2"]}
    yield from told(lambda: gather_text(links, published, most), lambda: scan_text(sources, links, published, most))
    yield Figure("table2_bars", "Time of one exchange, as in ZeCO's figure 1",
                 f"published: ZeCO's table 2; simulated: {H100}", "bars", bars(sources),
                 "Published (hatched) and simulated times of the two exchanges by GPUs; the scale is "
                 "logarithmic.")


def gather_text(links, published, most):
    time, least_ms = published[GATHER, most], links.gather_seconds(most, MAP) * 1e3
    one = links.one_card_seconds(most, MAP) * 1e3
    through = (most - 1) * MAP / (time * 1e-3) * 1e-9
    call, hop = line({ranks: published[GATHER, ranks] for ranks in PAPER_RANKS})
    return (f"**All-gather.** At {most} GPUs {most - 1} maps of {MAP / 2**20:.3f} MiB must reach every GPU: "
            f"{digits(least_ms)} ms at {links.inside * 1e-9:.0f} GB/s of NVLink, and the published "
            f"{digits(time)} ms are {time / least_ms:.1f} times that ({2 * time / least_ms:.1f} times with "
            "bf16 on the wire). Around a ring in the order of ranks, all bytes that enter a node pass one "
            f"card of {links.card * 1e-9:.0f} GB/s: {digits(one)} ms in fp32, {digits(one / 2)} ms in bf16. "
            f"The published time moves {through:.1f} GB/s in fp32, more than one card carries, or "
            f"{through / 2:.1f} GB/s in bf16: so it is either bf16 through one card at "
            f"{50 * through / (links.card * 1e-9):.0f} % of its rate, or fp32 through several. Least squares "
            f"over the six cells give {digits(call)} ms and {digits(hop * 1e3)} us a GPU.")


def scan_text(sources, links, published, most):
    ours = {ranks: record["median_seconds"] * 1e3
            for ranks, record in by("ranks", sources.on(H100, name="all_scan", **SHAPE)).items()}
    theirs = {ranks: published[SCAN, ranks] for ranks in PAPER_RANKS}
    call, hop = line(theirs)
    more_call, more_hop = line({ranks: theirs[ranks] - ours[ranks] for ranks in PAPER_RANKS})
    few = PAPER_RANKS[0]
    return (f"**All-Scan.** The published line is, by least squares, {call:.3f} ms + {hop * 1e3:.2f} us a "
            f"GPU. A hop on NVLink takes {links.inside_latency * 1e6:.1f} us and between nodes "
            f"{links.card_latency * 1e6:.1f} us, {mean_latency(links) * 1e6:.1f} us on the average over "
            f"nodes of {links.ranks_per_node}, so the published cells are {theirs[few] / ours[few]:.0f} times "
            f"our simulated one at {few} GPUs and {theirs[most] / ours[most]:.1f} times at {most}. What "
            f"would explain all of it is a constant {more_call * 1e3:.0f} us a call and {more_hop * 1e3:.1f} "
            "us a hop on top of the links: the size of launches and of a software path for every hop, not of "
            f"a wire. In bf16 the state's own time on a card shrinks from {STATE / links.card * 1e6:.0f} to "
            f"{STATE / 2 / links.card * 1e6:.0f} us, which explains little.")


def mean_latency(links):
    group = links.ranks_per_node
    return ((group - 1) * links.inside_latency + links.card_latency) / group


def line(points):
    """Least squares over {x: y}: intercept and slope."""
    slope, intercept = statistics.linear_regression(list(points), list(points.values()))
    return intercept, slope


def bars(sources):
    """[(label, name, kind, {ranks: ms})], published beside simulated."""
    series = []
    for title, name in ((GATHER, "ring_all_gather"), (SCAN, "all_scan")):
        published = published_cells(sources.published["zeco_table2"], PAPER_RANKS, method=title)
        simulated = timed_cells(sources.on(H100, name=name, **SHAPE), PAPER_RANKS)
        for cell_list in (published, simulated):
            values = {ranks: float(cell.value) for ranks, cell in zip(PAPER_RANKS, cell_list) if cell}
            series += [(title, name, next(cell.kind for cell in cell_list if cell), values)] if values else []
    return series


# --- Measured -------------------------------------------------------------------------------------------


def measured_table(sources):
    rows, columns = [], set()
    groups = [(key, records) for key, records in sources.here(bench="collective", **SHAPE)]
    for _, records in groups:
        columns |= {record["ranks"] for record in wanted(records)}
    for (machine, executor, cadence), records in groups:
        where = where_measured(machine, executor, cadence)
        rows += measured_rows(where, machine, wanted(records), sorted(columns))
    return Table("table2_measured", "The same exchanges measured on machines at hand, ms", list(map(str, sorted(columns))),
                 rows, ["Medians; the CSV has the intervals and the means. Ranks in the head of each column.",
                        "Machines differ from the paper's: compare how rows grow and which is first, not cell by cell.",
                        "Natives, library calls and hand-written loops, bear their names."], True)


def wanted(records):
    return [record for record in records if record["name"] in MEASURED or is_native(record)]


def is_native(record):
    return record["implementation"] != "schedule" and record["kind"] != "exchange"


def measured_rows(where, machine, records, columns):
    names = sorted({record["name"] for record in records}, key=lambda name: (name not in MEASURED, name))
    for name in names:
        of_name = [record for record in records if record["name"] == name]
        told = "native" if is_native(of_name[0]) else ""
        yield Row(f"`{name}` {told}".strip(), f"measured, {where}",
                  timed_cells(of_name, columns, machine))
