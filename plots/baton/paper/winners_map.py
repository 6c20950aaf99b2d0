# SPDX-License-Identifier: Apache-2.0
"""The maps of the page of the papers: which exchange or which method wins, ranks against sizes."""

from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle

from baton import looks, style, words
from baton.paper.sections import maps

COLOURS = {family: looks.look(name).colour for family, name in (
    ("chain", "all_scan"), ("two-shot", "two_shot"), ("hierarchical", "hierarchical_scan"),
    ("doubling", "recursive_doubling"), ("gather", "all_gather_scan"))}
TIED = 0.35  # the strength of the colour of a winner that others cannot be told from


def winners(found):
    """{(ranks, state bytes): fastest.Fastest} of families, by their colours and margins."""
    return drawn(found, COLOURS.get, str, maps.margin_text, words.binary_size, "state of a rank", 0.46)


def methods(found):
    """{(ranks, tokens of a rank): fastest.Fastest} of methods, with their names."""
    return drawn(found, lambda name: looks.look(name).colour, first_part, lambda one: f"{broken(one.name)}\n{maps.margin_text(one)}".rstrip(),
                 "{:,}".format, "tokens of a rank", 0.62)


def drawn(found, colour_of, family_of, text_of, size_text, x_label, height):
    """Draws a cell for each place, paler where the winner has its like; the legend has the families of the winners."""
    cells = {}
    for place, one in found.items():
        share = TIED if one.tied else 1
        cells[place] = shade(colour_of(family_of(one.name)), share), text_of(one), ink(share)
    families = sorted({family_of(one.name) for one in found.values()})
    return grid(cells, size_text, x_label, [Patch(color=colour_of(family), label=family) for family in families], height)


def first_part(name):
    """Returns the softmax method of a stack, whose colour the stack has; any other name as it is."""
    return name.partition(" + ")[0]


def broken(name):
    """Returns a long name in two lines."""
    if " + " in name:
        return name.replace(" + ", "\n+ ", 1)
    cut = name.find("_", len(name) // 2)
    return name if len(name) <= 14 or cut < 0 else f"{name[:cut + 1]}\n{name[cut + 1:]}"


def grid(cells, size_text, x_label, handles, height):
    """Draws {(ranks, size): (colour, text, colour of the text)} as cells, `height` inches each."""
    ranks, sizes = (sorted({place[axis] for place in cells}) for axis in (0, 1))
    figure, axes = style.subplots((9, 1.4 + height * len(ranks)))
    for (count, size), (colour, text, of_text) in cells.items():
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


def ink(share):
    return "white" if share > 0.6 else style.INK


def shade(colour, share):
    """Returns the colour, paler the smaller the share is."""
    return tuple(1 - share * (1 - part) for part in to_rgb(colour))
