"""Queues of data that lie at hosts and go on: cut into pieces as connections pull them."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from datacollect.control.connections import Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


class HostQueue:
    """Data at one host, the first to be sent first; what came for relaying goes before its own.

    Parameters
    ----------
    piece_bytes : int
        How the host's own data are cut.
    noted : callable, optional
        Told of each change, whether anything lies here.

    Examples
    --------
    >>> queue = HostQueue(piece_bytes=4)
    >>> queue.add_own("S", 0, 6)
    >>> queue.add(Piece("R", 0, 5))
    >>> queue.n_bytes, queue.pull(), queue.pull()
    (11, Piece(source='R', offset_bytes=0, n_bytes=5), Piece(source='S', offset_bytes=0, n_bytes=4))
    """

    def __init__(self, piece_bytes: int, noted: Callable[[bool], None] | None = None) -> None:
        self._piece_bytes, self._noted = piece_bytes, noted
        self._whole: dict[Piece, None] = {}  # in order: others' pieces, and what came back
        self._own: deque[Piece] = deque()  # to be cut
        self.n_bytes = 0
        self.own_bytes = 0  # of its own that were never sent

    def add_own(self, source: str, offset_bytes: int, n_bytes: int) -> None:
        """Add data that lie at the host from the start."""
        if n_bytes > 0:
            self._own.append(Piece(source, offset_bytes, n_bytes))
            self._change(n_bytes)
            self.own_bytes += n_bytes

    def add(self, piece: Piece) -> None:
        """Add a piece as it was cut: it came for relaying, or comes back."""
        if piece not in self._whole:
            self._whole[piece] = None
            self._change(piece.n_bytes)

    def discard(self, piece: Piece) -> bool:
        """Take a piece out; whether it was there, whole."""
        if piece not in self._whole:
            return False
        del self._whole[piece]
        self._change(-piece.n_bytes)
        return True

    def pull(self, *, own: bool = False) -> Piece | None:
        """Take the next piece out, if wanted one of the host's own; None where nothing is left."""
        if self._whole and not own:
            piece = next(iter(self._whole))
            del self._whole[piece]
        elif self._own:
            piece = self._cut()
        else:
            return None
        self._change(-piece.n_bytes)
        return piece

    def whole_pieces(self) -> list[Piece]:
        """Take out the pieces that came for relaying, or came back."""
        pieces = list(self._whole)
        for piece in pieces:
            self.discard(piece)
        return pieces

    def _change(self, n_bytes: int) -> None:
        self.n_bytes += n_bytes
        if self._noted is not None:
            self._noted(self.n_bytes > 0)

    def _cut(self) -> Piece:
        source, offset_bytes, left_bytes = self._own[0]
        n_bytes = min(left_bytes, self._piece_bytes)
        self.own_bytes -= n_bytes
        if n_bytes == left_bytes:
            self._own.popleft()
        else:
            self._own[0] = Piece(source, offset_bytes + n_bytes, left_bytes - n_bytes)
        return Piece(source, offset_bytes, n_bytes)


class HostQueues(dict[str, HostQueue]):
    """The queues of all hosts, and where there is something: asked whenever a connection is idle.

    Parameters
    ----------
    hosts : iterable of str
    piece_bytes : int

    Examples
    --------
    >>> queues = HostQueues(["A", "B"], piece_bytes=4)
    >>> queues["A"].add_own("A", 0, 6)
    >>> queues.any_left(["A", "B"]), queues.any_left(["A", "B"], besides="A")
    (True, False)
    """

    def __init__(self, hosts: Iterable[str], piece_bytes: int) -> None:
        super().__init__()
        self._piece_bytes = piece_bytes
        self._laden: set[str] = set()
        for host in hosts:
            self.clear_out(host)

    def clear_out(self, host: str) -> None:
        """Let nothing lie at a host."""
        self._laden.discard(host)
        self[host] = HostQueue(self._piece_bytes, partial(self._note, host))

    def any_left(self, hosts: Collection[str], besides: str = "") -> bool:
        """Return whether anything lies at some hosts, one of them left out."""
        return any(host != besides and host in hosts for host in self._laden)

    def _note(self, host: str, is_laden: bool) -> None:
        (self._laden.add if is_laden else self._laden.discard)(host)
