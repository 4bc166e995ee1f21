"""Amendments as services publish them, and the file in which they are kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.amendments import read_amendment
from datacollect.bistro.formats.receipt.receipt import (
    MOST_BYTES,
    MOST_PROOFS,
    PublishedAmendment,
    amendments_data,
    read_amendments,
)
from datacollect.errors import DatacollectError, ProblemError
from datacollect.files.documents import document_name, naming_unread, read_bytes, written_durably
from datacollect.net.fan_out import fan_out
from datacollect.net.http_asking import Asker

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event


@dataclass(frozen=True)
class Found:
    """Amendments of an event that services have published.

    Attributes
    ----------
    amendments : list of PublishedAmendment
        Each once, with the proofs of all services.
    by_url : dict of str to list of PublishedAmendment
        What each service says that has answered.
    troubles : dict of str to str
        Why others have not.
    """

    amendments: list[PublishedAmendment]
    by_url: dict[str, list[PublishedAmendment]]
    troubles: dict[str, str]


def amendments_of(
    event: Event, urls: Sequence[str], tls: ssl.SSLContext, within_s: float = math.inf
) -> Found:
    """Ask services for the amendments of an event; what is none of its organiser's is a trouble.

    So it is where one has not answered within a time.
    """
    by_url: dict[str, list[PublishedAmendment]] = {}
    troubles: dict[str, str] = {}
    outcomes = fan_out(urls, lambda url: _asked(event, url, tls), within_s)
    for url in urls:
        outcome = outcomes.get(url)
        if outcome is None:
            troubles[url] = f"has not answered within {within_s:g} s"
        elif outcome.error is None:
            by_url[url] = outcome.result()
        elif isinstance(outcome.error, DatacollectError):
            troubles[url] = str(outcome.error)
        else:
            raise outcome.error
    return Found(united(rows for rows in by_url.values()), by_url, troubles)


def _asked(event: Event, url: str, tls: ssl.SSLContext) -> list[PublishedAmendment]:
    with Asker(url, tls) as asker:
        answer = asker.get("/amendments", MOST_BYTES)
    if answer.status != 200:
        raise ProblemError(f"{url}: answers {answer.status} when asked for amendments")
    return _read(event, answer.body, url)


def _read(event: Event, data: bytes, name: str) -> list[PublishedAmendment]:
    found = read_amendments(data, event.id, name)
    for i, each in enumerate(found):
        read_amendment(each.note, event, f"{name}: amendments[{i}]")
    return found


def united(all_rows: Iterable[Iterable[PublishedAmendment]]) -> list[PublishedAmendment]:
    """Return each amendment once, with all its proofs."""
    by_note: dict[bytes, PublishedAmendment] = {}
    for rows in all_rows:
        for each in rows:
            known = by_note.get(each.note, PublishedAmendment(each.note))
            more = tuple(proof for proof in each.proofs if proof not in known.proofs)
            by_note[each.note] = PublishedAmendment(each.note, (known.proofs + more)[:MOST_PROOFS])
    return [*by_note.values()]


class Saved:
    """The file of an event's amendments beside others that are kept: it only grows.

    Parameters
    ----------
    event : Event
    event_file, folder : path-like

    Attributes
    ----------
    path : Path
    amendments : list of PublishedAmendment
        What stands there.

    Raises
    ------
    ProblemError
        What is there cannot be read, or is of another event.
    """

    def __init__(
        self, event: Event, event_file: str | PathLike[str], folder: str | PathLike[str]
    ) -> None:
        self.path = Path(folder) / f"{Path(event_file).stem}.amendments.json"
        self.amendments: list[PublishedAmendment] = []
        self._event = event
        with naming_unread(self.path):
            is_there = self.path.exists()
        if is_there:
            name = document_name(self.path)
            self.amendments = _read(event, read_bytes(self.path), name)

    def add(self, amendments: Iterable[PublishedAmendment]) -> None:
        """Have more amendments, and more proofs of those that are there, on the disk."""
        self.amendments = united([self.amendments, amendments])
        with written_durably(self.path) as beside:
            beside.write_bytes(amendments_data(self._event.id, self.amendments))
