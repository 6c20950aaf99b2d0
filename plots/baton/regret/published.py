# SPDX-License-Identifier: Apache-2.0
"""The contests of published tables, and what the simulator says of their methods.

The benches are asked for a table as the papers' page asks them. Methods that are not here or are refused do not compete.
"""

import collections

from baton import results
from baton.advise.simulator import simulated
from baton.paper import fitting
from baton.paper.published import FOLDER, load_cells
from baton.paper.sections import dist_flash, fastest_methods, headlines, published_softmax
from baton.paper.sections.lasp2_throughput import MODEL as LASP2_MODEL
from baton.paper.sources import A100, A100_PAIR, H100, having
from baton.regret.contests import COMPOSED, Judged, judge
from baton.regret.measured import TREE

# A CSV of results/paper/, and the bench, topology and words that simulate its cells. `only` are values of its columns.
Table = collections.namedtuple("Table", "name bench topology words only", defaults=({},))
TABLES = (
    Table("zeco_table2", "collective", H100,
          "--like zeco-table2 --collectives ring_all_gather,all_scan --ranks 8,16,32,64,128,256"),
    Table("zeco_table_operator_16k", "operator", H100,
          "--like zeco-table3 --methods zeco,lasp2,lasp1 --dtype bf16 --pass both --ranks 8,32,128"),
    Table("zeco_table_throughput_32k", "model", H100, "--like zeco-table6 --methods zeco,lasp2,lasp1 --lines full "
          f"--fsdp --blocks {fastest_methods.BLOCKS} --ranks 8,64,128,256"),
    Table("lasp2_relative_speed", "model", A100, f"--model {LASP2_MODEL} --lines full --fsdp --tokens 8192,32768 "
          f"--methods {','.join(headlines.LASP2_METHODS)} --ranks {headlines.LASP2_RANKS}"),
    Table("magi_h100_causal", "operator", H100, "--like magi --pass forward,backward --ranks 8,16,32,64"),
    Table("dist_flash_attention", "operator", A100_PAIR, f"--methods {dist_flash.OURS},{dist_flash.ULYSSES} "
          f"--heads {dist_flash.HEADS} --dtype bf16 --pass both --ranks 16 --tokens 16384,32768",
          {"model": "LLaMA-7B", "unit": "s an iteration"}))
NAMES = {fitting.GATHER: "ring_all_gather", fitting.SCAN: "all_scan", "ZeCO": "zeco", "LASP-1": "lasp1",
         "LASP-2": "lasp2", "Ring Attention": "ring_attention", "DistFlashAttn": dist_flash.OURS,
         "DeepSpeed-Ulysses": dist_flash.ULYSSES, **published_softmax.MAGI_METHODS}
# The columns that tell a table's contests apart, and what a record has there.
COLUMNS = {"gpus": lambda record: str(record["ranks"]), "pass": lambda record: record["pass"],
           "seq_len": lambda record: f"{record['tokens'] * record['ranks'] // 1024}K"}
GAIN = "% throughput gain"


def of_table(table, programs):
    """Yields the Judged of a table."""
    rows = having(load_cells(FOLDER / f"{table.name}.csv"), **table.only)
    columns = [column for column in COLUMNS if column in rows[0]]
    measured, predicted = collections.defaultdict(dict), collections.defaultdict(dict)
    for row in rows:
        measured[tuple(row[column] for column in columns)].update(times(row))
    topology = TREE / "topologies" / f"{table.topology}.json"
    for record in simulated(programs, table.bench, topology, *table.words.split()):
        if results.why_no_time(record) is None:
            predicted[tuple(COLUMNS[column](record) for column in columns)][record["name"]] = record["median_seconds"]
    for place, found in measured.items():
        judged = judge(found, predicted[place])
        if judged:
            told = "/".join(f"{column}:{value}" for column, value in zip(columns, place))
            yield Judged(table.name, table.bench, table.topology, COMPOSED, told, int(place[0]), *judged)


def times(row):
    """Returns {name: time, in any unit} of a published cell. A gain of one method over another is a time of either."""
    value = float(row["value"])
    if row["unit"] == GAIN:
        better, worse = row["method"].split(" vs ")
        return {NAMES[better]: 1, NAMES[worse]: 1 + value / 100}
    name = NAMES.get(row["method"])
    is_rate = row["unit"].startswith(("tokens/s", "TFLOP/s"))
    return {name: 1 / value if is_rate else value} if name else {}
