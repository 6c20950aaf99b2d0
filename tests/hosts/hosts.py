# SPDX-License-Identifier: Apache-2.0
"""Hosts on one machine: namespaces with a name, processes, a network card and a clock of their own, joined by a switch.

    with Hosts(4) as hosts:
        hosts.run(hosts.mpirun(8, slots=2) + [BENCH, ...])
    python3 hosts.py COUNT COMMAND...        the same from a shell; {0} in COMMAND is the hostfile

Each host is a process that `unshare` starts, and lives as long as it does. It dies with the process that made it, and
the kernel then takes away its namespaces with all that is in them, whatever ended that process. The links have
10 Gbit/s, and 50 us of delay where the kernel can delay packets (netem).
"""

import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent.py")
TOOLS = ("ip", "tc", "unshare", "nsenter", "setpriv", "mpirun")
DELAY_US, GBIT = 50, 10
# Open MPI's launcher notices a link that is cut after some seconds, in place of minutes.
KEEPALIVE = ["--mca", "oob_tcp_keepalive_time", "4", "--mca", "oob_tcp_keepalive_intvl", "2", "--mca",
             "oob_tcp_keepalive_probes", "2"]


def missing():
    """Why no hosts can be made here, in one line; empty if they can."""
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    if lacking:
        return f"no hosts here: {', '.join(lacking)} not found"
    tried = subprocess.run(["unshare", "--net", "--uts", "--pid", "--mount", "--fork", "ip", "link", "add", "veth1", "type",
                            "veth", "peer", "name", "veth2"], capture_output=True, text=True, timeout=60)
    return "" if tried.returncode == 0 else f"no hosts here: {(tried.stderr.strip().splitlines() or ['unshare failed'])[0]}"


def skip_if(why):
    """Ends a test that CTest then counts as skipped."""
    if why:
        print(why)
        sys.exit(77)


class Hosts:
    """`count` hosts called host0, host1, ...; the clock of host i is `clock_steps[i]` seconds ahead of this machine's."""

    def __init__(self, count, clock_steps=()):
        self.count = count
        self.clock_steps = list(clock_steps) + [0] * (count - len(clock_steps))
        self.delay_us = 0

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="baton-hosts-", dir="/var/tmp")  # that all hosts see
        self.folder = self._folder.name
        try:
            with open(self.folder + "/hosts", "w") as names:
                names.write("127.0.0.1 localhost\n" + "".join(f"{self.address(i)} host{i}\n" for i in range(self.count)))
            self._switch = self._start("switch", ("--net",))
            self._in(self._switch, "ip link add switch type bridge && ip link set switch up")
            self._inits = [self._host(i) for i in range(self.count)]
            self._listen()
            self.delay_us = DELAY_US if all([self._shape(i) for i in range(self.count)]) else 0
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if hasattr(self, "_agents"):
            self._agents.shutdown(socket.SHUT_RDWR)  # ends the wait for agents
            self._agents.close()
        for process in getattr(self, "_starters", {}).values():
            process.kill()  # its host dies with it
            process.wait()
        deadline = time.monotonic() + 10
        while any(os.path.exists(f"/proc/{init}") for init in getattr(self, "_inits", [])) and time.monotonic() < deadline:
            time.sleep(0.01)
        self._folder.cleanup()

    def address(self, host):
        return f"10.77.0.{host + 1}"  # in networks that nothing else sees

    def run(self, command, host=0, **options):
        """Runs `command`, a list of words, on a host."""
        return subprocess.run(self.on(host, command), capture_output=True, text=True, timeout=options.pop("timeout", 240),
                              **options)

    def start(self, command, host=0):
        return subprocess.Popen(self.on(host, command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True)

    def on(self, host, command):
        return ["nsenter", "-t", str(self._inits[host]), "-a", *command]

    def mpirun(self, processes, slots, *more):
        """The words that start `processes` ranks, `slots` on each host."""
        with open(self.folder + "/hostfile", "w") as file:
            file.writelines(f"host{i} slots={slots}\n" for i in range(self.count))
        return ["env", f"BATON_HOSTS={self.folder}", "mpirun", "--allow-run-as-root", "--hostfile", self.folder + "/hostfile",
                "-n", str(processes), "--bind-to", "none", "--map-by", "slot", "--mca", "plm_rsh_agent", AGENT, "--mca",
                "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0", "--mca", "mpi_yield_when_idle", "1", *KEEPALIVE, *more]

    def processes(self, host):
        """The processes of a host by their numbers on this machine, but for those that are the host."""
        own = {self._inits[host], self._starters[f"host{host}"].pid}
        namespace = os.readlink(f"/proc/{self._inits[host]}/ns/uts")
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{entry}/ns/uts") == namespace and int(entry) not in own:
                    found.append(int(entry))
            except OSError:
                pass
        return found

    def ranks(self, host):
        """The ranks on a host: a dictionary from rank to process."""
        ranks = {}
        for process in self.processes(host):
            try:
                with open(f"/proc/{process}/environ", "rb") as file:
                    variables = dict(pair.split(b"=", 1) for pair in file.read().split(b"\0") if b"=" in pair)
            except OSError:
                continue
            rank = variables.get(b"OMPI_COMM_WORLD_RANK", variables.get(b"PMIX_RANK"))
            if rank is not None:
                ranks[int(rank)] = process
        return ranks

    def kill(self, host):
        """Kills all processes of a host. The host stays."""
        for process in self.processes(host):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def cut(self, host):
        """Takes the link of a host away."""
        self._in(self._switch, f"ip link set port{host} down")

    def _start(self, name, kinds):
        """A process in namespaces of its own that sleeps. Returns its number on this machine."""
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", *kinds, "--fork", "--kill-child", "sh", "-c",
                   f"echo up > {self.folder}/{name}.up; exec sleep 86400"]
        if not hasattr(self, "_starters"):
            self._starters = {}
        self._starters[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not os.path.exists(f"{self.folder}/{name}.up"):
            if time.monotonic() > deadline or self._starters[name].poll() is not None:
                raise RuntimeError(f"{name} did not start: {shlex.join(command)}")
            time.sleep(0.01)
        with open(f"/proc/{self._starters[name].pid}/task/{self._starters[name].pid}/children") as file:
            return int(file.read().split()[0])

    def _host(self, number):
        step = self.clock_steps[number]
        clock = ("--time", "--monotonic", str(step)) if step else ()
        init = self._start(f"host{number}", ("--net", "--uts", "--ipc", "--pid", "--mount", "--mount-proc", *clock))
        self._in(self._switch, f"ip link add port{number} type veth peer name eth0 netns {init}"
                               f" && ip link set port{number} master switch up")
        self._in(init, f"hostname host{number} && mount --bind {self.folder}/hosts /etc/hosts && mount -t tmpfs none /dev/shm"
                       f" && {self._empty_tmp()} && ip link set lo up && ip addr add {self.address(number)}/24 dev eth0 && ip link set eth0 up")
        return init

    def _empty_tmp(self):
        """The command that gives a host a /tmp of its own, in which a project that lies there stays to be seen."""
        empty = "mount -t tmpfs none /tmp"
        if pathlib.Path("/tmp") not in ROOT.parents:
            return empty
        seen = f"{self.folder}/project"
        os.makedirs(seen, exist_ok=True)
        return f"mount --bind {ROOT} {seen} && {empty} && mkdir -p {ROOT} && mount --bind {seen} {ROOT}"

    def _shape(self, number):
        """Sets rate and delay of a host's card. Returns whether the kernel can delay."""
        init = self._inits[number]
        delays = self._in(init, f"tc qdisc add dev eth0 root netem delay {DELAY_US}us rate {GBIT}gbit limit 100000 2>/dev/null",
                          required=False)
        if not delays:
            self._in(init, f"tc qdisc add dev eth0 root tbf rate {GBIT}gbit burst 128kb latency 20ms")
        return delays

    def _listen(self):
        """Serves agent.py."""
        self._agents = socket.socket(socket.AF_UNIX)
        self._agents.bind(self.folder + "/agent")
        self._agents.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                agent, _ = self._agents.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._run_for, args=(agent,), daemon=True).start()

    def _run_for(self, agent):
        with agent:
            text, streams, _, _ = socket.recv_fds(agent, 1 << 16, 3)
            name, command = text.decode().split("\n", 1)
            on_host = self.on(int(name.removeprefix("host")), ["sh", "-c", command])
            process = subprocess.Popen(on_host, stdin=streams[0], stdout=streams[1], stderr=streams[2])
            for stream in streams:
                os.close(stream)
            code = process.wait() & 255
            with contextlib.suppress(BrokenPipeError):  # the agent may have gone
                agent.sendall(str(code).encode())

    def _in(self, process, command, required=True):
        done = subprocess.run(["nsenter", "-t", str(process), "-a", "sh", "-c", command], capture_output=True, text=True,
                              timeout=60)
        if required and done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stderr.strip()}")
        return done.returncode == 0


def main():
    count, command = int(sys.argv[1]), sys.argv[2:]
    with Hosts(count) as hosts:
        hosts.mpirun(count, 1)
        words = [word.replace("{0}", hosts.folder + "/hostfile") for word in command]
        sys.exit(subprocess.run(hosts.on(0, ["env", f"BATON_HOSTS={hosts.folder}", *words])).returncode)


if __name__ == "__main__":
    main()
