"""Whether a server sends pages instead of files, one and the same for many: to log in, most likely.

Equal lengths are no evidence by themselves, nor is one host that all redirects lead to. What calls
itself HTML, begins so, and is not named so, is a page; for different names the same one, where it
comes from one address, or has one ETag.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from datacollect.transfer.sources.web.core.messages import Worth
from datacollect.transfer.sources.web.core.refusals import LET_IN
from datacollect.transfer.sources.web.core.urls import is_named_as_page, name_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.transfer.sources.web.core.messages import Answer
    from datacollect.transfer.sources.web.core.urls import Target


class _Key(NamedTuple):
    """What pages may have in common: of how many files it is too many, and where it is."""

    what: tuple[object, ...]
    n_needed: int
    where: str = ""


# What is proof by itself needs two files, what is less needs three.
TWO, THREE = 2, 3
# HTML begins so, or with blanks, or with the mark of its encoding; what is not known may be it.
_BEGINNINGS = (b"", b"<", b" ", b"\t", b"\r", b"\n", b"\xef")


def is_page(path: str, answer: Answer) -> bool:
    """Whether an answer is HTML, for a file that is not called so."""
    return answer.is_html and answer.begins in _BEGINNINGS and not is_named_as_page(path)


def is_page_elsewhere(path: str, target: Target, answer: Answer) -> bool:
    """Whether a redirect has led to a page of another name than was asked for."""
    landed = answer.landed
    return landed is not None and is_page(path, answer) and name_in(landed) != name_in(target)


class Sameness:
    """Remembers which addresses and versions pages were of. Not for several threads at a time."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[_Key, ...]] = {}
        self._counts: Counter[_Key] = Counter()

    def suspects(self, path: str, answer: Answer) -> bool:
        """Note an answer for a file of which no manifest says how many bytes it has.

        Returns
        -------
        bool
            Whether it may be the same page as for other files: only all answers together show it.
        """
        if answer.worth not in (Worth.GOOD, Worth.REFUSED) or not is_page(path, answer):
            return False
        if path not in self._keys:
            self._keys[path] = tuple(_evidence(answer))
            self._counts.update(self._keys[path])
        return bool(self._keys[path])

    def why(self, path: str) -> str | None:
        """Return why a file is a page that others are, too; None where it is none."""
        for key in self._keys.get(path, ()):
            n = self._counts[key]
            if n >= key.n_needed:
                return (
                    f"a login page? The server has one and the same page{key.where} for {n} files; "
                    f"{LET_IN}. If these are the files, give their bytes and sha256 in a manifest"
                )
        return None


def _evidence(answer: Answer) -> Iterator[_Key]:
    """Yield what is the same for the same page."""
    if (landed := answer.landed) is not None:
        address = landed.shown, *landed.origin
        yield _Key(("landed", *address), TWO, f" at {landed.shown}")
    if (etag := answer.version.etag) is not None:
        yield _Key(("etag", etag.removeprefix("W/")), TWO)
    if answer.n_bytes:
        yield _Key(("length", answer.n_bytes), THREE)
