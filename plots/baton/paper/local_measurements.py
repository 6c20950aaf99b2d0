# SPDX-License-Identifier: Apache-2.0
"""The records that this checkout measured at a table's settings, or at the most tokens that fitted here."""

from baton.paper.sources import LOCAL, having


def groups(sources, most_tokens, machine=LOCAL, **wanted):
    """Yields (words on what was measured, records) of each executor, at its most tokens up to those of the table."""
    for (place, executor, timing), records in sources.here(**wanted):
        fitting = [record for record in records if record["tokens"] <= most_tokens]
        if place == machine and fitting:
            tokens = max(record["tokens"] for record in fitting)
            label = f"measured {'here' if place == LOCAL else place}, {executor}" + f", {timing}" * (timing != "isolated")
            yield label + smaller(tokens, most_tokens, "tokens"), having(fitting, tokens=tokens)


def smaller(count, most, what):
    """Names a size that is less than the table's."""
    return f", {count:,} of {most:,} {what}" if count < most else ""
