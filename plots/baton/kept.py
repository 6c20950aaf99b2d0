# SPDX-License-Identifier: Apache-2.0
"""Records in a fifth of the memory of dictionaries: texts, objects and sets of keys that are equal are kept once, and
times as an array. A record takes about 2 KB and 8 bytes for each time."""

import array
import collections.abc
import marshal

MOST_VALUES = 1 << 17  # of which equal ones are kept once


class Records:
    """Takes records, and gives back each as a mapping that cannot be changed."""

    def __init__(self):
        self._places, self._values = {}, {}

    def add(self, record):
        keys = tuple(record)
        if keys not in self._places:
            self._places[keys] = {key: place for place, key in enumerate(keys)}
        return Record(self._places[keys], tuple(map(self._packed, record.values())))

    def _packed(self, value):
        of_type = type(value)
        if of_type in (str, dict):
            if len(self._values) >= MOST_VALUES:
                self._values.clear()
            return self._values.setdefault(marshal.dumps(value, 2), value)  # which tells 1 from 1.0 and from true
        if of_type is list and value:
            types = set(map(type, value))
            if types == {float}:
                return array.array("d", value)
            if types == {list}:
                return tuple(map(self._packed, value))
        return value


class Record(collections.abc.Mapping):
    """One of them. A list is made anew for each who asks."""

    __slots__ = ("_places", "_values")

    def __init__(self, places, values):
        self._places, self._values = places, values

    def __getitem__(self, key):
        return unpacked(self._values[self._places[key]])

    def get(self, key, default=None):
        place = self._places.get(key)
        return default if place is None else unpacked(self._values[place])

    def __contains__(self, key):
        return key in self._places

    def __iter__(self):
        return iter(self._places)

    def __len__(self):
        return len(self._places)

    def __repr__(self):
        return repr(dict(self))


def unpacked(value):
    of_type = type(value)
    return value.tolist() if of_type is array.array else [*map(unpacked, value)] if of_type is tuple else value
