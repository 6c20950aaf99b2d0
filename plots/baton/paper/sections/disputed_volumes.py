# SPDX-License-Identifier: Apache-2.0
"""A published table of volumes that mixes two units: beside counts, as a paragraph, a table and a finding."""

from baton import results
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Figure, Finding, Line, Table
from baton.paper.sources import H100, having

HEADS, KV_HEADS, TOKENS = 64, 8, 8192  # of queries, of keys, of a rank
RANKS = 8  # of the published table; its 1.75 is 2 (P-1) / P
MORE_RANKS = (4, RANKS, 64)
DISPUTED = {"Ulysses": "ulysses_softmax", "AllGather-KV": "all_gather_kv", "Ring": "ring_attention_softmax"}
SHARES = {"1/8": KV_HEADS, "1": HEADS}  # heads of keys over heads of queries
SECTION = "Volumes: what every method sends"


def counts(sources, ranks=RANKS):
    """Returns {(method as published, heads of keys over those of queries): volume in queries of one rank}, as counted."""
    found = {}
    for record in sources.on(H100, bench="operator", heads=HEADS, ranks=ranks, tokens=TOKENS, dtype="bf16",
                             **{"pass": "forward"}):
        for title, name in DISPUTED.items():
            for share, kv_heads in SHARES.items():
                if (record["name"], results.kv_heads(record)) == (name, kv_heads) and results.why_no_time(record) is None:
                    found[title, share] = record
    return found


def queries(record):
    """Returns the bytes of a rank's queries in bf16."""
    return record["tokens"] * record["heads"] * record["d_k"] * 2


def in_queries(record):
    """Returns what the busiest rank sends over the bytes of one rank's queries."""
    return record["sent_bytes"] / queries(record)


def printed(sources, share):
    """Returns {method: the number that was published}."""
    rows = having(sources.published["vllm_omni_5092"], kv_share=share)
    return {row["method"]: float(row["value"].lstrip("~")) for row in rows}


def paragraph(sources):
    """Says which published volumes are in which unit. Throws KeyError without the counts."""
    counted = counts(sources)
    told = [f"with f = {share} it has {printed(sources, share)['Ulysses']:g} against {printed(sources, share)['Ring']:g}, "
            f"and the count is {in_queries(counted['Ulysses', share]):.2f} against "
            f"{in_queries(counted['Ring', share]):.2f}" for share in SHARES]
    return ("**A published table mixes two units.** A request for comments of vLLM-Omni counts the all-to-alls of Ulysses in "
            "queries of one rank, and the keys and values of a ring or a gather in queries of the whole sequence, "
            f"{RANKS} times as many: {'; '.join(told)}, all over the queries of one rank. Its figure for Ulysses lacks the "
            "factor (P-1)/P besides.")


def table(sources):
    counted = counts(sources)
    rows = []
    for title, name in DISPUTED.items():
        theirs = having(sources.published.get("vllm_omni_5092", []), method=title)
        rows += [Row(title, "published", [next(map(cells.published, having(theirs, kv_share=share)), None)
                                          for share in SHARES]),
                 Row(f"`{name}`", "counted, over queries of one rank", [over(counted.get((title, share)), 1)
                                                                         for share in SHARES]),
                 Row("", "counted, over queries of all ranks", [over(counted.get((title, share)), RANKS)
                                                                 for share in SHARES])]
    return Table("disputed_volumes", f"Volumes of a published table beside counted ones, {RANKS} ranks, forward",
                 [f"f = {share}" for share in SHARES], rows,
                 ["f: heads of keys over heads of queries. Published: in units of \"Q\", of which the table does not say "
                  "whether it is one rank's or the sequence's."])


def over(record, ranks):
    if record is None:
        return None
    value = in_queries(record) / ranks
    return cells.counted(value, f"{value:.2f}", "times Q", record)


def finding(sources):
    """Sets the published volumes beside the counted ones, with few heads of keys."""
    share, methods = "1/8", ("Ulysses", "Ring")
    found = {ranks: counts(sources, ranks) for ranks in MORE_RANKS}
    lines = {title: {ranks: (in_queries(of_ranks[title, share]),) * 3 for ranks, of_ranks in found.items()
                     if (title, share) in of_ranks} for title in methods}
    if any(RANKS not in points for points in lines.values()):
        return None
    theirs = printed(sources, share)
    drawn = [Line(title, DISPUTED[title], cells.COUNTED, lines[title]) for title in methods]
    drawn += [Line("", DISPUTED[title], cells.PUBLISHED, {RANKS: (theirs[title],) * 3}) for title in methods]
    return Finding(
        f"A published table has Ulysses send {theirs['Ulysses']:g} and a ring or gather {theirs['Ring']:g}; counted in one "
        f"unit it is {lines['Ulysses'][RANKS][0]:.2f} and {lines['Ring'][RANKS][0]:.2f}.",
        f"In queries of one rank, forward, on {RANKS} ranks with {KV_HEADS} heads of keys for {HEADS} of queries: the "
        "published volume of a ring is in queries of the whole sequence. Counted from the schedules.", SECTION,
        Figure("finding_volumes", "", "volume over queries of a rank, by ranks; hollow marks: published", "finding_lines",
               drawn, "What the busiest rank sends, counted, and as a published table has it."))
