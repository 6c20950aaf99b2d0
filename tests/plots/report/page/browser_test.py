# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: nothing overlaps, is cut or is too wide at two widths, and no script complains."""

import unittest

import browser
from plots.report.page import pages

# Opens all that a reader can open: figures behind a click, the rounds of rows in every table; sorts and filters.
OPEN_ALL = """
for (const details of document.querySelectorAll("details")) details.open = true;
for (const table of document.querySelectorAll("table.sorts")) {
  for (const title of table.tHead.querySelectorAll("button")) { title.click(); title.click(); }
  for (const more of [...table.querySelectorAll("button.more")].slice(0, 2)) more.click();
  if (!table.querySelector(".strip code")) console.error("no rounds were shown");
  table.parentElement.style.maxHeight = "none";
}
const filter = document.getElementById("filter");
filter.value = "zeco";
filter.dispatchEvent(new Event("input"));
if (!/^[1-9]\\d* rows$/.test(document.getElementById("count").textContent)) console.error("the filter found nothing");
filter.value = "";
filter.dispatchEvent(new Event("input"));
"""

# Checks the order of a column that was sorted twice, the slowest row first.
SORTED = """
const table = document.querySelector("table.sorts");
const titles = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
const column = titles.findIndex((title) => title.textContent.startsWith("median"));
const button = titles[column].querySelector("button");
button.click();
button.click();
const values = [...table.tBodies[0].rows].map((row) => Number(row.cells[column].dataset.v));
if (values.length < 2 || values.some((value, index) => index && value > values[index - 1])) console.error(values);
"""

# Checks that each row of a table shows its name, what tells it from rows of that name, its median and its ratio.
IN_SIGHT = """
for (const table of document.querySelectorAll("table.sorts")) {
  const shown = new Set();
  for (const row of table.tBodies[0].rows) {
    const seen = [...row.cells].filter((cell) => cell.offsetWidth && cell.getBoundingClientRect().right <= innerWidth);
    const words = seen.length >= 3 && seen[0].innerText;
    if (!words || shown.has(words)) console.error(`${seen.length} cells of ${row.cells[0].textContent} are seen, or it is there twice`);
    shown.add(words);
  }
}
"""


@browser.needed
class PageInBrowser(unittest.TestCase):
    def assert_fine(self, page, before=""):
        for width in browser.WIDTHS:
            with self.subTest(width=width):
                self.assertEqual(browser.look(page, width, before), [])

    def test_as_it_opens(self):
        self.assert_fine(pages.html_of(pages.whole()))

    def test_with_everything_open(self):
        self.assert_fine(pages.html_of(pages.whole()), OPEN_ALL)

    def test_of_two_sessions(self):
        self.assert_fine(pages.html_of(pages.whole(), pages.session(pages.scans(), pages.layers())), OPEN_ALL)

    def test_rows_are_distinguished_on_a_telephone(self):
        page = pages.html_of(pages.session(pages.scans(), pages.layers()))
        self.assertEqual(browser.look(page, min(browser.WIDTHS), IN_SIGHT), [])

    def test_tables_sort(self):
        self.assertEqual(browser.look(pages.html_of(pages.whole()), 1280, SORTED), [])


if __name__ == "__main__":
    unittest.main()
