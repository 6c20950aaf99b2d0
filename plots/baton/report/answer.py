# SPDX-License-Identifier: Apache-2.0
"""The answer: from what a session was asked to sentences, each question's own answer first.

A sentence never says more than the intervals do, and no simulated number stands under a measured heading.
"""

import collections

from baton import cases, results, words
from baton.report import axes, certainty, choice, costs, enough_ranks, findings, growth, layout, one_gpu, settings
from baton.report.comparisons import LINEAR, SCAN
from baton.report.layout import MUST, Sentence

HEAD, ONE_GPU, EXCHANGE, LAYER, MODEL = "ANSWER", "One GPU", "Exchange", "Layer", "Model"
RANKS, SIMULATED, SIMULATED_RANKS = "Ranks", "~ Simulated", "~ Ranks"
CERTAINTY, FAILED, VERIFIED = "Caveats", "Failures", "Verified"
BENCHES = {EXCHANGE: "collective", LAYER: "operator", MODEL: "model"}

# The answer to one question: its heading, the comparison that stands for it, a title of what it has other than the first one of
# its heading, and its sentences as (text, worth), the answer first. `comparison` is None where nothing can be said.
Asked = collections.namedtuple("Asked", "heading comparison title sentences")
(PREDICTIONS, LAYER_LASP2, BOUND, EXCHANGES_OF, SIMULATED_EXCHANGE, SIMULATED_LAYER, SIMULATED_ON, COST, DECIDE, EXCHANGE_LASP2,
 OTHER_EXECUTORS) = range(11)
OTHER_QUESTION, OTHER_SETTING = 60, 20  # the worth of the first of them; of each further question it is less
OF_MODELS = ("heads", "dtype", "threads_per_rank")  # what a model's name and machine say
MOST_SIMULATED = 4  # sentences on what was simulated that are always there, if nothing else was asked
MOST_ALONE = 6  # other settings of a method that nothing competes with


def lines(session):
    """Returns the answer of a session as lines for a terminal."""
    return layout.lines([one for one in sentences(session) if one.text], [(SIMULATED_ON, (SIMULATED_EXCHANGE, SIMULATED_LAYER))])


def sentences(session):
    """Returns all Sentences of a session, in the order of the answer."""
    found, alone = asked(session), one_gpu.sentences(one_gpu.works(session))
    used = [one.comparison for one in found if one.comparison]
    parts = [Sentence(HEAD, head(session, used), MUST), *(Sentence(ONE_GPU, text, MUST) for text in alone)]
    parts += [Sentence(one.heading, text, worth, number == 0) for one in found for number, (text, worth) in enumerate(titled(one))]
    parts += [Sentence(RANKS, text, MUST, True) for text in enough_ranks.sentences(session, simulated=False)]
    parts += simulated(session, bool(alone) or not session.measured)
    parts += [Sentence(SIMULATED_RANKS, text, MUST, True) for text in enough_ranks.sentences(session, simulated=True)]
    parts += [Sentence(CERTAINTY, text, MUST) for text in certainty.sentences(session, used)]
    failed = certainty.failures(session)
    return [*parts, Sentence(FAILED, failed, MUST) if failed else Sentence(VERIFIED, certainty.verified(session), MUST)]


def titled(one):
    """The sentences of an Asked, with the title before the first one."""
    (text, worth), *others = [sentence for sentence in one.sentences if sentence[0]]
    if one.comparison is None:
        return [(text, worth), *others]
    number = len(one.comparison.competitors)
    compared = f", {number} compared" * (number > 1)
    return [(f"{one.title}{compared}: {words.lowered(text)}", worth), *others]


def simulated(session, is_asked):
    """What was simulated. Where nothing else was asked, its first sentences are always there."""
    where, *texts, off = growth.sentences(session)
    worths = [MUST] * MOST_SIMULATED if is_asked else [SIMULATED_EXCHANGE, SIMULATED_LAYER]
    worths += [SIMULATED_EXCHANGE] * len(texts)
    found = [(where, MUST if is_asked else SIMULATED_ON), *zip(texts, worths), (off, PREDICTIONS)]
    return [Sentence(SIMULATED, text, worth, worth == MUST) for text, worth in found]


def head(session, used):
    """Where and when this was measured; that it proves nothing, if it does not."""
    where = [", ".join([*session.machines[:1], *([words.count(session.cores, "core")] if session.cores else [])])]
    made = [certainty.launches_of(comparison) for comparison in used] or [session.launches]
    launches = [words.count(made[0], "launch", "launches") if min(made) == max(made) else f"{min(made)} to {max(made)} launches"]
    origin = "; ".join([*filter(None, where), *launches * (max(made) > 0), f"commit {', '.join(session.commits)}", session.newest[:10]])
    if not session.measured:
        return f"{origin}. Nothing was measured: all rows are simulated."
    crowded = [record for record in session.measured if cases.state_of(record) == cases.TIMED
               and results.is_oversubscribed(record)]
    if not used and crowded:
        return (f"{origin}. THIS RUN PROVES NOTHING ABOUT SPEED: {certainty.ranks_on_cores(crowded)} had more busy threads than "
                "cores, so times show who waited for a core.")
    return origin + "; [low, high]: 95 % interval over launches" * (max(made) > 1) + "."


def asked(session):
    """Returns the Asked of all that was measured, bench by bench."""
    found, on_one_gpu = [], bool(one_gpu.works(session))
    for heading, bench in BENCHES.items():
        questions = [one for one in choice.questions(session, bench) if not (on_one_gpu and one.main.on_gpus)]
        found += [answered(session, heading, one, number, questions[0].main) for number, one in enumerate(questions)]
        ran = [record for record in session.measured if record["bench"] == bench and not (on_one_gpu and record.get("device"))]
        if ran and not questions:
            found.append(Asked(heading, None, "", [(unsaid(ran), MUST)]))
    return found


def answered(session, heading, question, number, before):
    """The Asked of a question, the `number`th of its bench; its title has only what differs from the comparison `before`."""
    comparison, together = question.main, settings.alike(question)
    over = settings.summary(together)
    varying = settings.varying(question.comparisons)
    shared = [axis for axis, text in axes.phrases(comparison).items() if number and axes.phrases(before)[axis] == text]
    title = axes.heading(comparison, *(settings.varying(together) if over else ()), *shared, *(OF_MODELS if comparison.is_model else ()))
    worth = OTHER_QUESTION - number if number else MUST
    if len(comparison.competitors) < 2:
        return Asked(heading, comparison, title, [(costs.alone(comparison), worth), (alone_elsewhere(question, varying), worth),
                                                 (costs.matters(comparison) if costs.cost_of_exchange(comparison) else "", COST)])
    winner, further = findings.winner(comparison), min(worth, OTHER_SETTING) if number else MUST
    parts = [(over, worth), (f"{at(comparison, settings.varying(together))}: {words.lowered(winner)}", further) if over else (winner, worth),
            ("" if over and not comparison.is_layer else findings.slower(comparison), further), (findings.lost(comparison), further)]
    parts += [] if number else details(session, comparison)
    return Asked(heading, comparison, title, parts + elsewhere(question, together if over else [comparison], varying, worth))


def at(comparison, varying):
    """A setting as a sentence begins with it."""
    text = settings.setting(comparison, varying)
    return f"{text[:1].upper()}{text[1:]}" if "pass" in varying[:1] else f"At {text}"


def elsewhere(question, stated, varying, worth):
    """The comparisons of a question that its sentences leave out, the first of them one by one."""
    others = [one for one in question.comparisons if one not in stated and len(one.competitors) > 1
              and (one.is_layer or one["ranks"] > 1)]  # one rank exchanges nothing
    found = [(f"{at(one, varying)}: {words.lowered(findings.winner(one))}", min(worth, OTHER_SETTING))
             for one in others[:settings.MOST_SINGLE]]
    more = len(others) - len(found)
    return found + [(f"{words.count(more, 'more setting')} of it on the page.", PREDICTIONS)] * (more > 0)


def alone_elsewhere(question, varying):
    """The times of a method that nothing competes with in the other settings."""
    others = [one for one in question.comparisons if one is not question.main]
    times = [f"{settings.setting(one, varying)} {words.time_of(costs.row_of(one))}" for one in others[:MOST_ALONE]]
    times += [f"{len(others) - MOST_ALONE} more"] * (len(others) > MOST_ALONE)
    return f"Elsewhere: {'; '.join(times)}." if times else ""


def details(session, comparison):
    """What else is known of a comparison, as (text, worth)."""
    decide = ("" if certainty.is_busy(session) else findings.to_decide(comparison), DECIDE)
    if comparison.is_model:
        return [(costs.throughput(comparison), COST), decide]
    if not comparison.is_layer:
        gather = [(findings.over_lasp2(comparison), EXCHANGE_LASP2)] * (comparison.kind == SCAN)
        return [(findings.of_two_ranks(comparison), MUST), *gather, (findings.on_other_executors(comparison), OTHER_EXECUTORS), decide,
                (costs.over_bound(comparison), BOUND)]
    return [(findings.exchanges_of(comparison), EXCHANGES_OF), decide,
            (findings.over_lasp2(comparison) if comparison.kind == LINEAR else "", LAYER_LASP2), (costs.matters(comparison), COST)]


def unsaid(ran):
    """Why nothing can be said of the records of one bench."""
    timed = [record for record in ran if cases.state_of(record) == cases.TIMED]
    if not timed:
        skipped = [record["skipped"] for record in ran if "skipped" in record]
        return f"No row has a time: {ran[0]['name']} was skipped: {skipped[0]}." if len(skipped) == len(ran) else "No row has a time."
    if all(map(results.is_oversubscribed, timed)):  # the head or the caveats say which ranks on which cores
        return "Nothing can be said: its ranks had more busy threads than cores."
    if all(record["executor"] in results.FOR_CHECKS for record in timed):
        return f"Nothing can be said of speed: {timed[0]['executor']} runs all ranks in one process, for checks and not for times."
    return "Nothing can be said: each row had too few cores, or too few GPUs, for its ranks."
