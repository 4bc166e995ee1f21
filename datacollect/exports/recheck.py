"""Rechecks arrived data: pieces that have changed since are given up, and fetched again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.exports.arrived import ScriptFolder, sha256_of_range, size_of
from datacollect.files.stages import counting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from datacollect.problem.manifest import Files

# What a complete file is called that is not what the manifest says.
WRONG = ".datacollect-wrong"


@dataclass(frozen=True)
class GivenUp:
    """Range that was there, and has changed.

    Attributes
    ----------
    host, source, path : str
    offset_bytes, n_bytes : int
        Its place in the file.
    why : str
    """

    host: str
    source: str
    path: str
    offset_bytes: int
    n_bytes: int
    why: str


def recheck(folder: str, manifest: Mapping[str, Files], host: str | None = None) -> list[GivenUp]:
    """Read all that has arrived in a folder again, and give up what is wrong.

    A range is compared with its mark, which goes where they differ. A complete file is compared
    with its SHA-256 where that is known; a wrong one stays there under another name.

    Parameters
    ----------
    folder : str
    manifest : mapping of str to Files
    host : str, optional
        Whose folder it is, where no script has worked there: the destination.
    """
    place = ScriptFolder.of(folder, host)
    given_up = []
    others = {source: files for source, files in manifest.items() if source != place.host}
    n_files = sum(len(files.paths) for files in others.values())
    with counting(n_files if place.is_destination else 0, "files") as step:
        for source, files in others.items():
            given_up += list(_wrong_ranges(place, source, files))
            if place.is_destination:
                given_up += list(_wrong_files(place, source, files, step))
    return given_up


def _wrong_ranges(place: ScriptFolder, source: str, files: Files) -> Iterator[GivenUp]:
    for path, ranges in place.begun(source, files).items():
        whole = place.partial(source, path)
        for each in ranges:
            if each.sha256 is None:
                continue
            if size_of(whole) < each.offset_bytes + each.n_bytes:
                why = "its bytes are gone"
            elif sha256_of_range(whole, each.offset_bytes, each.n_bytes) != each.sha256:
                why = "its bytes were altered"
            else:
                continue
            each.path.unlink()
            yield GivenUp(place.host, source, path, each.offset_bytes, each.n_bytes, why)


def _wrong_files(
    place: ScriptFolder, source: str, files: Files, step: Callable[[], None]
) -> Iterator[GivenUp]:
    for path, size, known in zip(files.paths, files.n_bytes.tolist(), files.sha256, strict=True):
        step()
        file = place.complete(source, path)
        if not known or size_of(file) != size:
            continue
        with file.open("rb") as data:
            found = hashlib.file_digest(data, "sha256").hexdigest()
        if found != known:
            file.replace(file.with_name(file.name + WRONG))
            why = f"its SHA-256 is {found}, not {known}; it is now called {file.name + WRONG}"
            yield GivenUp(place.host, source, path, 0, size, why)
