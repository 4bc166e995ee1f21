"""Files that were collected, looked at on this disk."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from datacollect.files.held_folder import not_written

if TYPE_CHECKING:
    from datacollect.bistro.destination.losses import KeptFile

FILES = "files"
ABSENT, OTHER_LENGTH, CHANGED = "absent", "other length", "changed"
_BLOCK_BYTES = 2**20


class Fault(NamedTuple):
    """Fault of a file; since when, seconds since 1970, as far as the disk knows."""

    kind: str
    since_s: int | None


def fault_of(
    folder: Path, file: str, kept: KeptFile | None, *, is_read: bool = False
) -> Fault | None:
    """Return what is wrong with a file; None: nothing.

    Parameters
    ----------
    folder : Path
        Of the destination.
    file : str
        Below its ``files``.
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
    path = f"{folder}/{FILES}/{file}"
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
