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
        self._indices, self._values = {}, {}

    def add(self, record):
        keys = tuple(record)
        if keys not in self._indices:
            self._indices[keys] = {key: index for index, key in enumerate(keys)}
        return Record(self._indices[keys], tuple(map(self._packed, record.values())))

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

    __slots__ = ("_indices", "_values")

    def __init__(self, indices, values):
        self._indices, self._values = indices, values

    def __getitem__(self, key):
        return unpacked(self._values[self._indices[key]])

    def get(self, key, default=None):
        index = self._indices.get(key)
        return default if index is None else unpacked(self._values[index])

    def __contains__(self, key):
        return key in self._indices

    def __iter__(self):
        return iter(self._indices)

    def __len__(self):
        return len(self._indices)

    def __repr__(self):
        return repr(dict(self))


def unpacked(value):
    of_type = type(value)
    return value.tolist() if of_type is array.array else [*map(unpacked, value)] if of_type is tuple else value
