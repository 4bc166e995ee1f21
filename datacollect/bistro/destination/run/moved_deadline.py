"""The deadline as an event's logs have it now, for who asks whether all is collected."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.amendments import amended
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.receipt.verify import published
from datacollect.bistro.http.published import Saved, amendments_of
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_bytes
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    from datacollect.bistro.destination.run.standing import Standing

# A service that does not answer by then says nothing.
ANSWERS_WITHIN_S = 5.0


def moved_to_s(standing: Standing, folder: Path) -> int | None:
    """Return until when entries are in time now, if that is later than a destination knew.

    None where it is not, where no service answers, and where the event's file is there no more:
    then the age of the numbers is all that there is.

    Parameters
    ----------
    standing : Standing
        What a destination has left.
    folder : Path
        Its folder, where amendments are kept that it knew.
    """
    if standing.event_file is None or standing.latest_s is None:
        return None
    path = Path(standing.event_file)
    try:
        data = read_bytes(path)
    except ProblemError:
        return None
    if hashlib.sha256(data).hexdigest() != standing.event:
        return None
    event = read_event(data, document_name(path))
    urls = [each.url for each in event.services]
    found = amendments_of(event, urls, web_context(), ANSWERS_WITHIN_S).amendments
    known = [*Saved(event, path, folder).amendments, *found]
    latest_s = amended(event, published(event, known, [])).latest_s
    return latest_s if latest_s > standing.latest_s else None
