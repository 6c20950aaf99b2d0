# SPDX-License-Identifier: Apache-2.0
"""The look that all figures share. Importing it chooses the backend, so take `plt` from here.

The colours and marks of methods are in looks.py, which pages without matplotlib read too.
"""

import io
import warnings

import matplotlib
from matplotlib import transforms

from baton import files

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Okabe and Ito's colours and a grey, which colour-blind readers can distinguish. Markers distinguish them in print.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY = COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK = "#333333"
LABEL = {"fontsize": 8.5, "fontweight": "bold"}
POINTS_AN_INCH = 72
MOST_LINES = 8  # of a figure


def use():
    # Names without end leave no room for axes: such a figure is drawn as it comes, and says nothing to the terminal.
    warnings.filterwarnings("ignore", message="constrained_layout not applied")
    # Names of machines and cases are no formulas, whatever their signs.
    plt.rcParams.update({"text.parse_math": False, "svg.hashsalt": "baton", "font.size": 10, "text.color": INK,
                         "axes.edgecolor": INK,
                         "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK})


def add_grid(axes, axis):
    axes.grid(axis=axis, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def add_titles(figure, axes, title_text, subtitle_text):
    """Adds both titles at the left edge of the axes."""
    axes.set_title(subtitle_text, loc="left", fontsize=8)
    title = figure.suptitle(title_text, ha="left", fontsize=13, fontweight="bold")
    figure.draw_without_rendering()
    title.set_x(axes.get_position().x0)


def legend_below(axes, handles, **options):
    """Adds a legend under the axes and what they are labelled with, at the left end of the labels."""
    figure = axes.get_figure()
    figure.draw_without_rendering()
    inside, labelled = axes.get_window_extent(), axes.get_tightbbox()
    corner = transforms.ScaledTranslation((labelled.x0 - inside.x0) / figure.dpi, (labelled.y0 - inside.y0) / figure.dpi - 0.06,
                                          figure.dpi_scale_trans)
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=axes.transAxes + corner,
                borderaxespad=0, frameon=False, **options)


def label_lines(axes, ends, size=LABEL["fontsize"]):
    """Names lines, [(x, y, name, colour)] with their last points, beside the axes. Names that would overlap move apart, and
    a thin line leads from each to its end."""
    axes.get_xlim(), axes.get_ylim()  # settles the limits, which the places depend on
    to_axes = axes.transData + axes.transAxes.inverted()
    labels = sorted((to_axes.transform((x, y))[1], x, y, name, colour) for x, y, name, colour in ends)
    inches = axes.get_figure().get_figheight() * axes.get_position().height
    heights = spread([label[0] for label in labels], 1.3 * size / POINTS_AN_INCH / inches)
    for height, (_, x, y, name, colour) in zip(heights, labels):
        axes.annotate(name, (x, y), xytext=(1.03, height), textcoords=axes.transAxes, color=colour, va="center",
                      annotation_clip=False, **{**LABEL, "fontsize": size},
                      arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 3,
                                  "relpos": (0, 0.5)})


def hollow(axes, points, colour, marker, size):
    """Draws marks over those of [(x, y)], filled with white: measurements of another launch than the others."""
    axes.plot([x for x, _ in points], [y for _, y in points], linestyle="none", marker=marker, markersize=size,
              markerfacecolor="white", markeredgecolor=colour, zorder=3)


def spread(heights, apart=0.05, top=1.0):
    """Moves rising heights up where they would overlap, and down again where that leaves the axes."""
    moved = []
    for height in heights:
        moved.append(max(height, moved[-1] + apart) if moved else height)
    for index in reversed(range(len(moved))):
        ceiling = top if index == len(moved) - 1 else moved[index + 1] - apart
        moved[index] = min(moved[index], ceiling)
    return moved


def save(figure, folder, name):
    """Writes NAME.png and NAME.svg and prints their names. The same figure makes the same files."""
    files.write(folder, {f"{name}.{suffix}": drawn(figure, suffix) for suffix in ("png", "svg")})
    print(f"Figure: {folder}/{name}.png, {folder}/{name}.svg")


def drawn(figure, suffix):
    into = io.BytesIO()
    figure.savefig(into, format=suffix, dpi=160, metadata={"Date": None} if suffix == "svg" else None)
    return into.getvalue()
