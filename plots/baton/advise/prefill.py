# SPDX-License-Identifier: Apache-2.0
"""A prefill of a model over the numbers of ranks that share its sequence: where more ranks stop to pay."""

import collections
import json

from baton import fastest, results, words
from baton.advise.simulator import Refused, simulated

# A model's forward pass on a machine: `sequences` are tokens of all ranks, `ranks` the numbers of ranks that share them.
Question = collections.namedtuple("Question", "topology model sequences ranks dtype methods", defaults=("all",))


def times_of(programs, question):
    """Returns {tokens of the sequence: {method: {ranks: seconds}}}, all in ascending order. Throws Refused."""
    records = simulated(programs, "model", question.topology, "--model", question.model, "--dtype", question.dtype, "--pass", "forward",
                        "--lines", "full", "--methods", question.methods, "--sequence", listed(question.sequences),
                        "--ranks", listed(question.ranks))
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for one in sorted(records, key=lambda one: (one["sequence"] or 0, one["ranks"])):
        if results.why_no_time(one) is None:
            found[one["sequence"]][one["name"]][one["ranks"]] = one["median_seconds"]
    if not found:
        raise Refused(f"no method runs {question.model} here: {results.why_no_time(records[0]) if records else 'no row'}")
    return found


def listed(numbers):
    return ",".join(map(str, numbers))


def as_json(times):
    return json.dumps([{"sequence": sequence, "name": name, "seconds": {str(ranks): one for ranks, one in of_ranks.items()},
                        "last_that_pays": last_that_pays(of_ranks)}
                       for sequence, methods in times.items() for name, of_ranks in methods.items()], indent=2)


def lines(question, times):
    """Yields what was asked, and for each sequence and method its times and the number of ranks from which on more do not pay."""
    yield f"# ~ simulated, not measured: forward pass of {question.model}, {question.dtype}"
    yield f"# a gain below {100 * fastest.TYPICAL_ERROR:.0f} %, the simulator's typical error, does not pay"
    longest = max(len(name) for methods in times.values() for name in methods)
    yield f"{'tokens':>9}  {'method':<{longest}} " + " ".join(f"{f'P = {ranks}':>9}" for ranks in question.ranks) + "  more ranks"
    for sequence, methods in times.items():
        for name, of_ranks in methods.items():
            cells = [words.seconds(of_ranks[ranks]) if ranks in of_ranks else "-" for ranks in question.ranks]
            last = last_that_pays(of_ranks)
            end = f"stop to pay at P = {last}" if last < max(of_ranks) else "may pay"
            yield f"{sequence:>9,}  {name:<{longest}} " + " ".join(f"{cell:>9}" for cell in cells) + f"  {end}"


def last_that_pays(of_ranks):
    """The last number of ranks whose gain the simulator can tell, of {ranks: seconds}."""
    return fastest.last_that_pays(of_ranks.items(), lambda best, one: one < best and fastest.is_distinct(best / one))
