"""Disk space: whether there is enough for what a source still needs, beside what others need."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from datacollect.files.units import format_bytes
from datacollect.transfer.store.folder.paths import names_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from datacollect.transfer.store.folder.opening import Staging
    from datacollect.transfer.store.state.state import State


# Unless a collection says otherwise.
SPARE_BYTES = 16 * 2**20


def why_no_room(
    folder: Path,
    state: State,
    staging: Staging,
    source: str,
    others: Sequence[str],
    spare_bytes: int,
) -> str | None:
    """Return why what a source needs does not fit beside what others need, or None.

    So many bytes are left free, for the state and for others. Holes of sparse files take no room.
    Each file system counts by itself.
    """
    if not state.needs([source])[0]:  # then nothing can be wrong with where it would lie
        return None
    fd = staging.of(source)
    device = os.fstat(fd).st_dev
    needing = [each for each in others if each != source and state.needs([each])[0]]
    sharing = [
        source,
        *(other for other in needing if os.fstat(staging.of(other)).st_dev == device),
    ]
    n_files, n_bytes = state.needs(sharing)
    where = folder / source if staging.is_apart(source) else folder
    n_bytes = max(0, n_bytes - _begun_bytes(state, staging, sharing))
    found = os.fstatvfs(fd)
    free = found.f_bavail * found.f_frsize - spare_bytes
    if n_bytes > free:
        return (
            f"{where}: must have room for {format_bytes(n_bytes)} more, has "
            f"{format_bytes(max(0, free))} free; make room, name another folder with --into, or "
            "collect in parts, by patterns in [sources.NAME]"
        )
    if found.f_files and n_files > found.f_favail:
        return (
            f"{where}: must have room for {n_files} more files, has {found.f_favail} free inodes; "
            "remove files, or name another folder with --into"
        )
    return None


def _begun_bytes(state: State, staging: Staging, sources: Sequence[str]) -> int:
    """Return how much of the room is taken by what has come of files."""
    total = 0
    for fd in {staging.of(source) for source in sources}:
        for number in state.begun(sources, names_in(fd)):
            with suppress(FileNotFoundError):
                total += os.stat(str(number), dir_fd=fd).st_blocks * 512
    return total
