# SPDX-License-Identifier: Apache-2.0
"""Two results of the benches, case by case: the verdict, and the gate of counted and simulated figures."""
