"""Amendments as services publish them, and the file in which they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.event.amendments import read_amendment
from datacollect.bistro.receipt.receipt import (
    MOST_BYTES,
    PublishedAmendment,
    amendments_data,
    read_amendments,
)
from datacollect.errors import DatacollectError, ProblemError
from datacollect.files.documents import written_durably
from datacollect.net.fan_out import fan_out
from datacollect.net.http_asking import Asker

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from datacollect.bistro.event.event import Event


@dataclass(frozen=True)
class Found:
    """What services say of an event's amendments.

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


def amendments_of(event: Event, urls: Sequence[str], tls: ssl.SSLContext) -> Found:
    """Ask services for the amendments of an event; what is none of its organiser's is a trouble."""
    by_url: dict[str, list[PublishedAmendment]] = {}
    troubles: dict[str, str] = {}
    for url, outcome in fan_out(urls, lambda url: _asked(event, url, tls)).items():
        if outcome.error is None:
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
        raise ProblemError(f"{url}: answers {answer.status} to the question for amendments")
    found = read_amendments(answer.body, event.id, url)
    for i, each in enumerate(found):
        read_amendment(each.note, event, f"{url}: amendments[{i}]")
    return found


def united(all_rows: Iterable[Iterable[PublishedAmendment]]) -> list[PublishedAmendment]:
    """Return each amendment once, with all its proofs."""
    by_note: dict[bytes, PublishedAmendment] = {}
    for rows in all_rows:
        for each in rows:
            known = by_note.get(each.note, PublishedAmendment(each.note))
            more = tuple(proof for proof in each.proofs if proof not in known.proofs)
            by_note[each.note] = PublishedAmendment(each.note, known.proofs + more)
    return [*by_note.values()]


def save_amendments(
    event: Event,
    event_file: str | PathLike[str],
    folder: str | PathLike[str],
    amendments: Iterable[PublishedAmendment],
) -> Path:
    """Write the file of an event's amendments into a folder; return its path."""
    path = Path(folder) / f"{Path(event_file).stem}.amendments.json"
    with written_durably(path) as beside:
        beside.write_bytes(amendments_data(event.id, amendments))
    return path
