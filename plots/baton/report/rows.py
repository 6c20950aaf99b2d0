# SPDX-License-Identifier: Apache-2.0
"""One row of a comparison: what competes there, its times launch by launch, and how it stands to another row.

The launch is the unit. A launch's time is the median over its rounds, and a row's time and interval are the estimate of
its launches (estimates.py). Rows of the simulator are the same at every run.
"""

import collections
import functools
import math

from baton import cases, estimates, results

LOCAL = "local"  # the layer without any exchange
OVERLAPPED, EXPOSED, COMPUTE_ONLY = "overlapped", "exposed", "compute_only"
AUTO = "auto"
LEVEL = 0.95

# How many times as long a row takes as another one. `interval` is None where too few launches can be compared, and
# `estimate` is that of estimates.py, of the logarithm. `launches` says how many of each were compared.
Ratio = collections.namedtuple("Ratio", "value interval estimate launches")


class Row:
    """A row of a comparison: `name` is a results.Rival; `state` and `reason` are those of its cases.Case."""

    def __init__(self, name, case):
        self.name, self.records, self.state, self.reason = name, case.records, case.state, case.reason
        self.launches = case.medians() if self.state == cases.TIMED else {}

    @property
    def is_timed(self):
        return bool(self.launches)

    @property
    def is_simulated(self):
        return self.name.executor == results.SIMULATOR

    @functools.cached_property
    def median(self):
        """Seconds: the estimate of the launches' medians, or None without a time."""
        return estimates.mean(self.launches.values()) if self.launches else None

    @functools.cached_property
    def interval(self):
        """The 95 % interval of `median` over launches, in seconds; None for one launch and for simulated rows."""
        return None if self.is_simulated else estimates.mean_interval(list(self.launches.values()), LEVEL)

    @functools.cached_property
    def bound(self):
        """Seconds that the row's own traffic takes at least, or None: the geometric mean over launches, as of its times."""
        bounds = [record["bound_seconds"] for record in self.records if record.get("bound_seconds")]
        return estimates.mean(bounds) if bounds else None

    @property
    def bound_share(self):
        """The bound over the median: 1 is as fast as the link allows. None where there is no bound."""
        return self.bound / self.median if self.bound and self.launches else None

    @functools.cached_property
    def bound_interval(self):
        """The interval of `bound_share`, launch by launch; None for one launch."""
        bounds = collections.defaultdict(list)
        for record in self.records:
            if record.get("bound_seconds"):
                bounds[record["run"], record.get("launch", 1)].append(record["bound_seconds"])
        shares = [estimates.mean(bounds[launch]) / seconds for launch, seconds in self.launches.items() if launch in bounds]
        return estimates.mean_interval(shares, LEVEL)

    def ratio_to(self, other, level=LEVEL):
        """The Ratio of this row's time to the other's, launch by launch where both ran in the same launches."""
        if not self.launches or not other.launches:
            return None
        if self is other:
            return Ratio(1.0, None, None, len(self.launches))
        log_ratio, estimate, launches = estimates.of_launches(other.launches, self.launches)
        if self.is_simulated:
            estimate = estimates.exact(log_ratio)
        interval = tuple(map(estimates.exp, estimates.interval(estimate, level))) if estimate else None
        return Ratio(math.exp(log_ratio), interval, estimate, min(launches))
