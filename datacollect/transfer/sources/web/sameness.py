"""Whether a server sends pages instead of files, one and the same for many: to log in, most likely.

Equal lengths are no evidence by themselves, nor is one host that all redirects lead to. What calls
itself HTML, begins so, and is not named so, is a page; for different names the same one, where it
comes from one address, or has one ETag.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias

from datacollect.errors import IdentityError
from datacollect.transfer.sources.web.messages import Worth
from datacollect.transfer.sources.web.refusals import LET_IN
from datacollect.transfer.sources.web.urls import is_named_as_page, name_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.transfer.sources.web.messages import Answer
    from datacollect.transfer.sources.web.urls import Target

    _Key: TypeAlias = tuple[object, ...]

# What tells by itself needs two files, what tells less three.
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
    """Remembers which addresses and versions pages were of; for any thread.

    Parameters
    ----------
    name : str
        The server, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._paths: dict[_Key, set[str]] = {}

    def note(self, path: str, answer: Answer) -> None:
        """Note an answer for a file of which no manifest says how many bytes it has.

        Raises
        ------
        IdentityError
            It is the same page as for other files.
        """
        if answer.worth not in (Worth.GOOD, Worth.REFUSED) or not is_page(path, answer):
            return
        with self._lock:
            for key, n_needed in _evidence(answer):
                paths = self._paths.setdefault(key, set())
                if len(paths) < THREE:
                    paths.add(path)
                if len(paths) >= n_needed:
                    raise self._same_page(paths, answer)

    def _same_page(self, paths: set[str], answer: Answer) -> IdentityError:
        some = ", ".join(repr(path) for path in sorted(paths))
        where = "" if answer.landed is None else f" at {answer.landed.shown}"
        return IdentityError(
            f"{self._name}: a login page? The server has one and the same page{where} for {some}; "
            f"{LET_IN}. If these are the files, give their bytes and sha256 in a manifest"
        )


def _evidence(answer: Answer) -> Iterator[tuple[_Key, int]]:
    """Yield what is the same for the same page, and how many files of it are too many."""
    if answer.landed is not None:
        yield ("landed", answer.landed.origin, answer.landed.path.partition("?")[0]), TWO
    if not answer.n_bytes:
        return
    etag = answer.version.etag
    if etag is not None:
        yield ("etag", etag, answer.n_bytes), TWO
    else:
        yield ("length", answer.n_bytes), THREE
