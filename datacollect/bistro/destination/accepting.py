"""Files that have come to the organiser by mail or stick: kept with the others, and marked.

Nothing is proved of them but what the organiser says. The list of them is written once a file is on
the disk under its name: interrupted between both, the same call takes that file for its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import count
from typing import TYPE_CHECKING

from datacollect.bistro.destination.file_sets import safe_name
from datacollect.bistro.destination.run.kept_files import FILES
from datacollect.bistro.organiser.roster import file_stem
from datacollect.errors import ProblemError
from datacollect.files.documents import (
    document_name,
    naming_unread,
    read_bytes,
    write_owned,
    written_durably,
)
from datacollect.files.durability import name_durably
from datacollect.files.held_folder import Held, not_written

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Of the folder of the list, and below the destination's files.
ACCEPTED = "accepted"
LIST_FILE = "accepted.json"
FORMAT = "datacollect-accepted/1"
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Accepted:
    """A file that was accepted.

    Attributes
    ----------
    person : str
    name : str
        As it was called.
    file : str
        Where it lies, below the destination's ``files``.
    n_bytes : int
    sha256 : str
        Hexadecimal.
    came_s, accepted_s : int
        When it had come, as the organiser says, and when that was said; seconds since 1970.
    how : str
        In the organiser's words.
    """

    person: str
    name: str
    file: str
    n_bytes: int
    sha256: str
    came_s: int
    accepted_s: int
    how: str = ""


def read_accepted(folder: Path) -> list[Accepted]:
    """Return what was accepted for a destination's folder.

    Raises
    ------
    ProblemError
        The list is damaged, or cannot be read.
    """
    path = folder / ACCEPTED / LIST_FILE
    if not path.exists():
        return []
    try:
        tree = json.loads(read_bytes(path))
        if tree.pop("format") != FORMAT:
            raise ValueError
        found = [Accepted(**each) for each in tree["files"]]
        for each in found:
            if len(bytes.fromhex(each.sha256)) != 32 or each.n_bytes + each.came_s < 0:
                raise ValueError
        return found
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ProblemError(
            f"{document_name(path)}: is not a list of accepted files, or is damaged; restore a "
            "copy, or move it elsewhere and accept the files again"
        ) from None


def write_accepted(folder: Path, files: Iterable[Accepted]) -> None:
    """Write the list, for its owner's eyes alone."""
    tree = {"format": FORMAT, "files": [asdict(each) for each in files]}
    with written_durably(folder / ACCEPTED / LIST_FILE) as beside:
        data = json.dumps(tree, ensure_ascii=False, indent=1) + "\n"
        write_owned(beside, data.encode(), mode=0o600)


def accept_file(
    folder: Path, person: str, path: Path, came_s: int | None = None, how: str = ""
) -> tuple[Accepted, bool]:
    """Keep a copy of a file as somebody's; return what is known of it, and whether that is new.

    Parameters
    ----------
    folder : Path
        Of the destination.
    person : str
    path : Path
        Stays where it is.
    came_s : int, optional
        When it had come, seconds since 1970; by default now.
    how : str
        In the organiser's words.

    Raises
    ------
    ProblemError
        There is no such file, or another call is at work.
    StoreError, NotWrittenError
        The copy cannot be kept; nothing is listed that is not there whole.
    """
    now_s = int(time.time())
    with closing(Held(folder / ACCEPTED)):
        known, into = read_accepted(folder), folder / FILES / ACCEPTED
        beside = into / f".{os.getpid()}.tmp"
        try:
            into.mkdir(parents=True, exist_ok=True)
            for left in into.glob(".*.tmp"):  # of who was killed
                left.unlink()
        except OSError as error:
            raise not_written(into, error) from error
        try:
            n_bytes, sha256 = _copied(path, beside)
            again = [each for each in known if (each.person, each.sha256) == (person, sha256)]
            if again:
                # Should it have been lost since, it is there again.
                lost = folder / FILES / again[0].file
                lost.parent.mkdir(exist_ok=True)
                name_durably(beside, lost)
                return again[0], False
            file = _named(beside, into, person, path.name, {each.file for each in known}, sha256)
        except OSError as error:
            raise not_written(into, error) from error
        finally:
            beside.unlink(missing_ok=True)
        came_s = now_s if came_s is None else came_s
        # Systems have names that are no text, and the list is text.
        name = os.fsencode(path.name).decode(errors="replace")
        made = Accepted(person, name, file, n_bytes, sha256, came_s, now_s, how)
        write_accepted(folder, [*known, made])
    return made, True


def require_file(path: Path) -> None:
    """Raise `ProblemError` where a path is none of a file."""
    if not path.is_file():
        raise ProblemError(
            f"{document_name(path)}: must be an existing file; instead of a folder, name the "
            "files in it, or pack them into one file"
        )


def _copied(path: Path, beside: Path) -> tuple[int, str]:
    """Copy a file; return how long the copy is, and its hash."""
    require_file(path)
    digest, n_bytes = hashlib.sha256(), 0
    with naming_unread(path):
        source = path.open("rb", buffering=0)
    with source, beside.open("xb") as out:
        while True:
            with naming_unread(path):
                block = source.read(_BLOCK_BYTES)
            if not block:
                return n_bytes, digest.hexdigest()
            digest.update(block)
            n_bytes += len(block)
            out.write(block)


def _named(
    beside: Path, into: Path, person: str, called: str, listed: set[str], sha256: str
) -> str:
    """Give a copy a name that no other file has; return where that is, below ``files``."""
    place = into / file_stem(person)
    place.mkdir(exist_ok=True)
    stem, dot, ending = safe_name(called).rpartition(".")
    for n in count(1):
        again = "" if n == 1 else f" ({n})"
        name = f"{stem}{again}.{ending}" if dot and stem else f"{ending}{again}"
        file, path = f"{ACCEPTED}/{place.name}/{name}", place / name
        if file in listed:
            continue
        if not path.exists():
            name_durably(beside, path, folders=(place, into, into.parent), is_new=True)
            return file
        # Of who was killed before it was listed.
        with path.open("rb") as left:
            is_this = hashlib.file_digest(left, "sha256").hexdigest() == sha256
        if is_this:
            return file
    raise AssertionError
