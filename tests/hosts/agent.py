#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the place of ssh for Open MPI: runs a command on one of the hosts that hosts.py made. agent.py HOST COMMAND...

Processes of one host cannot start those of another, so the maker of the hosts does it, who listens at a socket in the
folder $BATON_HOSTS. The streams of this process go to it, and the exit code comes back.
"""

import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as maker:
    maker.connect(os.environ["BATON_HOSTS"] + "/agent")
    socket.send_fds(maker, ["\n".join([sys.argv[1], " ".join(sys.argv[2:])]).encode()], [0, 1, 2])
    maker.shutdown(socket.SHUT_WR)
    sys.exit(int(maker.recv(16) or b"1"))
