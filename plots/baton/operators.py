# SPDX-License-Identifier: Apache-2.0
"""Selects the operator's records for its table and figure: rows, and the records that they are compared with.

A row is a method with its gate and its scan. `local`, the data-parallel line, exchanges nothing and is
measured in the mode compute_only alone; so is every method's local work, whatever the scan.
"""

import collections

from baton import results

LOCAL = "local"
TITLES = {LOCAL: "GLA baseline (DP)", "lasp1": "LASP-1", "lasp2": "LASP-2", "zeco": "ZeCO"}  # as the papers name them
SETTING_NUMBERS = ("heads", "d_k", "d_v", "chunk", "groups", "rounds")
SETTING_WORDS = ("gate", "gates", "executor", "cadence")

Row = collections.namedtuple("Row", "method gate scan")


def measured(files, asked):
    """Returns the newest records of the operator, in the setting with most of the wanted points."""
    wanted = results.matching(results.newest(results.load(files, "operator")), **asked)
    return results.widest_setting(wanted)


def add_setting_options(parser):
    which = parser.add_argument_group("which records (default: the newest setting of those with most points)")
    for name in SETTING_NUMBERS:
        which.add_argument(f"--{name.replace('_', '-')}", type=int)
    for name in SETTING_WORDS:
        which.add_argument(f"--{name}")


def asked_setting(options):
    return {name: getattr(options, name) for name in (*SETTING_NUMBERS, *SETTING_WORDS)}


def stands_for_its_method(record):
    """Says whether the record is the published form of its method, and not its local work alone."""
    return record["mode"] == ("compute_only" if record["name"] == LOCAL else "overlapped")


def is_softmax(record):
    """Says whether the layer is softmax attention. Such layers are ranked apart from linear ones."""
    return results.attention(record) == "softmax"


def delta_rule(record):
    """Returns the word of the record's delta rule, or nothing. Such layers are a computation of their own too."""
    return results.attention(record) if results.attention(record) in results.DELTA_RULE else ""


def row(record):
    return Row(results.method(record), record["gate"], record["scan"])


def labels(rows):
    """Returns {row: its name}, `local` first. The name has gate and scan if several were measured."""
    seen = collections.defaultdict(lambda: collections.defaultdict(set))
    for one in rows:
        seen[one.method]["gate"].add(one.gate)
        seen[one.method]["scan"].add(one.scan)

    def label(one):
        told = [f"gate {one.gate}"] * (len(seen[one.method]["gate"]) > 1)
        told += [one.scan] * (len(seen[one.method]["scan"]) > 1)
        return f"{one.method} ({', '.join(told)})" if told else one.method

    return {one: label(one) for one in sorted(rows, key=lambda one: (one.method != LOCAL, one))}


def find(points, one, mode, record):
    """Returns the row's record in another mode at the tokens, ranks and pass of `record`, or None."""
    scan = "" if mode == "compute_only" else one.scan
    place = (one.method, results.attention(record), one.gate, scan, record["tokens"], record["ranks"], record["pass"], mode)
    found = points.get(place)
    return None if found is None or results.why_no_time(found) else found
