# SPDX-License-Identifier: Apache-2.0
"""Whether a machine is fit to measure on: findings from the readings that the program `doctor_readings` takes."""
