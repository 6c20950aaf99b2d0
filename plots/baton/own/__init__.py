# SPDX-License-Identifier: Apache-2.0
"""Natives and methods of the user's own, and the program that declares them."""
