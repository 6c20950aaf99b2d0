# SPDX-License-Identifier: Apache-2.0
"""Exchanges between GPUs as measured: every method by size, its goals, and nccl-tests beside it."""

import exchange_tables
import exchanges
import paper_goals
import paper_nccl_tests
from paper_page import Figure, Section, Text

HOW = ("No machine here has records of GPU exchanges yet. On a host with GPUs: `mpirun -n 4 "
       "build/cuda/bin/collective_bench --executor peer,peer_bf16,nccl --collectives all --ranks 2,4 -b 256K -e 16M "
       "-f 2 --cadence isolated,graph -J results/NAME/exchange.jsonl`.")
HOW_NCCL_TESTS = ("No output of nccl-tests lies beside the records: `all_gather_perf -b 64K -e 256M -f 2 -n 20 -w 5 "
                  "-c 0 -G 5 > results/NAME/nccl-tests-graph.txt`, and without `-G 5` into `nccl-tests-streaming.txt`; "
                  "ours beside it: `collective_bench --executor nccl --collectives nccl_all_gather --ranks 4 --d-k 32 "
                  "--d-v 127 -b 16256 -e 66584576 -f 2 -n 20 --cadence graph,streaming`.")


def section(sources):
    found = {machine: of_machine for machine, records in sources.measured.items()
             if (of_machine := exchanges.contests(filter(exchanges.on_gpus, records)))}
    most_ranks_first = sorted(found.items(), key=lambda one: -max(ranks for ranks, _ in one[1]))
    told = [block for machine, contests in most_ranks_first
            for block in machine_blocks(machine, contests, sources.measured[machine])]
    return Section("Exchanges between GPUs", [Text(LEAD), *(told or [Text(HOW)]), *nccl_tests(sources)])


LEAD = ("The exclusive scan of the states as the suite measures it on GPUs. `peer` is one kernel a round that stores "
        "into the other GPUs' memory; `peer_bf16` the same with bf16 on the wire; `nccl` sends and receives as the host "
        "launches them. A native is a kernel written for this exchange, or a library's call. All rounds start from one "
        "line of the GPUs' own, and every cell was verified against a serial fold in the launch that timed it.")


def machine_blocks(machine, contests, records):
    yield Text(verified(machine, list(filter(exchanges.on_gpus, records))))
    asked = contests.get((paper_goals.RANKS, paper_goals.CADENCE))
    if asked:
        yield Figure(f"exchange_{machine}", "Time against the size of the state",
                     f"{paper_goals.RANKS} GPUs, {paper_goals.CADENCE} rounds; measured: {machine}", "sizes", asked,
                     "Medians with their 95 % interval; both scales are logarithmic. The dotted line is what an empty "
                     "round, three flags and the state on one link take.")
        yield from paper_goals.blocks(machine, asked)
    for (ranks, cadence), contest in sorted(contests.items(), key=order):
        yield exchange_tables.table(contest, (ranks, cadence), machine, f"exchange_{machine}_{ranks}_{cadence}")


def verified(machine, records):
    wrong = sum(record.get("wrong") or 0 for record in records)
    skipped = sum("skipped" in record for record in records)
    return (f"**{machine}**: {len(records) - skipped} cases were verified and timed, exchanges and layers, with {wrong} "
            f"wrong elements altogether; {skipped} are skipped, with the reason in their records.")


def order(one):
    """The most ranks first, and isolated before other cadences."""
    ranks, cadence = one[0]
    return -ranks, cadence != paper_goals.CADENCE, cadence


def nccl_tests(sources):
    told = [block for machine, records in sources.measured.items()
            for block in paper_nccl_tests.blocks(machine, records, sources.texts.get(machine, {}))]
    return told or [Text(HOW_NCCL_TESTS)]
