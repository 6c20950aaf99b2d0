# SPDX-License-Identifier: Apache-2.0
"""How much longer what the simulator names takes than the fastest, in contests that were measured or published."""
