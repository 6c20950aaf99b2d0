# SPDX-License-Identifier: Apache-2.0
"""Which cores ranks use where the user, a batch system or a container left them few, and what their records say:

  cores_test.py PATH_OF_COLLECTIVE_BENCH PATH_OF_USABLE_CORES
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from torchrun_like import start

CORES = sorted(os.sched_getaffinity(0))
COUNTER = sys.argv.pop()
BENCH = os.path.realpath(sys.argv.pop())
FEW = ["--collectives", "ring_scan", "-b", "64K", "-n", "5", "-w", "1"]
CPU = pathlib.Path("/sys/fs/cgroup/cpu")  # of version 1
SMT = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1"
          allowed_nodeset="0x1" gp_index="1">
    <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="2"/>
    <object type="Core" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="3">
      <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4"/>
      <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
    </object>
  </object>
</topology>
"""


def within(cores):
    """Lets a process run on these cores alone, as taskset does."""
    return lambda: os.sched_setaffinity(0, cores)


def masks_of_ranks(bench):
    """The cores that each rank of a bench could run on at last: libraries that MPI loads at its start leave them for a moment."""
    seen = {}
    while bench.poll() is None:
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "cmdline").read_bytes().startswith(BENCH.encode()) and b"OMPI_COMM_WORLD_RANK=" in (folder / "environ").read_bytes():
                    seen[folder.name] = sorted(os.sched_getaffinity(int(folder.name)))
            except OSError:
                continue  # it has ended
        time.sleep(0.01)
    return sorted(seen.values())


class OfThisHost(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def counted(self, **how):
        return int(subprocess.run([COUNTER], capture_output=True, check=True, **how).stdout)

    def bench(self, **how):
        """The process of a bench and the file of its records."""
        out = self.folder / "rows.jsonl"
        return subprocess.Popen([BENCH, *FEW, "--ranks", "2", "-J", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                **how), out

    def conditions(self, **how):
        """The conditions in the record of a bench, and what it printed."""
        process, out = self.bench(**how)
        said = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, said)
        return json.loads(out.read_text().splitlines()[0])["conditions"], said[0]

    def emulated(self):
        """Variables with which hwloc finds one core of two hardware threads."""
        path = self.folder / "smt.xml"
        path.write_text(SMT)
        return {**os.environ, "HWLOC_XMLFILE": str(path), "HWLOC_THISSYSTEM": "1"}

    def test_variables_of_openmp_change_nothing(self):
        for variable in ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT"):
            for value in ("1", "16"):
                self.assertEqual(self.counted(env={**os.environ, variable: value}), self.counted())

    def test_a_mask_counts(self):
        self.assertEqual(self.counted(preexec_fn=within(CORES[:1])), 1)

    @unittest.skipIf(len(CORES) < 2 or CORES[:2] != [0, 1], "needs cores 0 and 1")
    def test_hardware_threads_of_a_core_count_once_and_ranks_start_on_them(self):
        self.assertEqual(self.counted(env=self.emulated(), preexec_fn=within([0, 1])), 1)
        conditions, said = self.conditions(env=self.emulated(), preexec_fn=within([0, 1]))
        self.assertEqual((conditions["cores"], conditions["busy_threads"], conditions["oversubscribed"]), (1, 2, True))
        self.assertIn("2 ranks keep 2 threads busy on 1 core.", " ".join(said.split()))

    def test_no_rank_leaves_the_mask_of_the_user(self):
        process, out = self.bench(preexec_fn=within(CORES[-1:]))
        masks = masks_of_ranks(process)
        self.assertEqual(process.wait(), 0)
        process.communicate()
        self.assertEqual(masks, [CORES[-1:], CORES[-1:]])
        conditions = json.loads(out.read_text())["conditions"]
        self.assertEqual((conditions["cores"], conditions["oversubscribed"]), (1, True))

    @unittest.skipIf(len(CORES) < 2, "one core")
    def test_ranks_that_fit_have_a_core_each(self):
        process, out = self.bench(preexec_fn=within(CORES[-2:]))
        masks = masks_of_ranks(process)
        process.communicate()
        self.assertFalse(json.loads(out.read_text())["conditions"]["oversubscribed"])
        self.assertEqual(masks, [[core] for core in CORES[-2:]])

    def test_ranks_that_each_are_bound_to_one_core_share_it(self):
        out = self.folder / "rows.jsonl"
        ranks = start(2, [BENCH, *FEW, "-J", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                      preexec_fn=within(CORES[:1]))
        for process in ranks.values():
            said = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, said)
        conditions = json.loads(out.read_text())["conditions"]
        self.assertEqual((conditions["cores"], conditions["busy_threads"], conditions["oversubscribed"]), (1, 2, True))

    def test_a_quota_of_a_group_below_the_root_counts(self):
        group = CPU / f"baton-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            self.skipTest("no control groups of version 1 that this user may make")
        self.addCleanup(group.rmdir)
        (group / "cpu.cfs_quota_us").write_text("150000")
        enter = lambda: (group / "cgroup.procs").write_text("0")  # noqa: E731
        self.assertEqual(self.counted(preexec_fn=enter), 1)
        conditions, said = self.conditions(preexec_fn=enter)
        self.assertEqual((conditions["quota"], conditions["oversubscribed"]), (1.5, True))
        self.assertIn("(quota)", " ".join(said.split()))


if __name__ == "__main__":
    unittest.main()
