# SPDX-License-Identifier: Apache-2.0
"""What a library's collective calls take, predicted on a topology, and the fit that puts them there."""
