"""Writes a log into folders of mirrors: entries before witnesses are asked, then what they sign.

So what anybody was shown is on another disk as well, with the time that it proves. A folder is of
another disk, as a rule of another host whose disk is mounted here. What counts is that the entries
are on that disk: this process has written and synced them there itself. One thread for each folder:
a disk that hangs holds up nobody else, and the log for a while only.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint
from datacollect.bistro.formats.log.tiles import (
    TILE_WIDTH,
    Edge,
    Tile,
    TileReader,
    entries_of,
    tiles_of,
)
from datacollect.bistro.formats.log.tree import tree_root
from datacollect.bistro.formats.log.witnessing import AddCheckpoint
from datacollect.bistro.log_service.log_copy import LogCopy, folder_name
from datacollect.errors import DatacollectError, ProblemError
from datacollect.files.held_folder import Held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.notes import VerifierKey

    # Returns a tile of the log, from any thread.
    Read = Callable[[Tile], bytes]

# So long witnesses are not asked while no mirror takes the entries; then the log goes on without.
AWAY_S = 30.0
# How often a folder that fails is tried again, and who waits looks.
AGAIN_S, LOOK_S = 1.0, 0.01
# A folder for which more checkpoints wait gets them later, from what is kept here.
MOST_WAITING = 1000


class MirrorFolder:
    """One folder of a mirror, and the thread that writes there.

    Parameters
    ----------
    folder : Path
        Of the mirror.
    log : VerifierKey
    event : Event
    read : function
        Returns a tile of the log as it is on this disk.
    written : function
        Called by the thread, with this, each time that all it was given is written.

    Attributes
    ----------
    size : int
        Entries that are on the mirror's disk; -1: none are known to be.
    published_size : int or None
        Of the largest checkpoint there that a quorum has signed, -1: none; None: nobody knows yet.
    is_behind : bool
        Whether it may lack checkpoints that were published before.
    n_written : int
        All that it was given until `publish` has returned this number is written.
    trouble : str
        Why more are not; empty: nothing is known to be the matter.
    """

    def __init__(
        self,
        folder: Path,
        log: VerifierKey,
        event: Event,
        read: Read,
        written: Callable[[MirrorFolder], None] = lambda _: None,
    ) -> None:
        self.size, self.trouble = -1, ""
        self.published_size: int | None = None
        self.is_behind, self.n_written = True, 0
        self._n_given, self._written = 0, written
        self._place, self._log, self._event = folder / folder_name(log), log, event
        self._mirror, self._read = folder, read
        self._news = threading.Condition()
        self._head: SignedCheckpoint | None = None
        self._published: dict[int, SignedCheckpoint] = {}
        self._is_over = False
        self._copy: LogCopy | None = None
        self._held: Held | None = None
        self._place_is: tuple[int, int] | None = None

    def start(self) -> None:
        """Begin; the thread ends with the process, whatever the disk does."""
        threading.Thread(target=self._work, name=f"mirror {self._mirror}", daemon=True).start()

    def close(self) -> None:
        """End after what is under way."""
        with self._news:
            self._is_over = True
            self._news.notify()

    def push(self, head: SignedCheckpoint) -> None:
        """Have all entries of a checkpoint written, whose tiles are on this disk."""
        with self._news:
            self._head = head
            self._news.notify()

    def publish(self, heads: Iterable[SignedCheckpoint]) -> int:
        """Have checkpoints written that a quorum has signed; return a number for `n_written`."""
        with self._news:
            self._published |= {head.checkpoint.size: head for head in heads}
            self.is_behind |= len(self._published) > MOST_WAITING
            self._n_given += 1
            self._news.notify()
            return self._n_given

    def _work(self) -> None:
        while not self._is_over:
            with self._news:
                if self._head is None and not self._published:
                    self._news.wait()
                head, self._head = self._head, None
                published, self._published = self._published, {}
                n_given = self._n_given
            try:
                copy = self._opened()
                if head is not None:
                    self._push(copy, head)
                for size in sorted(published):
                    self._publish(copy, published[size])
                    del published[size]
                    self.published_size = copy.size
                self.trouble, self.n_written = "", n_given
                self._written(self)
            except Exception as error:  # noqa: BLE001 - said as this mirror's trouble, tried again
                expected = isinstance(error, DatacollectError | OSError)
                self.trouble = str(error) if expected else f"{type(error).__name__}: {error}"
                with self._news:
                    self._head = self._head or head
                    self._published = published | self._published
                    if not self._is_over:
                        self._news.wait(AGAIN_S)
        self._leave()

    def _opened(self) -> LogCopy:
        """Return the log's folder in the mirror; another one than before is opened anew."""
        if self._copy is not None and _which(self._place) == self._place_is:
            return self._copy
        self._leave()
        if not self._mirror.is_dir():
            # Where a disk is not mounted, a folder made here would be on this disk.
            raise ProblemError(f"{self._mirror}: does not exist; mount it, or make that folder")
        copy = LogCopy(self._place, self._log, self._event)
        copy.make()
        self._held = Held(self._place)
        self._copy, self._place_is = copy, _which(self._place)
        self.published_size = copy.size
        return copy

    def _leave(self) -> None:
        """Let others have the folder."""
        self._copy = None
        if self._held is not None:
            self._held.close()

    def _push(self, copy: LogCopy, head: SignedCheckpoint) -> None:
        size, held = head.checkpoint.size, copy.pushed()
        since = max(copy.size, 0)
        if held is not None and held.is_of(self._log):
            since = max(since, held.checkpoint.size)
            if since > size or self._root(held.checkpoint.size, size) != held.checkpoint.root:
                raise ProblemError(
                    f"{self._place}: holds {held.checkpoint.size} entries of this log, but the log "
                    f"here begins differently: it was restored from an old copy; stop "
                    "this, and run `datacollect event recover` with that mirror"
                )
        if held is None or since < size or held.checkpoint.size < size:
            copy.push(self._tiles(size, since), head)
        self.size = size

    def _root(self, of: int, size: int) -> bytes:
        return tree_root(of, TileReader(size, self._read).node)

    def _tiles(self, size: int, since: int) -> Iterator[tuple[Tile, bytes]]:
        return ((tile, self._read(tile)) for tile in tiles_of(size, since))

    def _publish(self, copy: LogCopy, head: SignedCheckpoint) -> None:
        size = head.checkpoint.size
        if size <= copy.size:
            copy.add([head])
            return
        bundle: list[bytes] = []
        if n_last := size % TILE_WIDTH:
            last = Tile(-1, size // TILE_WIDTH, n_last)
            bundle = entries_of(self._read(last), last)
        edge = Edge.read(size, self._read)
        copy.extend([*self._tiles(size, max(copy.size, 0))], edge, bundle, [head])


def _which(folder: Path) -> tuple[int, int] | None:
    """Return what tells a folder from another of its name; None: it is not there."""
    try:
        found = folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


class Mirroring:
    """All folders of mirrors of a log.

    Parameters
    ----------
    folders : sequence of Path
    log : VerifierKey
    event : Event
    read : function
        As `MirrorFolder` takes it.
    after : function
        Returns the next checkpoints that were published and are larger than a size, some of them.
    report : function
        Takes lines of the log, in words.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        log: VerifierKey,
        event: Event,
        read: Read,
        after: Callable[[int], Sequence[bytes]],
        report: Callable[[str], None],
    ) -> None:
        self._after, self._report = after, report
        self._mirrors = [
            MirrorFolder(each, log, event, read, self._told_written) for each in folders
        ]
        self._loop: asyncio.AbstractEventLoop | None = None
        # Since when no mirror takes what is new, seconds since 1970.
        self._away_since_s: float | None = None
        self._asked_size = -1

    def start(self) -> None:
        """Begin, in the running loop."""
        self._loop = asyncio.get_running_loop()
        for mirror in self._mirrors:
            mirror.start()

    def close(self) -> None:
        """End after what is under way."""
        for mirror in self._mirrors:
            mirror.close()

    async def hold(self, request: bytes) -> None:
        """Return once some mirror holds all that a witness is asked to sign, or none has for long.

        Once none has, nobody waits until one has caught up.

        Parameters
        ----------
        request : bytes
            As a witness gets it.
        """
        if not self._mirrors:
            return
        head = AddCheckpoint.parse(request).signed
        size = head.checkpoint.size
        # What was asked for before, without waiting, shows whether one takes entries again.
        if self._away_since_s is not None and self._is_held(self._asked_size):
            self._away_since_s = None
            self._report(f"a mirror holds all {self._asked_size} entries again")
        self._asked_size = size
        for mirror in self._mirrors:
            if mirror.size < size:
                mirror.push(head)
        await self._wait(lambda: self._is_held(size))

    async def keep(self, note: bytes) -> None:
        """Return once some mirror has a checkpoint that a quorum has signed, or none has for long.

        Before anybody is shown it: the time that it proves would else be lost with this disk. A
        mirror that is behind gets it later, in its turn.
        """
        head = SignedCheckpoint.parse(note)
        given = {each: each.publish([head]) for each in self._mirrors if not each.is_behind}
        if given:
            await self._wait(lambda: any(each.n_written >= n for each, n in given.items()))

    async def _wait(self, is_done: Callable[[], bool]) -> None:
        end_s = time.monotonic() + AWAY_S
        while not is_done() and self._away_since_s is None:
            if time.monotonic() >= end_s:
                self._away_since_s = time.time()
                for mirror in self._mirrors:
                    mirror.is_behind = True
                why = "; ".join(each.trouble or "hangs" for each in self._mirrors)
                self._report(
                    f"no mirror has copied new entries for {AWAY_S:g} s: {why}; the log continues "
                    "without a mirror, and would lose them with its disk"
                )
            await asyncio.sleep(LOOK_S)

    def _told_written(self, mirror: MirrorFolder) -> None:
        """Take a thread's word that it has written all, into the loop; that may be over."""
        assert self._loop is not None
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._catch_up, mirror)

    def _catch_up(self, mirror: MirrorFolder) -> None:
        """Give a mirror the next checkpoints that it lacks of those that are kept here."""
        if mirror.is_behind and mirror.published_size is not None:
            notes = self._after(mirror.published_size)
            mirror.is_behind = bool(notes)
            if notes:
                mirror.publish(map(SignedCheckpoint.parse, notes))

    def _is_held(self, size: int) -> bool:
        return any(mirror.size >= size for mirror in self._mirrors)

    def status(self) -> dict[str, Any] | None:
        """Return what anybody may know of them; None: there are none."""
        if not self._mirrors:
            return None
        since_s = self._away_since_s
        return {
            "held": max(mirror.size for mirror in self._mirrors),
            "mirrors": len(self._mirrors),
            "away_since_s": None if since_s is None else int(since_s),
        }
