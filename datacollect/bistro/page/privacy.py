"""The privacy notice of a page: its own, in all its languages, or the organiser's."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_text

if TYPE_CHECKING:
    from os import PathLike

MOST_LETTERS = 20_000
# What stands between these in the page is its own notice.
_BEGIN, _END = "<!-- privacy -->\n", "\n<!-- end -->"
_URL = re.compile(r"https?://[^\s<>\"]*[^\s<>\".,;:!?)']")


def read_privacy(path: str | PathLike[str]) -> str:
    """Return the notice in a file.

    Parameters
    ----------
    path : path-like
        Text; an empty line ends a paragraph.

    Raises
    ------
    ProblemError
        The file cannot be read, is no text, is empty or longer than `MOST_LETTERS`.
    """
    text = read_text(path).strip()
    if not 0 < len(text) <= MOST_LETTERS:
        raise ProblemError(
            f"{document_name(path)}: a privacy notice must have 1 to {MOST_LETTERS} letters, got "
            f"{len(text)}; put the rest on a page of its own, and its address here"
        )
    return text


def with_privacy(page: str, notice: str | None) -> str:
    r"""Return a page with a notice in the place of its own; None: with its own.

    >>> with_privacy("<!-- privacy -->\n<p>Ours.</p>\n<!-- end -->", "See https://a.example.")
    '<p>See <a href="https://a.example" rel="noreferrer">https://a.example</a>.</p>'
    """
    before, rest = page.split(_BEGIN)
    own, after = rest.split(_END)
    return before + (own if notice is None else _paragraphs(notice)) + after


def _paragraphs(notice: str) -> str:
    paragraphs = re.split(r"\n\s*\n", notice.replace("\r\n", "\n"))
    return "\n".join(f"<p>{_linked(each)}</p>" for each in paragraphs)


def _linked(paragraph: str) -> str:
    made, at = [], 0
    for found in _URL.finditer(paragraph):
        url = html.escape(found[0])
        made += [html.escape(paragraph[at : found.start()])]
        made += [f'<a href="{url}" rel="noreferrer">{url}</a>']
        at = found.end()
    return "".join([*made, html.escape(paragraph[at:])])
