# SPDX-License-Identifier: Apache-2.0
"""Writes a topology of many machines like a calibrated one, joined by links as fast as its own.

  ./run grow results/local/calibration.json --ranks 256 --out results/local/machine.json

Memory that the ranks of one machine share stays theirs: a message between machines uses a link alone. Times on it are
extrapolated, and the simulator marks them so, since the calibration has the ranks of one machine.
"""

import argparse
import json
import pathlib

from baton import checks, files
from baton.upgrade import renamed


def main(arguments):
    parser = argparse.ArgumentParser(prog="./run grow", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calibration", type=pathlib.Path, help="a topology of one node, as --calibrate writes it")
    parser.add_argument("--ranks", type=int, default=256, help="ranks that must fit (256)")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args(arguments)
    try:
        grown_topology = grown(renamed(json.loads(files.text_of(options.calibration)), 3), options.ranks)
    except (OSError, ValueError, RecursionError) as error:
        raise checks.ResultsError(f"{options.calibration}: {getattr(error, 'strerror', None) or error}") from error
    except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise checks.ResultsError(f"{options.calibration}: no topology that --calibrate wrote: {error}") from error
    files.write(options.out.parent, {options.out.name: json.dumps(grown_topology, indent=2) + "\n"})


def grown(topology, ranks):
    """Returns the topology with as many nodes as `ranks` need. Throws ValueError for one of several nodes."""
    machine = topology["machine"]
    if machine["nodes"] != 1:
        raise ValueError(f"it has {machine['nodes']} nodes; only a single one can be repeated")
    nodes = -(-ranks // machine["ranks_per_node"])
    between = {key: value for key, value in topology["links"]["intra_node"].items() if not key.startswith("node_")}
    between["source"] = "taken to be as the link within the machine: " + between["source"]
    return {**topology,
            "name": f"{nodes} x {topology['name']}",
            "description": f"{nodes} machines like the one at hand, joined by links as fast as its own",
            "machine": {**machine, "nodes": nodes},
            "links": {**topology["links"], "inter_node": between}}

