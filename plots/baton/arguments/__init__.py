# SPDX-License-Identifier: Apache-2.0
"""What the benches refuse in their arguments, before they are built."""
