"""Remaining pieces of each source: in this round, or in the next where nothing comes of it.

Files of which nothing comes are late: all others of their source come first, they in the next
round.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.transfer.pull.core.under_way import STALL_S

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from datacollect.transfer.pull.core.patience import Silence

MOST_TRIES = 5  # after which a piece is given up whose answers are no good


def only(piece: int) -> range:
    """Return a piece as one that has no kin.

    >>> list(only(3))
    [3]
    """
    return range(piece, piece + 1)


@dataclass(frozen=True)
class SourceWork:
    """Pieces to be fetched from a source.

    Attributes
    ----------
    starts, sizes : tuple of int
        Where each of its pieces begins, and its bytes.
    needed : frozenset of int
        The pieces that are to be fetched.
    kin : callable
        Takes a piece; returns all pieces that hold parts of the same files.
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    needed: frozenset[int]
    kin: Callable[[int], range] = only

    def beginning_in(self, offset_bytes: int, n_bytes: int) -> range:
        """Return the pieces that begin in a range: each is in one of several ranges side by side.

        >>> SourceWork((0, 64, 128), (64, 64, 5), frozenset()).beginning_in(64, 65)
        range(1, 3)
        """
        first = bisect_left(self.starts, offset_bytes)
        return range(first, bisect_left(self.starts, offset_bytes + n_bytes))


class Todo:
    """Pieces that have yet to come, those that wait for the next round, and sources given up.

    Parameters
    ----------
    work : mapping of str to SourceWork
    before : Remains, optional
        What the rounds before have left: late files, and answers that were no good.

    Attributes
    ----------
    pieces : dict of str to set of int
        That are not verified yet, but those that are put off.
    late : dict of str to set of int
        Of all files that were late in this start.
    put_off : dict of str to set of int
        What is left to the next round.
    refused : dict of str to set of int
        What cannot be had in this start.
    given_up : dict of str to str
        Sources from which nothing more can be fetched, and why.
    tries : dict of str to Counter of int
        How often the answer for a piece was no good, in this start.
    """

    def __init__(self, work: Mapping[str, SourceWork], before: Remains | None = None) -> None:
        before = before or Remains()
        self._work = work
        self.pieces = {source: set(each.needed) for source, each in work.items()}
        self.late = {source: set(before.late.get(source, ())) for source in work}
        self.tries = {source: Counter(before.tries.get(source, ())) for source in work}
        self.put_off: dict[str, set[int]] = {source: set() for source in work}
        self.refused: dict[str, set[int]] = {source: set() for source in work}
        self.given_up: dict[str, str] = {}
        self._came: deque[tuple[float, str, int]] = deque()

    @property
    def n_bytes(self) -> int:
        """Return what has yet to come."""
        return sum(self._work[s].sizes[piece] for s, todo in self.pieces.items() for piece in todo)

    @property
    def ending(self) -> str | None:
        """Return why nothing more comes in this round; None as long as something may."""
        if any(todo and source not in self.given_up for source, todo in self.pieces.items()):
            return None
        if self.given_up:
            return "nothing more can be fetched"
        return "what was late remains" if any(self.put_off.values()) else "all there"

    def others_wait(self, source: str, piece: int, awaited: Container[int]) -> bool:
        """Return whether other files than a piece's wait for its place: they were not late so far.

        `awaited`: pieces that have a place themselves.
        """
        late, kin = self.late[source], self._work[source].kin(piece)
        return any(
            other not in late and other not in kin and other not in awaited
            for other in self.pieces[source]
        )

    def came(self, source: str, piece: int, now_s: float) -> None:
        """A piece is there: its files are not late."""
        self.pieces[source].discard(piece)
        self.put_off[source].discard(piece)
        self.tries[source].pop(piece, None)
        self._came.append((now_s, source, piece))
        self._forget(now_s)

    def drop(self, source: str, pieces: Iterable[int]) -> None:
        """Wait no more for pieces that cannot be had."""
        pieces = set(pieces)
        self.pieces[source] -= pieces
        self.refused[source] |= pieces

    def count_failed(self, source: str, piece: int, *, counts: bool) -> bool:
        """Count a failed answer for a piece; return whether too many have failed in this start.

        Where a source itself counts how often it is asked again it does not count here.
        """
        self.tries[source][piece] += counts
        return self.tries[source][piece] > MOST_TRIES

    def is_newly_late(self, source: str, piece: int, now_s: float) -> bool:
        """Nothing comes of a piece: put its files off, unless they are all that is left.

        Where another piece of them came not long ago it is the connection that is stuck.

        Returns
        -------
        bool
            Whether one of its files is late for the first time.
        """
        kin = set(self._work[source].kin(piece))
        self._forget(now_s)
        if any(each == source and other in kin for _, each, other in self._came):
            return False
        is_first = not kin <= self.late[source]
        self.late[source] |= kin
        waiting = kin & self.pieces[source]
        if self.put_off[source] or len(self.pieces[source]) > len(waiting):
            self.pieces[source] -= waiting
            self.put_off[source] |= waiting
        return is_first

    def _forget(self, now_s: float) -> None:
        while self._came and self._came[0][0] < now_s - STALL_S:
            self._came.popleft()


@dataclass
class Remains:
    """Work that the rounds of a start leave to the next, by sources.

    Attributes
    ----------
    silences : dict of str to Silence
        What is left of the patience with sources.
    refused : dict of str to set of int
        Pieces that cannot be had. Of what came parts may be lost, so that it is needed once more.
    late : dict of str to set of int
        Pieces of files of which nothing came when it was their turn.
    tries : dict of str to Counter of int
        How often the answer for a piece was no good: rounds that others end begin no new count.
    """

    silences: dict[str, Silence] = field(default_factory=dict)
    refused: dict[str, set[int]] = field(default_factory=dict)
    late: dict[str, set[int]] = field(default_factory=dict)
    tries: dict[str, Counter[int]] = field(default_factory=dict)

    def note(self, todo: Todo, silences: dict[str, Silence]) -> None:
        """A round has ended."""
        self.silences |= silences
        for name, pieces in todo.refused.items():
            self.refused.setdefault(name, set()).update(pieces)
        self.late |= todo.late
        self.tries |= todo.tries

    def listed(self, source: str) -> None:
        """A source is listed, maybe again: its pieces are others."""
        self.silences.pop(source, None)
        self.refused.pop(source, None)
        self.late.pop(source, None)
        self.tries.pop(source, None)

    def needed(self, source: str, needed: Iterable[int]) -> frozenset[int]:
        """Return which of its pieces are to be fetched; refused ones are not any more."""
        return frozenset(needed) - self.refused.get(source, set())
