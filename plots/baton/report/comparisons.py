# SPDX-License-Identifier: Apache-2.0
"""Comparisons: the rows of one session that compete with one another, since they differ in the algorithm alone.

Which records do is written in them (results.group_of). Measured and simulated rows never share a comparison, nor do softmax
attention, linear attention and those of a delta rule, or wires of unlike elements.
"""

import collections
import functools

from baton import cases, results, schema, words
from baton.report.rows import AUTO, COMPUTE_ONLY, LOCAL, OVERLAPPED, Row

CPU, GPU = "processors", "GPUs"
SCAN = "exclusive_scan"
MOVE_TOKENS = ("exchange", "all_to_all", "to_zigzag")  # the kinds of collectives whose time depends on the tokens
LINEAR, SOFTMAX = "linear", "softmax"
WORDS_OF_KINDS = {SCAN: "exclusive scan", "all_gather": "all-gather of the maps",
                  "reduce_scatter": "reduce-scatter of what is as large as the maps",
                  "exchange": "exchange of keys and values", "all_to_all": "all-to-all of heads and tokens",
                  "to_zigzag": "hidden states from contiguous to zigzag tokens",
                  "gdn": "GDN", "kda": "KDA", "deltanet": "DeltaNet", "rwkv7": "RWKV-7"}


class Comparison:
    """The rows of one comparison, the timed ones first and the fastest of them at the top.

    `group` is their results.Group, and comparison[key] the value of an axis that they share, such as comparison["ranks"].
    """

    def __init__(self, group, rows):
        self.group = group
        self.rows = sorted(rows, key=lambda row: (not row.is_timed, row.median or 0, row.name))
        self.record = self.rows[0].records[-1]
        self.apart = ()  # the axes in which others of its session differ from it (axes.note_differences)

    def __getitem__(self, key):
        return schema.value(self.record, key)

    @property
    def is_simulated(self):
        return results.is_simulated(self.record)

    @property
    def is_layer(self):
        """True if methods compete, in one layer or in a model."""
        return self["bench"] in results.OF_METHODS

    @property
    def is_model(self):
        return self["bench"] == "model"

    @property
    def on_gpus(self):
        return bool(self.record.get("device"))

    @property
    def run_by(self):
        """Who ran it, in a word: GPUs, processors for MPI, else the executor."""
        return GPU if self.on_gpus else {"mpi": CPU}.get(self["family"], self["family"])

    @property
    def kind(self):
        """The kind of a collective, or the attention of a layer."""
        return self["attention" if self.is_layer else "kind"]

    @property
    def way(self):
        """The direction of a collective, or the pass of a layer."""
        return self["pass" if self.is_layer else "direction"]

    @property
    def wire(self):
        """The type of elements within messages."""
        return self["wire_dtype"] or "f32"

    @property
    def dtype(self):
        """The type of a layer's tensors."""
        return self["dtype"] if self.is_layer else ""

    @property
    def model(self):
        return words.model(self.record) if self.is_model else ""

    @functools.cached_property
    def is_oversubscribed(self):
        """True if the ranks had fewer cores than busy threads, so that the times compare nothing."""
        return any(map(results.is_oversubscribed, self.records))

    @property
    def counts(self):
        """True if the comparison says something of this machine's links, or of a simulated machine's."""
        return self["family"] not in results.FOR_CHECKS and not self.is_oversubscribed and self["ranks_per_gpu"] <= 1

    @property
    def records(self):
        return [record for row in self.rows for record in row.records]

    @functools.cached_property
    def competitors(self):
        """The timed rows that are ranked, the fastest first: one of each algorithm on each executor.

        Of a layer these are the methods as they were published. Where the model chose a row's blocks, the rows of the
        same name with other numbers of blocks show what the choice is worth, and are not ranked.
        """
        chosen = {row.name[:-1] for row in self.rows if row.name.blocks == AUTO and row.is_timed}
        return [row for row in self.rows if row.is_timed and row.name.mode in ("", OVERLAPPED)
                and (row.name.blocks == AUTO or row.name[:-1] not in chosen)]

    @property
    def best(self):
        """The competitor with the least time, or None. Whether another one may be as fast is ranking.py's to say."""
        return next(iter(self.competitors), None)

    def label_of(self, row):
        """The row's name, with what sets it apart: native, exchange of states, blocks, executor."""
        name, others = row.name, [other.name for other in self.rows if other.is_timed]
        alike = [other for other in others if other.name == name.name]
        parts = [name.implementation] * (name.implementation not in ("schedule", name.name))
        parts += [name.scan] * (len({other.scan for other in alike if other.scan}) > 1 and bool(name.scan))
        parts += [name.shares] * (name.shares != schema.FIELDS["shares"]["absent"])
        parts += [f"K={name.blocks}"] * (name.blocks != AUTO and len({other.blocks for other in alike}) > 1)
        where = f" on {name.executor}" if len({other.executor for other in others}) > 1 else ""
        return f"{name.name} ({', '.join(parts)}){where}" if parts else f"{name.name}{where}"

    def beside(self, row, mode):
        """The timed row of the same method in another mode, or None."""
        same = [other for other in self.rows if other.is_timed and other.name.mode == mode
                and (other.name.name, other.name.executor, other.name.shares) == (row.name.name, row.name.executor, row.name.shares)
                and other.name.scan in (row.name.scan, "")]
        return min(same, key=lambda other: (other.name.blocks != row.name.blocks, other.name.blocks != AUTO),
                   default=None)

    def row_of(self, name, executor):
        """The fastest competitor of this name on this executor, or None."""
        return next((row for row in self.competitors if (row.name.name, row.name.executor) == (name, executor)), None)

    def local_of(self, row):
        """The timed layer without any exchange on the same executor, or None."""
        return next((other for other in self.rows if other.is_timed and other.name.name == LOCAL
                     and other.name.executor == row.name.executor), None)

    @property
    def local_rows(self):
        """The timed rows of local work alone: `local`, and every method without its exchange."""
        return [row for row in self.rows if row.is_timed and (row.name.mode == COMPUTE_ONLY or row.name.name == LOCAL)]

    @property
    def lost(self):
        """The rows that failed or are wrong; skipped rows could not run here, which is no failure."""
        return [row for row in self.rows if row.state in (cases.FAILED, cases.WRONG)]

    @property
    def where(self):
        """The ranks in words, such as `2 GPUs` or `4 ranks on processors`."""
        if self.on_gpus and self["ranks_per_gpu"] <= 1:
            return f"{self['ranks']} {GPU if self['ranks'] > 1 else 'GPU'}"
        ranks = f"{self['ranks']} {'ranks' if self['ranks'] > 1 else 'rank'}"
        return ranks if self.is_simulated else f"{ranks} on {self.run_by}"


def comparisons_of(records):
    """Returns the comparisons of these records, those with most ranks first. Each record belongs to one comparison."""
    groups = collections.defaultdict(lambda: collections.defaultdict(cases.Case))
    for record in records:
        groups[results.group_of(record)][results.rival(record)].add(record)
    comparisons = [Comparison(group, [Row(name, case) for name, case in found.items()]) for group, found in groups.items()]
    return sorted(comparisons, key=lambda one: (
        one.is_simulated, one["bench"], -one["ranks"], one.run_by, *one.group[1:4], str(one["ranks_per_node"]), one.kind, one.way,
        one["map"] or "", one["cadence"], one["state_bytes"], one["tokens"], one.group.axes))
