# SPDX-License-Identifier: Apache-2.0
"""Layers of one GPU by kernels here and by those of other projects, in turns."""
