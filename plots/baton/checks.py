# SPDX-License-Identifier: Apache-2.0
"""Checks of what a file holds, before anything is computed from it: each error names the file, the line and the key.

A file may be torn, written by another version or by hand: JSON has numbers that no float holds, texts that no encoding
writes, and every kind of value at every key.
"""

import itertools
import json
import math
import re

from baton import files, schema

NO_JSON = object()  # what stands for a line that is none
SCHEMA = 1  # of the records that these programs read

LINES = ("dp", "split", "full")
PASSES = ("forward", "backward", "both")
MASK = re.compile("causal|full|window:[1-9][0-9]{0,8}")
STATES = ("none", "in", "out", "both")
MODES = ("compute_only", "exposed", "overlapped")
LEAST_SECONDS, MOST_SECONDS = 1e-15, 1e15
# Control characters, ends of lines, marks that turn the direction of what follows, and halves of characters.
NO_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST_LINE = 1 << 28  # bytes: a file without ends of lines, such as a device, is read no further
MOST = 1e18  # of counts, bytes and rates


class ResultsError(Exception):
    """A results file cannot be used; the text is `file:line: key: reason`. Each argument is a line of the text."""

    def __str__(self):
        return "\n".join(self.args)


def is_text(value):
    """One line that every encoding of Unicode can write."""
    return isinstance(value, str) and NO_TEXT.search(value) is None


def is_number(value):
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_one and abs(value) <= MOST and math.isfinite(value)


def is_count(value, least=0):
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST


def is_size(value):
    return is_count(value, least=1)


def is_time(value):
    return is_number(value) and LEAST_SECONDS <= value <= MOST_SECONDS


def is_interval(value):
    return isinstance(value, list) and len(value) == 2 and all(map(is_time, value)) and value[0] <= value[1]


def are_ends(value):
    """True of the ends of any interval. One over two launches of a busy machine may span all that a number can be."""
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value)) and value[0] <= value[1]


def is_named(value, **kinds):
    """An object with a text as each key, and at those of `kinds` the kind of value that they must have."""
    return isinstance(value, dict) and all(map(is_text, value)) and all(
        kind(value[key]) for key, kind in kinds.items() if key in value)


def is_device(value):
    return is_named(value, gpu=is_text) and "gpu" in value and all(map(is_text, value.values()))


def are_within(values, least, most):
    """True of a list of numbers within these ends; there may be very many."""
    return isinstance(values, list) and (not values or set(map(type, values)) <= {int, float} and min(values) >= least
                                         and max(values) <= most and not math.isnan(sum(values)))


def are_times(value):
    return are_within(value, LEAST_SECONDS, MOST_SECONDS)


def are_times_of_ranks(value):
    """A list of as many times for each rank. A rank that does nothing takes none."""
    return isinstance(value, list) and all(are_within(times, 0, MOST_SECONDS) and times and len(times) == len(value[0]) for times in value)


def are_counts(value):
    return isinstance(value, list) and all(map(is_count, value))


def is_readings(value):
    return is_named(value) and all(isinstance(row, list) and all(map(is_number, row)) for row in value.values())


def is_blocks(value):
    return value == "auto" or is_size(value)


TEXT, COUNT, SIZE, NUMBER = ((is_text, "one line of text"), (is_count, "a whole number from 0"),
                             (is_size, "a whole number from 1"), (is_number, "a finite number"))
TIME = (is_time, f"seconds from {LEAST_SECONDS:g} to {MOST_SECONDS:g}")

BOUND = (lambda value: is_number(value) and value >= 0, "seconds from 0")
READINGS = (is_readings, "an object of lists of numbers")


def one_of(words):
    return words.__contains__, " or ".join(words)


def or_null(kind):
    is_kind, expected = kind
    return lambda value: value is None or is_kind(value), f"{expected}, or null"


VALIDATORS = {"text": TEXT, "whole": COUNT, "real": NUMBER, "truth": (lambda value: isinstance(value, bool), "true or false"),
            "interval": (are_ends, "the two ends of an interval"), "list": (lambda value: isinstance(value, list), "a list")}
# What the type of a key does not say.
EXTRA_VALIDATORS = {
    "pass": one_of(PASSES), "mode": one_of(MODES), "line": one_of(LINES), "state": one_of(STATES),
    "mask": (lambda value: isinstance(value, str) and MASK.fullmatch(value) is not None, "causal, full or window:W"),
    "mean_seconds": TIME, "median_seconds": TIME, "predicted_seconds": or_null(TIME), "bound_seconds": or_null(BOUND),
    "ci95_seconds": (is_interval, "the two ends of an interval, in seconds"),
    "ratio_ci95": or_null((is_interval, "the two ends of an interval")),
    "blocks_asked": (is_blocks, "'auto' or a whole number from 1"), "blocks": SIZE, "baseline": or_null(TEXT),
    "seconds": (are_times, "a list of times in seconds"), "rank_seconds": (are_times_of_ranks, "a list of as many times for each rank"),
    "rounds_as_last": (are_counts, "a list of whole numbers from 0"), "device_before": READINGS, "device_after": READINGS,
    "device": (is_device, "an object of texts, with the text gpu"),
    "seed": (lambda value: isinstance(value, int), "a whole number"),
    **dict.fromkeys(("peer", "version", "gpu"), TEXT)}  # of what other projects measured
FROM_ZERO = ("warmup", "ranks_per_node", "cycle")  # the axes that may be 0


def kind_of(field):
    """What may stand at a key, and how errors call it. Null is what is not known, or what a native does not say."""
    if field["type"] == "object":
        return object_of(field["key"])
    kind = VALIDATORS[field["type"]]
    if kind is COUNT and (field["role"] == "axis" or field.get("absent")) and field["key"] not in FROM_ZERO:
        kind = SIZE
    return or_null(kind) if field["written"] != "always" and field.get("absent", "") is None else kind


def object_of(key):
    parts = {part: kind_of(schema.FIELDS[f"{key}.{part}"])[0] for part in schema.parts(key)}
    if not parts:
        return lambda value: is_named(value) and all(map(is_text, value.values())), "an object of texts"
    return lambda value: is_named(value, **parts), f"an object with {', '.join(parts)}"


KINDS = {**{key: kind_of(field) for key, field in schema.FIELDS.items()}, **EXTRA_VALIDATORS}


def check(record, needed, where):
    """Returns the record if it has what is needed, and at each known key a value of its kind. Throws ResultsError."""
    if record.get("schema", SCHEMA) != SCHEMA:
        raise ResultsError(f"{where}: schema: expected {SCHEMA}, found {shown(record['schema'])}")
    missing = [key for key in needed if key not in record]
    if missing:
        raise ResultsError(f"{where}: the record lacks {', '.join(missing)}")
    for key, value in record.items():
        is_kind, expected = KINDS.get(key, (None, ""))
        if is_kind and not is_kind(value):
            key, expected, value = innermost(key, expected, value)
            raise ResultsError(f"{where}: {key}: expected {expected}, found {shown(value)}")
    check_interval(record, where)
    return record


def innermost(key, expected, value):
    """Returns the key, what is expected and what is found of the part of an object that is wrong; of another value, of itself."""
    if isinstance(value, dict) and all(map(is_text, value)) and key not in EXTRA_VALIDATORS:
        for part, one in value.items():
            field = schema.FIELDS.get(f"{key}.{part}")
            is_kind, wanted = kind_of(field) if field else TEXT
            if not is_kind(one) and (field or not schema.parts(key)):
                return innermost(f"{key}.{part}", wanted, one)
    return key, expected, value


def check_interval(record, where):
    if "median_seconds" in record and "ci95_seconds" in record:
        low, high = record["ci95_seconds"]
        if not low <= record["median_seconds"] <= high:
            raise ResultsError(f"{where}: ci95_seconds: expected the median in it, found {shown([low, high])}")


def shown(value):
    """The value as JSON on one line of ASCII, cut if it is long."""
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        text = "a value of very many levels or digits"
    return text if len(text) <= 60 else text[:57] + "..."


def json_lines(path):
    """Yields (value, `file:line`) of each line, one after the other; NO_JSON for a line that is none. Throws ResultsError."""
    try:
        with open(files.reading(path), "rb") as file:
            for number in itertools.count(1):
                line = file.readline(LONGEST_LINE)
                if not line:
                    break
                where = f"{path}:{number}"
                if len(line) == LONGEST_LINE:
                    raise ResultsError(f"{where}: the line is longer than {LONGEST_LINE >> 20} MiB, so this is no file of records")
                if line.strip():
                    yield parsed(line), where
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def parsed(line):
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return NO_JSON
