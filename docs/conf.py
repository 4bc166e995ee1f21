"""Configuration of Sphinx. Build with `make docs`; nothing is fetched from the network."""

import json
from importlib.metadata import version as installed_version
from pathlib import Path

project = "datacollect"
author = "The datacollect authors"
copyright = "2026, the datacollect authors"
version = release = installed_version("datacollect")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
]
templates_path = ["_templates"]
# What pages include.
exclude_patterns = ["_build", "faults_table.md", "misbehaving_table.md", "page", "tables"]

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
