# SPDX-License-Identifier: Apache-2.0
"""The answer: from the contests of a session to lines of at most 100 columns, WANTED_LINES of them if that can be.

A sentence never says more than the intervals do, and no simulated number stands under a measured heading. If the
sentences need more lines, those of the least worth are left out and counted; the page has them all. Findings, caveats
and failures stay whole, however many lines they take.
"""

import collections
import textwrap

from baton import captions, cases, words
from baton.report import axes, certainty, choice, findings, growth, one_gpu
from baton.report.contests import FOR_CHECKS

WANTED_LINES, COLUMNS, INDENT = 18, 100, 12
SENTENCES, TITLES, JOINED = "sentences", "titles", "joined"  # what begins on a line of its own, if the lines allow it
HEAD, ONE_GPU, EXCHANGE, LAYER, MODEL = "ANSWER", "One GPU", "Exchange", "Layer", "Model"
SIMULATED, CERTAINTY, LEFT_OUT, FAILED, VERIFIED = "~ Simulated", "Caveats", "Left out", "Failures", "Verified"

# A sentence of the answer: its heading, its text, and its worth. Those with MUST are never left out.
Sentence = collections.namedtuple("Sentence", "heading text worth")
MUST = 100
(OTHER_FAMILY, PREDICTIONS, LAYER_LASP2, BOUND, EXCHANGES_OF, SIMULATED_EXCHANGE, SIMULATED_LAYER, SIMULATED_ON, SOFTMAX,
 COST, DECIDE, NEAR, EXCHANGE_LASP2, OTHER_EXECUTORS, TWO_RANKS) = range(15)


def lines(session):
    """Returns the answer of a session as lines for a terminal."""
    found = [one for one in sentences(session) if one.text]
    kept = list(found)
    while len(laid_out(counted(kept, found), JOINED)) > WANTED_LINES:
        optional = [one for one in kept if one.worth < MUST]
        if not optional:
            break
        kept.remove(min(optional, key=lambda one: one.worth))
    if not any(one.worth in (SIMULATED_EXCHANGE, SIMULATED_LAYER) for one in kept):  # it stands before them
        kept = [one for one in kept if one.worth != SIMULATED_ON]
    layouts = [laid_out(counted(kept, found), layout) for layout in (SENTENCES, TITLES, JOINED)]
    return next((lines_of for lines_of in layouts if len(lines_of) <= WANTED_LINES), layouts[-1])


def counted(kept, found):
    """The sentences that are kept, and before the last one how many of those that were found are left out."""
    left = len(found) - len(kept)
    text = f"{words.count(left, 'sentence')}; the page has {'it' if left == 1 else 'them'}."
    return [*kept[:-1], *[Sentence(LEFT_OUT, text, MUST)] * bool(left), kept[-1]]


def laid_out(kept, layout):
    """The sentences under their headings, which stand at the left; what `layout` says begins on a line of its own."""
    paragraphs = collections.defaultdict(list)
    for one in kept:
        texts = paragraphs[one.heading]
        if not texts or layout == SENTENCES or (layout == TITLES and len(texts) == 1):
            texts.append(one.text)
        else:
            texts[-1] += f" {one.text}"
    whole = "\N{NO-BREAK SPACE}%"  # no line begins with the sign
    return [line.replace(whole, " %") for heading, texts in paragraphs.items() for number, text in enumerate(texts)
            for line in textwrap.wrap(text.replace(" %", whole), COLUMNS, break_on_hyphens=False,
                                      subsequent_indent=" " * (INDENT + 1),
                                      initial_indent=f"{'' if number else heading:<{INDENT}} ")]


def sentences(session):
    """Returns all Sentences of a session, in the order of the answer."""
    exchanges, layers = choice.exchanges(session), choice.layers(session)
    exchange, layer = choice.the_exchange(exchanges), choice.the_layer(layers)
    alone = one_gpu.sentences(one_gpu.works(session))
    used = [one for one in (exchange, layer) if one]
    found = [Sentence(HEAD, head(session, used), MUST), *(Sentence(ONE_GPU, text, MUST) for text in alone)]
    if used or session.measured and not alone:
        found += of_exchange(session, exchange, exchanges) + of_layer(session, layer) + of_model(session)
    worths = (MUST, MUST, MUST, PREDICTIONS) if alone else (SIMULATED_ON, SIMULATED_EXCHANGE, SIMULATED_LAYER, PREDICTIONS)
    found += [Sentence(SIMULATED, text, worth) for text, worth in zip(growth.sentences(session), worths)]
    found += [Sentence(CERTAINTY, text, MUST) for text in certainty.sentences(session, used)]
    failed = certainty.failures(session)
    return [*found, Sentence(FAILED, failed, MUST) if failed else Sentence(VERIFIED, certainty.verified(session), MUST)]


def head(session, used):
    """Where and when this was measured; that it proves nothing, if it does not."""
    where = [", ".join([*session.machines[:1], *([words.count(session.cores, "core")] if session.cores else [])])]
    most = max((len(contest.best.launches) for contest in used), default=session.launches)
    launches = [words.count(most, "launch", "launches")] if most else []
    told = "; ".join([*filter(None, where), *launches, f"commit {', '.join(session.commits)}", session.newest[:10]])
    if not session.measured:
        return f"{told}. Nothing was measured: all rows are simulated."
    crowded = [record for record in session.measured if cases.state_of(record) == cases.TIMED
               and certainty.is_oversubscribed(record)]
    if not used and crowded:
        return (f"{told}. THIS RUN PROVES NOTHING ABOUT SPEED: {certainty.ranks_on_cores(crowded)} had more busy threads than "
                "cores, so times show who waited for a core.")
    return told + "; [low, high]: 95 % interval over launches" * (most > 1) + "."


def of_exchange(session, contest, found):
    if contest is None:
        return [Sentence(EXCHANGE, nothing(session, "collective"), MUST)]
    others = choice.the_exchange(choice.on_other_family(found, contest))
    beside = f"On {others.run_by} ({words.count(others['ranks'], 'rank')}): {findings.winner(others)}" if others else ""
    return [Sentence(EXCHANGE, title(contest), MUST), Sentence(EXCHANGE, findings.everywhere(contest, found), MUST),
            Sentence(EXCHANGE, winner_at_size(contest, found), MUST),
            Sentence(EXCHANGE, "" if findings.everywhere(contest, found) else findings.slower(contest), MUST),
            Sentence(EXCHANGE, findings.lost(contest), MUST),
            Sentence(EXCHANGE, findings.of_two_ranks(contest), TWO_RANKS),
            Sentence(EXCHANGE, findings.over_lasp2(contest), EXCHANGE_LASP2),
            Sentence(EXCHANGE, findings.on_other_executors(contest), OTHER_EXECUTORS),
            Sentence(EXCHANGE, "" if certainty.is_busy(session) else findings.to_decide(contest), DECIDE),
            Sentence(EXCHANGE, findings.over_bound(contest), BOUND), Sentence(EXCHANGE, beside, OTHER_FAMILY)]


def winner_at_size(contest, found):
    """Who is fastest, with the size where a sentence on all sizes stands before it."""
    told = findings.winner(contest)
    if not findings.everywhere(contest, found):
        return told
    return f"At {captions.binary_size(contest['state_bytes'])} {told[:1].lower()}{told[1:]}"


def of_layer(session, contest):
    softmax = choice.softmax_layer(session, contest)
    apart = f"Softmax, ranked apart ({softmax.where}): {findings.winner(softmax)}" \
        if softmax else ""
    if contest is None:
        return [Sentence(LAYER, nothing(session, "operator"), MUST), Sentence(LAYER, apart, SOFTMAX)]
    return [Sentence(LAYER, title(contest), MUST), Sentence(LAYER, findings.winner(contest), MUST),
            Sentence(LAYER, findings.slower(contest), MUST), Sentence(LAYER, findings.lost(contest), MUST),
            Sentence(LAYER, findings.exchanges_of(contest), EXCHANGES_OF),
            Sentence(LAYER, "" if certainty.is_busy(session) else findings.to_decide(contest), DECIDE),
            Sentence(LAYER, findings.over_lasp2(contest), LAYER_LASP2), Sentence(LAYER, findings.near(contest), NEAR),
            Sentence(LAYER, findings.matters(contest), COST), Sentence(LAYER, apart, SOFTMAX)]


def of_model(session):
    """The model at most ranks, if one was measured; a run of the other benches alone has none."""
    contest = choice.the_layer(choice.models(session))
    if contest is None:
        untold = any(record["bench"] == "model" for record in session.measured)
        return [Sentence(MODEL, nothing(session, "model"), MUST)] if untold else []
    return [Sentence(MODEL, title(contest, "heads", "dtype", "threads_per_rank"), MUST),
            Sentence(MODEL, findings.winner(contest), MUST), Sentence(MODEL, findings.slower(contest), MUST),
            Sentence(MODEL, findings.lost(contest), MUST), Sentence(MODEL, findings.throughput(contest), COST)]


def title(contest, *without):
    """The contest in words, without the axes named, and with the number of those compared."""
    return f"{axes.heading(contest, *without)}; {len(contest.competitors)} compared."


def nothing(session, bench):
    """Why nothing can be said of one bench."""
    timed = [record for record in session.measured if record["bench"] == bench
             and cases.state_of(record) == cases.TIMED]
    if not timed:
        return "Not measured." if not any(record["bench"] == bench for record in session.measured) \
            else "No row has a time."
    if all(map(certainty.is_oversubscribed, timed)):  # the head or the caveats say which ranks on which cores
        return "Nothing can be said: its ranks had more busy threads than cores."
    if all(record["executor"] in FOR_CHECKS for record in timed):
        return f"Nothing can be said: {timed[0]['executor']} runs all ranks in one process, for checks and not for times."
    others = [axes.heading(contest) for contest in session.contests if contest["bench"] == bench and choice.competes(contest, False)]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        return f"The page compares: {others[0]}{more}."
    return "Nothing to compare: no two methods were timed on two ranks or more."
