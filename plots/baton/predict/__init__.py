# SPDX-License-Identifier: Apache-2.0
"""Fits of a topology: what a library's collective calls take, and the cache of a host."""
