"""Begins a log of verdicts that succeeds a dead one with all that one is known to have proved.

A log of verdicts names itself in no entry: what one has said another can say as well. So whoever
asks the new one learns what became of each entry, whichever log has said it first.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack, closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.auditor.log_reading import got
from datacollect.bistro.formats.log.checkpoints import (
    MOST_CHECKPOINT_BYTES,
    Checkpoint,
    SignedCheckpoint,
)
from datacollect.bistro.formats.log.tiles import Edge
from datacollect.bistro.formats.receipt.counted_time import head_time
from datacollect.bistro.log_service.core import log_of
from datacollect.bistro.log_service.log_copy import CHECKPOINT, PUSHED, LogCopy, folder_name
from datacollect.bistro.log_service.store import LogStore
from datacollect.bistro.mirror.copying import Growing
from datacollect.bistro.mirror.mirror import asker_of
from datacollect.bistro.mirror.rebuilding import gather, scratch_beside, write_entries, write_head
from datacollect.errors import DatacollectError, ProblemError
from datacollect.files.held_folder import Held, not_written, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from datacollect.bistro.formats.event.event import EndedLog, Event
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.net.keys import PrivateKey


def holding(log: VerifierKey, mirrors: Sequence[str]) -> list[str]:
    """Return the mirrors that answer and hold something of a log."""
    found = []
    for mirror in mirrors:
        with suppress(DatacollectError), ExitStack() as stack:
            asker = stack.enter_context(asker_of(f"{mirror.rstrip('/')}/{folder_name(log)}"))
            paths = (f"/{CHECKPOINT}", f"/{PUSHED}")
            if any(got(asker, path, MOST_CHECKPOINT_BYTES).status == 200 for path in paths):
                found.append(mirror)
    return found


def entries_of_ended(
    event: Event, ended: EndedLog, folder: Path, mirrors: Sequence[str]
) -> list[bytes]:
    """Return what an ended log had proved by its end, of whoever holds most.

    That is its folder, or mirrors. Behind its end anybody who has its key may have appended what he
    likes: such words count for nobody, and nobody takes them over.

    Raises
    ------
    ProblemError
        Nobody holds any.
    """
    own: list[bytes] | None = None
    if folder.is_dir():
        with closing(LogStore(Held(folder), ended.log.text)) as store:
            sizes = store.published_sizes(0, store.kept().n_entries + 1)
            own = store.entries(0, _n_proved(sizes, partial(_published, store), ended, event))
    copied: list[bytes] = []
    try:
        with scratch_beside(folder) as scratch:
            copy = LogCopy(Path(scratch), ended.log, event)
            gather(copy, event, mirrors)
            n = _n_proved([*copy.sizes()], copy.checkpoint, ended, event)
            copied = [*islice(copy.leaves(), n)]
    except ProblemError:
        if own is None:
            raise
    return max(own or [], copied, key=len)


def _published(store: LogStore, size: int) -> SignedCheckpoint | None:
    note = store.published(size)
    return None if note is None else SignedCheckpoint.parse(note)


def _n_proved(
    sizes: Sequence[int],
    head: Callable[[int], SignedCheckpoint | None],
    ended: EndedLog,
    event: Event,
) -> int:
    """Return how many entries of a log stood there by its end, by a quorum of witnesses.

    Parameters
    ----------
    sizes : sequence of int
        Rising, of which there are checkpoints.
    head : function
        Returns the checkpoint of a size.
    ended : EndedLog
    event : Event
    """
    for size in reversed(sizes):
        found = head(size)
        time_s = None if found is None else head_time(ended.log, found, event).time_s
        if time_s is not None and (ended.ended_s is None or time_s <= ended.ended_s):
            return size
    return 0


def begin(event: Event, key: PrivateKey, folder: Path, entries: Iterable[bytes]) -> None:
    """Make the folder of a log that begins with these entries; it is there whole, or not at all.

    Raises
    ------
    StoreError, NotWrittenError
        The disk is full, or fails.
    """
    log, leaves = log_of(event, key), [*dict.fromkeys(entries)]
    growing = Growing(Edge(), [])
    for leaf in leaves:
        growing.append(leaf)
    beside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    with closing(LogStore(Held(beside), log.text)) as store:
        write_entries(iter(leaves), store)
        write_head(growing, Checkpoint(log.name, len(leaves), growing.edge.root()), key, store)
    try:
        beside.rename(folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise not_written(folder, error) from error
