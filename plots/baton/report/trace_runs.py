# SPDX-License-Identifier: Apache-2.0
"""The runs that leave traces of the fastest and of the slowest row of the comparisons that the answer is about."""

from baton.report import choice, rerun_command


def wanted(session):
    """Yields the program and the arguments of each run that leaves a trace which the page shows."""
    for subject, _, ends in choice.ends(session):
        for end, row in ends:
            record = row.records[-1]
            yield rerun_command.program(record), rerun_command.arguments(record, "--trace", file_of(end, subject))


def file_of(end, subject):
    return f"results/local/{end}_{subject}.json"
