# SPDX-License-Identifier: Apache-2.0
"""Slurm with its real daemons on hosts of hosts.py: one munged, slurmctld on the first host, slurmd on each."""

import glob
import os
import shutil
import subprocess
import time

import hosts

TOOLS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo")
CONFIG = """ClusterName=baton
SlurmctldHost=host0
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
NodeName=host[0-{last}] CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Why there is no Slurm here, in one line; empty if there is."""
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    lacking += [] if glob.glob("/usr/lib/*/slurm*/mpi_pmix.so") else ["its plugin pmix"]
    return hosts.missing() or (f"no Slurm here: {', '.join(lacking)} not found" if lacking else "")


class Slurm(hosts.Hosts):
    def __enter__(self):
        super().__enter__()
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in getattr(self, "_daemons", []):
            daemon.terminate()
            daemon.wait()
        super().__exit__()

    def words(self, *command):
        """A command of Slurm for `run` and `start`. All hosts have the same cores, so that ranks that wait yield them."""
        return ["env", f"SLURM_CONF={self.folder}/slurm.conf", "OMPI_MCA_btl_tcp_if_include=eth0", "OMPI_MCA_mpi_yield_when_idle=1",
                *command]

    def _begin(self):
        os.chmod(self.folder, 0o755)
        os.mkdir(self.folder + "/state")
        with open(self.folder + "/munge.key", "wb") as key:
            key.write(os.urandom(128))
        os.chmod(self.folder + "/munge.key", 0o600)
        with open(self.folder + "/slurm.conf", "w") as config:
            config.write(CONFIG.format(folder=self.folder, last=self.count - 1, cpus=os.cpu_count()))
        munged = ["munged", "--foreground", "--force", "--socket", self.folder + "/munge.socket", "--key-file",
                  self.folder + "/munge.key", "--pid-file", self.folder + "/munge.pid", "--log-file", self.folder + "/munge.log",
                  "--seed-file", self.folder + "/munge.seed", "--num-threads", "2"]
        self._daemons = [self._daemon(["setpriv", "--pdeathsig", "TERM", *munged])]
        self._wait(lambda: os.path.exists(self.folder + "/munge.socket"))
        self._daemons.append(self._daemon(self.on(0, self.words("slurmctld", "-D", "-c"))))
        self._daemons += [self._daemon(self.on(host, self.words("slurmd", "-D", "-N", f"host{host}"))) for host in range(self.count)]
        self._wait(lambda: self.run(self.words("sinfo", "-h", "-t", "idle", "-o", "%D")).stdout.strip() == str(self.count))

    def _daemon(self, command):
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _wait(self, condition, seconds=40):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError("Slurm did not start:\n" + "".join(self._logs()))
            time.sleep(0.1)

    def _logs(self):
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(f"{self.folder}/{name}") as file:
                    yield f"{name}: {''.join(file.readlines()[-10:])}\n"
