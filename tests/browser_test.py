# SPDX-License-Identifier: Apache-2.0
"""The look at pages finds what it is for: each page here has one fault, and the first has none."""

import unittest

import browser

FRAME = ('<!DOCTYPE html><html><head><meta charset="utf-8"><style>body {{ margin: 20px; font: 16px sans-serif }}</style>'
         "</head><body>{}</body></html>")

FINE = ('<p>Words <b>and</b> more words</p><div style="overflow: auto; width: 90px"><pre>a line that scrolls sideways</pre>'
        '</div><svg width="300" height="40"><rect width="300" height="40" fill="#eee"/><text x="9" y="25">inside</text>'
        "</svg>")

FAULTS = {
    "overlaps": '<div style="position: relative; height: 30px"><span style="position: absolute">first words</span>'
                '<span style="position: absolute; left: 40px">second words</span></div>',
    "is under": '<div style="position: relative">covered words<div style="position: absolute; inset: 0; background: #fff">'
                "</div></div>",
    "is cut by": '<div style="width: 60px; overflow: hidden; white-space: nowrap">words that are cut here</div>',
    "is cut by <svg": '<svg width="80" height="30"><text x="30" y="20">label that ends outside</text></svg>',
    "is crossed by": '<svg width="300" height="40"><path d="M0 20 L300 21" stroke="red" stroke-width="3"/>'
                     '<text x="20" y="25">label on a line</text></svg>',
    "leaves the page": '<p style="margin-left: -60px">words too far to the left</p>',
    "pixels wide": '<p style="width: 3000px">wide</p>',
    "script error": "<p>words</p><script>missing();</script>",
    "console.error": '<p>words</p><script>console.error("a complaint");</script>'}


@browser.needed
class Look(unittest.TestCase):
    def test_a_page_without_faults(self):
        self.assertEqual(browser.look(FRAME.format(FINE), 390), [])

    def test_each_fault_is_told(self):
        for said, body in FAULTS.items():
            with self.subTest(said):
                told = browser.look(FRAME.format(body), 390)
                self.assertTrue(any(said in line for line in told), told)

    def test_faults_that_a_click_makes(self):
        self.assertEqual(browser.look(FRAME.format(FINE), 390, "missing();"),
                         ["script error: missing is not defined"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
