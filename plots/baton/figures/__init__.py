# SPDX-License-Identifier: Apache-2.0
"""Single figures of records and traces, as PNG and SVG."""
