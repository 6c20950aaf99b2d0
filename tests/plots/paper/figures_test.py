# SPDX-License-Identifier: Apache-2.0
"""Texts of figures never touch, however close the values are that they name."""

import itertools
import unittest

from baton import looks, style

METHODS = ("local", "zeco", "lasp2", "lasp1", "lasp2_as_released", "lasp1_as_released")
TOUCH = 0.5  # pixels by which boxes of texts may meet, since they are rounded


def touching(figure):
    """The pairs of texts in the axes of a figure whose boxes overlap."""
    figure.draw_without_rendering()
    texts = [text for axes in figure.axes for text in axes.texts if text.get_text()]
    # Of an annotation the text alone counts: its line leads to the point that it names.
    boxes = [(text.get_text(), text.get_window_extent() if not hasattr(text, "arrow_patch") else box_of(text))
             for text in texts]
    return [(one, other) for (one, a), (other, b) in itertools.combinations(boxes, 2)
            if min(a.x1, b.x1) - max(a.x0, b.x0) > TOUCH and min(a.y1, b.y1) - max(a.y0, b.y0) > TOUCH]


def box_of(annotation):
    import matplotlib.text
    annotation.update_positions(annotation.get_figure().canvas.get_renderer())
    return matplotlib.text.Text.get_window_extent(annotation)


class Labels(unittest.TestCase):
    def assert_free(self, figure):
        self.assertEqual(touching(figure), [])

    def test_bars_of_one_height(self):
        from baton.paper import bars
        series = [(name, name, "simulated", dict.fromkeys((8, 16, 32, 64, 128, 256), 0.97)) for name in METHODS]
        self.assert_free(bars.operator_bars(series))
        self.assert_free(bars.bars(series[:4]))

    def test_lines_that_end_at_one_height_or_early(self):
        from baton.paper import figures
        lines = [(name, {8: 1.0, 16: 2.0, **({32: 2.0} if place % 2 else {})})
                 for place, name in enumerate(list(looks.COLLECTIVES)[:12])]
        drawn = figures.scaling(lines)
        self.assertEqual(len(drawn.axes[0].lines), 8)
        self.assert_free(drawn)

    def test_lengths(self):
        from baton.paper import figures
        series = [(name, name, "simulated", {2: 1e6, 4: 2e6 + place}) for place, name in enumerate(METHODS)]
        self.assert_free(figures.lengths([*series, ("LASP-2, whole model", "lasp2", "published", {2: 2e6})]))

    def test_what_touches_is_found(self):
        figure, axes = style.subplots((6, 4))
        axes.text(0.5, 0.5, "one")
        axes.text(0.51, 0.5, "other")
        self.assertEqual(touching(figure), [("one", "other")])


if __name__ == "__main__":
    unittest.main()
