# SPDX-License-Identifier: Apache-2.0
"""The look that all figures share. Importing it chooses the backend, so take `plt` from here."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend must be chosen first)

# Okabe and Ito's colours and a grey, told apart by colour-blind readers; markers tell them apart in grey too.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY = COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK = "#333333"


def use():
    plt.rcParams.update({"svg.hashsalt": "baton", "font.size": 10, "text.color": INK, "axes.edgecolor": INK,
                         "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK})


def add_grid(axes, axis):
    axes.grid(axis=axis, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def add_titles(figure, axes, title_text, subtitle_text):
    """Both begin at the left edge of the axes."""
    axes.set_title(subtitle_text, loc="left", fontsize=8)
    title = figure.suptitle(title_text, ha="left", fontsize=13, fontweight="bold")
    figure.draw_without_rendering()
    title.set_x(axes.get_position().x0)


def save(figure, folder, name):
    """Writes NAME.png and NAME.svg and says so; the same figure makes the same files."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "svg"):
        figure.savefig(folder / f"{name}.{suffix}", dpi=160,
                       metadata={"Date": None} if suffix == "svg" else None)
    print(f"Figure: {folder}/{name}.png, {folder}/{name}.svg")
