# SPDX-License-Identifier: Apache-2.0
"""Every file that README.md, CONTRIBUTING.md and docs/ name exists: paths in backticks from the root, sources in backticks
without a folder anywhere, links from the page with the headings that they lead to."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("cmake", "collectives", "docs", "doctor", "harness", "micro", "models", "peers", "plots", "python", "compare", "report", "results", "sp_methods", "tests",
           "topologies")
NAMED = re.compile(r"`((?:{})/[\w./*-]+)`".format("|".join(FOLDERS)))
BARE = re.compile(r"`(\w+\.(?:hpp|cpp|cuh|cu|py|sh))`")
LINKED = re.compile(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)")
TO_HEADINGS = re.compile(r"\]\(([^)\s#:]*)#([^)\s]+)\)")
# What a run makes, and what a reader of a document is asked to write.
MADE = re.compile(r"results/(local|NAME)\b")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "results/README.md", ROOT / "results/peers/README.md",
         *sorted((ROOT / "docs").rglob("*.md"))]


SOURCES = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")}


def missing(page, text):
    """The names of the page that are no files."""
    text = FENCED.sub("", text)
    asked = set(re.findall(r"Save it as `([^`]+)`", text))
    paths = [name for name in NAMED.findall(text) if not MADE.match(name) and name not in asked]
    return [*(name for name in paths if not is_there(name)),
            *(name for name in BARE.findall(text) if name not in SOURCES),
            *(name for name in LINKED.findall(text) if not (page.parent / name).exists()),
            *(f"{name}#{heading}" for name, heading in TO_HEADINGS.findall(text)
              if heading not in headings(page.parent / name if name else page))]


def headings(page):
    """The names by which links reach the headings of a page."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE) if page.is_file() else []
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in found}


def is_there(name):
    """A file or folder, or a program by the name of its source."""
    return any(ROOT.glob(name.rstrip("/"))) or any(ROOT.glob(f"{name}.*"))


def unknown(text, sources):
    """The names of functions, types and members in backticks that no source has."""
    names = re.findall(r"`(?:\w+::)?(\w+)(?:<\w+>)?(?:\(\d\))?`", FENCED.sub("", text))
    return [name for name in names if not re.search(rf"\b{name}\b", sources)]


class Paths(unittest.TestCase):
    def test_what_documents_name_exists(self):
        found = [f"{page.relative_to(ROOT)}: {name}" for page in PAGES
                 for name in missing(page, page.read_text(encoding="utf-8"))]
        self.assertFalse(found, "\n" + "\n".join(found))

    def test_what_the_tour_names_is_in_the_sources(self):
        sources = "".join(path.read_text(encoding="utf-8") for folder in ("collectives", "sp_methods", "harness")
                          for path in (ROOT / folder).rglob("*.*") if path.suffix in (".cpp", ".hpp", ".cu", ".cuh"))
        found = unknown((ROOT / "docs/tour.md").read_text(encoding="utf-8"), sources)
        self.assertFalse(found, "\n" + "\n".join(found))

    def test_an_unknown_name_is_found(self):
        self.assertEqual(unknown("`Schedule::send` `all_scan` `finish(0)` `none_such`", "send all_scan finish"),
                         ["none_such"])

    def test_a_missing_file_is_found(self):
        text = ("`collectives/nothing.cpp` `none.hpp` [a](nothing.md) and `collectives/*.cpp` `all_scan.cpp` "
                "`results/local/` [b](design.md#rules) [c](design.md#no-heading)")
        self.assertEqual(missing(ROOT / "docs/page.md", text),
                         ["collectives/nothing.cpp", "none.hpp", "nothing.md", "design.md#no-heading"])


if __name__ == "__main__":
    unittest.main()
