# SPDX-License-Identifier: Apache-2.0
"""Advises before there is a machine: which method is the fastest on a topology, by how much, and why."""

import argparse
import json
import re
import sys
import textwrap

from baton import fastest, program, results, stacks, words
from baton.advise import candidates, layouts, prefill
from baton.advise.simulator import Question, Refused, Simulator, topology_of

USAGE = ("./run advise --topology FILE --tokens N --heads H [--kv-heads G] --ranks P [--width D] [--pass W] [--dtype T] "
         "[--attention A] [--layouts]\n       ./run advise --topology FILE --model NAME --sequence N --ranks P,Q [--methods M] "
         "[--dtype T]")
EPILOG = """Three lines: softmax attention, linear attention, and a hybrid of one softmax layer and three linear ones, whose
tokens lie alike or move between layers. With --layouts, how long the hybrid takes for each layout of its tokens, at every
number of --tokens. With --model, how long a prefill of the model takes on each number of ranks that share the sequence, and where more
ranks stop to pay. All times are simulated. docs/topologies.md says what the words mean."""
ATTENTIONS = ("linear", "gdn", "kda", "deltanet", "rwkv7")
UNITS = {"": 1, "K": 2**10, "M": 2**20}
MIB = 2**20
COLUMNS = 100
MOST_NAMES = 3  # of those that cannot be told from the fastest
NOT_CALIBRATED = "the topology was not calibrated on its machine (its file names the source of each number)"


def main(arguments):
    options = arguments_of(arguments)
    if options.check:
        topology_of(options.topology)
        return
    if options.model:
        asked = prefill.Question(options.topology, options.model, options.sequence, options.ranks, options.dtype,
                                 options.methods or "all")
        times = prefill.times_of(options.programs, asked)
        print(prefill.as_json(times) if options.json else "\n".join(prefill.lines(asked, times)))
        return
    question = Question(options.topology, options.tokens[0], options.heads, options.kv_heads, options.width, options.ranks[0],
                        options.dtype, options.which, options.attention)
    if options.layouts:
        rows = {tokens: layouts.fastest_of(options.programs, question._replace(tokens=tokens)) for tokens in options.tokens}
        print(layouts.as_json(rows) if options.json else "\n".join(layouts.lines(question, rows)))
        return
    simulator = Simulator(options.programs, question)
    records, move = simulator.all_methods(), simulator.move()
    if options.json:
        print(json.dumps({"question": question._asdict(), **all_times(records, move)}, indent=2))
        return
    said = [*head(question, simulator.topology, records), *lines(records, simulator.with_hidden_share, move)]
    print(program.printable("\n".join(textwrap.fill(one, COLUMNS, subsequent_indent="#   " if one[0] == "#" else " " * 9,
                                                     break_on_hyphens=False, break_long_words=False) for one in said), sys.stdout))


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(f"{message}; try ./run advise --help")


def arguments_of(given):
    parser = Parser(prog="./run advise", usage=USAGE, description=__doc__, epilog=EPILOG, allow_abbrev=False)
    parser.add_argument("--topology", required=True, metavar="FILE", help="the machine: a file of topologies/, or your own")
    parser.add_argument("--tokens", type=counts, metavar="N", help="tokens a rank; 8K is 8192; a list for --layouts")
    parser.add_argument("--heads", type=count, metavar="H", help="heads of the queries")
    parser.add_argument("--kv-heads", type=count, metavar="G", help="heads of keys and values (default: as many)")
    parser.add_argument("--ranks", type=counts, metavar="P", help="one number; a list with --model")
    parser.add_argument("--model", metavar="NAME", help="a prefill of this model of model_bench, or of a file")
    parser.add_argument("--methods", metavar="NAMES", help="with --model: methods of model_bench (default: all)")
    parser.add_argument("--sequence", type=counts, metavar="N", help="with --model: tokens of all ranks together; a list")
    parser.add_argument("--width", type=count, default=128, metavar="D", help="channels of a head (default: 128)")
    parser.add_argument("--pass", dest="which", choices=("forward", "backward", "both"), default="both",
                        help="default: both")
    parser.add_argument("--dtype", choices=("bf16", "f32"), default="bf16", help="of the tensors (default: bf16)")
    parser.add_argument("--attention", choices=ATTENTIONS, default="linear", metavar="A",
                        help=f"of the linear layers: {', '.join(ATTENTIONS)} (default: linear)")
    parser.add_argument("--layouts", action="store_true", help="the hybrid by the layout of its tokens")
    parser.add_argument("--programs", default="build/cpu/bin", metavar="DIR", help="where the benches are")
    parser.add_argument("--json", action="store_true", help="print the times of all candidates as JSON")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # the arguments alone, before a build
    options = parser.parse_args(given)
    check_question(options)
    return options


def check_question(options):
    """Throws Refused unless the options are those of one question."""
    if options.model:
        for flag in ("tokens", "heads", "layouts"):
            if getattr(options, flag):
                raise Refused(f"--{flag}: a model has its own sizes; with --model give --sequence")
        if not options.sequence or not options.ranks:
            raise Refused("--sequence, --ranks: give the tokens that all ranks of --model share, and the numbers of ranks")
        return
    for flag in ("tokens", "heads", "ranks"):
        if not getattr(options, flag):
            raise Refused(f"--{flag}: needed unless --model is given; try ./run advise --help")
    if options.sequence:
        raise Refused("--sequence: only with --model; give --tokens of a rank")
    if options.methods:
        raise Refused("--methods: only with --model; all methods of a layer are compared")
    if len(options.ranks) > 1:
        raise Refused("--ranks: one number, or a list with --model")
    if options.ranks[0] < 2:
        raise Refused("--ranks: one rank exchanges nothing, so there is nothing to advise; give 2 or more")
    if len(options.tokens) > 1 and not options.layouts:
        raise Refused("--tokens: one number, or a list with --layouts")


def counts(text):
    return [count(one) for one in text.split(",")]


def count(text):
    """Returns a whole number of 1 or more, such as 8192 or 8K."""
    found = re.fullmatch(r"(\d+)([KM]?)", text)
    if not found or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number such as 8192 or 8K, found {text!r}")
    return int(found[1]) * UNITS[found[2]]


# --- The words ------------------------------------------------------------------------------------------


def head(question, topology, records):
    """Yields what was asked, how certain the answer is, and which methods cannot run."""
    heads = f"{question.heads} heads" + (f", {question.kv_heads} of keys and values in softmax layers," if question.kv_heads else "")
    passes = "forward and backward" if question.which == "both" else question.which
    yield (f"# ~ simulated, not measured: {passes}, {question.tokens} tokens on each of {question.ranks} ranks, {heads} "
           f"of {question.width}, {question.dtype}")
    calibrated = "calibration" in topology
    yield (f"# a difference below {percent(fastest.TYPICAL_ERROR)}, the simulator's typical error (docs/results.md), "
           f"is none{'; the topology was calibrated on its machine' if calibrated else ''}")
    beyond = sorted({one["extrapolated"] for one in records if one.get("extrapolated")})
    doubts = beyond if calibrated else [NOT_CALIBRATED, *beyond]
    if doubts:
        yield f"# less certain: {words.names(doubts)}"
    for one in records:
        if results.why_no_time(one):
            yield f"# {one['name']}: {results.why_no_time(one)}"


def lines(records, with_hidden_share, move=None):
    """Yields the three lines. `with_hidden_share` adds to a record what its hidden share is made of; that of a `move`
    has it."""
    known = {move["name"]: move} if move else {}

    def completed(candidate):
        for _, record in candidate.parts:
            if record["name"] not in known:
                known[record["name"]] = with_hidden_share(record)
        return candidate._replace(parts=[(layers, known[record["name"]]) for layers, record in candidate.parts])

    for title, found in candidates.comparisons(records, move).items():
        yield f"{title:<8} {sentence({one.name: one for one in found}, completed)}"


def all_times(records, move):
    """Returns the candidates of each line with their simulated seconds and ratios to the fastest, the fastest first."""
    found = {title: sorted((candidates.seconds(one), one.name) for one in stacks_of)
             for title, stacks_of in candidates.comparisons(records, move).items()}
    return {title: [{"name": name, "seconds": seconds, "ratio": seconds / times[0][0]} for seconds, name in times]
            for title, times in found.items()}


def sentence(found, completed):
    """Says which of {name: Stack} is the fastest, by how much, and why."""
    best = fastest.among({name: candidates.seconds(one) for name, one in found.items()})
    if best is None:
        return "no method runs here, see above"
    first = completed(found[best.name])
    start = f"~{words.seconds(best.seconds)} {best.name}"
    if best.runner_up is None:
        return f"{start}; nothing else runs here. It {sends(first)}."
    second = completed(found[best.runner_up])
    return f"{start}; {by_how_much(best)}. It {sends(first)}; {best.runner_up} {sends(second)}."


def by_how_much(best):
    if best.tied:
        more = " (--json has all times)" if len(best.tied) > MOST_NAMES + 1 else ""
        return f"no difference from {words.names(best.tied, MOST_NAMES)}{more}"
    return f"{best.runner_up} takes ~{words.factor(best.margin, 2)} times as long"


def sends(candidate):
    """Says what the busiest rank sends, in how many messages that wait for one another, and how much of it is hidden."""
    share = candidates.hidden_share(candidate)
    hidden = "takes next to no time" if share is None else f"{percent(max(share, 0))} hidden"
    return (f"sends {words.digits(stacks.total(candidate, 'sent_bytes') / MIB)} MiB in "
            f"{stacks.total(candidate, 'hops')} hops, {hidden}")


def percent(share):
    return f"{round(100 * share)} %"

