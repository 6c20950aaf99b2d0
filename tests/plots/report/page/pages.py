# SPDX-License-Identifier: Apache-2.0
"""Sessions for the tests of the page, and the page of them."""

from baton.report import page
from plots.report import example
from plots.report.example import layer, local, scan, session, simulated

MANY = ("all_scan", "ring_scan", "all_gather_scan", "recursive_doubling", "two_shot", "mpi_exscan", "hierarchical_scan",
        "hierarchical_scan_chain", "all_gather_scan_bruck", "nccl_all_gather_scan_copy_engine")


def scans(ranks=(2, 4), sizes=(1 << 19, 1 << 21), names=MANY, **changes):
    """The launches of many exchanges at several numbers of ranks and sizes."""
    return [record for at, rank in enumerate(ranks) for size in sizes for number, name in enumerate(names)
            for record in scan(name, (100 + 9 * number) * (1 + at) * size / (1 << 21), noise=0.01, ranks=rank,
                               state_bytes=size, heads=size // 65536, case=f"{name}/{rank}/{size}", **changes)]


def layers(**changes):
    """Layers of linear and of softmax attention, each in all modes that it has."""
    made = local(1.0, noise=0.01, case="local", **changes)
    for number, name in enumerate(("zeco", "lasp1", "lasp2")):
        for mode, more in (("overlapped", 0.2), ("exposed", 0.4), ("compute_only", 0)):
            made += layer(name, 1 + more * (1 + number / 9), noise=0.01, case=f"{name}/{mode}", **{"mode": mode, **changes})
    return made + layer("ring_attention_softmax", 3.0, case="softmax", scan="", gate="none", **changes)


def whole():
    """A session with measured exchanges and layers, simulated ones, a failure, and ranks without cores."""
    return session(scans(), layers(), example.failed("ring_exchange", kind="exchange", case="lost"),
                   example.crowded(scans(ranks=(8,), names=MANY[:3]), 4),
                   [record for made in (scans(ranks=(2, 4, 64, 256), names=MANY[:4]), layers(ranks=256))
                    for record in simulated_each(made)])


def simulated_each(made):
    return [record for one in made if one["launch"] == 1 for record in simulated([one])]


def html_of(*sessions):
    return page.html(list(sessions), "out/index.html")
