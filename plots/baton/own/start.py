# SPDX-License-Identifier: Apache-2.0
"""A program that declares natives or methods: the bench that it is, its ranks, and the compiled part."""

import os
import pathlib
import re
import sys

from baton.own import devices, ranks
from baton.frames import Error

PACKAGE = pathlib.Path(__file__).parents[1]
# What a program runs beside what it declares unless it says so: of scans, linear and softmax attention.
RIVALS = ["all_scan"]
RIVALS_OF_LINEAR = ["local", "zeco", "lasp2"]
RIVALS_OF_SOFTMAX = ["ring_attention_softmax", "ulysses_softmax"]
ANSWERED_AT_ONCE = ("--list", "--help", "--version")

natives = []  # their names, in the order of their declarations
methods = {}  # the words of their attentions by their names


def main(arguments=None):
    """Runs the bench of what this program declares with these arguments, or those of the program, and ends the program with
    its exit code: collective_bench for natives, operator_bench for methods, and the one that has --collectives or
    --methods if there are both.

    Without these two it runs what the program declares beside rivals of Baton's. Starts the ranks first, as start_ranks does.
    """
    start_ranks(arguments)
    _run_bench(arguments)


def start_ranks(arguments=None):
    """Returns if this is a rank: one that the bench started, or torchrun or another launcher. Else this process is the
    bench: it starts launches of this program on this host, prints their rows, and ends.

    To be called after the declarations, and before anything that needs the ranks, such as torch.distributed.
    """
    if harness().is_launched() or "BATON_WORKER" in os.environ:
        return
    if sys.argv[0] in ("", "-"):
        sys.exit("baton: a program from the standard input cannot be started again as ranks: give it a file")
    _run_bench(arguments)


def harness():
    """The compiled part of the package."""
    lacking = _instructions_lacking()
    if lacking:
        raise ImportError(f"this package was built for a processor that has {', '.join(lacking)}, and this one lacks them: "
                          "build it here by ./run wheel")
    try:
        from baton import _harness as module  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise ImportError(f"natives and methods need the compiled part of the package, which ./run wheel builds: {error}") from None
    devices.load()
    return module


def _instructions_lacking(needed=PACKAGE / "instructions.txt", processor=pathlib.Path("/proc/cpuinfo")):
    """The instructions that the compiled part has and this processor lacks."""
    if not needed.exists() or not processor.exists():
        return []
    flags = re.search(r"^flags\s*:(.*)$", processor.read_text(encoding="utf-8"), re.MULTILINE)
    has = flags[1].replace("_", "").split() if flags else []
    return [word for word in needed.read_text(encoding="utf-8").split(";") if word and word not in has]


def _run_bench(arguments):
    """Ends the program with the exit code of the bench: as the process that starts launches, or as a rank of one."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    bench = _bench(arguments)
    words = [*arguments, *_unless_given(bench, arguments)]
    if devices.missing and {"nccl", "peer"} & set(",".join(words).replace("=", ",").split(",")):
        print(f"baton: executors of GPUs are not there: {devices.missing}", file=sys.stderr)
    if "BATON_WORKER" in os.environ:
        words += ["--worker", os.environ["BATON_WORKER"]]
    sys.stdout.flush()
    code = harness().run(bench, [sys.argv[0], *words], ranks.launcher())
    if code == 0:
        _leave_torch()
    sys.exit(code)


def _leave_torch():
    """Ends torch's process group, whose threads may end the program by a signal where they outlive the interpreter."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def _has(arguments, *flags):
    return any(word.split("=")[0] in flags for word in arguments)


def _bench(arguments):
    for flag, bench in (("--collectives", "collective"), ("--methods", "operator")):
        if _has(arguments, flag):
            return bench
    if natives and methods and not _has(arguments, *ANSWERED_AT_ONCE):
        raise Error("this program declares natives and methods: --collectives or --methods says what to run")
    return "operator" if methods else "collective"


def _unless_given(bench, arguments):
    """The words of what to run, for arguments that do not say it."""
    if _has(arguments, "--collectives", "--methods", *ANSWERED_AT_ONCE):
        return []
    if bench == "collective":
        return ["--collectives", ",".join([*RIVALS, *natives])]
    given = _value(arguments, "--attention")
    asked = given.split(",") if given else next(iter(methods.values()))[:1]
    names = [name for name, words in methods.items() if set(words) & set(asked)] or list(methods)
    if asked == ["softmax"]:
        return ["--methods", ",".join([*RIVALS_OF_SOFTMAX, *names])]
    attention = [] if given else ["--attention", *asked]
    return ["--methods", ",".join([*RIVALS_OF_LINEAR, *names]), *attention]


def _value(arguments, flag):
    """What follows a flag; empty if the arguments lack it."""
    for word, then in zip(arguments, [*arguments[1:], ""]):
        if word == flag:
            return then
        if word.startswith(f"{flag}="):
            return word.removeprefix(f"{flag}=")
    return ""
