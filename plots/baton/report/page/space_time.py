# SPDX-License-Identifier: Apache-2.0
"""One round as a small space-time diagram: ranks from top to bottom, time to the right, messages as lines.

Steps that would be narrower than a pixel are drawn as one, and of many messages only some are drawn.
"""

import collections

from baton import traces, words
from baton.report.page import svg

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 900, 58, 14, 6, 42
COLOURS = {"compute": "#0072B2", "combine": "#D55E00", "copy": "#009E73", "native": "#CC79A7", "exchange": "#E69F00",
           "under way": "#56B4E9"}
MOST_MESSAGES = 300
PIXEL = 0.6  # steps that are nearer to one another are drawn as one


def figure(one, heading):
    """Returns the figure of a traces.Round as HTML."""
    ranks = one.title["ranks"]
    row = 30 if ranks <= 8 else max(8, 300 // ranks)
    bottom = TOP + row * ranks
    last = max(span.finish for span in one.spans)
    scale = svg.Linear(0, last, LEFT, WIDTH - RIGHT)
    parts = [*grid(scale, last, bottom), *names(ranks, row), *bars(one, scale, row), *messages(one, scale, row)]
    verbs = [verb for verb in COLOURS if any(shown_as(span.verb) == verb for span in one.spans)]
    key = "".join(f'<span><i style="background:{COLOURS[verb]}"></i>{verb}</span>' for verb in verbs)
    simulated = " Simulated." if one.title["executor"] == "simulator" else ""
    many = (f" {MOST_MESSAGES} of {len(one.messages)} messages are drawn." if len(one.messages) > MOST_MESSAGES else "")
    caption = (f"One round, no statistic.{simulated} Lines are messages, from their send's start to their receive's finish."
               f"{many} {one.title['case']}, commit {one.title['commit']}.")
    return (f'<figure class="wide"><h4>{words.escaped(heading)}</h4><p class="verbs">{key}</p><div class="scroll">'
            + svg.picture(WIDTH, bottom + BOTTOM, parts, heading)
            + f"</div><figcaption>{words.escaped(caption)}</figcaption></figure>")


def shown_as(verb):
    return "under way" if verb in traces.MESSAGES else verb


def grid(scale, last, bottom):
    unit = words.time_unit(last * 1e-6)
    for time in svg.linear_ticks(0, last, 8):
        x = scale(time)
        yield svg.element("line", x1=x, x2=x, y1=TOP, y2=bottom, class_="grid")
        if x < WIDTH - 40:
            yield svg.text(x, bottom + 16, words.in_unit(time * 1e-6, unit, False), class_="tick middle")
    yield svg.text((LEFT + WIDTH) / 2, bottom + 34, f"time since the common start, {unit[0]}", class_="tick middle")


def names(ranks, row):
    every = max(1, -(-svg.LINE // row))
    for rank in range(0, ranks, every):
        yield svg.text(LEFT - 6, TOP + row * rank + row / 2 + 4, f"rank {rank}", class_="tick end")


def bars(one, scale, row):
    """Steps on two lanes of each rank: local kernels above, the exchange below."""
    lanes = collections.defaultdict(list)
    for span in one.spans:
        lanes[span.rank, shown_as(span.verb)].append((scale(span.start), scale(span.finish)))
    for (rank, verb), times in sorted(lanes.items(), key=lambda entry: entry[0][1] != "under way"):
        lane, high = {"compute": (0.08, 0.42), "under way": (0.84, 0.1)}.get(verb, (0.5, 0.34))
        for start, finish in merged(times):
            yield svg.element("rect", x=start, y=TOP + row * (rank + lane), width=max(finish - start, 0.5),
                              height=row * high, fill=COLOURS.get(verb, "#7F7F7F"))


def merged(times):
    """Returns [start, finish] in pixels, one for all that touch one another."""
    found = []
    for start, finish in sorted(times):
        if found and start <= found[-1][1] + PIXEL:
            found[-1][1] = max(found[-1][1], finish)
        else:
            found.append([start, finish])
    return found


def messages(one, scale, row):
    every = max(1, -(-len(one.messages) // MOST_MESSAGES))
    for message in sorted(one.messages, key=lambda of: of.sent)[::every]:
        down = message.receiver > message.sender
        start, end = (TOP + row * (rank + (0.84 if down == sends else 0.16))
                      for rank, sends in ((message.sender, True), (message.receiver, False)))
        yield svg.path([(scale(message.sent), start), (scale(message.received), end)], stroke="#24292f",
                       stroke_width=0.7, stroke_opacity=0.55)
