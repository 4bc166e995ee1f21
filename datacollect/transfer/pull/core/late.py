"""Files of which nothing comes: all others of their source come first, they in the next round."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from datacollect.transfer.pull.core.books import STALL_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.transfer.pull.core.books import SourceWork


class Late:
    """Which pieces of a start are of such files, and which of them wait for the next round.

    Parameters
    ----------
    work : mapping of str to SourceWork
    known : mapping of str to set of int
        Pieces of files that were late in this start before.

    Attributes
    ----------
    pieces : dict of str to set of int
        Of all files that were late in this start.
    put_off : dict of str to set of int
        What is left to the next round.
    """

    def __init__(
        self, work: Mapping[str, SourceWork], known: Mapping[str, set[int]] | None = None
    ) -> None:
        self._work = work
        self.pieces = {source: set((known or {}).get(source, ())) for source in work}
        self.put_off: dict[str, set[int]] = {source: set() for source in work}
        self._came: deque[tuple[float, str, int]] = deque()

    def others_wait(self, source: str, todo: set[int]) -> bool:
        """Whether there are files that were not late so far."""
        return not todo <= self.pieces[source]

    @property
    def ending(self) -> str:
        """How a round ends that has brought all others."""
        return "what was late is left" if any(self.put_off.values()) else "all there"

    def came(self, source: str, piece: int, now_s: float) -> None:
        """A piece is there: its files are not late."""
        self.put_off[source].discard(piece)
        self._came.append((now_s, source, piece))
        self._forget(now_s)

    def _forget(self, now_s: float) -> None:
        while self._came and self._came[0][0] < now_s - STALL_S:
            self._came.popleft()

    def note(self, source: str, piece: int, todo: set[int], now_s: float) -> bool:
        """Nothing comes of a piece: put its files off, unless they are all that is left.

        Where another piece of them came not long ago it is the connection that is stuck.

        Parameters
        ----------
        source : str
        piece : int
        todo : set of int
            What has yet to come; what is put off is taken away.
        now_s : float

        Returns
        -------
        bool
            Whether one of its files is late for the first time.
        """
        kin = set(self._work[source].kin(piece))
        self._forget(now_s)
        if any(each == source and other in kin for _, each, other in self._came):
            return False
        is_first = not kin <= self.pieces[source]
        self.pieces[source] |= kin
        waiting = kin & todo
        if self.put_off[source] or len(todo) > len(waiting):
            todo -= waiting
            self.put_off[source] |= waiting
        return is_first
