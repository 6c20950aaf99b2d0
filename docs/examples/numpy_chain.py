# SPDX-License-Identifier: Apache-2.0
"""A chain of messages in NumPy, beside all_scan: python3 numpy_chain.py --ranks 4 -b 256K -e 16M

  into = state that the rank before sends;  the next rank gets decay * into + state
"""

import numpy

import baton


@baton.native("my_scan", bytes="N", hops="P-1", summary="a chain in NumPy")
def my_scan(call):
    carry = call.state
    if call.rank > 0:
        call.receive(call.into, call.rank - 1)
        carry = call.decay * call.into + call.state
    if call.rank + 1 < call.ranks:
        call.send(numpy.ascontiguousarray(carry), call.rank + 1)


baton.main()
