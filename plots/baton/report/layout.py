# SPDX-License-Identifier: Apache-2.0
"""From the sentences of an answer to lines of at most 100 columns, WANTED_LINES of them if that can be.

If the sentences need more lines, those of the least worth are left out and counted; the page has them all. Findings,
caveats and failures stay whole, however many lines they take.
"""

import collections
import textwrap

from baton import words

WANTED_LINES, COLUMNS, INDENT = 18, 100, 12
SENTENCES, TITLES, JOINED = "sentences", "titles", "joined"  # what begins on a line of its own, if the lines allow it
LEFT_OUT = "Left out"

# A sentence of the answer: its heading, its text, and its worth. Those with MUST are never left out, and one that `opens` the
# answer to a question begins a line.
Sentence = collections.namedtuple("Sentence", "heading text worth opens", defaults=(False,))
MUST = 100


def lines(found, needs=()):
    """Returns Sentences as lines for a terminal. `needs` are pairs of a worth and those of which one must stay with it."""
    kept = list(found)
    while len(laid_out(counted(kept, found), JOINED)) > WANTED_LINES:
        optional = [one for one in kept if one.worth < MUST]
        if not optional:
            break
        kept.remove(min(optional, key=lambda one: one.worth))
    for worth, others in needs:
        if not any(one.worth in others for one in kept):
            kept = [one for one in kept if one.worth != worth]
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
        if not texts or one.opens or layout == SENTENCES or (layout == TITLES and len(texts) == 1):
            texts.append(one.text)
        else:
            texts[-1] += f" {one.text}"
    whole = "\N{NO-BREAK SPACE}%"  # no line begins with the sign
    return [line.replace(whole, " %") for heading, texts in paragraphs.items() for number, text in enumerate(texts)
            for line in textwrap.wrap(text.replace(" %", whole), COLUMNS, break_on_hyphens=False,
                                      subsequent_indent=" " * (INDENT + 1),
                                      initial_indent=f"{'' if number else heading:<{INDENT}} ")]
