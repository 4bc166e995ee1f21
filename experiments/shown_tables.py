"""Tables that pages of the documents include, each from a file docs/tables/NAME.md."""

from __future__ import annotations

from pathlib import Path

TABLES = Path(__file__).resolve().parents[1] / "docs" / "tables"


def show(name: str, text: str) -> None:
    """Write a table in place of the one of that name."""
    (TABLES / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")


def shown(name: str) -> str:
    """Return a table as it is shown."""
    return (TABLES / f"{name}.md").read_text(encoding="utf-8").rstrip("\n")
