"""Characters that no host's name may hold: invisible ones, by which two names look like one."""

from __future__ import annotations

import unicodedata

# Blanks and what only steers how text is set; control characters are shown by their codes.
_UNSEEN = ("Zs", "Zl", "Zp", "Cf")
# They join letters of some scripts, and parts of one sign: between letters they are seen.
_JOINERS = "\u200c\u200d"


def fault_of(name: str) -> str:
    r"""Return the rule that a name breaks, what breaks it, and the remedy; ``""``: none.

    Parameters
    ----------
    name : str
        Not empty.

    Examples
    --------
    >>> fault_of("New York"), fault_of("Zürich")
    ('', '')
    >>> fault_of("S1\u00a0")
    'must not end with a blank, got NO-BREAK SPACE there; remove it'
    >>> fault_of("S\u200b1")
    'must not hold invisible characters, got ZERO WIDTH SPACE in it; remove it'
    """
    if name.isascii() and name.isprintable() and name.strip() == name:
        return ""
    for end, at in (("begin", name[0]), ("end", name[-1])):
        if at.isspace() or unicodedata.category(at) in _UNSEEN:
            what = "a blank" if at.isspace() else "an invisible character"
            return f"must not {end} with {what}, got {_called(at)} there; remove it"
    for at in name:
        if at != " " and at not in _JOINERS and unicodedata.category(at) in _UNSEEN:
            remedy = "write a space" if at.isspace() else "remove it"
            return f"must not hold invisible characters, got {_called(at)} in it; {remedy}"
    if not unicodedata.is_normalized("NFC", name):
        composed = unicodedata.normalize("NFC", name)
        return (
            f"must be Unicode in its composed form, NFC, got {len(name)} characters for "
            f"{len(composed)}; type it again, or convert the file to NFC"
        )
    return ""


def _called(character: str) -> str:
    return unicodedata.name(character, f"U+{ord(character):04X}")
