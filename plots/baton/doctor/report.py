# SPDX-License-Identifier: Apache-2.0
"""The report as text: the verdict, the findings with advice, the ranks, the GPUs, and a matrix of each executor's links."""

import textwrap

from baton import words
from baton.doctor import gpus, judges, ranks
from baton.doctor.findings import PROBLEM, numbered, percent, typical
from baton.doctor.placement import host_of, own_core

COLUMNS = 100
MOST_AS_NUMBERS, MOST_AS_CHARACTERS = 12, 90  # ranks whose links are shown so
MOST_ROWS = 32  # of the table of ranks, but for later ranks that are late


def text(readings, findings):
    build = readings["build"]
    taken = numbered("rank", [rank["rank"] for rank in readings["ranks"]])
    parts = [_verdict(findings), *_listed(findings),
             _wrapped(f"Examined: {readings['machine']}; {taken}; build {build['type']} {build['commit']}", " " * 4)]
    if readings["ranks"]:
        parts += ["\n".join(_ranks(readings)), *_gpus(readings), *filter(None, map(_links, readings["links"]))]
    return "\n\n".join(parts)


def _wrapped(line, indent):
    return textwrap.fill(line, COLUMNS, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _verdict(findings):
    if judges.is_fit(findings):
        return "This machine is fit to measure on: no problem was found."
    return f"This machine is NOT fit to measure on: {words.count(sum(one.weight == PROBLEM for one in findings), 'problem')}."


def _listed(findings):
    for number, finding in enumerate(findings, 1):  # problems come first
        mark = f"{number:2}." if finding.weight == PROBLEM else "note"
        yield f"{_wrapped(f'{mark:4} {finding.what}', ' ' * 5)}\n{_wrapped(f'     Do: {finding.advice}', ' ' * 9)}"


def _ranks(readings):
    yield "Ranks, each with the same computation"
    yield f"{'rank':>6} {'core':>10} {'time':>10} {'to fastest':>12} {'waited for core':>16} {'clock':>10}"
    late = {*ranks.late(readings), *ranks.waiting(readings)}
    fastest = min(typical(rank["spin_seconds"]) for rank in readings["ranks"])
    shown = []
    for rank in readings["ranks"]:
        if rank["rank"] in late or len(shown) < MOST_ROWS:
            shown.append(rank)
    for rank in shown:
        core, seconds, clock = own_core(host_of(readings, rank), rank), typical(rank["spin_seconds"]), typical(rank["clock_mhz"])
        place, shown_clock = core["number"] if core else f"any of {len(rank['cores'])}", f"{clock:.0f} MHz" if clock > 0 else "unknown"
        yield (f"{rank['rank']:>6} {place:>10} {words.seconds(seconds):>10} {seconds / fastest:>12.2f} "
               f"{percent(typical(rank['waited'])):>16} {shown_clock:>10}")
    if len(shown) < len(readings["ranks"]):
        yield f"       {len(readings['ranks']) - len(shown)} more ranks, none of them late"


def _gpus(readings):
    rows = [f"{rank['rank']:>6} {device['name'][:24]:>24} {words.seconds(typical(device['work_seconds'])):>10} "
            f"{_reading(device, 'sm_clock_mhz', 'MHz'):>12} {_reading(device, 'memory_clock_mhz', 'MHz'):>12} "
            f"{_reading(device, 'power_watts', 'W'):>10} {_reading(device, 'temperature_celsius', 'C'):>10}"
            for rank in readings["ranks"] for device in rank["devices"]]
    if rows:
        yield "\n".join(["GPUs, each with the same work", f"{'rank':>6} {'GPU':>24} {'time':>10} {'clock':>12} {'memory clock':>12} "
                         f"{'power':>10} {'heat':>10}", *rows])


def _reading(device, name, unit):
    value = gpus.value(device, name)
    return "unknown" if value < 0 else f"{value:.0f} {unit}"


def _links(links):
    if links["ranks"] > MOST_AS_CHARACTERS:
        return ""
    pairs = {(pair["from"], pair["to"]): (typical(pair["latency_seconds"]), typical(pair["large_seconds"])) for pair in links["pairs"]}
    return (_numbers if links["ranks"] <= MOST_AS_NUMBERS else _characters)(links, pairs)


def _matrix(links, pairs, cell):
    """The cells of a matrix, row by row, by a function of a pair's two times and of whether it is above the diagonal."""
    every = range(links["ranks"])
    return [["-" if row == column else cell(*found, column > row) if (found := pairs.get((min(row, column), max(row, column)))) else ""
             for column in every] for row in every]


def _numbers(links, pairs):
    def cell(latency, large, is_above):
        return words.digits(latency * 1e6 if is_above else links["large_bytes"] / large * 1e-9)

    rows = [list(range(links["ranks"])), *_matrix(links, pairs, cell)]
    return "\n".join([f"Links of {links['executor']}: above the diagonal us for {links['small_bytes']} bytes, below it GB/s for "
                      f"{links['large_bytes'] >> 20} MiB",
                      *(f"{name:>6}" + "".join(f" {one:>6}" for one in row) for name, row in zip(["", *rows[0]], rows))])


def _characters(links, pairs):
    """One character a pair: how many times as long as the usual pair it takes."""
    latency, large = (typical(list(times), 1) for times in zip(*pairs.values()))
    small_message, large_message = f"{links['small_bytes']} bytes", f"{links['large_bytes'] >> 20} MiB"

    def cell(own_latency, own_large, is_above):
        times = own_latency / latency if is_above else own_large / large
        return "." if times < 1.5 else str(int(times + 0.5)) if times < 9.5 else "#"

    head = (f"Links of {links['executor']}: the usual pair takes {words.seconds(latency)} for {small_message} and {words.seconds(large)} "
            f"for {large_message} ({links['large_bytes'] / large * 1e-9:.1f} GB/s). How many times as long a pair takes, above the "
            f"diagonal {small_message}, below it {large_message}: '.' below 1.5, '#' 10 and more")
    return "\n".join([_wrapped(head, ""), *(f"{number:>6} " + "".join(one or " " for one in row)
                                            for number, row in enumerate(_matrix(links, pairs, cell)))])
