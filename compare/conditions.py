# SPDX-License-Identifier: Apache-2.0
"""What must be equal before two measured times may be compared, and where two sides differ in it.

Computed times depend on none of it but the schema.
"""

import collections
import statistics

import reading

MACHINE = ("host", "cpu", "cores", "system", "kernel", "compiler", "build", "mpi")
ALWAYS = ("schema",)
MEASURED = ("warmup", "rounds")
CLOCKS = {"sm_clock_mhz": "clocks", "memory_clock_mhz": "memory_clocks"}
CLOCK_TOLERANCE = 0.02  # a GPU's clock wanders by a step or two; more than the margin moves times


def differences(a, b):
    """Returns {key: text} for each condition in which cases of both sides differ, the texts for people."""
    found = collections.defaultdict(dict)
    for name in a.cases.keys() & b.cases.keys():
        for key, values in _differing(a.cases[name], b.cases[name]).items():
            found[key].setdefault(values, []).append(name)
    return {key: _text(key, values) for key, values in sorted(found.items())}


def _differing(a, b):
    """Returns {key: (values of a, values of b)}."""
    first, second = _conditions(a), _conditions(b)
    differ = {key: (first.get(key, ()), second.get(key, ())) for key in first.keys() | second.keys()
              if first.get(key) != second.get(key) or len(first[key]) > 1}
    clocks = {CLOCKS[key]: (round(ours), round(theirs)) for key in CLOCKS
              for ours, theirs in [(_clock(a, key), _clock(b, key))]
              if ours and theirs and abs(ours / theirs - 1) > CLOCK_TOLERANCE}
    return {**differ, **{key: ((f"{one} MHz",), (f"{other} MHz",)) for key, (one, other) in clocks.items()}}


def _conditions(case):
    """Returns {condition: all values that the records of the case have}."""
    values = collections.defaultdict(set)
    for record in case.records:
        for key in ALWAYS if case.is_exact else ALWAYS + MEASURED:
            values[key].add(str(record.get(key, "unknown")))
        if case.is_exact or reading.state_of(record) != reading.TIMED:
            continue
        for key in MACHINE:
            values[key].add(str(record["machine"].get(key, "unknown")))
        for name, value in {**record["machine"].get("environment", {}), **record.get("device", {})}.items():
            values[name].add(str(value))
    return {key: tuple(sorted(found)) for key, found in values.items()}


def _clock(case, key):
    """Returns the median clock of all ranks right after the rounds, or None."""
    clocks = [value for record in case.records for value in record.get("device_after", {}).get(key, [])]
    return statistics.median(clocks) if clocks else None


def _text(key, differing):
    """Says in a line what differs, with the case as an example where not all cases do alike."""
    (a, b), cases = max(differing.items(), key=lambda item: len(item[1]))
    more = f" ({len(cases)} cases)" if len(cases) > 1 else f" ({cases[0].split('/')[0]})"
    return f"{key}: A {_join(a)}, B {_join(b)}{more}"


def _join(values):
    return " and ".join(values) if values else "not set"
