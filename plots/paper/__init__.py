# SPDX-License-Identifier: Apache-2.0
"""The page of the papers: `python3 plots/paper` makes it of records, sections/ has one section a file."""
