# SPDX-License-Identifier: Apache-2.0
"""The map of the page of the papers: which exchange wins, ranks against size of the state."""

from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle

from lib import looks, results, style
from lib.style import plt
from paper.sections.winners import TIE, margin_text

COLOURS = {family: looks.look(name).colour for family, name in (
    ("chain", "all_scan"), ("two-shot", "two_shot"), ("hierarchical", "hierarchical_scan"),
    ("doubling", "recursive_doubling"), ("gather", "all_gather_scan"))}
FULL = 2.5  # the margin from which on a colour is at its strongest


def winners(best):
    """{(ranks, state bytes): Best}"""
    ranks, sizes = (sorted({place[axis] for place in best}) for axis in (0, 1))
    figure, axes = plt.subplots(figsize=(9, 1.4 + 0.46 * len(ranks)), layout="constrained")
    for (count, size), one in best.items():
        x, y = sizes.index(size), ranks.index(count)
        axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=shade(one), edgecolor="none"))
        axes.text(x, y, margin_text(one), ha="center", va="center", fontsize=8.5,
                  color="white" if strength(one) > 0.6 else style.INK)
    axes.set_xlim(-0.6, len(sizes) - 0.4)
    axes.set_ylim(-0.6, len(ranks) - 0.4)
    axes.set_xticks(range(len(sizes)), [results.binary_size(size) for size in sizes], fontsize=8.5)
    axes.set_yticks(range(len(ranks)), [str(count) for count in ranks])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("state of a rank")
    axes.set_ylabel("ranks")
    shown = [family for family in COLOURS if any(one.family == family for one in best.values())]
    figure.legend(handles=[Patch(color=COLOURS[family], label=family) for family in shown], loc="outside lower left",
                  ncols=len(shown), frameon=False)
    return figure


def strength(one):
    """Returns the strength of the colour: faint at a tie, full from the margin FULL on."""
    if one.margin < TIE:
        return 0.25
    return 0.35 + 0.65 * min(1.0, (one.margin - 1) / (FULL - 1))


def shade(one):
    """Returns the family's colour, paler the closer the second family is."""
    share = strength(one)
    return tuple(1 - share * (1 - part) for part in to_rgb(COLOURS[one.family]))
