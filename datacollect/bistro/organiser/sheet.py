"""Sheets to print: everybody's link as a QR code, to be cut out and handed over, a class a page."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.installation import command_for_package, is_absent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from datacollect.bistro.formats.event.event import Event

_STYLE = """
body { font: 11pt/1.35 system-ui, sans-serif; margin: 1.2cm; color: #000; background: #fff; }
h1 { font-size: 14pt; } h2 { font-size: 12pt; break-before: page; }
h2:first-of-type { break-before: auto; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5cm, 1fr)); }
.card { border: 1px dashed #777; padding: .35cm; display: flex; gap: .4cm; break-inside: avoid; }
.card svg { width: 3.4cm; height: 3.4cm; flex: none; }
.card p { margin: 0 0 .15cm; } .name { font-weight: 700; overflow-wrap: anywhere; }
.small { font-size: 8pt; overflow-wrap: anywhere; }
"""


@dataclass(frozen=True)
class Card:
    """One person's: the name, the class or an empty text, the link that brings the ticket."""

    name: str
    group: str
    link: str


def sheet_html(event: Event, cards: Sequence[Card]) -> str:
    """Return the page to print: a card for each person, each class on pages of its own.

    Raises
    ------
    ProblemError
        The package that draws the codes is not installed.
    """
    segno = _segno_or_advice()
    by_class = sorted(cards, key=lambda card: card.group)
    until = escape(event.clock_text(event.deadline_s))
    warning = (
        "<strong>Each card is a password:</strong> anyone who has it can hand in under that name. "
        "Give it to that person alone, and shred what is left over."
    )
    parts = [f"<h1>{escape(event.name)}</h1>", f"<p>To hand in until {until}. {warning}</p>"]
    for group, some in groupby(by_class, lambda card: card.group):
        if group:
            parts.append(f"<h2>{escape(group)}</h2>")
        drawn = "".join(_card(segno, card, event) for card in some)
        parts.append(f'<div class="cards">{drawn}</div>')
    title = escape(event.name)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</html>\n"
    )


def _card(segno: ModuleType, card: Card, event: Event) -> str:
    code = segno.make(card.link, error="m", micro=False)
    svg = code.svg_inline(scale=1, border=2, omitsize=True)
    return (
        f'<div class="card">{svg}<div><p class="name">{escape(card.name)}</p>'
        f"<p>{escape(event.name)}, until {escape(event.clock_text(event.deadline_s))}</p>"
        f'<p>Scan the code. It is your password.</p><p class="small">{escape(card.link)}</p>'
        "</div></div>"
    )


def _segno_or_advice() -> ModuleType:
    try:
        import segno
    except ImportError as error:
        if not is_absent(error, "segno"):
            raise
        command = command_for_package("segno")
        raise ProblemError(f"QR codes need segno: {command}") from None
    found: ModuleType = segno
    return found
