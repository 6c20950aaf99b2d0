# SPDX-License-Identifier: Apache-2.0
"""Baton from Python: records of its benches as rows, and exchanges of one's own as rows of its benches.

    records = baton.read("results/*.jsonl")
    records.frame()              a pandas frame, one row for each case and launch
    records.frame("rounds")      one row for each round and rank

    @baton.native("my_scan")     an exchange of one's own, timed and verified as Baton's are
    def my_scan(call): ...
    baton.main()                 collective_bench on ranks of this host, or on torchrun's
"""

from baton.native import main, native, start_ranks
from baton.frames import Error, Records, read

__all__ = ["Error", "Records", "main", "native", "read", "start_ranks"]
