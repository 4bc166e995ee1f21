"""Files that were collected, looked at on this disk."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import NamedTuple

from datacollect.bistro.destination.file_sets import LIST, SetFile, read_set
from datacollect.bistro.destination.losses import KeptFile
from datacollect.files.held_folder import not_written

FILES = "files"
ABSENT, OTHER_LENGTH, CHANGED = "absent", "other length", "changed"
# What to do about all of these.
PUT_BACK = "put them back from a copy of the folder; `datacollect event status --verify` compares"
_BLOCK_BYTES = 2**20


class Fault(NamedTuple):
    """Fault of a file; since when, seconds since 1970, as far as the disk knows."""

    kind: str
    since_s: int | None


def fault_of(
    folder: Path, file: str, kept: KeptFile | None, *, is_read: bool = False
) -> Fault | None:
    """Return what is wrong with a file, or with any of several that a list names; None: nothing.

    Parameters
    ----------
    folder : Path
        Of the destination.
    file : str
        Below its ``files``; or the list of several that came as one.
    kept : KeptFile or None
        What was written; None: nobody knows.
    is_read : bool
        Whether it is read again, too, and its hash compared.

    Raises
    ------
    StoreError
        The disk fails.
    """
    # No `Path`, which costs more than to look: lists ask of 100 000 files.
    fault = _fault_at(f"{folder}/{FILES}/{file}", folder, kept, is_read=is_read)
    above, _, name = file.rpartition("/")
    if fault is not None or name != LIST:
        return fault
    files = set_at(folder, file)
    if not files:
        return Fault(CHANGED, None)
    for each in files:
        of_set = KeptFile(each.file, each.n_bytes, bytes.fromhex(each.sha256))
        path = f"{folder}/{FILES}/{above}/{each.file}"
        fault = _fault_at(path, folder, of_set, is_read=is_read)
        if fault is not None:
            return fault
    return None


def set_at(folder: Path, file: str | None) -> tuple[SetFile, ...]:
    """Return the files that a list of a destination names; none where it is none, or damaged.

    Parameters
    ----------
    folder : Path
        Of the destination.
    file : str or None
        Below its ``files``.

    Raises
    ------
    StoreError
        The disk fails.
    """
    if file is None or file.rpartition("/")[2] != LIST:
        return ()
    try:
        return read_set(folder / FILES / file) or ()
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise not_written(folder, error) from error


def _fault_at(path: str, folder: Path, kept: KeptFile | None, *, is_read: bool) -> Fault | None:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return Fault(ABSENT, _changed_s(Path(path).parent))
    except OSError as error:
        raise not_written(folder, error) from error
    at_s = int(found.st_mtime)
    if not stat.S_ISREG(found.st_mode):
        return Fault(ABSENT, at_s)
    if kept is None:
        return None
    if found.st_size != kept.n_bytes:
        return Fault(OTHER_LENGTH, at_s)
    if is_read and kept.sha256 is not None and _sha256(Path(path), folder) != kept.sha256:
        return Fault(CHANGED, at_s)
    return None


def _changed_s(folder: Path) -> int | None:
    """Return when names in a folder have last changed; None: it is not there."""
    try:
        return int(folder.stat().st_mtime)
    except OSError:
        return None


def _sha256(path: Path, folder: Path) -> bytes:
    try:
        with path.open("rb", buffering=0) as file:
            digest = hashlib.sha256()
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
    except OSError as error:
        raise not_written(folder, error) from error
    return digest.digest()
