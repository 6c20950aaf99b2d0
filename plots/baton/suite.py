# SPDX-License-Identifier: Apache-2.0
"""What `./run bench` measures, and how: part by part, since ./run builds each bench just before its launches.

Each line of arguments runs in three launches or more, as many as fit into its --for. The suite fits the machine: its
GPUs, or the cores that this shell may use where there are none.
"""

import argparse
import collections
import contextlib
import pathlib
import signal
import subprocess
import sys

from baton import checks, grow
from baton.report import sessions, trace_runs

RESULTS = pathlib.Path("results/local")
LOGS = pathlib.Path("build/log")
CALIBRATION, MACHINE = RESULTS / "calibration.json", RESULTS / "machine.json"
GPU_CALIBRATION = RESULTS / "gpu_calibration.json"
GPU_LINKS = "topologies/dgx-h100-32x8.json"  # those of the GPUs that one GPU stands for
CALIBRATING_SECONDS = 30

COLLECTIVE, OPERATOR, MODEL = BENCHES = ("collective_bench", "operator_bench", "model_bench")
RECORDS = {COLLECTIVE: "collectives.jsonl", OPERATOR: "operators.jsonl", MODEL: "models.jsonl"}
MAIN_SCANS = "all_scan,ring_scan,all_gather_scan,recursive_doubling,two_shot"
MAIN_METHODS = "zeco,lasp1,lasp2,local"
GPU_LAYER = "--dtype bf16 --tokens 16384 --heads 16"
SIMULATED_RANKS = "2,4,8,16,32,64,128,256"

USAGE, SKIPPED, INTERRUPTED = 2, 6, 130  # exit codes of a bench: it refused its arguments; all its rows were skipped; Ctrl-C
KEPT = (0, 3, 4, 5, SKIPPED, INTERRUPTED)  # those of a launch that has kept what it had measured

Machine = collections.namedtuple("Machine", "cores gpus")


class Stopped(Exception):
    """No further launch makes sense, and `code` is the exit code to end with."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


# --- The lines ------------------------------------------------------------------------------------------


def powers_of_two(most):
    """Returns the powers of two from 2 to a number, at least 2."""
    return [2**power for power in range(1, max(2, most).bit_length())]


def listed(numbers):
    return ",".join(map(str, numbers))


def of_collective_bench(machine):
    """Every exchange over few ranks at the paper's shape; the main ones over more ranks, and over sizes. A rank of an
    exchange keeps one core busy. All-gathers among many ranks would take most of the time."""
    if machine.gpus:
        if machine.gpus > 1:
            yield (f"--executor peer,nccl --collectives all --ranks {listed(powers_of_two(machine.gpus))} -b 128K -e 32M -f 16 "
                   "--tokens 256 --cadence isolated,graph --baseline all_gather_scan --for 135")
        return
    few, many = powers_of_two(min(machine.cores, 8)), powers_of_two(machine.cores)
    yield f"--collectives all --ranks {listed(few)} --tokens 512 --baseline all_gather_scan --for 30"
    if machine.cores >= 16:
        yield f"--collectives {MAIN_SCANS} --ranks {listed(many[3:])} --baseline all_gather_scan --for 60"
    yield f"--collectives {MAIN_SCANS} --ranks {many[-1]} -b 64K -e 16M -f 4 --baseline all_gather_scan --for 45"


def of_operator_bench(machine):
    """The papers' methods with few tokens; all passes and modes of every method. A rank keeps two cores busy, or the one it has.

    On GPUs the papers' methods with many tokens, and the work of one GPU: in each kind of layer where there is only one,
    else in gated linear layers, which the simulator needs.
    """
    layers = f"--methods {MAIN_METHODS} --baseline local --mode all"
    if machine.gpus:
        alone = machine.gpus == 1
        if not alone:
            yield f"--executor peer {layers} --ranks {listed(powers_of_two(machine.gpus))} {GPU_LAYER} --for 130"
        yield (f"--executor nccl --methods local --attention linear{',gdn,kda' * alone} --pass forward,both --ranks 1 "
               f"{GPU_LAYER} --topology {GPU_LINKS} --calibrate {GPU_CALIBRATION} --for {45 if alone else 25}")
        if alone:
            yield f"--executor nccl --methods ring_attention_softmax --pass forward,both --ranks 1 {GPU_LAYER} --for 20"
        return
    ranks = powers_of_two(machine.cores // 2)
    rounds = "" if machine.cores >= 4 else "--rounds 30 "  # for an answer within minutes
    yield f"{layers} --tokens 512 --heads 4 --ranks {listed(ranks)} --for 45"
    yield f"--methods all --tokens 256 --heads 4 {rounds}--ranks {ranks[-1]} --baseline local --for 45"


def of_model_bench(machine):
    """A small model, forward and backward, under the papers' methods; on GPUs a block of a model of 1.3 billion weights."""
    if machine.gpus:
        asked = "--executor nccl --methods zeco --lines dp --ranks 1 --for 30" if machine.gpus == 1 else \
            f"--executor peer --methods zeco,lasp1,lasp2 --lines dp,full --ranks {powers_of_two(machine.gpus)[-1]} --for 120"
        yield f"{asked} --model gla-1b-h16 --layers 1 --tokens 16384 --rounds 20"
        return
    ranks = powers_of_two(min(machine.cores // 2, 8))
    yield f"--methods zeco,lasp1,lasp2 --tokens 128 --rounds 10 --ranks {ranks[-1]} --for 10"


LINES = {COLLECTIVE: of_collective_bench, OPERATOR: of_operator_bench, MODEL: of_model_bench}


def calibrating(machine):
    """One launch that measures links and kernels for the simulator."""
    return (f"--methods {MAIN_METHODS} --tokens 512 --heads 4 --ranks {2 if machine.cores < 8 else 8} "
            f"--calibrate {CALIBRATION} --launches 1 -J /dev/null")


def simulated(bench, machine):
    """More ranks than the machine has: GPUs like its own on the links of another machine, or cores from its calibration."""
    what = {COLLECTIVE: f"--collectives {MAIN_SCANS} --baseline all_gather_scan -J {RESULTS}/simulated_collectives.jsonl",
            OPERATOR: f"--methods {MAIN_METHODS} --baseline local -J {RESULTS}/simulated_operators.jsonl"}[bench]
    shape = "--tokens 512" if bench == COLLECTIVE else GPU_LAYER if machine.gpus else "--tokens 512 --heads 4"
    topology = GPU_CALIBRATION if machine.gpus else MACHINE
    return f"--executor simulator --topology {topology} --ranks {SIMULATED_RANKS} {shape} --launches 1 {what}"


def how_long(machine):
    lines = [line.split() for bench in BENCHES for line in LINES[bench](machine)]
    seconds = sum(int(words[words.index("--for") + 1]) for words in lines)
    seconds += CALIBRATING_SECONDS
    return f"      measuring takes about {seconds // 60} min {seconds % 60} s after the build, on {describe(machine)}"


def describe(machine):
    """The GPUs of a machine, or its cores."""
    return f"{machine.gpus} GPU{'s' * (machine.gpus > 1)}" if machine.gpus else f"{machine.cores} core{'s' * (machine.cores > 1)}"


# --- Launches -------------------------------------------------------------------------------------------


class Launcher:
    """Runs the benches of a folder, whose records are all of one session. `outcome` is the exit code to end with."""

    def __init__(self, programs, session):
        self.programs, self.session, self.outcome = programs, session, 0

    def launch(self, bench, arguments, out=None):
        """Runs one launch, and keeps its exit code as the outcome unless it is 0.

        Records go to a file of the bench in results/local unless the arguments name another. A launch with failed, wrong or
        interrupted cases has kept the others. Throws Stopped after Ctrl-C, and if a launch has kept nothing.
        """
        records = [] if names_records(arguments) else ["-J", str(RESULTS / RECORDS[bench])]
        sys.stdout.flush()
        with self.without_interrupts():
            status = subprocess.run([self.programs / bench, *arguments, *records, "--session", self.session], stdout=out,
                                    check=False).returncode
        if status == 0:
            return
        status = status if status > 0 else 128 - status
        if status != USAGE:  # which says itself what is wrong, and had measured nothing
            print(f"run: {bench} ended with status {status}; what it had measured is kept", file=sys.stderr)
        self.outcome = status
        if status not in KEPT or status == INTERRUPTED:
            raise Stopped(status)

    @staticmethod
    @contextlib.contextmanager
    def without_interrupts():
        """Ctrl-C, and what ./run makes of it, reach the bench, which ends in good order; this program then goes on to what
        there is."""
        before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def launch_all(self, bench, lines, out=None):
        """Runs lines of a suite. Rows that cannot run here, all of a launch's too, are no failure."""
        for line in lines:
            print(f"      {bench} {line}", file=out or sys.stdout, flush=True)
            arguments = line.split() if "--launches" in line else ["--launches", "3", *line.split()]
            before = self.outcome
            self.launch(bench, arguments, out)
            if self.outcome == SKIPPED:
                self.outcome = before

    def logged(self, name, bench, line):
        """Runs one line of a suite, with its output in a log."""
        with open(LOGS / f"{name}.log", "w", encoding="utf-8") as log:
            self.launch_all(bench, [line], log)

    def trace_ends(self):
        """One more round of the fastest and of the slowest row of the answer, with the time of each step, for the page. A
        trace that fails costs the run nothing."""
        try:
            found = sessions.read([RESULTS], self.session)
        except checks.ResultsError:  # nothing was measured
            return
        before = self.outcome
        with open(LOGS / "traces.log", "w", encoding="utf-8") as log:
            for bench, words in (run for session in found for run in trace_runs.wanted(session)):
                try:
                    self.launch(bench, [*words, "--launches", "1", "-J", "/dev/null"], log)
                except Stopped as stopped:
                    if stopped.code == INTERRUPTED:
                        raise
        self.outcome = before

    def go_beyond(self, machine):
        """Traces the ends of the answer, calibrates, and simulates more ranks than there are here."""
        self.trace_ends()
        if not machine.gpus:
            self.logged("calibrating", OPERATOR, calibrating(machine))
            if has_content(CALIBRATION):
                grow.main([str(CALIBRATION), "--out", str(MACHINE)])
        if has_content(GPU_CALIBRATION if machine.gpus else MACHINE):
            for bench in (COLLECTIVE, OPERATOR):
                self.logged(f"simulated-{bench}", bench, simulated(bench, machine))


def has_content(path):
    return path.exists() and path.stat().st_size > 0


def names_records(arguments):
    """True if the arguments of a bench name the file of the records."""
    return any(word.startswith("-J") or word == "--json" or word.startswith("--json=") for word in arguments)


def is_idle(arguments):
    """True if the arguments of a bench measure nothing."""
    idle = ("-h", "--help", "--version", "--list", "--schema", "--dry-run")
    return any(word in idle or word.startswith("--benchmark_list_tests") for word in arguments)


def leaves_records(arguments):
    """True if the arguments of a bench measure something and leave records in results/local."""
    return not is_idle(arguments) and not names_records(arguments)


def in_launches(arguments):
    """The arguments of a bench with three launches, which an interval needs, unless they say how many or want one."""
    flags = {word.partition("=")[0] for word in arguments}
    counted, of_one = {"--launches", "--for", "--stop-at"}, {"--trace", "--export", "--calibrate"}
    if is_idle(arguments) or flags & (counted | of_one) or "simulator" in " ".join(arguments):
        return arguments
    return [*arguments, "--launches", "3"]


# --- The command ----------------------------------------------------------------------------------------


def main(words):
    options = options_of(words)
    machine = Machine(options.cores, options.gpus)
    if options.part == "minutes":
        return print(how_long(machine))
    if options.part == "leaves":
        return 0 if leaves_records(options.arguments) else 1
    parts = {"beyond": lambda launcher: launcher.go_beyond(machine),
             "launch": lambda launcher: launcher.launch(options.arguments[0], in_launches(options.arguments[1:]))}
    return run(options, parts.get(options.part, lambda launcher: launcher.launch_all(options.part, LINES[options.part](machine))))


def run(options, work):
    """Calls `work` with a launcher, and returns the exit code to end with."""
    for folder in (RESULTS, LOGS):
        folder.mkdir(parents=True, exist_ok=True)
    launcher = Launcher(options.programs, options.session)
    try:
        work(launcher)
    except Stopped as stopped:
        return stopped.code
    except checks.ResultsError as error:  # of a calibration that cannot be used
        print(f"run: {error}", file=sys.stderr)
    return launcher.outcome


def parser_of(name, about):
    """Returns the parser of a command that measures, with the flags that all of them take."""
    parser = argparse.ArgumentParser(prog=f"baton {name}", description=about.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--programs", type=pathlib.Path, metavar="DIR", help="where the benches are")
    parser.add_argument("--session", metavar="S", help="of all records")
    parser.add_argument("--cores", type=int, default=1, metavar="N")
    parser.add_argument("--gpus", type=int, default=0, metavar="N")
    return parser


def options_of(words):
    parser = parser_of("suite", __doc__)
    parser.add_argument("part", choices=("minutes", *BENCHES, "beyond", "launch", "leaves"), metavar="PART",
                        help="minutes: say how long; a bench: its lines; beyond: trace, calibrate, simulate; launch BENCH ARGS: one "
                        "run of a bench; leaves ARGS: end with 0 if they leave records in results/local")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(words)
