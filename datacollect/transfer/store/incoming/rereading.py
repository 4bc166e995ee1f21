"""Reading doubted unfinished files again, beside the fetching: in a thread, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from datacollect.transfer.store.incoming.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from datacollect.transfer.protocol.source import Listed
    from datacollect.transfer.store.incoming.unfinished import Unfinished

    # Offset, bytes and hash of a part.
    Part: TypeAlias = tuple[int, int, bytes]


class Rereading:
    """The unfinished files that have to be read again before they can be used.

    Parameters
    ----------
    unfinished : Unfinished
    what_of : callable
        Returns a file as it is listed, and its parts with their hashes.
    note : callable
        Takes source, number, path, and the offset and bytes of each part that does not fit. Until
        it has called `is_noted`, the file stays doubted.
    fail : callable
        Takes what has ended it.
    """

    def __init__(
        self,
        unfinished: Unfinished,
        what_of: Callable[[int], tuple[Listed, Sequence[Part]]],
        note: Callable[[str, int, str, Sequence[tuple[int, int]]], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self._unfinished, self._what_of = unfinished, what_of
        self._note, self._fail = note, fail
        self._worker = Worker("rereading", self._read)
        self._wanted: set[tuple[str, int]] = set()

    @property
    def n_left(self) -> int:
        """Return how many files are still to be read, or noted."""
        return len(self._wanted) if self._worker.is_alive else 0

    def add(self, files: Iterable[tuple[str, int]]) -> None:
        """Have files read; each once, until it is noted."""
        for each in files:
            if each not in self._wanted:
                self._wanted.add(each)
                self._worker.add(each)

    def sound(self, files: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Return the files that are not doubted."""
        return [
            each
            for each in files
            if each not in self._wanted and not self._unfinished.is_doubted(each[1])
        ]

    def is_noted(self, source: str, file: int) -> None:
        """Let a file count as read."""
        self._wanted.discard((source, file))

    def close(self) -> None:
        """End, however much is left to be read."""
        self._worker.close()

    def _read(self, job: tuple[str, int]) -> None:
        source, file = job
        try:
            listed, parts = self._what_of(file)
            wrong = self._unfinished.read_again(
                source, file, listed, parts, lambda: self._worker.is_cancelled
            )
            if not self._worker.is_cancelled:
                self._note(source, file, listed.path, wrong)
        except Exception as error:  # noqa: BLE001 - handed on
            self._fail(error)
