# SPDX-License-Identifier: Apache-2.0
"""Selects the operator's records for its table: rows, and the records that they are compared with.

A row is a method with its gate and its scan. `local`, the data-parallel line, exchanges nothing and is
measured in the mode compute_only alone; so is every method's local work, whatever the scan.
"""

import collections

from baton import results, schema

LOCAL = "local"
TITLES = {LOCAL: "GLA baseline (DP)", "lasp1": "LASP-1", "lasp2": "LASP-2", "zeco": "ZeCO"}  # as the papers name them

Row = collections.namedtuple("Row", "method gate scan")


def stands_for_its_method(record):
    """Says whether the record is the published form of its method, and not its local work alone."""
    return record["mode"] == ("compute_only" if record["name"] == LOCAL else "overlapped")


def is_softmax(record):
    """Says whether the layer is softmax attention. Such layers are ranked apart from linear ones."""
    return record["attention"] == "softmax"


def row(record):
    return Row(results.method(record), record["gate"], record["scan"])


def labels(rows):
    """Returns {row: its name}, `local` first. The name has gate and scan if several were measured."""
    seen = collections.defaultdict(lambda: collections.defaultdict(set))
    for one in rows:
        seen[one.method]["gate"].add(one.gate)
        seen[one.method]["scan"].add(one.scan)

    def label(one):
        parts = [f"gate {one.gate}"] * (len(seen[one.method]["gate"]) > 1)
        parts += [one.scan] * (len(seen[one.method]["scan"]) > 1)
        return f"{one.method} ({', '.join(parts)})" if parts else one.method

    return {one: label(one) for one in sorted(rows, key=lambda one: (one.method != LOCAL, one))}


def points(records):
    """Returns {place(record): record} of the records of one setting."""
    return results.points(records, place)


def place(record, mode=None):
    """Where tables have room for one record; `mode` is another one of the same method, of which local work has no scan."""
    mode = mode or record["mode"]
    scan = "" if mode == "compute_only" else record["scan"]
    sizes = (schema.value(record, key) for key in ("attention", "tokens", "sequence", "shares", "ranks", "pass"))
    return row(record)._replace(scan=scan), mode, *sizes


def find(found, record, mode):
    """Returns the record of the same method in another mode among `points`, or None."""
    other = found.get(place(record, mode))
    return None if other is None or results.why_no_time(other) else other
