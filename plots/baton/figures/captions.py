# SPDX-License-Identifier: Apache-2.0
"""Records in words, as titles, captions and footnotes have them."""

import collections

from baton import results, schema, words


def kind_word(records):
    """Returns what the records of one setting are, in a word. No setting has both."""
    return "simulated" if any(map(results.is_simulated, records)) else "measured"


def describe(record):
    """Returns the setting of a record in words, as a list that begins with the machine."""
    machine = record["machine"]
    if record["executor"] == results.SIMULATOR:
        machine = {"cpu": f"simulated: {record['topology']}"}
    cores = f", {machine['cores']} cores" if "cores" in machine else ""
    width = (f"d_k=d_v={record['d_k']}" if record["d_k"] == record["d_v"]
             else f"d_k={record['d_k']}, d_v={record['d_v']}")
    grouped = f", {record['kv_heads']} of keys" if "kv_heads" in record else ""
    grouped += ", latent" * schema.value(record, "latent")
    kernel, packed = schema.value(record, "kernel"), schema.value(record, "packed")
    return [f"{machine.get('cpu', 'unknown machine')}{cores}",
            *_asked(record),
            f"H={record['heads']}{grouped}, {width} ({words.binary_size(record['state_bytes'])} of state a rank)",
            *([f"packed documents of {packed} tokens"] * (packed > 0)),
            *([f"blocks by {kernel} {record.get('kernel_version', '')}"] * (kernel not in ("", "own"))),
            f"{record['cadence']} rounds"]


def _asked(record):
    if record["bench"] == "collective":
        return [f"{record['kind'].replace('_', ' ')}, {record['direction']}, executor {record['executor']}"]
    what = words.model(record) if record["bench"] == "model" else "operator of one layer"
    return [f"{what}, executor {record['executor']}",
            f"{record['dtype']} tensors, chunks of {record['chunk']} tokens, {record['groups']} group(s) of heads"]


def crowded_ranks(records):
    """Says for a caption on how many ranks the measurements are none of the exchange. Nothing if on none."""
    found = collections.defaultdict(set)
    for record in records:
        if results.crowded(record):
            found[results.crowded(record)].add(record["ranks"])
    return "; ".join(f"{why}, so no measure of the exchange: {', '.join(map(str, sorted(ranks)))} ranks"
                     for why, ranks in sorted(found.items()))
