# SPDX-License-Identifier: Apache-2.0
"""Readings in, findings out. Each row of a table changes the readings of a calm machine, and has the findings in their order.

A finding is written as its text, " -- " and its advice, in parts with "..." between them; that of a note begins with "note ".
"""

import random
import unittest

from baton.doctor import findings, judges
from plots.doctor.made_up import REPEATS, always, calm, changed, core, links, with_gpus

def two_packages():
    """Four ranks on two packages, whose pairs across packages are slower by nature."""
    readings = changed(calm(4), **{f"links__0__pairs__{pair}__latency_seconds": always(3e-6) for pair in (1, 2, 3, 4)})
    readings["hosts"][0]["cores"] = [core(number, package=number // 2, cache=number // 2) for number in range(4)]
    return readings


RANKS = {
    "a calm machine": (calm(8), {}, []),
    "a calm rank alone": (calm(1), {}, []),
    "a calm machine with GPUs": (with_gpus(2), {}, []),
    "late beside another thread": (
        calm(2), {"ranks__1__spin_seconds": always(10e-3), "ranks__1__waited": always(0.49)},
        ["rank 1 is late: the same work takes it 10.0 ms, the fastest rank 5.00 ms (2.0 times); another thread had core 1 for 49 %"]),
    "one disturbance": (calm(2), {"ranks__1__spin_seconds__3": 1, "ranks__1__waited__3": 0.9}, []),
    "disturbances of different ranks": (calm(3), {f"ranks__{repeat % 3}__spin_seconds__{repeat}": 10e-3 for repeat in range(7)}, []),
    "late by its clock": (
        calm(3), {"ranks__all__clock_mhz": always(3000), "ranks__2__spin_seconds": always(8e-3), "ranks__2__clock_mhz": always(1900)},
        ["rank 2 is late...its clock is 1900 MHz, the usual one here 3000 MHz"]),
    "late by a hypervisor": (
        calm(3), {"ranks__0__spin_seconds": always(8e-3), "hosts__0__cores__0__stolen": always(0.03)},
        ["rank 0 is late...the hypervisor took core 0 for 3 %"]),
    "waiting, none late": (
        calm(2), {"ranks__all__waited": always(0.5)},
        ["ranks 0 and 1 wait for their cores (core 0, core 1); other threads run there for up to 50 % of the time"]),
    "waiting for one another": (
        calm(3), {"ranks__all__cores": [0, 1], "ranks__all__waited": always(0.3), "ranks__1__spin_seconds": always(1)},
        ["3 ranks share 2 cores"]),
}

CLOCKS = {
    "above the base": (calm(2), {"ranks__all__clock_mhz": always(2600), "ranks__all__base_mhz": 2500}, []),
    "below the base": (
        calm(2), {"ranks__all__clock_mhz": always(1200), "ranks__1__base_mhz": 2500, "ranks__1__governor": "powersave"},
        ["the core of rank 1 runs at 1200 MHz under load, at least 2500 are expected (governor powersave)"]),
    "below half of the highest": (
        calm(2), {"ranks__all__clock_mhz": always(1700), "ranks__1__most_mhz": 3800}, ["rank 1 runs at 1700 MHz...at least 1900"]),
    "unknown": (calm(2), {"ranks__0__most_mhz": 3800}, []),
    "slowed by heat": (calm(2), {"ranks__0__heat_events": 3}, ["heat slowed the core of rank 0 3 times"]),
    "limited": (calm(2), {"ranks__1__most_mhz": 3800, "ranks__1__allowed_mhz": 2000}, ["note ...2000 of its 3800 MHz"]),
}

GPUS = {
    "throttled by heat": (
        with_gpus(2), {"ranks__1__devices__0__values__throttle_reasons": always(0x40),
                       "ranks__1__devices__0__values__sm_clock_mhz": always(1200)},
        ["the GPU of rank 1 is throttled by the hardware, for heat, at 1200 MHz",
         "the clock of rank 1's GPU is 1200 MHz, that of another 1980 MHz"]),
    "at its power limit or idle": (
        with_gpus(2), {"ranks__0__devices__0__values__throttle_reasons": always(4 + 1)}, ["note ...throttled by its power limit"]),
    "throttled in less than half of the repeats": (
        with_gpus(2), {"ranks__0__devices__0__values__throttle_reasons": [0x40] * 3 + [0] * 4}, []),
    "late": (with_gpus(4), {"ranks__3__devices__0__work_seconds": always(1.4e-3)},
             ["the GPU of rank 3 is late...1.4 times), at 1980 MHz"]),
    "with a low clock of its memory": (
        with_gpus(2), {"ranks__0__devices__0__values__memory_clock_mhz": always(1500)}, ["the memory clock of rank 0's GPU is 1500 MHz"]),
    "without clocks": (with_gpus(1), {"ranks__0__devices__0__values": {"sm_clock_mhz": always(-1), "throttle_reasons": always(-1)}},
                       ["note the clocks of rank 0's GPU cannot be read"]),
}

BINDING = {
    "to no core": (calm(2), {"ranks__all__cores": [0, 1]},
                   ["ranks 0 and 1 are not bound to cores of their own: each may run on cores 0 and 1"]),
    "to no core, but within some": (
        calm(2), {"hosts__0__cores": [core(0), core(1), core(2)], "ranks__all__cores": [0, 1]}, ["ranks 0 and 1 are not bound"]),
    "of one rank to all cores": (
        calm(1), {"hosts__0__cores": [core(0), core(1)], "ranks__0__cores": [0, 1]}, ["rank 0 is not bound to cores of its own"]),
    "of one rank to one core of two": (calm(1), {"hosts__0__cores": [core(0), core(1)]}, []),
    "to several cores of their own": (
        calm(2), {"hosts__0__cores": [core(number) for number in range(4)], "ranks__0__cores": [0, 1], "ranks__1__cores": [2, 3]}, []),
    "of two ranks to one core": (
        calm(4), {"ranks__2__cores": [1], "ranks__3__cores": [2, 3]}, ["ranks 1 and 2 share core 1 -- bind each rank to a core"]),
    "to hyperthreads of one core": (
        calm(2), {"hosts__0__cores__1__physical": 0},
        ["ranks 0 and 1 share core 0, each on a hyperthread of it or on both -- take at most 1 rank on this host"]),
    "to both hyperthreads of a core": (
        calm(2), {"hosts__0__cores": [core(number, physical=number % 2) for number in range(4)], "ranks__0__cores": [0, 2],
                  "ranks__1__cores": [1, 3]}, []),
    "of more ranks than hyperthreads": (
        calm(3), {"hosts__0__cores": [core(0), core(1, physical=0)], "ranks__all__cores": [0, 1]},
        ["3 ranks share 1 core of a host... -- take at most 1 rank a host"]),
    "with memory of another node": (
        calm(2), {"ranks__1__memory_node": 1}, ["the memory of rank 1 is on NUMA node 1, its core 1 on node 0"]),
    "with memory of an unknown node": (calm(2), {"ranks__1__memory_node": -1}, []),
}

LOAD = {
    "on a rank's core": (
        calm(2), {"hosts__0__cores__1__busy": always(0.98),
                  "hosts__0__others": [{"number": 4711, "name": "python3", "cores": 0.99}, {"number": 1, "name": "init", "cores": 0.01}]},
        ["core 1 98 % of the time while all ranks sleep; rank 1 may run there; busiest: process 4711 (python3, 1.0 cores) -- end them"]),
    "on the other hyperthread of a rank": (
        calm(2), {"hosts__0__cores": [core(0), core(1), core(2, physical=0, busy=always(0.5))]}, ["core 2 50 %...rank 0 may run"]),
    "once": (calm(2), {"hosts__0__cores__0__busy__2": 1}, []),
    "elsewhere": (calm(2), {"hosts__0__cores": [core(0), core(1), core(2, busy=always(0.9))]}, ["note ...0.9 cores where no rank runs"]),
    "by a hypervisor": (calm(2), {"hosts__0__cores__1__stolen": [0, 0.2, 0, 0.2, 0.1, 0, 0.1]},
                        ["the hypervisor takes up to 9 % of the time of core 1"]),
    "by a quota": (calm(2), {"hosts__0__quota_cores": 1.5}, ["limited to 1.5 cores"]),
    "by a quota that is enough": (calm(2), {"hosts__0__quota_cores": 2}, []),
    "by a quota that held ranks back": (calm(2), {"hosts__0__quota_stops": 4}, ["limited by a quota...held back 4 times"]),
}

BUILD = {
    "of another type": (calm(2), {"build__type": "Debug"}, ["this build is of type 'Debug'"]),
    "without executors of GPUs": (calm(2), {"hosts__0__gpus": 2}, ["this host has 2 GPUs, and the build no executor"]),
    "that cannot use the GPUs": (
        calm(2), {"hosts__0__gpus": 2, "build__executors": [{"name": "nccl", "lacks": "no GPU here"}]}, ["nccl cannot run: no GPU here"]),
    "without executors of GPUs that nobody misses": (calm(2), {"build__executors": [{"name": "nccl", "lacks": "no GPU here"}]}, []),
    "on little shared memory": (calm(2), {"hosts__0__shared_memory_bytes": 64 << 20}, ["note /dev/shm has 64 MiB free"]),
    "with a slow clock": (calm(2), {"hosts__0__timer_seconds": 1e-6}, ["note one reading of the clock takes 1.00 us (clock source tsc)"]),
    "whose ranks failed": ({**calm(2), "ranks": [], "hosts": [], "links": []}, {"failure": "cannot start mpiexec"},
                           ["the ranks ended before the examination did: cannot start mpiexec"]),
}

LINKS = {
    "slow with small messages": (
        calm(4), {"links__0__pairs__1__latency_seconds": always(200e-6), "links__0__pairs__1__large_seconds": always(350e-6)},
        ["the link of ranks 0 and 2 is slow (mpi): 8 bytes take 200 us, between others 0.50 us (400 times)"]),
    "slow with large messages": (
        calm(4), {"links__0__pairs__4__large_seconds": always(300e-6)},
        ["the link of ranks 1 and 3 is slow (mpi): 1 MiB take 300 us, between others 150 us"]),
    "slow in three repeats": (calm(4), {f"links__0__pairs__4__latency_seconds__{repeat}": 1 for repeat in range(3)}, []),
    "slower by less than a microsecond": (calm(4), {"links__0__pairs__4__latency_seconds": always(1.4e-6)}, []),
    "slower by less than twice": (
        calm(4), {"links": [links("mpi", 4, 3e-6, 150e-6)], "links__0__pairs__4__latency_seconds": always(5e-6)}, []),
    "all of one rank": (
        calm(5), {f"links__0__pairs__{pair}__latency_seconds": always(50e-6) for pair in (2, 5, 7, 9)},
        ["all links of rank 3 are slow (mpi): 8 bytes take 50.0 us, between others 0.50 us -- look what else uses these two cores"]),
    "across packages": (two_packages(), {}, []),
    "across caches": (two_packages(), {"hosts__0__cores__all__package": 0}, []),
    "of GPUs, whatever their ranks' packages": (
        two_packages(), {"links__0__is_device": True}, [f"the link of ranks {one} and {other} is slow... -- nvidia-smi topo -m"
                                                        for one in (0, 1) for other in (2, 3)]),
    "within a package, slower than across": (
        two_packages(), {"links__0__pairs__5__latency_seconds": always(9e-6)}, ["the link of ranks 2 and 3"]),
    "across hosts": (
        calm(2), {"hosts": [{**calm(1)["hosts"][0], "host": host, "cores": [core(0), core(1)]} for host in (1, 2)], "ranks__1__host": 2,
                  "links__0__pairs__0__latency_seconds": always(45e-6)}, []),
    "of a late rank": (
        calm(4), {"ranks__3__spin_seconds": always(10e-3),
                  **{f"links__0__pairs__{pair}__latency_seconds": always(4e-3) for pair in (2, 4, 5)}}, ["rank 3 is late"]),
    "the only one of a host": (
        calm(2), {"links__0__pairs__0__latency_seconds": always(45e-6)},
        ["ranks 0 and 1 of one host exchange 8 bytes in 45.0 us and 6.99 GB/s (mpi)"]),
    "the only one of two GPUs": (
        with_gpus(2), {"links": [links("nccl", 2, 12e-6, 3e-3, is_device=True, large_bytes=16 << 20)]},
        ["note GPUs 0 and 1 exchange 5.6 GB/s (nccl)"]),
    "of two GPUs that are linked": (
        with_gpus(2), {"links": [links("nccl", 2, 12e-6, 100e-6, is_device=True, large_bytes=16 << 20)]}, []),
}

TABLES = {"ranks": RANKS, "clocks": CLOCKS, "GPUs": GPUS, "binding": BINDING, "load": LOAD, "build": BUILD, "links": LINKS}


class Judges(unittest.TestCase):
    def test_rows_of_the_tables(self):
        for table, rows in TABLES.items():
            for name, (readings, changes, expected) in rows.items():
                with self.subTest(f"{table} {name}"):
                    self.assert_found(judges.findings_of(changed(readings, **changes)), expected)

    def assert_found(self, found, expected):
        texts = [f"{'note ' * (one.weight == findings.NOTE)}{one.what} -- {one.advice}" for one in found]
        self.assertEqual(len(texts), len(expected), texts)
        for text, wanted in zip(texts, expected):
            self.assertEqual(text.startswith("note "), wanted.startswith("note "), text)
            for part in wanted.split("..."):
                self.assertIn(part, text)

    def test_problems_come_first_and_notes_are_fit(self):
        readings = changed(calm(2), hosts__0__timer_seconds=1e-6)
        self.assertTrue(judges.is_fit(judges.findings_of(readings)))
        found = judges.findings_of(changed(readings, ranks__1__cores=[0], build__type="Debug"))
        self.assertEqual([one.weight for one in found], ["problem", "problem", "note"])
        self.assertFalse(judges.is_fit(found))

    def test_machines_that_vary_a_little_are_calm(self):
        drawn = random.Random(1)
        for machine in range(50):
            readings = calm(8)
            for rank in readings["ranks"]:
                rank["spin_seconds"] = [seconds * drawn.uniform(0.97, 1.03) for seconds in rank["spin_seconds"]]
            readings["ranks"][machine % 8]["spin_seconds"][machine % REPEATS] *= 3
            for pair in readings["links"][0]["pairs"]:
                for kind in ("latency_seconds", "large_seconds"):
                    pair[kind] = [seconds * drawn.uniform(0.9, 1.1) for seconds in pair[kind]]
            self.assertEqual(judges.findings_of(readings), [])


class Words(unittest.TestCase):
    def test_a_difference_counts_if_most_repeats_have_it(self):
        for repeats, expected in (([0.2] * 7, True), ([0.09] * 7, False), ([], False), ([0, 0, 0, 9, 9, 9, 0], False),
                                  ([1, 1, 1, 1, 0, 0, 1], False), ([1, 1, 1, 0, 1, 1, 1], True)):
            self.assertEqual(findings.exceeds(repeats, 0.1), expected, repeats)

    def test_numbers(self):
        for text, shown in (("no rank", []), ("rank 3", [3]), ("ranks 0 and 2", [2, 0]), ("ranks 0 to 3", range(4)),
                            ("ranks 1 to 3, 7 and 9", [7, 1, 2, 3, 7, 9])):
            self.assertEqual(findings.numbered("rank", shown), text)
        self.assertEqual([findings.percent(0.494), findings.times(0.26), findings.times(232)], ["49 %", "1.3 times", "233 times"])


if __name__ == "__main__":
    unittest.main()
