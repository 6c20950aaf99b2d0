# SPDX-License-Identifier: Apache-2.0
"""Times the all-gather of whatever library answers to NCCL's names, through PyTorch: a table, and one JSON line a size.

    torchrun --standalone --nproc-per-node 2 results/peers/nccl_all_gather.py --out results/h200-2/peers.jsonl

    LD_PRELOAD=.../libmscclpp_nccl.so MSCCLPP_FORCE_DISABLE_NVLS=1 MSCCLPP_NCCL_LIB_PATH=.../libnccl.so.2 \\
        torchrun --standalone --nproc-per-node 2 results/peers/nccl_all_gather.py --library "MSCCL++ 0.9.0" --out ...

LASP-2 exchanges its states by this call. MSCCL++ brings a library with NCCL's interface that is loaded before NCCL. Baton's
own executor `nccl` refuses it, because it has no windows, so it is measured here beside Baton's `all_gather_scan` rows.

Bytes are those that one rank contributes, f32. Every size is checked before it is timed: each rank must find the numbers of
every other, or the run ends. A round is the replay of a CUDA graph of 20 calls, between two CUDA events, divided by 20. A
replay that is not timed goes before each, so that no rank waits for another one's start. The slowest rank is the round's
time. There are 50 rounds after 5 of warm-up.
"""

import argparse
import datetime
import json
import os
import statistics

import torch
import torch.distributed as dist

WARM_UP, ROUNDS, CALLS = 5, 50, 20


def main():
    options = parse()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device)
    try:
        rows = [row_of(options, size, all_gather_seconds(size)) for size in options.bytes]
        is_first = dist.get_rank() == 0
    finally:
        dist.destroy_process_group()
    if not is_first:
        return
    print(f"{'library':20} {'ranks':>5} {'bytes':>9} {'us':>9}")
    with open(options.out, "a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
            print(f"{row['library']:20} {row['ranks']:5} {row['bytes']:9} {row['median_seconds'] * 1e6:9.2f}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="the file of JSON lines to append to")
    parser.add_argument("--library", default=f"NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}",
                        help="the name of the library that is loaded")
    parser.add_argument("--bytes", type=int, nargs="+", default=[2**exponent for exponent in range(18, 25)])
    return parser.parse_args()


def all_gather_seconds(size):
    """Seconds of each round by the slowest rank."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    own = torch.full((size // 4,), float(rank + 1), device="cuda")
    gathered = torch.zeros(ranks * own.numel(), device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            dist.all_gather_into_tensor(gathered, own)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(CALLS):
                dist.all_gather_into_tensor(gathered, own)
        check(gathered, graph, ranks)
        return slowest(timed_rounds(graph))


def check(gathered, graph, ranks):
    """Ends the run unless a replay brings every rank's numbers."""
    gathered.zero_()
    graph.replay()
    torch.cuda.synchronize()
    parts = gathered.view(ranks, -1)
    for rank in range(ranks):
        if not bool((parts[rank] == rank + 1).all()):
            raise SystemExit(f"rank {dist.get_rank()} did not get the numbers of rank {rank}: nothing was timed")


def timed_rounds(graph):
    seconds = []
    for round_number in range(WARM_UP + ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        dist.all_reduce(torch.zeros(1))  # on the host
        graph.replay()
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        if round_number >= WARM_UP:
            seconds.append(begin.elapsed_time(end) * 1e-3 / CALLS)
    return seconds


def slowest(own):
    of_all = [torch.zeros(len(own), dtype=torch.float64) for _ in range(dist.get_world_size())]
    dist.all_gather(of_all, torch.tensor(own, dtype=torch.float64))
    return torch.stack(of_all).max(dim=0).values.tolist()


def row_of(options, size, seconds):
    return {"peer": "NCCL's interface through PyTorch", "library": options.library, "version": torch.__version__,
            "collective": "all_gather", "ranks": int(os.environ["WORLD_SIZE"]), "bytes": size,
            "median_seconds": statistics.median(seconds), "seconds": seconds, "warmup": WARM_UP, "rounds": ROUNDS,
            "gpu": torch.cuda.get_device_name(),
            "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}


if __name__ == "__main__":
    main()
