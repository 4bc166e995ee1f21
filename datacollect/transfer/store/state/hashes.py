"""Hashes of parts of open files."""

from __future__ import annotations

import os

from blake3 import blake3

from datacollect.transfer.store.state.holes import data_ranges

_READ_BYTES = 2**20


def hash_of(fd: int, offset: int, n_bytes: int) -> bytes | None:
    """Return the BLAKE3 of a part of a file; None where it ends before."""
    hasher = blake3()
    while n_bytes:
        data = os.pread(fd, min(n_bytes, _READ_BYTES), offset)
        if not data:
            return None
        hasher.update(data)
        offset, n_bytes = offset + len(data), n_bytes - len(data)
    return hasher.digest()


def is_part(fd: int, offset: int, n_bytes: int, digest: bytes) -> bool:
    """Say whether a part of an open file has a hash; an empty one is that of nothing but zeros."""
    if digest:
        return hash_of(fd, offset, n_bytes) == digest
    return _are_zeros(fd, offset, n_bytes)


def _are_zeros(fd: int, offset: int, n_bytes: int) -> bool:
    """Return whether a part of a file is nothing but zeros; its holes are not read."""
    return not any(
        any(os.pread(fd, min(_READ_BYTES, end - at), at))
        for begin, end in data_ranges(fd, offset, offset + n_bytes)
        for at in range(begin, end, _READ_BYTES)
    )
