# SPDX-License-Identifier: Apache-2.0
"""What must be equal before two measured times may be compared, and where two sides differ in it.

Computed times depend on none of it but the schema.
"""

import collections
import statistics

from baton import cases, schema

MACHINE = [key for key in schema.parts("machine") if key not in ("memory_gib", "environment", "settings")]
# Variables that steer how processes start and what is printed, and no message: a difference is named, and compared.
NAMED = ("PMIX_MCA_", "PRTE_MCA_", "OMPI_MCA_mca_base_", "NCCL_DEBUG", "OMP_DISPLAY_", "UCX_LOG_", "MKL_VERBOSE")
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


def is_named(key):
    """True of a difference that is no reason not to compare."""
    return key.startswith(NAMED)


def on_unlike_machines(a, b):
    """Returns the names of simulated cases whose topologies differ in their links or in what they were calibrated with.

    Such times differ by what was measured in between, which is no change of what is compared.
    """
    both = [name for name in a.cases.keys() & b.cases.keys() if a.cases[name].is_exact and b.cases[name].is_exact
            and a.cases[name].state == b.cases[name].state == cases.TIMED]
    return sorted(name for name in both if _are_unlike(a.cases[name], b.cases[name]))


def _are_unlike(a, b):
    """True if two simulated cases stand on unlike figures. Records from before `stands_on` tell their links alone."""
    if any(set(a.values(key)) != set(b.values(key)) for key in ("alpha_seconds", "beta_bytes_per_second")):
        return True
    known = a.values("stands_on"), b.values("stands_on")
    return all(known) and set(known[0]) != set(known[1])


def _differing(a, b):
    """Returns {key: (values of a, values of b)}."""
    pairs = {key: (values, _stated(b)[key]) for key, values in _stated(a).items() if key in _stated(b)}
    if a.state == b.state == cases.TIMED:
        ours, theirs = _settings(a), _settings(b)
        pairs.update({key: (ours.get(key, ()), theirs.get(key, ())) for key in ours.keys() | theirs.keys()})
        for more in (lambda case: _settings(case, ("settings",)), _transport):
            ours, theirs = more(a), more(b)
            if ours and theirs:  # records from before it say nothing of it
                pairs.update({key: (ours.get(key, ()), theirs.get(key, ())) for key in ours.keys() | theirs.keys()})
    differ = {key: values for key, values in pairs.items() if values[0] != values[1] or len(values[0]) > 1}
    clocks = {name: (_clock(a, key), _clock(b, key)) for key, name in CLOCKS.items()}
    apart = {key: ((f"{one:.0f} MHz",), (f"{other:.0f} MHz",)) for key, (one, other) in clocks.items()
             if one and other and abs(one / other - 1) > CLOCK_TOLERANCE}
    return {**differ, **apart}


def _stated(case):
    """Returns {condition: all values of it} of those that every record should state."""
    found = collections.defaultdict(set)
    for record in case.records:
        is_timed = cases.state_of(record) == cases.TIMED
        stated = {"schema": record.get("schema", "unknown")}
        if not case.is_exact:
            stated.update({key: record[key] for key in MEASURED if is_timed})
            stated["placement"] = record.get("hosts", {}).get("placement", "1 host")
            stated.update({key: record["machine"].get(key, "unknown") for key in MACHINE if record.get("machine")})
        _add(found, stated)
    return _sorted(found)


def _settings(case, parts=("environment", "device")):
    """The same of variables of the environment and facts of devices, which a record need not have; or of other parts."""
    found = collections.defaultdict(set)
    for record in case.records:
        if cases.state_of(record) == cases.TIMED and not case.is_exact:
            for part in parts:
                _add(found, record["machine"].get(part) or record.get(part) or {})
    return _sorted(found)


def _transport(case):
    """The same of what carried the messages of ranks of one host, where that is known."""
    known = {record["transport"] for record in case.records if record.get("transport")}
    return {"transport": tuple(sorted(known))} if known and not case.is_exact else {}


def _add(found, values):
    for key, value in values.items():
        found[key].add(str(value))


def _sorted(found):
    return {key: tuple(sorted(values)) for key, values in found.items()}


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
