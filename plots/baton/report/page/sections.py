# SPDX-License-Identifier: Apache-2.0
"""The sections of the page below the cards: each module of this folder may list some as SECTIONS, with a template for each."""

import collections
import importlib
import pkgutil

# `order` sorts the sections, `name` is its anchor, `link` leads to it, and `title` stands above it. `make` takes the Content of
# the page and returns what the template calls `of`; nothing if the page has no such section.
Section = collections.namedtuple("Section", "order name link title template make")
# What the page is made of: the sessions, their letters, the page's file, and strips.Strips, which number the rows of tables.
Content = collections.namedtuple("Content", "sessions letters out rows")


def of_page(content):
    """Returns [(Section, what it has)] of the page, in their order."""
    folder = importlib.import_module(__package__)
    modules = [importlib.import_module(f"{__package__}.{module.name}") for module in pkgutil.iter_modules(folder.__path__)]
    found = sorted(section for module in modules for section in getattr(module, "SECTIONS", ()))
    return [(section, made) for section in found if (made := section.make(content))]
