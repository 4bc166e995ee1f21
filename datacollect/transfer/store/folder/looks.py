"""Fingerprint of a file by its metadata, which differs once anybody has written to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os


class Looks(NamedTuple):
    """Place of a file, its length, and when anything about it was changed."""

    device: int
    inode: int
    n_bytes: int
    mtime_ns: int
    ctime_ns: int


def looks_of(found: os.stat_result) -> Looks:
    """Return what a file looks like, to the time of the last change of anything about it."""
    return Looks(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
