# SPDX-License-Identifier: Apache-2.0
"""The answer that the records of a session give, as text and as a page."""
