"""Names in the documents exist here: files, folders, modules and what they hold."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from instances.installed_packages import REGISTRIES
from judges.imports import REPOSITORY

PAGES = ("README.md", "CONTRIBUTING.md", "experiments/README.md")
DOCS = [path for path in (REPOSITORY / "docs").rglob("*.md") if "_build" not in path.parts]
DOCUMENTS = [*PAGES, *sorted(str(path.relative_to(REPOSITORY)) for path in DOCS)]

# Source files wherever they are named, and whatever begins with one of our folders; * is any part
# of a name, a word in capitals a name of one's own.
SOURCE = re.compile(r"(?<![\w./*-])[\w./*-]*\w\.(?:py|h|toml)\b")
FOLDERS = "datacollect|solvers|topologies|tests|experiments|docs|packaging"
PATH = re.compile(rf"(?<![\w./-])(?:{FOLDERS})/[\w./*-]*")
MODULE = re.compile(r"(?<![\w./-])datacollect(?:\.\w+)+")
# Scripts that have done what they were for.
EARLIER = re.compile(r"`experiments/\w+\.py`\s+of\s+commit\s+`?[0-9a-f]{7,}")
OWN_NAME = re.compile(r"(?<![A-Za-z])[A-Z]{3,}(?![A-Za-z])")

# Of entry points that other packages bring.
GROUPS = {registry.group for registry in REGISTRIES}

# Files that the documents' examples write, or that stand for a reader's own.
WRITTEN = re.compile(r"^[\w-]+\.toml$|^upload_server\.py$")


def missing_files(text: str, folder: str) -> list[str]:
    """Return the paths in a document that lead nowhere, from the top or from its own folder."""
    text = EARLIER.sub("", text)
    named = {path.rstrip(".") for path in (*SOURCE.findall(text), *PATH.findall(text))}
    return sorted(
        path
        for path in named
        if not (OWN_NAME.search(path) or WRITTEN.match(path) or _is_there(path, folder))
    )


def _is_there(path: str, folder: str) -> bool:
    places = (REPOSITORY, REPOSITORY / "datacollect", REPOSITORY / folder)
    return any([*place.glob(path.rstrip("/"))] for place in places)


def missing_modules(text: str) -> list[str]:
    """Return the dotted names that are no module, no name in one and no group of entry points."""
    return sorted(name for name in set(MODULE.findall(text)) if not _can_be_had(name))


def _can_be_had(name: str) -> bool:
    if name in GROUPS:
        return True
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        return all((found := getattr(found, part, None)) is not None for part in parts[n:])
    return False


@pytest.mark.parametrize("document", DOCUMENTS)
def test_everything_named_is_there(document):
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    assert missing_files(text, document.rpartition("/")[0]) == []
    assert missing_modules(text) == []


# Sphinx checks those of `docs/`.
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", [*PAGES, "CHANGELOG.md", "SECURITY.md"])
def test_every_link_leads_to_a_file(document):
    path = REPOSITORY / document
    links = LINK.findall(path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_what_is_not_there_is_found():
    text = """`datacollect/gone.py`, `flow/gone.py`, docs/gone.md. `datacollect.gone`,
    `datacollect.errors.Gone`; but `flow/routes/routes.py`, `tests/test_*.py`, `solvers/NAME.py`,
    `docs/`, `my.toml`, `experiments/gone.py` of commit 0c77f48f, `datacollect.errors`,
    `datacollect.Problem.from_dict`, an.org/docs/x."""
    files = ["datacollect/gone.py", "docs/gone.md", "flow/gone.py"]
    assert missing_files(text, "") == files
    assert missing_modules(text) == ["datacollect.errors.Gone", "datacollect.gone"]
