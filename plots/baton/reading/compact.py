# SPDX-License-Identifier: Apache-2.0
"""Many records in little memory: those of equal keys and types share a table, with a column for each key.

A column has one value while all are equal, and numbers without objects of their own from the first other one on. A
million records of some cases then take a third of the files that they came from, where dictionaries take five times as
much.
"""

import array
import collections.abc
import itertools
import math

WHOLE, REAL, OBJECT = "q", "d", "o"  # the first two as array.array has them
MOST_TEXTS = 1 << 17  # of which equal ones are kept once


class Compact:
    """Takes records, and gives back one that is read like a dictionary and cannot be changed."""

    def __init__(self):
        self._tables = {}
        self._texts = {}

    def add(self, record):
        kinds = kind_of(record)
        table = self._tables.get(kinds)
        if table is None:
            table = self._tables[kinds] = Table(kinds, self._once)
        return Kept(table, table.add(record))

    def _once(self, value):
        """The same text for equal ones."""
        if not isinstance(value, str):
            return value
        if len(self._texts) >= MOST_TEXTS:
            self._texts.clear()
        return self._texts.setdefault(value, value)


class Kept(collections.abc.Mapping):
    """A record in a table."""

    __slots__ = ("_table", "_place")

    def __init__(self, table, place):
        self._table, self._place = table, place

    def __getitem__(self, key):
        return self._table.columns[key].at(self._place)

    def __contains__(self, key):
        return key in self._table.columns

    def get(self, key, default=None):
        column = self._table.columns.get(key)
        return default if column is None else column.at(self._place)

    def __iter__(self):
        return iter(self._table.columns)

    def __len__(self):
        return len(self._table.columns)

    def __repr__(self):
        return repr(dict(self))


def kind_of(value):
    """Describes the type of a value and, of lists of numbers and of objects, of what is in it; equal for what can share a
    column."""
    of_type = type(value)
    if of_type is float:
        return REAL
    if of_type is int:
        return WHOLE if -2**63 <= value < 2**63 else OBJECT
    if of_type is dict:
        return tuple((key, kind_of(part)) for key, part in value.items())
    if of_type is list and value:
        return kind_of_list(value)
    return OBJECT


def kind_of_list(values):
    """Its code and its lengths if it has numbers of one type, or lists of equal length that have real ones."""
    types = set(map(type, values))
    if types == {float}:
        return REAL, len(values)
    if types == {int} and all(-2**63 <= value < 2**63 for value in values):
        return WHOLE, len(values)
    if types == {list} and len(set(map(len, values))) == 1 and set(map(type, itertools.chain(*values))) == {float}:
        return REAL, len(values), len(values[0])
    return OBJECT


def column_of(kind, once):
    if isinstance(kind, str):
        return Objects(once) if kind == OBJECT else Numbers(kind, ())
    return Numbers(kind[0], kind[1:]) if kind and isinstance(kind[0], str) else Parts(kind, once)


class Column:
    """Values of one kind, one after the other."""

    __slots__ = ("first", "count", "rest")

    def __init__(self):
        self.first, self.count, self.rest = None, 0, None

    def add(self, value):
        if self.count == 0:
            self.first = self.one(value)
        elif self.rest is None and not self.first == value:
            self.rest = self.repeated(self.first, self.count)
        if self.rest is not None:
            self.append(value)
        self.count += 1

    def at(self, place):
        return self.first if self.rest is None else self.nth(place)


class Objects(Column):
    """Texts, truths, and what has no column of its own kind."""

    __slots__ = ("one",)

    def __init__(self, once):
        super().__init__()
        self.one = once

    @staticmethod
    def repeated(value, count):
        return [value] * count

    def append(self, value):
        self.rest.append(self.one(value))

    def nth(self, place):
        return self.rest[place]


class Numbers(Column):
    """Numbers, or lists of them that have `lengths`."""

    __slots__ = ("code", "lengths", "size")

    def __init__(self, code, lengths):
        super().__init__()
        self.code, self.lengths, self.size = code, lengths, math.prod(lengths)

    @staticmethod
    def one(value):
        return value

    def repeated(self, value, count):
        return array.array(self.code, self.flat(value)) * count

    def append(self, value):
        self.rest.extend(self.flat(value))

    def flat(self, value):
        return (value,) if not self.lengths else value if len(self.lengths) == 1 else itertools.chain(*value)

    def nth(self, place):
        if not self.lengths:
            return self.rest[place]
        values = self.rest[place * self.size:(place + 1) * self.size].tolist()
        if len(self.lengths) == 1:
            return values
        return [values[start:start + self.lengths[1]] for start in range(0, self.size, self.lengths[1])]


class Parts(Column):
    """Objects of equal keys. Once they differ each key has a column."""

    __slots__ = ("kinds", "once")

    def __init__(self, kinds, once):
        super().__init__()
        self.kinds, self.once = kinds, once

    @staticmethod
    def one(value):
        return value

    def repeated(self, value, count):
        columns = {key: column_of(kind, self.once) for key, kind in self.kinds}
        for key, column in columns.items():
            column.first, column.count = value[key], count
        return columns

    def append(self, value):
        for key, column in self.rest.items():
            column.add(value[key])

    def nth(self, place):
        return {key: column.at(place) for key, column in self.rest.items()}


class Table:
    """Records of equal keys."""

    __slots__ = ("columns", "count")

    def __init__(self, kinds, once):
        self.columns = {key: column_of(kind, once) for key, kind in kinds}
        self.count = 0

    def add(self, record):
        """Returns the place of the record."""
        for key, column in self.columns.items():
            column.add(record[key])
        self.count += 1
        return self.count - 1
