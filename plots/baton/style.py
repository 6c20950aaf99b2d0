# SPDX-License-Identifier: Apache-2.0
"""The look that all figures share, how they are laid out, and how they become files or parts of a page.

The colours and marks of methods are in looks.py, which needs the standard library alone.
"""

import io
import re
import textwrap
import warnings
from xml.etree import ElementTree

import markupsafe
import matplotlib
from matplotlib import ticker, transforms
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from baton import checks, files

# Okabe and Ito's colours and a grey, which colour-blind readers can distinguish. Markers distinguish them in print.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY = COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK = "#333333"
LABEL = {"fontsize": 8.5, "fontweight": "bold"}
POINTS_AN_INCH = 72
MOST_LINES = 8  # of a figure


SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"

# Names without end leave no room for axes, and those of some languages have no glyphs: such a figure is drawn as it comes,
# and says nothing to the terminal.
warnings.filterwarnings("ignore", category=UserWarning)
# Names of machines and cases are no formulas, whatever their signs.
matplotlib.rcParams.update({"text.parse_math": False, "svg.hashsalt": "baton", "font.size": 10, "text.color": INK,
                            "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK})


def subplots(size, rows=1, **options):
    """Returns a figure of so many inches and its axes, of which matplotlib keeps no list."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, **options)


def placed_axes(width, height, left, top, right, bottom):
    """Returns a figure of so many points, and its axes between these places, counted from the upper left."""
    figure = Figure(figsize=(width / POINTS_AN_INCH, height / POINTS_AN_INCH))
    FigureCanvasAgg(figure)
    return figure, figure.add_axes((left / width, 1 - bottom / height, (right - left) / width, (bottom - top) / height))


def add_grid(axes, axis):
    axes.grid(axis=axis, color="#dddddd", linewidth=0.8, gid="grid")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def add_titles(figure, axes, title_text, subtitle_text):
    """Adds both titles at the left edge of the axes."""
    axes.set_title(subtitle_text, loc="left", fontsize=8)
    title = figure.suptitle(title_text, ha="left", fontsize=13, fontweight="bold")
    figure.draw_without_rendering()
    title.set_x(axes.get_position().x0)


def add_heading(figure, title_text, about):
    """Adds a title and text above the axes, outside of the figure: to be saved with `bbox_inches="tight"`."""
    above = 8
    for text, size, look in ((textwrap.fill(about, 100), 8, {}), (textwrap.fill(title_text, 60), 12, {"fontweight": "bold"})):
        figure.axes[0].annotate(text, (0, 1), xytext=(0, above), xycoords="axes fraction", textcoords="offset points", fontsize=size, **look)
        above += 1.3 * size * (text.count("\n") + 1) + 6


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
    a thin line leads from each to its end. A name may have several lines of text."""
    axes.get_xlim(), axes.get_ylim()  # settles the limits, which the places depend on
    to_axes = axes.transData + axes.transAxes.inverted()
    inches = axes.get_figure().get_figheight() * axes.get_position().height
    line = 1.3 * size / POINTS_AN_INCH / inches
    wanted = [to_axes.transform((x, y))[1] for x, y, *_ in ends]
    heights = spread(wanted, [line * (name.count("\n") + 1) for _, _, name, _ in ends])
    for height, (x, y, name, colour) in zip(heights, ends):
        label = axes.annotate(name, (x, y), xytext=(1.03, height), textcoords=axes.transAxes, color=colour, va="center",
                              annotation_clip=False, **{**LABEL, "fontsize": size},
                              arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 3,
                                          "relpos": (0, 0.5)})
        label.arrow_patch.set_gid("leader")


def spread(wanted, heights, low=0.0, high=1.0):
    """Moves the centres of labels apart: `wanted` are their places, `heights` how high each label is.

    Returns places in the same order. Labels keep their order, and stay between `low` and `high` if there is room.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    places, edge = {}, low
    for index in order:
        places[index] = max(wanted[index], edge + heights[index] / 2)
        edge = places[index] + heights[index] / 2
    edge = high
    for index in reversed(order):
        places[index] = min(places[index], edge - heights[index] / 2)
        edge = places[index] - heights[index] / 2
    return [places[index] for index in range(len(wanted))]


def wrapped(name, letters):
    """Cuts a name behind underscores or spaces into lines of at most `letters` letters, where that can be."""
    return "\n".join(re.findall(rf".{{1,{letters}}}$|.{{1,{letters - 1}}}[_ -]|.{{{letters}}}", name)) or name


def hollow(axes, points, colour, marker, size):
    """Draws marks over those of [(x, y)], filled with white: measurements of another launch than the others."""
    axes.plot([x for x, _ in points], [y for _, y in points], linestyle="none", marker=marker, markersize=size,
              markerfacecolor="white", markeredgecolor=colour, zorder=3)


def save(figure, folder, name, **how):
    """Writes NAME.png and NAME.svg and prints their names. The same figure makes the same files."""
    files.write(folder, {f"{name}.{suffix}": drawn(figure, suffix, **how) for suffix in ("png", "svg")})
    print(f"Figure: {folder}/{name}.png, {folder}/{name}.svg")


def drawn(figure, suffix, **how):
    """Returns the figure as a file of this format. Throws checks.ResultsError."""
    into = io.BytesIO()
    try:
        figure.savefig(into, format=suffix, dpi=160, metadata={"Date": None} if suffix == "svg" else None, **how)
    except RuntimeError as error:  # of FreeType, whose rows have at most 32767 dots
        longest = max((text.get_text() for text in figure.findobj(matplotlib.text.Text)), key=len)
        raise checks.ResultsError(f"a text of the figure has {len(longest)} letters, which no image has room for: "
                                  f"{longest[:40]}...") from error
    return into.getvalue()


def inlined(figure, about, notes=()):
    """Returns the figure as SVG that a template puts into a page. `about` is what it shows, for those who do not see it; `notes` are {gid of an
    artist: the text that a pointer on it shows}.

    Text stays text. Names of parts that may occur in every figure go, but for the classes "grid" and "leader".
    """
    into = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": about, "font.sans-serif": ["DejaVu Sans"]}):
        figure.savefig(into, format="svg", metadata={"Date": None}, transparent=True)
    root = ElementTree.fromstring(into.getvalue())
    for part in root.findall(f"{{{SVG}}}metadata"):
        root.remove(part)
    text = into.getvalue().decode("utf-8")
    needed = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    for part in root.iter():
        name = part.attrib.get("id")
        if name in notes:
            title = ElementTree.Element(f"{{{SVG}}}title")
            title.text = notes[name]
            part.insert(0, title)
        if name in ("grid", "leader"):
            part.set("class", name)
        if name not in needed:
            part.attrib.pop("id", None)
    for size in ("width", "height"):
        root.attrib.pop(size)
    root.set("role", "img")
    root.set("aria-label", about)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", LINK)
    return markupsafe.Markup(ElementTree.tostring(root, encoding="unicode"))


def plain_log(axis, words="{x:g}", few=20):
    """Labels a logarithmic axis with round numbers, evenly spaced ones if there would be less than three."""
    low, high = axis.get_view_interval()
    subs = (1, 2, 5) if high < 300 * low else (1,)
    locator = ticker.LogLocator(subs=subs, numticks=few)
    if sum(low <= tick <= high for tick in locator.tick_values(low, high)) < 3:
        locator = ticker.MaxNLocator(6, steps=(1, 2, 5, 10))
    axis.set_major_locator(locator)
    axis.set_major_formatter(words)
    axis.set_minor_locator(ticker.NullLocator())
