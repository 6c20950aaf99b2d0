# SPDX-License-Identifier: Apache-2.0
"""Slurm with its real daemons on hosts of hosts.py: one munged, slurmctld on the first host, slurmd on each."""

import glob
import os
import shutil
import subprocess
import time

import hosts

TOOLS = ("munged", "munge", "slurmctld", "slurmd", "srun", "sbatch", "sinfo")
STARTS = 3  # munged was once alive and deaf from its start on, so a deaf one is started again
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
        end(getattr(self, "_daemons", []))
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
        self._daemons = [self._munged()]
        self._daemons.append(self._daemon(self.on(0, self.words("slurmctld", "-D", "-c"))))
        self._daemons += [self._daemon(self.on(host, self.words("slurmd", "-D", "-N", f"host{host}"))) for host in range(self.count)]
        if not self._comes(lambda: self._idle_hosts() == str(self.count), 60):
            raise RuntimeError("Slurm did not start:\n" + "".join(self._logs()))

    def _munged(self):
        """A daemon of munge that answers."""
        socket = self.folder + "/munge.socket"
        command = ["setpriv", "--pdeathsig", "TERM", "munged", "--foreground", "--force", "--socket", socket, "--key-file",
                   self.folder + "/munge.key", "--pid-file", self.folder + "/munge.pid", "--log-file", self.folder + "/munge.log",
                   "--seed-file", self.folder + "/munge.seed", "--num-threads", "2"]
        for _ in range(STARTS):
            daemon = self._daemon(command)
            if self._comes(lambda: answer(["munge", "--no-input", "--socket", socket]), 20):
                return daemon
            end([daemon])
        raise RuntimeError("munged does not answer:\n" + "".join(self._logs()))

    def _idle_hosts(self):
        return answer(self.on(0, self.words("sinfo", "-h", "-t", "idle", "-o", "%D")))

    def _daemon(self, command):
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _comes(self, condition, seconds):
        """Whether a condition comes true within so many seconds."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def _logs(self):
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(f"{self.folder}/{name}") as file:
                    yield f"{name}: {''.join(file.readlines()[-10:])}\n"


def answer(command):
    """What a command prints; empty if it fails or takes 10 s."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def end(daemons):
    """Ends processes, those that ignore it after 10 s by force."""
    for daemon in daemons:
        daemon.terminate()
    for daemon in daemons:
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
