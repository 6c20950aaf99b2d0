# SPDX-License-Identifier: Apache-2.0
"""What it costs to take what the simulator names, in the contests that were measured or published."""

import collections
import statistics

from baton import fastest
from baton.estimates import MARGIN
from baton.paper.cells import Row, derived
from baton.paper.page import Section, Table, Text
from baton.regret import contests

WORDS = {"collective": "exchanges", "operator": "layers", "model": "models"}
COLUMNS = ("contests", "fastest named", "told wrongly", "median", "worst", "slowest row, median", "worst contest")
FEW = 2
OF = "measured or published times of a contest's rows"


def section(_):
    judged = contests.read()
    few = sum(one.ranks <= FEW for one in judged)
    return Section("What the simulator's choice costs", [
        Text(f"{contests.sentence(judged)} In each contest the simulator names the row with the least simulated time, "
             "as `./run advise` does. The regret is how many times as long as the fastest row that row takes, of the times "
             "that were measured or published. Rows of one executor compete; measured times are those over launches. "
             "Natives, rows that the simulator refuses, and contests with fewer than two rows are left out. No topology "
             "judges rows that it was fitted to: so `xeon-64` and TokenRing's table are left out, and `two-cores`, whose "
             "calibration was not kept."),
        Text(f"{few} of the {len(judged)} contests are of {FEW} ranks, where most exchanges send the same messages; what "
             "the slowest row takes says how much there was to lose. The topologies of GPUs start exchanges on the GPUs "
             "themselves, as executor `peer` does, and a message of executor `nccl` costs more. **Told wrongly** are "
             "contests whose fastest row the simulator held to be slower by more than "
             f"{100 * fastest.TYPICAL_ERROR:.0f} %, its typical error, than the one it named."),
        table(judged)])


def table(judged):
    groups = collections.defaultdict(list)
    for one in judged:
        groups[one.source, one.what, one.topology, one.origin].append(one)
    rows = [row(f"`{source}`, {WORDS[what]}", f"`{topology}`, {origin}", found, worst_contest(found))
            for (source, what, topology, origin), found in groups.items()]
    whole = {"all": judged, f"more than {FEW} ranks": [one for one in judged if one.ranks > FEW],
             **{origin: [one for one in judged if one.origin == origin]
                for origin in (contests.CALIBRATED, contests.COMPOSED)}}
    rows += [row(label, "", found, None) for label, found in whole.items()]
    return Table("regret", "Regret: the time of the row that the simulator names over the fastest", list(COLUMNS), rows, [
        f"Fastest named: the regret is below {1 + MARGIN:.2f} times, which is no difference between two rows.",
        "The sources are folders of `results/` and tables of `results/paper/`; `plots/baton/regret/contests.csv` has every "
        "contest, and its head says how it was made."])


def row(label, kind, judged, last):
    best = sum(one.times <= 1 + MARGIN for one in judged)
    wrongly = sum(one.times > 1 + MARGIN and fastest.is_told(one.claimed) for one in judged)
    ratios = (contests.median(judged), contests.worst(judged).times, statistics.median(one.slowest for one in judged))
    return Row(label, kind, [*(derived(value, str(value), "contests", OF) for value in (len(judged), best, wrongly)),
                             *(derived(value, f"{value:.2f}×", "", OF) for value in ratios), last])


def worst_contest(judged):
    """Returns the cell of the contest with the most regret, by what tells it from the others; None without regret."""
    one = contests.worst(judged)
    if one.times <= 1 + MARGIN:
        return None
    shared = set.intersection(*(set(other.contest.split("/")) for other in judged))
    where = ", ".join(part.replace(":", " ") for part in one.contest.split("/") if part not in shared)
    return derived(one.times, f"{one.named}, fastest {one.best}{f': {where}' if where else ''}", "", OF, one.contest)
