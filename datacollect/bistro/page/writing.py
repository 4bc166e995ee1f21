"""Writes an event's page into a folder, or compares it with one in a folder or served."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.amendments import amended
from datacollect.bistro.formats.event.file import read_event, require_current
from datacollect.bistro.formats.receipt.receipt import read_amendments
from datacollect.bistro.formats.receipt.verify import published
from datacollect.bistro.page.files import HEADERS, PAGE, SCRIPT, headers_of, page_files
from datacollect.bistro.page.privacy import read_privacy
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, not_made, read_bytes, written_durably
from datacollect.net.http_asking import Asker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.net.http_asking import Answer


@dataclass(frozen=True)
class Written:
    """What was written: how many files, and sentences about what will not work in a browser."""

    n_files: int
    cautions: tuple[str, ...]


def write_page(
    event: str | PathLike[str],
    into: str | PathLike[str],
    amendments: str | PathLike[str] | None = None,
    *,
    privacy: str | PathLike[str] | None = None,
    force: bool = False,
) -> Written:
    """Write the page of an event, to be served as it is.

    Parameters
    ----------
    event : path-like
    into : path-like
        Folder; made where it is absent.
    amendments : path-like, optional
        What the organiser has changed: the page may speak to the bistros that were added.
    privacy : path-like, optional
        The organiser's privacy notice, a text; without it the page has its own.
    force : bool
        Overwrite files that are there.

    Raises
    ------
    ProblemError
        The event, the amendments or the notice cannot be read, the event is of an older kind, or
        another file is there.
    NotWrittenError
        A file cannot be written.
    """
    made = page_files(*_read_event(event, amendments), _notice(privacy))
    folder = Path(into)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_made(folder, error) from None
    there = [name for name, data in made.items() if not force and _differs(folder / name, data)]
    if there:
        raise ProblemError(
            f"{document_name(folder / there[0])}: exists already, and differs from what would be "
            "written; --force overwrites it, or name another folder"
        )
    # The page last: it names the others by their hashes.
    for name in sorted(made, key=lambda name: name == PAGE):
        with written_durably(folder / name) as beside:
            beside.write_bytes(made[name])
    return Written(len(made), _cautions(event))


def check_page(
    event: str | PathLike[str],
    place: str,
    amendments: str | PathLike[str] | None = None,
    *,
    privacy: str | PathLike[str] | None = None,
) -> list[str]:
    """Return how a page differs from what `write_page` writes; an empty list: not at all.

    At a URL the headers count, too, of the page and of the script: it runs in a worker as well,
    for which its own headers alone hold.

    Parameters
    ----------
    event : path-like
    place : str
        The folder, or the URL at which it is served.
    amendments, privacy : path-like, optional
        As for `write_page`.

    Raises
    ------
    ProblemError
        The event, the amendments or the notice cannot be read, or the event is of an older kind.
    TransferError
        The server does not answer.
    """
    data, found = _read_event(event, amendments)
    made = page_files(data, found, _notice(privacy))
    if not place.startswith(("https://", "http://")):
        return _compared(made, lambda name: _read(Path(place) / name))
    said: list[str] = []
    with Asker(place.rstrip("/")) as asker:
        longest = 1 + max(map(len, made.values()))

        def got(name: str) -> bytes | None:
            # People come to the folder, and are shown its page.
            for path in [f"/{name}", *(["/"] if name == PAGE else [])]:
                answer = asker.get(path, longest)
                if answer.status != 200:
                    return None
                if name in (PAGE, SCRIPT):
                    said.extend(_other_headers(path, answer, headers_of(found)))
                if answer.body != made[name]:
                    return answer.body
            return made[name]

        return [*_compared(made, got), *said]


def _notice(path: str | PathLike[str] | None) -> str | None:
    return None if path is None else read_privacy(path)


def _compared(made: dict[str, bytes], read: Callable[[str], bytes | None]) -> list[str]:
    found = []
    for name, data in made.items():
        there = read(name)
        if there is None:
            found.append(f"{name}: is not there")
        elif there != data:
            found.append(f"{name}: is not what this version writes for the event")
    return found


def _other_headers(path: str, answer: Answer, wanted: dict[str, str]) -> Iterator[str]:
    for name, value in wanted.items():
        there = answer.headers.get(name.lower())
        if there is None:
            yield f"{path}: is served without the header {name} of {HEADERS}"
        elif there != value:
            yield f"{path}: its header {name} must be {value!r} as in {HEADERS}, got {there!r}"


def _read_event(
    event: str | PathLike[str], amendments: str | PathLike[str] | None
) -> tuple[bytes, Event]:
    data = read_bytes(event)
    found = read_event(data, document_name(event))
    require_current(found, document_name(event))
    if amendments is not None:
        rows = read_amendments(read_bytes(amendments), found.id, document_name(amendments))
        found = amended(found, published(found, rows, []))
    return data, found


def _cautions(event: str | PathLike[str]) -> tuple[str, ...]:
    found = read_event(read_bytes(event))
    pinned = [each.name for each in found.bistros if each.fingerprint is not None]
    sentences = []
    if pinned:
        sentences.append(
            f"browsers do not know fingerprints: {', '.join(pinned)} must show a certificate that "
            "browsers trust; best name its authority by ca, for certificates are renewed"
        )
    return tuple(sentences)


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _differs(path: Path, data: bytes) -> bool:
    return path.exists() and (not path.is_file() or path.read_bytes() != data)
