# SPDX-License-Identifier: Apache-2.0
"""The maps of the page of the papers: which exchange or which method wins, ranks against sizes."""

from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle

from baton import looks, style, words
from baton.paper.sections import maps
from baton.paper.sections.winners import TIE, margin_text

COLOURS = {family: looks.look(name).colour for family, name in (
    ("chain", "all_scan"), ("two-shot", "two_shot"), ("hierarchical", "hierarchical_scan"),
    ("doubling", "recursive_doubling"), ("gather", "all_gather_scan"))}
FULL = 2.5  # the margin from which on a colour is at its strongest
TIED = 0.35  # the strength of the colour of a method that others cannot be told from


def winners(best):
    """{(ranks, state bytes): fastest.Fastest}"""
    drawn = {place: (shade(COLOURS[one.name], strength(one)), margin_text(one), ink(strength(one)))
             for place, one in best.items()}
    families = {one.name for one in best.values()}
    return grid(drawn, words.binary_size, "state of a rank",
                [Patch(color=colour, label=family) for family, colour in COLOURS.items() if family in families])


def methods(found):
    """{(ranks, tokens of a rank): fastest.Fastest}"""
    drawn = {}
    for place, one in found.items():
        share = TIED if one.tied else 1
        text = f"{broken(one.name)}\n{maps.margin_text(one)}".rstrip()
        drawn[place] = shade(looks.look(first_part(one.name)).colour, share), text, ink(share)
    names = sorted({first_part(one.name) for one in found.values()})
    return grid(drawn, "{:,}".format, "tokens of a rank",
                [Patch(color=looks.look(name).colour, label=name) for name in names], 0.62)


def first_part(name):
    """Returns the softmax method of a stack, whose colour the stack has; any other name as it is."""
    return name.partition(" + ")[0]


def broken(name):
    """Returns a long name in two lines."""
    if " + " in name:
        return name.replace(" + ", "\n+ ", 1)
    cut = name.find("_", len(name) // 2)
    return name if len(name) <= 14 or cut < 0 else f"{name[:cut + 1]}\n{name[cut + 1:]}"


def grid(drawn, size_text, x_label, handles, height=0.46):
    """Draws {(ranks, size): (colour, text, colour of the text)} as cells, `height` inches each."""
    ranks, sizes = (sorted({place[axis] for place in drawn}) for axis in (0, 1))
    figure, axes = style.subplots((9, 1.4 + height * len(ranks)))
    for (count, size), (colour, text, of_text) in drawn.items():
        x, y = sizes.index(size), ranks.index(count)
        axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=colour, edgecolor="none"))
        axes.text(x, y, text, ha="center", va="center", fontsize=8, color=of_text)
    axes.set_xlim(-0.6, len(sizes) - 0.4)
    axes.set_ylim(-0.6, len(ranks) - 0.4)
    axes.set_xticks(range(len(sizes)), [size_text(size) for size in sizes], fontsize=8.5)
    axes.set_yticks(range(len(ranks)), [str(count) for count in ranks])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(x_label)
    axes.set_ylabel("ranks")
    style.legend_below(axes, handles, ncols=min(len(handles), 5))
    return figure


def strength(one):
    """Returns the strength of the colour: faint at a tie, full from the margin FULL on."""
    if one.margin < TIE:
        return 0.25
    return 0.35 + 0.65 * min(1.0, (one.margin - 1) / (FULL - 1))


def ink(share):
    return "white" if share > 0.6 else style.INK


def shade(colour, share):
    """Returns the colour, paler the smaller the share is."""
    return tuple(1 - share * (1 - part) for part in to_rgb(colour))
