# SPDX-License-Identifier: Apache-2.0
"""ZeCO's table 2: published, simulated and measured, every cell's ratio, and the least that links allow."""

from baton.paper import cells, fitting, local_measurements, settings
from baton.paper.cells import Row, digits
from baton.paper.links import Links
from baton.paper.page import Figure, Section, Table, Text
from baton.paper.sources import H100, LOCAL, PAPER_RANKS, published_cells, timed_cells, where_measured

COLUMNS = (2, 4, *PAPER_RANKS)
GATHER, SCAN = fitting.GATHER, fitting.SCAN
STATE, MAP = fitting.STATE_BYTES, fitting.MAP_BYTES
ASKED = settings.flags("zeco-table2")
SHAPE = {"heads": fitting.HEADS, "d_k": fitting.WIDTH, "d_v": fitting.WIDTH, "direction": "forward"}
EXCHANGES = {GATHER: "ring_all_gather", SCAN: "all_scan"}  # what the paper timed, and our names
UNPUBLISHED = {"all_gather_scan": " (LASP-2 with its fold)", "ring_scan": " (LASP-1)", "two_shot": "", "recursive_doubling": "",
               "hierarchical_scan": ""}
# The paper's exchanges in a machine's records, and two that nobody published.
MEASURED = ("all_gather_scan", "ring_scan", "all_scan", "two_shot", "hierarchical_scan")


def section(sources):
    return Section("Communication: ZeCO's table 2", [
        Text("One exchange of a layer's states, forward: 32 heads of 128 x 128, 8K tokens a GPU. "
             "`ring_all_gather` is LASP-2's gather alone, as the paper's row says; `all_gather_scan` folds "
             "what it gathered, as any use of it must. The simulated cells follow from the links of "
             "`topologies/dgx-h100-32x8.json`; nothing in that file is fitted to this table."),
        table(sources),
        Figure("table2_bars", "Time of one exchange, as in ZeCO's figure 1",
               f"published: ZeCO's table 2; simulated: {H100}", "bars", bars(sources),
               "Published (hatched) and simulated times of the two exchanges by GPUs; the scale is logarithmic."),
        measured_table(sources)])


def printed(sources, title, columns=PAPER_RANKS):
    return published_cells(sources.published["zeco_table2"], columns, method=title)


def simulated(sources, name, columns=PAPER_RANKS, **changes):
    return timed_cells(sources.on(H100, name=name, **{**SHAPE, **changes}), columns)


# --- Published beside simulated -------------------------------------------------------------------------


def table(sources):
    links = Links(H100)
    least = {GATHER: lambda ranks: least_cell(links.gather_seconds(ranks, MAP), "all-gather"),
             SCAN: lambda ranks: least_cell(links.chain_seconds(ranks, STATE), "chain")}
    rows = [row for title in EXCHANGES for row in exchange_rows(sources, title, [least[title](ranks) for ranks in COLUMNS])]
    for name, remark in UNPUBLISHED.items():
        rows += [Row(f"`{name}`{remark}", "simulated", simulated(sources, name, COLUMNS)), *measured_here(sources, name)]
    return Table("table2", "Time of one exchange, published and simulated, ms", [str(ranks) for ranks in COLUMNS], rows, [
        "GPUs in the head of each column. A blank cell was neither published nor simulated. Published cells are means.",
        "A ratio in red is more than a quarter away from 1.",
        "Half the bytes: the same schedule with a state of 1 MiB, as many bytes as 32 heads in bf16. The "
        "paper does not say which type its states have on the wire; every public implementation ships fp32.",
        "Least: what the links allow whatever the algorithm. All-gather: all other ranks' maps through a "
        "GPU's NVLink port, those of other nodes through the eight cards of its node. All-Scan: the latency "
        "of every hop of the chain and the state once through the slowest link, however finely cut."])


def least_cell(seconds, what):
    return cells.derived(seconds * 1e3, digits(seconds * 1e3), "ms", f"links of {H100}, any {what}")


def exchange_rows(sources, title, least):
    name, published = EXCHANGES[title], printed(sources, title, COLUMNS)
    whole, half = simulated(sources, name, COLUMNS), simulated(sources, name, COLUMNS, heads=SHAPE["heads"] // 2)
    yield Row(title, "published", published)
    yield Row(f"`{name}`", "simulated", whole)
    yield Row("", "simulated / published", ratios(whole, published))
    yield from measured_here(sources, name)
    yield Row(f"`{name}`, half the bytes", "simulated", half)
    yield Row("", "simulated / published", ratios(half, published))
    yield Row("least that the links allow", "derived", least)
    yield Row("", "published / least", cells.plain(ratios(published, least)))


def ratios(over, under):
    return list(map(cells.ratio, over, under))


def measured_here(sources, name):
    """Yields the rows of this checkout's records."""
    for label, records in local_measurements.groups(sources, ASKED["tokens"], bench="collective", name=name,
                                                    rounds=ASKED["rounds"], **SHAPE):
        yield Row("", label, timed_cells(records, COLUMNS, LOCAL))


def bars(sources):
    """[(label, name, kind, {ranks: ms})], published beside simulated."""
    rows = [(title, name, kind, row) for title, name in EXCHANGES.items() for kind, row in (
        (cells.PUBLISHED, printed(sources, title)), (cells.SIMULATED, simulated(sources, name)))]
    return [(*which, cells.points(PAPER_RANKS, row)) for *which, row in rows if any(row)]


# --- Measured -------------------------------------------------------------------------------------------


def measured_table(sources):
    groups = [(key, found) for key, records in sources.here(bench="collective", **SHAPE)
              if (found := [record for record in records if record["name"] in MEASURED or is_native(record)])]
    columns = sorted({record["ranks"] for _, records in groups for record in records})
    rows = [row for key, records in groups for row in measured_rows(key, records, columns)]
    return Table("table2_measured", "The same exchanges measured on machines at hand, ms", list(map(str, columns)),
                 rows, ["Medians; the CSV has the intervals and the means. Ranks in the head of each column.",
                        "Machines differ from the paper's: compare how rows grow and which is first, not cell by cell.",
                        "Natives, library calls and hand-written loops, bear their names."], True)


def is_native(record):
    return record["implementation"] != "schedule" and record["kind"] != "exchange"


def measured_rows(key, records, columns):
    for name in sorted({record["name"] for record in records}, key=lambda name: (name not in MEASURED, name)):
        of_name = [record for record in records if record["name"] == name]
        yield Row(f"`{name}`" + " native" * is_native(of_name[0]), f"measured, {where_measured(*key)}",
                  timed_cells(of_name, columns, key[0]))
