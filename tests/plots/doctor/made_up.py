# SPDX-License-Identifier: Apache-2.0
"""Made-up readings of a calm machine, which a test then changes."""

REPEATS = 7


def always(value):
    """The same value in all repeats."""
    return [value] * REPEATS


def core(number, **changes):
    return {"number": number, "physical": number, "package": 0, "cache": 0, "node": 0, "busy": always(0.01), "stolen": always(0), **changes}


def links(executor, ranks, latency, large, **changes):
    return {"executor": executor, "ranks": ranks, "is_device": False, "small_bytes": 8, "large_bytes": 1 << 20,
            "pairs": [{"from": one, "to": other, "latency_seconds": always(latency), "large_seconds": always(large)}
                      for one in range(ranks) for other in range(one + 1, ranks)], **changes}


def calm(ranks):
    """One host with a rank bound to each of its cores, no GPU."""
    host = {"host": 1, "cores": [core(number) for number in range(ranks)], "topology": "", "others": [], "quota_cores": 0, "quota_stops": 0,
            "gpus": 0, "clock_source": "tsc", "timer_seconds": 25e-9, "shared_memory_bytes": 1 << 30}
    return {"machine": "a machine, made up", "failure": "", "hosts": [host],
            "build": {"type": "Release", "commit": "abc", "mpi": "", "executors": []},
            "ranks": [{"rank": rank, "host": 1, "cores": [rank], "core": rank, "memory_node": 0,
                       "spin_seconds": always(5e-3 * (1 + 0.01 * (rank % 3))), "waited": always(0.002), "clock_mhz": [], "base_mhz": 0,
                       "most_mhz": 0, "allowed_mhz": 0, "governor": "", "heat_events": 0, "devices": []} for rank in range(ranks)],
            "links": [links("mpi", ranks, 0.5e-6, 150e-6)] if ranks > 1 else []}


def with_gpus(ranks):
    """The calm machine with a GPU of equal speed for each rank."""
    readings = calm(ranks)
    readings["hosts"][0]["gpus"] = ranks
    readings["build"]["executors"] = [{"name": "nccl", "lacks": ""}]
    for rank in readings["ranks"]:
        rank["devices"] = [{"executor": "nccl", "name": "a GPU", "work_seconds": always(1e-3), "values": {
            "sm_clock_mhz": always(1980), "memory_clock_mhz": always(2619), "throttle_reasons": always(0)}}]
    return readings


def changed(readings, **changes):
    """Sets values by their paths, such as ranks__1__cores=[0, 1]; a path to a list of objects may have `all` in place of a
    number."""
    for path, value in changes.items():
        set_at(readings, path.split("__"), value)
    return readings


def set_at(inner, path, value):
    key, *rest = path
    keys = range(len(inner)) if key == "all" else [int(key) if isinstance(inner, list) else key]
    for one in keys:
        if rest:
            set_at(inner[one], rest, value)
        else:
            inner[one] = value
