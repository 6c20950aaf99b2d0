# SPDX-License-Identifier: Apache-2.0
"""Made-up sessions for the tests of report/, and ways to have them answered."""

import pathlib

from baton.report import answer, layout, sessions
from plots import example

STEADY = (1.0, 1.01, 0.99)  # how the launches of a session differ, all rows of a launch alike
SIMULATED_ON = "somewhere-32x8"


def launches(made, factors=STEADY, **changes):
    """Launches of one case: the record's times, times each factor."""
    return [timed({**made, "launch": number, "launches": len(factors), **changes}, made["median_seconds"] * factor)
            for number, factor in enumerate(factors, start=1)]


def timed(made, seconds):
    return {**made, "median_seconds": seconds, "mean_seconds": seconds, "seconds": [seconds] * 2,
            "ci95_seconds": [0.9 * seconds, 1.1 * seconds]}


def jitter(by, factors=STEADY):
    """The launches' factors, moved by up to this share so that two rows are not alike in each launch."""
    return tuple(factor * (1 + step * by) for factor, step in zip(factors, (1, -1, 0.3, -0.4, 0.7)))


def scan(name="all_scan", microseconds=100.0, noise=0.0, factors=STEADY, **changes):
    """The launches of an exchange on processors with cores enough."""
    made = example.record(name, milliseconds=microseconds / 1e3, machine=machine(64), **changes)
    return launches(made, jitter(noise, factors))


def gpu_scan(name="all_scan_fused", microseconds=10.0, noise=0.0, factors=STEADY, **changes):
    return launches(example.on_gpus(name, microseconds=microseconds, machine=machine(64), **changes),
                    jitter(noise, factors))


def layer(name="zeco", milliseconds=1.0, noise=0.0, factors=STEADY, **changes):
    made = example.layer(name, milliseconds=milliseconds, **{"machine": machine(64), **changes})
    return launches(made, jitter(noise, factors))


def local(milliseconds=1.0, noise=0.0, factors=STEADY, **changes):
    return layer("local", milliseconds, noise, factors, **{"mode": "compute_only", "scan": "", **changes})


def simulated(made):
    """The same case in the simulator: one launch of one round."""
    return [{**made[0], "executor": "simulator", "topology": SIMULATED_ON, "rounds": 1, "warmup": 0,
             "seconds": made[0]["seconds"][:1]}]


def crowded(made, cores):
    """The same records of a machine with so many cores."""
    return [{**one, "machine": machine(cores)} for one in made]


def with_conditions(made, cores=64, busy=4, load=0.0, **more):
    conditions = {"cores": cores, "busy_threads": busy, "oversubscribed": busy > cores, "other_load": load, **more}
    return [{**one, "conditions": conditions} for one in made]


def failed(name="ring_scan", reason="exceeded its limit of 60 s", **changes):
    return [{**example.untimed(example.record(name, machine=machine(64), **changes), "")} | {"failed": reason}]


def machine(cores):
    return {"cpu": "Example CPU", "cores": cores, "host": "h"}


def session(*groups):
    """The newest session of these records, as it is read from a file."""
    records = example.read(record for group in groups for record in group)
    return sessions.Session("s", pathlib.Path("r.jsonl"), records)


def answer_text(*groups):
    """The answer as one line, without the breaks that the width of a terminal makes."""
    return " ".join(" ".join(answer.lines(session(*groups))).split())


def paragraphs(*groups):
    """{heading: text} of the answer."""
    found, heading = {}, ""
    for line in answer.lines(session(*groups)):
        heading = line[:layout.INDENT].strip() or heading
        found[heading] = f"{found.get(heading, '')} {line[layout.INDENT:].strip()}".strip()
    return found


def report(*arguments):
    """What the command says."""
    return example.run_here("report", *arguments)


SCANS = (("all_scan", 100), ("two_shot", 110), ("all_gather_scan", 150))


def scans(noise=0.001, **changes):
    made = [scan(name, microseconds, noise * microseconds / 100, **changes) for name, microseconds in SCANS]
    return [one for group in made for one in group]


def methods(zeco=1.020, lasp1=1.025, lasp2=1.030, noise=0.001, exchange=0.03, **changes):
    """A layer of 1 ms of local work, in all modes; the times are in milliseconds."""
    made = local(1.0, **changes)
    for number, (name, overlapped) in enumerate({"zeco": zeco, "lasp1": lasp1, "lasp2": lasp2}.items()):
        made += layer(name, overlapped, noise * number, **changes)
        made += layer(name, 1.0 + exchange, noise, mode="exposed", **changes)
        made += layer(name, 1.0, mode="compute_only", **{"scan": "", **changes})
    return made
