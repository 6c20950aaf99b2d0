# SPDX-License-Identifier: Apache-2.0
"""What reading very many records needs: little memory, and a word on how far it is."""
