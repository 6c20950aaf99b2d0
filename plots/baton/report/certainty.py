# SPDX-License-Identifier: Apache-2.0
"""Sentences on what makes a session less certain, and on what failed in it."""

import collections

from baton import cases, limits, results, schema, words
from baton.report import axes, choice
from baton.report.comparisons import LINEAR, SOFTMAX

SUBJECTS = {"collective": "exchanges", "operator": "layers", "model": "models"}
UNEQUAL = 1.10  # rows of equal local work that lie further apart were not measured alike
OTHER_LOAD, BUSY = 0.05, 0.3  # of the cores, by other processes: half a core at least, and what no time stands
CLOCK_FELL = 0.95  # of the highest clock of the session
# NVML's reasons for lowered clocks that are none: the GPU was idle, or an application chose its clocks.
HARMLESS = 0x1 | 0x2
REASONS = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}


def sentences(session, used):
    """Returns what makes the answer from the comparisons `used` less certain, the worst first."""
    timed = [record for record in session.measured if cases.state_of(record) == cases.TIMED]
    layers = layers_beside(session, used)
    found = ["The run was interrupted, so rows or launches are missing: the same command with --resume and the file of its records goes on." if session.interrupted else "",
             impossible(session), left_out(timed) if used else shared(timed), for_checks(timed) if used else "", unequal(layers),
             below_local(layers), clocks(timed), late_starts(timed),
             throttled(timed), load(timed), past_shared_memory(timed), few_launches(used)]
    return [text for text in found if text]


def impossible(session):
    """Rows that are faster than their link or their hardware allow, by name."""
    found = [f"{comparison.label_of(row)} ({axes.heading(comparison)}) {why}" for comparison in session.comparisons for row in comparison.competitors
             if (why := limits.why_impossible(row))]
    more = f" So {'does' if len(found) == 2 else 'do'} {words.count(len(found) - 1, 'more row')}." if len(found) > 1 else ""
    return f"{found[0]}.{more}" if found else ""


def past_shared_memory(timed):
    """Rows of MPI whose messages within a host took another way, which is slower."""
    found = [record for record in timed if record["executor"] == "mpi"
             and not record.get("transport", "shared memory").startswith("shared memory")]
    ways = words.names(sorted({record["transport"] for record in found}))
    return (f"Messages of MPI between ranks of one host took {ways} in place of shared memory in "
            f"{words.count(rows_of(found), 'row')}: /dev/shm may be too small, or a setting turns it off.") if found else ""


def left_out(timed):
    """Rows of ranks that had too few cores, and of several ranks on one GPU."""
    crowded = [record for record in timed if results.is_oversubscribed(record)]
    if not crowded:
        return shared(timed)
    return (f"{words.count(rows_of(crowded), 'oversubscribed row')} left out: more busy threads than cores "
            f"({ranks_on_cores(crowded)}). {shared(timed)}").strip()


def for_checks(timed):
    """Rows of executors whose times are no measure."""
    found = [record for record in timed if record["executor"] in results.FOR_CHECKS]
    return f"{words.count(rows_of(found), 'row')} of {found[0]['executor']} left out: all ranks in one process, for checks." if found else ""


def shared(timed):
    """Rows of several ranks on one GPU."""
    found = [record for record in timed if record.get("ranks_per_gpu", 1) > 1]
    return f"{words.count(rows_of(found), 'row')} of several ranks on one GPU left out: no measure of a link." \
        if found else ""


def ranks_on_cores(records):
    """Such as `exchanges of 4 ranks, layers and models of 2 ranks with two busy threads each on 2 cores`."""
    alike = collections.defaultdict(list)
    for bench, subject in SUBJECTS.items():
        found = [record for record in records if record["bench"] == bench]
        ranks = sorted({record["ranks"] for record in found})
        both = bench in results.OF_METHODS and all(schema.value(record, "threads_per_rank") == 2 for record in found)
        threads = " with two busy threads each" * both
        if ranks:
            alike[f"{words.names(map(str, ranks))} ranks{threads}"].append(subject)
    text = ", ".join(f"{words.names(subjects)} of {ranks}" for ranks, subjects in alike.items())
    cores = min(record.get("conditions", {}).get("cores", record["machine"].get("cores", 0)) for record in records)
    quota = min((quota_of(record) for record in records if quota_of(record) is not None), default=None)
    part = f"{quota:.4g} of " if quota is not None and quota < cores else ""
    return f"{text} on {part}{words.count(cores, 'core')}{' (quota)' if part else ''}"


def quota_of(record):
    return record.get("conditions", {}).get("quota")


def throttled(timed):
    """How often a quota of processor time held the ranks back."""
    held = [record for record in timed if record.get("conditions", {}).get("throttled")]
    if not held:
        return ""
    worst = max(held, key=lambda record: record["conditions"]["throttled"])
    times = words.count(worst["conditions"]["throttled"], "time")
    quota = quota_of(worst)
    return (f"The quota of processor time{'' if quota is None else f' ({quota:.4g} of the cores)'} held processes back in "
            f"{words.count(rows_of(held), 'row')}, up to {times}: ask the container, job or service for more.")


def rows_of(records):
    return len({(results.group_of(record), results.rival(record)) for record in records})


def launches_of(comparison):
    """The most launches that a row of a comparison has."""
    return max(len(row.launches) for row in comparison.rows)


def few_launches(used):
    """Comparisons of the answer with fewer launches than an interval is worth something with."""
    found = []
    for bench, subject in SUBJECTS.items():
        launches = [launches_of(comparison) for comparison in used if comparison["bench"] == bench]
        few = sorted({number for number in launches if number < 3})
        if few:
            which = subject[:-1] if len(launches) == 1 else subject if max(launches) < 3 else f"some {subject}"
            found.append((which, " to ".join(dict.fromkeys(map(str, (few[0], few[-1])))), few[-1]))
    alike = collections.defaultdict(list)
    for which, launches, most in found:
        alike[f"{launches} {'launch' if most == 1 else 'launches'} only"].append(which)
    text = ", ".join(f"{words.names(subjects)} in {launches}" for launches, subjects in alike.items())
    return f"{text.capitalize()}: another launch may say otherwise." if text else ""


def layers_beside(session, used):
    """The layers of several ranks that were measured where the answer's layers were: on GPUs or on processors."""
    families = {comparison["family"] for comparison in used if comparison.is_layer}
    return [comparison for comparison in session.comparisons if comparison["bench"] == "operator" and comparison["family"] in families
            and choice.competes(comparison, simulated=False)]


def unequal(layers):
    """Equal local work that took unequal times. Methods of softmax attention share the work in unequal ways."""
    worst, where = 1, None
    for comparison in (one for one in layers if one.kind != SOFTMAX):
        by_executor = collections.defaultdict(list)
        for row in comparison.local_rows:
            by_executor[row.name.executor].append(row)
        for rows in by_executor.values():
            low, high = min(rows, key=lambda row: row.median), max(rows, key=lambda row: row.median)
            if high.median / low.median > worst:
                worst, where = high.median / low.median, (comparison, high, low)
    if worst <= UNEQUAL:
        return ""
    comparison, high, low = where
    return (f"Equal local work took {words.factor(worst)} times as long in {high.name.name} as in {low.name.name} "
            f"({'' if comparison.kind == LINEAR else f'{axes.work(comparison)}, '}{comparison['ranks']} ranks, {comparison.way}), so layers are no more certain "
            "than that.")


def below_local(layers):
    """Methods that are faster than the layer without any exchange, which no exchange can be."""
    found = []
    for comparison in layers:
        for row in comparison.competitors:
            local = comparison.local_of(row)
            ratio = row.ratio_to(local) if local else None
            if ratio and ratio.interval and ratio.interval[1] < 1:
                found.append(f"{row.name.name} at {comparison['ranks']} ranks")
    return f"Faster than no exchange at all, which cannot be: {words.names(found, 2)}." if found else ""


def clocks(timed):
    """Clocks that fell, and why the GPU says so."""
    after = [record["device_after"] for record in timed if record.get("device_after")]
    masks = [int(mask) & ~HARMLESS for one in after for mask in one.get("throttle_reasons", [])]
    why = dict.fromkeys(text for bit, text in REASONS.items() if any(mask & bit for mask in masks))
    rates = [rate for one in after for rate in one.get("sm_clock_mhz", [])]
    fell = rates and min(rates) < CLOCK_FELL * max(rates)
    if not fell and not any(masks):
        return ""
    low = f"GPU clocks fell to {min(rates):.0f} of {max(rates):.0f} MHz" if fell else "GPU clocks were lowered"
    return f"{low}{f' ({words.names(why)})' if why else ''}."


def late_starts(timed):
    """Rounds that GPUs began before their host had enqueued them."""
    counts = [[(record.get(when) or {}).get("late_starts", []) for when in ("device_before", "device_after")] for record in timed]
    late = [record for record, (before, after) in zip(timed, counts) if sum(after) > sum(before)]
    return (f"{words.count(rows_of(late), 'row')} of GPUs began rounds, warm-up rounds among them, before the host had enqueued them: "
            "their times include the host's.") if late else ""


def load(timed):
    """What other processes used of the cores."""
    worst, cores = worst_load(timed)
    if worst < max(0.5, OTHER_LOAD * cores):
        return ""
    text = f"Other processes used up to {worst:.1f} of {cores} cores meanwhile"
    return f"{text}: free them and measure again." if worst > BUSY * cores else f"{text}."


def is_busy(session):
    """True if other processes used more of the cores than any time stands, so that more launches would not help."""
    worst, cores = worst_load(session.measured)
    return worst > BUSY * cores


def worst_load(records):
    """Returns (cores that other processes used, cores): the worst of the timed records, (0, 1) where none says it."""
    return max(((record["conditions"]["other_load"], record["conditions"].get("cores", 1)) for record in records
                if cases.state_of(record) == cases.TIMED and record.get("conditions", {}).get("other_load") is not None),
               default=(0, 1))


def rows_that_ran(session):
    return [row for comparison in session.comparisons for row in comparison.rows if row.state != cases.SKIPPED]


def verified(session):
    """How many rows are right, where nothing failed; else nothing."""
    ran = rows_that_ran(session)
    if any(comparison.lost for comparison in session.comparisons):
        return ""
    simulated = sum(row.is_simulated for row in ran)
    measured = len(ran) - simulated
    parts = [f"all {measured} measured rows computed the right values" if measured > 1
             else "the one measured row computed the right values"] * bool(measured)
    rows = " more" if measured else " row" if simulated == 1 else " rows"
    parts += [f"{simulated}{rows} {'was' if simulated == 1 else 'were'} simulated"] * bool(simulated)
    return f"{'; '.join(parts) or 'nothing ran'}.".capitalize()


def failures(session):
    """What failed or was wrong, the first of it by name and reason; empty if nothing did."""
    lost = [(comparison, row) for comparison in session.comparisons for row in comparison.lost]
    if not lost:
        return ""
    wrong = sum(row.state == cases.WRONG for _, row in lost)
    comparison, row = min(lost, key=lambda one: one[1].state != cases.WRONG)
    count = words.names([f"{len(lost) - wrong} failed"] * (len(lost) > wrong) + [f"{wrong} wrong"] * bool(wrong))
    name = f"~ {row.name.name}" if row.is_simulated else row.name.name
    reason = " ".join(row.reason.split())
    ran = len(rows_that_ran(session))
    right = ran - len(lost)
    others = f" The other {right if right > 1 else 'one'} computed the right values." if right else ""
    return (f"{count} of {words.count(ran, 'row')}{', among them' if len(lost) > 1 else ':'} {name} on {row.name.executor} "
            f"({axes.heading(comparison).removeprefix('~ ')}): {reason}.{others}")
