# SPDX-License-Identifier: Apache-2.0
"""Baton from Python: records of its benches as rows, and methods and exchanges of one's own as rows of its benches.

    records = baton.read("results/*.jsonl")
    records.frame()              a pandas frame, one row for each case and launch
    records.frame("rounds")      one row for each round and rank

    @baton.method("mine")        a sequence-parallel method of one's own, timed and verified as Baton's are
    def mine(layer): ...
    @baton.native("my_scan")     an exchange of one's own
    def my_scan(call): ...
    baton.main()                 the bench on ranks of this host, or on torchrun's
"""

from baton.frames import Error, Records, read
from baton.own.methods import method
from baton.own.native import native
from baton.own.start import main, start_ranks

__all__ = ["Error", "Records", "main", "method", "native", "read", "start_ranks"]
