"""Commits of what was written, in groups, by one thread: when they are due, and who waits."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from datacollect.files.refusals import no_thread
from datacollect.transfer.store.state.failures import not_written, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from datacollect.errors import StoreError
    from datacollect.transfer.store.state.state import SpanHash

# A group is recorded after this time or this many bytes; writers wait no longer.
GROUP_S, GROUP_BYTES, MOST_UNRECORDED_BYTES = 0.5, 64 * 2**20, 224 * 2**20


class PieceKey(NamedTuple):
    """A piece of a source."""

    source: str
    piece: int


class WrittenPiece(NamedTuple):
    """A piece that is written: its hash, and those of its parts."""

    key: PieceKey
    digest: bytes
    spans: list[SpanHash]
    n_bytes: int


class PieceRecorder:
    """Collects what is written into groups, and has each carried on.

    Parameters
    ----------
    folder : Path
        Named where something fails.
    carry_on : callable
        Takes a group, and the files that are whole, as pairs of source and number.
    is_busy : callable
        Whether files may become whole without another piece.

    Attributes
    ----------
    cond : threading.Condition
        For whoever waits until room for writing is there, or changes what is asked of `is_busy`.
    failure : Exception or None
        What ended the thread, or a writer.
    """

    def __init__(
        self,
        folder: Path,
        carry_on: Callable[[list[WrittenPiece], list[tuple[str, int]]], None],
        is_busy: Callable[[], bool],
    ) -> None:
        self._folder, self._carry_on, self._is_busy = folder, carry_on, is_busy
        self.cond = threading.Condition()
        self.failure: Exception | None = None
        self._pending: list[WrittenPiece] = []
        self._pending_bytes = self._unrecorded_bytes = 0
        self._first_pending_s = 0.0
        self._whole: list[tuple[str, int]] = []
        self._ends = False
        self._thread: threading.Thread | None = None

    def start(self, report: Callable[[list[PieceKey], Exception | None], None]) -> None:
        """Begin to carry groups on, in a thread."""
        self._ends = False
        thread = threading.Thread(target=self.work, args=(report,), name="store", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            raise self._no_thread(error) from None
        self._thread = thread

    def look(self) -> None:
        """Raise `StoreError` where the thread has gone without a word, or something has failed."""
        gone = self._thread is not None and not self._thread.is_alive() and not self._ends
        if gone and self.failure is None:
            self.fail(self._no_thread(RuntimeError("its thread ended before it began")))
        self.require_sound()

    def _no_thread(self, error: BaseException) -> StoreError:
        return refused(self._folder, "is not written to", no_thread(error))

    def stop(self) -> None:
        """Carry on all that is there, then end."""
        with self.cond:
            self._ends = True
            self.cond.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def drain(self, report: Callable[[list[PieceKey], Exception | None], None]) -> None:
        """Carry on all that is there, in this thread."""
        self._ends = True
        self.work(report)
        self._ends = False

    def fail(self, error: Exception) -> None:
        """Stop all waiting threads."""
        with self.cond:
            self.failure = error
            self.cond.notify_all()

    def require_sound(self) -> None:
        """Raise what has failed, in words."""
        if self.failure is not None:
            raise not_written(self.failure, self._folder)

    def wait_for_room(self) -> None:
        """Wait where too much is unrecorded; the condition is held."""
        while self._unrecorded_bytes > MOST_UNRECORDED_BYTES and self.failure is None:
            self.cond.wait(1.0)
        self.require_sound()

    def announce(self, n_bytes: int) -> None:
        """Count bytes that are about to be written; the condition is held."""
        self._unrecorded_bytes += n_bytes

    def add(self, written: WrittenPiece) -> None:
        """Take in what was written."""
        with self.cond:
            is_first = not self._pending
            if is_first:
                self._first_pending_s = time.monotonic()
            self._pending.append(written)
            self._pending_bytes += written.n_bytes
            # Who records is woken to wait for the group's time, and where it is large enough.
            if is_first or self._is_due():
                self.cond.notify_all()

    def add_whole(self, files: Iterable[tuple[str, int]]) -> None:
        """Take in files that need no more pieces."""
        with self.cond:
            self._whole += files
            self.cond.notify_all()

    def work(self, report: Callable[[list[PieceKey], Exception | None], None]) -> None:
        """Carry groups on until it is to end."""
        while True:
            with self.cond:
                while not self._is_due():
                    if self._ends and not (self._pending or self._whole or self._is_busy()):
                        return
                    self.cond.wait(self._patience_s())
                group, self._pending, self._pending_bytes = self._pending, [], 0
                whole, self._whole = self._whole, []
            try:
                self._carry_on(group, whole)
            except Exception as error:  # noqa: BLE001 - handed on
                self.fail(error)
                report(
                    [], not_written(error, self._folder) if isinstance(error, OSError) else error
                )
                return
            with self.cond:
                self._unrecorded_bytes -= sum(written.n_bytes for written in group)
                self.cond.notify_all()
            report([written.key for written in group], None)

    def _is_due(self) -> bool:
        if self._ends:
            return bool(self._pending or self._whole)
        if not self._pending:
            return bool(self._whole)
        age_s = time.monotonic() - self._first_pending_s
        return age_s >= GROUP_S or self._pending_bytes >= GROUP_BYTES

    def _patience_s(self) -> float | None:
        if not self._pending:
            return None
        return max(0.0, self._first_pending_s + GROUP_S - time.monotonic())
