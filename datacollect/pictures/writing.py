r"""Names in any script: which fonts have their characters, and what is written where none has.

matplotlib takes a character from the first font of a list that has it, else it draws a box and
warns. So characters that no font here has are written as their numbers, as in ``\u4e2d``.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FIRST = "DejaVu Sans"  # comes with matplotlib
# Fonts of boxes, of formulas, or with other characters at the places of letters.
_NOT_FOR_NAMES = (
    "Last Resort",
    "DejaVu Sans Display",
    "DejaVu Serif Display",
    "STIX",
    "cm",
    "Noto Color",
)
# Wide coverage first: names in one script then look alike.
_PREFERRED = (
    "Noto Sans CJK",
    "Noto Sans",
    "WenQuanYi",
    "Arial Unicode",
    "Microsoft YaHei",
    "PingFang",
    "Noto",
    "DejaVu",
)


def written(text: str) -> str:
    r"""Return a text as pictures can show it: what no font has, or no eye sees, as its number.

    >>> print(written("Zürich"), written("a\nb"), written("\u202etxt"))
    Zürich a\u000ab \u202etxt
    """
    return "".join(map(_written, text))


def visible(text: str) -> str:
    r"""Return a text with what no eye sees as its number: for pages, where browsers have the fonts.

    >>> print(visible("日本\u202e"), visible("a\tb"))
    日本\u202e a\u0009b
    """
    return "".join(_number(character) if _is_unseen(character) else character for character in text)


def inches_of(name: str) -> float:
    """Return about how wide a name is in bold letters of 10 points.

    >>> round(inches_of("geneva"), 3), round(inches_of("日本"), 3)
    (0.552, 0.37)
    """
    return sum(
        0.185
        if _width(letter) == 2
        else 0.155
        if letter in "WM@%mw"
        else 0.13
        if letter.isupper()
        else 0.092 * _width(letter)
        for letter in name
    )


def families(texts: Iterable[str]) -> list[str]:
    """Return the fonts that texts need, in the order in which they are asked for a character.

    >>> families(["Zürich", "geneva"])
    ['DejaVu Sans']
    """
    seen = {character for text in texts for character in text if character.isprintable()}
    found = (_family(character) for character in sorted(seen))
    return list(dict.fromkeys([FIRST, *(family for family in found if family is not None)]))


def width_of(text: str) -> int:
    r"""Return how wide a text is, in letters: those of East Asia take two, combining marks none.

    >>> width_of("abc"), width_of("日本"), width_of("e\u0301")
    (3, 4, 1)
    """
    return sum(map(_width, text))


def shortened(text: str, width: int) -> str:
    """Cut a text that is wider than a number of letters.

    >>> shortened("geneva", 6), shortened("geneva", 4), shortened("日本語", 4)
    ('geneva', 'gen…', '日…')
    """
    if width_of(text) <= width:
        return text
    kept, room = "", width - 1
    for character in text:
        room -= _width(character)
        if room < 0:
            break
        kept += character
    return kept + "…"


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@lru_cache(maxsize=4096)
def _written(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    if not _is_unseen(character) and _family(character) is not None:
        return character
    return _number(character)


def _number(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _is_unseen(character: str) -> bool:
    # Joiners are part of how words are spelt, in Persian or in Hindi.
    unseen = unicodedata.category(character) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
    return unseen and character not in "\u200c\u200d"


@lru_cache(maxsize=4096)
def _family(character: str) -> str | None:
    """Return the first font that has a character; None where none has."""
    number = ord(character)
    return next((family for family in _candidates() if number in _characters(family)), None)


@lru_cache(maxsize=1)
def _candidates() -> dict[str, str]:
    """Return files of upright fonts of normal weight by their family, preferred ones first."""
    from matplotlib.font_manager import fontManager

    files = {
        entry.name: entry.fname
        for entry in fontManager.ttflist
        if entry.style == "normal" and entry.weight in (400, "normal", "regular", "book")
    }

    def rank(name: str) -> tuple[int, str]:
        starts = [i for i, start in enumerate(_PREFERRED) if name.startswith(start)]
        return min(starts, default=len(_PREFERRED)), name

    names = sorted(files, key=rank)
    fit = [name for name in names if not name.startswith(_NOT_FOR_NAMES) and name != FIRST]
    return {name: files[name] for name in (FIRST, *fit)}


@lru_cache(maxsize=1024)
def _characters(family: str) -> frozenset[int]:
    """Return the numbers of a font's characters; none where it has pictures, not outlines."""
    from matplotlib.font_manager import get_font

    try:
        font = get_font(_candidates()[family])
        return frozenset(font.get_charmap()) if font.scalable else frozenset()
    except (OSError, RuntimeError, ValueError):  # a file that cannot be read as a font
        return frozenset()
