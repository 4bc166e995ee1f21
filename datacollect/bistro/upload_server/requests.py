"""Requests that are posted to a bistro as notes: how each is read, and told to the core.

A new one has its class and its row here; its form is in `formats`, and what it does is a method of
the core. Uploads themselves speak tus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.formats.custody.verdicts import COVERED_PATH, read_covered
from datacollect.bistro.formats.log.notes import MOST_NOTE_BYTES
from datacollect.bistro.upload_server.messages import Posted

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.bistro.formats.custody.verdicts import Covered
    from datacollect.bistro.formats.event.event import Event


@dataclass(frozen=True, slots=True)
class CoveredSaid(Posted):
    """The destination has said what is covered; its signature counts."""

    covered: Covered


@dataclass(frozen=True)
class BistroPost:
    """A kind of request that is posted to a bistro as a note.

    Attributes
    ----------
    most_bytes : int
        Of its body.
    read : function
        Returns what the core is told by the number of a request, an instant, the body and the
        event; raises `ProblemError`, which is answered by 403.
    """

    most_bytes: int
    read: Callable[[int, float, bytes, Event], Posted]


def _covered(number: int, now_s: float, body: bytes, event: Event) -> CoveredSaid:
    return CoveredSaid(number, now_s, read_covered(body, event))


POSTS = {COVERED_PATH: BistroPost(MOST_NOTE_BYTES, _covered)}
