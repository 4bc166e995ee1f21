"""Room for others' data at relays that have little: what takes it up, which hops wait for it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from datacollect.control.connections import Piece
from datacollect.control.planned.connection_window import LEAST_PIECES
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control.planned.connection_window import HopQueue
    from datacollect.problem.problem import Problem

# A collection is cut into about this many pieces, of these sizes.
PIECES = 4000
LEAST_PIECE_BYTES, MOST_PIECE_BYTES = 1 << 13, 1 << 16


class RelayRoom:
    """Room at hosts, taken up by pieces from the instant on at which they are sent there.

    A host's own data take none, nor does anything at the destination.

    Parameters
    ----------
    problem : Problem
        Says what lies at relays from the start.
    room_bytes : mapping of str to float, optional
        Unlimited at hosts left out.
    """

    def __init__(self, problem: Problem, room_bytes: Mapping[str, float] | None) -> None:
        self._room_bytes = {
            host: room for host, room in (room_bytes or {}).items() if host != problem.destination
        }
        self._taken_bytes: Counter[str] = Counter()
        self._held_up: dict[str, list[HopQueue]] = {}
        for part in problem.held:
            piece = Piece(part.source, part.offset_bytes, part.n_bytes)
            if self._is_bounded(part.host, piece):
                self._taken_bytes[part.host] += part.n_bytes

    def take(self, hop: HopQueue, piece: Piece) -> bool:
        """Take room for a piece at a hop's end; False where there is none: the hop waits for it."""
        host = hop.to_host
        if not self._is_bounded(host, piece):
            return True
        if self._taken_bytes[host] + piece.n_bytes > self._room_bytes[host]:
            self._held_up.setdefault(host, []).append(hop)
            return False
        self._taken_bytes[host] += piece.n_bytes
        return True

    def left(self, host: str, piece: Piece) -> list[HopQueue]:
        """Free the room of a piece that has left; return the hops that have waited for it."""
        if not self._is_bounded(host, piece):
            return []
        self._taken_bytes[host] -= piece.n_bytes
        return self._held_up.pop(host, [])

    def will_not_come(self, host: str, piece: Piece) -> None:
        """Free the room of a piece that was sent and is given up."""
        if self._is_bounded(host, piece):
            self._taken_bytes[host] -= piece.n_bytes

    def nobody_waits(self) -> None:
        """Forget who waits for room."""
        self._held_up.clear()

    def piece_bytes(self, total_bytes: int, wanted: int | None) -> int:
        """Return the size of pieces, small enough for several to lie at each relay.

        Raises
        ------
        ProblemError
            A host has next to no room.
        """
        size = wanted
        if size is None:
            size = min(MOST_PIECE_BYTES, max(LEAST_PIECE_BYTES, total_bytes // PIECES))
        tightest = min(self._room_bytes, key=self._room_bytes.__getitem__, default=None)
        if tightest is None:
            return size
        room = self._room_bytes[tightest]
        if not room >= LEAST_PIECES:
            raise ProblemError(
                f"host {tightest!r}: its room for others' data must be >= {LEAST_PIECES} bytes "
                f"where the rest is planned again, got {room:g}: pieces wait there until they are "
                "whole; give it more, or do not plan again"
            )
        return int(min(size, room // LEAST_PIECES))

    def _is_bounded(self, host: str, piece: Piece) -> bool:
        return host in self._room_bytes and host != piece.source
