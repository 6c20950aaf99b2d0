# SPDX-License-Identifier: Apache-2.0
"""Fits what a topology says of a library's calls to published cells of few GPUs, or the cache of a host to measured rows."""

import argparse
import json
import pathlib
import re

from baton import files, program
from baton.checks import ResultsError
from baton.predict import cells

EPILOG = """With --fit the topology gets the section natives, from cells with the columns system, nccl,
collective, gpus, total_bytes and microseconds. With --fit-cache it gets the section device.cache, from records of
collective_bench on its processors. docs/topologies.md says what stands in both."""
NEITHER = ("--fit or --fit-cache is missing. What calls of NCCL take on a topology are rows of collective_bench --executor simulator "
           "--topology FILE --ranks P --collectives nccl_all_gather,nccl_reduce_scatter,nccl_all_to_all")


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ResultsError(f"{message}; try ./run predict --help")


def main(arguments):
    options = arguments_of(arguments)
    if options.check:
        return
    if options.fit:
        fit(options)
    else:
        fit_cache(options)


def arguments_of(given):
    parser = Parser(prog="./run predict", description=__doc__, epilog=EPILOG, allow_abbrev=False)
    parser.add_argument("--topology", required=True, metavar="FILE", help="the machine: a file of topologies/, or your own")
    parser.add_argument("--fit", metavar="CELLS", help="fit the calls to the cells of this CSV, and write a topology")
    parser.add_argument("--system", metavar="NAME", help="of the cells")
    parser.add_argument("--fit-gpus", type=counts, default=[2, 4], metavar="P",
                        help="numbers of GPUs whose cells are fitted; others are never read (default: 2,4)")
    parser.add_argument("--fit-cache", metavar="RECORDS", help="fit the cache to half of the rows of these records, judge it "
                        "by the other half, and write a topology")
    parser.add_argument("--out", metavar="FILE", help="the topology with what was fitted (default: that of --topology)")
    parser.add_argument("--programs", default="build/cpu/bin", metavar="DIR", help="where collective_bench is")
    for flag in ("--native", "--gpus", "--bytes"):  # of the predictions that were printed before: NEITHER says where they are
        parser.add_argument(flag, help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # the arguments alone, before a build
    options = parser.parse_args(given)
    if bool(options.fit) != bool(options.system):
        raise ResultsError("--fit and --system go together")
    if not options.fit and not options.fit_cache:
        raise ResultsError(NEITHER)
    if options.fit and options.fit_cache:
        raise ResultsError("--fit and --fit-cache are two questions")
    return options


def counts(text):
    """Returns the whole numbers of 1 or more in a text such as 2,4."""
    return list(map(program.positive, text.split(",")))


def fit(options):
    from baton.predict import fitting  # needs scipy, which --help does without

    found = cells.of_system(cells.read(options.fit), options.system, options.fit_gpus)
    kind = fitting.kind_of(found)
    origin = f"system {options.system} of {options.fit}, {found[0].library}"
    topology = topology_in(options.topology)
    calibration = topology.pop("calibration", None)
    topology["natives"] = fitting.section(found, kind, origin)
    if calibration:
        topology["calibration"] = calibration
    path = write(options, topology)
    print(f"{path}: {len(found)} cells of {options.system} on {', '.join(map(str, options.fit_gpus))} GPUs, "
          f"links of kind {kind}")


def fit_cache(options):
    from baton.predict import caches  # needs scipy, as fits do

    topology = topology_in(options.topology)
    if not isinstance(topology.get("device"), dict):
        raise ResultsError(f"{options.topology}: no topology, which has the section device")
    cache = topology["device"]["cache"] = caches.fit(options.fit_cache, topology, options.programs)
    print(f"{write(options, topology)}: a cache of {cache['bytes'] / 2**20:.0f} MiB, beyond it {cache['slowdown']:.0%} longer; "
          f"{cache['source']}")


def write(options, topology):
    path = pathlib.Path(options.out or options.topology)
    files.write(path.parent, {path.name: written(topology)})
    return path


def topology_in(path):
    """Returns the JSON object of a topology, which the output may replace. Throws ResultsError."""
    try:
        topology = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultsError(f"{path}: {error}") from error
    if not isinstance(topology, dict):
        raise ResultsError(f"{path}: no topology, which is a JSON object")
    return topology


def written(topology):
    """Returns the text of a topology, each point of a curve on a line with its neighbours."""
    text = json.dumps(topology, indent=2, ensure_ascii=False)
    point = re.compile(r'\{\s+"bytes": ([^,]+),\s+"seconds": (\S+)\s+\}')
    text = point.sub(r'{"bytes": \1, "seconds": \2}', text)
    return re.sub(r'(\},)\n\s+(?=\{"bytes")', r"\1 ", text) + "\n"
