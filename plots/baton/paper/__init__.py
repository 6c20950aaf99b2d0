# SPDX-License-Identifier: Apache-2.0
"""The page of the papers, made of records: sections/ has one section a file."""
