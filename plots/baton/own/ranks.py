# SPDX-License-Identifier: Apache-2.0
"""The ranks of a program in Python on this host, for a bench that starts launches: it runs this file.

    python3 ranks.py COUNT PROGRAM... RANKS BENCH_ARGUMENTS... --worker FOLDER       COUNT words of the program

Each rank is the program as the user started it, which finds its number in torchrun's variables and the folder in
BATON_WORKER. What it prints goes to the standard error: the bench has the standard output for its table.
"""

import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

GRACE_SECONDS = 10  # in which the others end by themselves when one has failed
PATIENCE_SECONDS = 30  # in which they end when one has ended well before all have met


def launcher():
    """The words by which a bench starts the ranks of this program: their number and the bench's words follow."""
    program = [sys.executable, *sys.orig_argv[1:]]
    return [sys.executable, os.path.abspath(__file__), str(len(program)), *program]


def main(arguments):
    """Runs the ranks and returns the exit code."""
    words = int(arguments[0]) + 1
    program, size, folder = arguments[1:words], int(arguments[words]), arguments[-1]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    return run(program, size, {**os.environ, "BATON_WORKER": folder}, pathlib.Path(folder) / "messages")


def run(program, size, environment, messages):
    """Runs the program once for each rank, alone if there are none. Returns the exit code of one that failed, or 0, and
    reports a rank that a signal ended to the file of `messages`."""
    shared = {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _free_port(),
              "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", 1), "BATON_LAUNCH": "tcp"}
    processes = []
    try:
        for rank in range(max(size, 1)):
            own = {name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()} if size else {}
            processes.append(subprocess.Popen(program, env={**environment, **own}, stdout=sys.stderr, start_new_session=True))
        said = _size(messages)
        return first_failure(processes, lambda rank, code: report(messages, rank, code), lambda: _size(messages) > said)
    finally:
        for process in processes:  # and what it has started itself
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def report(messages, rank, code):
    """Tells the bench of a rank that died, or that ended well while others run, in the words of its own reports."""
    text = f"died of {signal.Signals(-code).name}" if code < 0 else "ended before the others" if code == 0 else ""
    if text:
        said = {"what": "", "rank": rank, "text": text}
        with open(messages, "a", encoding="utf-8") as file:
            file.write(json.dumps(said, separators=(",", ":")) + "\n")


def _free_port():
    """A free port below those that the system gives to connections, so that it is still free when rank 0 listens there."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("", port))
            return port


def _size(path):
    return path.stat().st_size if path.exists() else 0


def first_failure(processes, tell, have_met):
    """Waits for all of them, or until GRACE_SECONDS after one has failed, or PATIENCE_SECONDS after one has ended well
    while they `have_met` not. Returns the exit code of the lowest rank that has failed, or 1 if some never ended, else 0.
    Tells the rank and the code of the one that it did not wait for any longer."""
    ended = failed = None  # when
    while None in (codes := [process.poll() for process in processes]):
        now = time.monotonic()
        if ended is None and any(code is not None for code in codes):
            ended = now
        if failed is None and any(codes):
            failed = now
            tell(*next((rank, code) for rank, code in enumerate(codes) if code))
        if (failed and now > failed + GRACE_SECONDS) or (ended and now > ended + PATIENCE_SECONDS and not have_met()):
            break
        if ended:
            time.sleep(0.02)
        else:  # asleep: the ranks are measured
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    if None in codes and not any(codes):
        tell(codes.index(0), 0)
        return 1
    code = next(filter(None, codes), 0)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
