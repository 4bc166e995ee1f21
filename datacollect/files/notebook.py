"""Tables for notebooks: facts and rows as HTML, with everything escaped that others named."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def html_of_facts(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return a title and a table of names and values.

    >>> html_of_facts("Plan", [("from", "<b>")])
    '<b>Plan</b><table><tr><th style="text-align:left">from</th><td>&lt;b&gt;</td></tr></table>'
    """
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in facts
    )
    return f"<b>{escape(title)}</b><table>{rows}</table>"


def html_of_rows(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a title and a table with headings.

    >>> html_of_rows("T", ["a"], [["1"]])
    '<b>T</b><table><tr><th>a</th></tr><tr><td>1</td></tr></table>'
    """
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<b>{escape(title)}</b><table><tr>{head}</tr>{body}</table>"


def html_of_text(text: str) -> str:
    """Return text as it stands, folded away.

    >>> html_of_text("a < b")
    '<details><summary>in words</summary><pre>a &lt; b</pre></details>'
    """
    return f"<details><summary>in words</summary><pre>{escape(text)}</pre></details>"
