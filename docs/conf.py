"""Configuration of Sphinx. Build with `make docs`; nothing is fetched from the network."""

from __future__ import annotations

import json
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "datacollect"
author = "The datacollect authors"
copyright = "2026, the datacollect authors"
version = release = installed_version("datacollect")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
]
# Pages of source, of which are hundreds, show nothing that could be wrong: whoever only looks for
# warnings, as CI does, leaves them out (`make docs DOCS='-t unread'`).
if "unread" not in tags:  # noqa: F821 - Sphinx brings it
    extensions.append("sphinx.ext.viewcode")
templates_path = ["_templates"]
# What pages include.
exclude_patterns = ["_build", "faults_table.md", "misbehaving_*table.md", "tables"]

html_theme = "furo"
html_title = f"datacollect {version}"
html_copy_source = False

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "substitution"]
# Numbers in sentences, {{ group.name }}: experiments/study_numbers.py makes them from results.
myst_substitutions = json.loads((Path(__file__).parent / "tables" / "numbers.json").read_text())
myst_heading_anchors = 3

# Docstrings: single backticks name objects of ours.
default_role = "py:obj"
numpydoc_show_class_members = False  # autodoc lists them
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = True

# `sphinx-build -n` reports every reference without a target; those to Python and numpy have none,
# since nothing is fetched.
nitpick_ignore_regex = [(r"py:.*", r"(?!datacollect\.).*")]


def _shorten_map(
    _app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    """Show the chapters alone beside pages of source and of single names, of which are hundreds.

    To lay out the whole map, with all names, takes most of a second on each of some 1700 pages.
    """
    if page.startswith(("_modules/", "api/generated/")) and "toctree" in context:
        whole = context["toctree"]
        context["toctree"] = lambda **options: whole(**options | {"collapse": True, "maxdepth": 1})


def setup(app: Sphinx) -> None:
    """Register what these documents do besides."""
    app.connect("html-page-context", _shorten_map, priority=100)
