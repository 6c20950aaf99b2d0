# SPDX-License-Identifier: Apache-2.0
"""Reads one round from a trace that a bench wrote with --trace.

On GPUs an exchange is a kernel, or a group of library calls, and its steps have no times of their own. Steps that share
a rank, a start and a finish there become one span with the verb "exchange".
"""

import collections
import json

from baton import checks, files, results

# One step: `verb` as the schedules have it, times in microseconds.
Span = collections.namedtuple("Span", "rank verb name start finish")
# One message, from its send's start to its receive's finish.
Message = collections.namedtuple("Message", "sender sent receiver received")
Round = collections.namedtuple("Round", "spans messages title")

MESSAGES = ("send", "recv")
MOST_RANKS = 1024  # that a figure has room for
STREAMS = ("nccl", "peer")  # executors by the start of their names: they time kernels and groups, not steps


class TraceError(results.ResultsError):
    """A trace file cannot be used."""


def load(path):
    """Reads the round of a trace file. Throws TraceError."""
    try:
        with open(files.reading(path), encoding="utf-8") as file:
            trace = json.load(file)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: not JSON: {error}") from error
    try:
        return checked(parse(trace))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise TraceError(f"{path}: not a trace that a bench wrote with --trace: {checks.shown(str(error))}") from error


def checked(one):
    """Returns the round if it can be drawn. Throws ValueError."""
    ranks = one.title["ranks"]
    if not checks.is_size(ranks) or ranks > MOST_RANKS:
        raise ValueError(f"otherData.ranks: from 1 to {MOST_RANKS}")
    for key in ("case", "executor", "commit"):
        if not checks.is_text(one.title[key]):
            raise ValueError(f"otherData.{key}: one line of text")
    if not checks.is_size(one.title["blocks"]):
        raise ValueError("otherData.blocks: a whole number from 1")
    for span in one.spans:
        if not all(map(checks.is_text, (span.verb, span.name))):
            raise ValueError("cat, name: one line of text")
    for rank, start, finish in ((span.rank, span.start, span.finish) for span in one.spans):
        check_times(ranks, (rank,), start, finish)
    for message in one.messages:
        check_times(ranks, (message.sender, message.receiver), message.sent, message.received)
    if one.spans and max(span.finish for span in one.spans) <= 0:
        raise ValueError("ts, dur: no step takes any time")
    return one


def check_times(ranks, places, start, finish):
    if not all(checks.is_count(rank) and rank < ranks for rank in places):
        raise ValueError(f"pid: a rank below {ranks}")
    if not (checks.is_number(start) and checks.is_number(finish) and 0 <= start <= finish):
        raise ValueError("ts, dur: times from 0")


def parse(trace):
    spans = [Span(event["pid"], event["cat"], event["name"], event["ts"], event["ts"] + event["dur"])
             for event in trace["traceEvents"] if event["ph"] == "X"]
    ends = collections.defaultdict(dict)
    for event in trace["traceEvents"]:
        if event["ph"] in ("s", "f"):
            ends[event["id"]][event["ph"]] = event
    messages = [Message(both["s"]["pid"], both["s"]["ts"], both["f"]["pid"], both["f"]["ts"])
                for both in ends.values()]
    title = {key: trace["otherData"][key] for key in ("case", "executor", "ranks", "blocks", "commit")}
    if title["executor"].startswith(STREAMS):
        return Round(in_kernels(trace["traceEvents"], spans), list(dict.fromkeys(messages)), title)
    return Round(spans, messages, title)


def in_kernels(events, spans):
    """Returns local work unchanged, and one span with the name of the exchange for all other steps that share a rank,
    a start and a finish."""
    names = {}
    for event, span in zip((event for event in events if event["ph"] == "X"), spans):
        if span.verb != "compute":
            name = event["args"].get("region") or (span.name if span.verb not in MESSAGES else "message")
            start = event["args"].get("posted", span.start)  # a receive is drawn from the start of its send
            names.setdefault((span.rank, start, span.finish), name)
    return [span for span in spans if span.verb == "compute"] + [
        Span(rank, "exchange", name, start, finish) for (rank, start, finish), name in names.items()]
