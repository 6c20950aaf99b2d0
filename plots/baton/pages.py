# SPDX-License-Identifier: Apache-2.0
"""Pages of HTML that work from disk and fetch nothing, made of templates, which escape what they are given."""

import pathlib

import jinja2
import markupsafe

HERE = pathlib.Path(__file__).parent


def own(name):
    """The text of a file of the package, without the line of its licence, which is not the page's."""
    return markupsafe.Markup((HERE / name).read_text(encoding="utf-8").partition("\n")[2])


TEMPLATES = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined,
                               trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
TEMPLATES.globals["own"] = own


def made(template, **values):
    """The page that a template makes of these values."""
    return TEMPLATES.get_template(template).render(**values)
