"""Ledger of connections that pull: the pieces of each, and the number of them on each link."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from datacollect.control.connection_counts import Link, LinkRates
    from datacollect.control.connections import Piece


@dataclass(slots=True, eq=False)
class Pull:
    """A connection or a chain, and what was given to it, when, and has not arrived."""

    number: int
    link: Link
    is_open: bool = False
    is_draining: bool = False  # nothing more is given to it; it closes once all on it has left
    is_dropped: bool = False  # closes at once
    waiting: dict[Piece, float] = field(default_factory=dict)
    waiting_bytes: int = 0
    busy_since_s: float | None = None
    idle_since_s: float = 0.0
    arrivals: int = 0

    @property
    def n_hops(self) -> int:
        """As how many connections it counts."""
        return len(self.link) - 1


class Pulls:
    """All connections, until their ends are known, and what is on them.

    Parameters
    ----------
    rates : LinkRates
        Told for how long connections had something to send.
    hosts : iterable of str
    destination : str

    Attributes
    ----------
    known : dict of int to Pull
        Those that count: from the decision to open them until their ends are known.
    ever : dict of int to Pull
    held : int
        As how many connections those known count: chains count their hops.
    active : Counter
        By link, those that are given pieces.
    coming_bytes : Counter
        On connections to each host.
    copies : Counter
        On how many connections each piece is.
    relayed_bytes : Counter
        Others' data at each relay, in flight to it, and sent on without having arrived.
    """

    def __init__(self, rates: LinkRates, hosts: Iterable[str], destination: str) -> None:
        self._rates = rates
        self._destination = destination
        self.known: dict[int, Pull] = {}
        self.ever: dict[int, Pull] = {}
        self.held = 0
        self.active: Counter[Link] = Counter()
        self.coming_bytes: Counter[str] = Counter()
        self.copies: Counter[Piece] = Counter()
        self.relayed_bytes: Counter[str] = Counter()
        self._relayed: dict[str, set[Piece]] = {host: set() for host in hosts}
        # Of those known, in the order in which they were opened: by their first and last hosts.
        self._out: defaultdict[str, dict[int, Pull]] = defaultdict(dict)
        self._into: defaultdict[str, dict[int, Pull]] = defaultdict(dict)
        self._draining: set[int] = set()

    def add(self, link: Link, time_s: float) -> Pull:
        """Add a connection that is about to be opened."""
        pull = Pull(len(self.ever), link, idle_since_s=time_s)
        self.known[pull.number] = self.ever[pull.number] = pull
        self._out[link[0]][pull.number] = self._into[link[-1]][pull.number] = pull
        self.active[link] += 1
        self.held += pull.n_hops
        return pull

    def opened(self, pull: Pull, time_s: float) -> None:
        """Note that a connection carries data from now on."""
        pull.is_open = True
        if pull.waiting:
            pull.busy_since_s = time_s

    def given(self, pull: Pull, piece: Piece, time_s: float) -> None:
        """Note that a piece was queued on a connection."""
        pull.waiting[piece] = time_s
        pull.waiting_bytes += piece.n_bytes
        self.copies[piece] += 1
        self.coming_bytes[pull.link[-1]] += piece.n_bytes
        self.relays(pull.link[-1], piece)
        if pull.is_open and pull.busy_since_s is None:
            pull.busy_since_s = time_s

    def taken(self, pull: Pull, piece: Piece, time_s: float) -> bool:
        """Note that a piece has arrived, or will not; whether it was waited for."""
        if piece not in pull.waiting:
            return False
        del pull.waiting[piece]
        pull.waiting_bytes -= piece.n_bytes
        self.coming_bytes[pull.link[-1]] -= piece.n_bytes
        self.copies[piece] -= 1
        if not self.copies[piece]:
            del self.copies[piece]
        if not pull.waiting:
            self._rests(pull, time_s)
        return True

    def retired(self, pull: Pull, *, drop: bool = False) -> None:
        """Note that a connection is given nothing more."""
        if not pull.is_draining:
            self.active[pull.link] -= 1
        pull.is_draining = True
        if pull.number in self.known:
            self._draining.add(pull.number)
        pull.is_dropped = pull.is_dropped or drop

    def closed(self, number: int, time_s: float) -> Pull | None:
        """Note that a connection's end is known; None if it was known before."""
        pull = self.known.pop(number, None)
        if pull is not None:
            self.held -= pull.n_hops
            del self._out[pull.link[0]][number], self._into[pull.link[-1]][number]
            self._draining.discard(number)
            self._rests(pull, time_s)
        return pull

    @property
    def any_draining(self) -> bool:
        """Return whether some are about to close."""
        return bool(self._draining)

    def observe(self, time_s: float) -> None:
        """Tell the rates for how long connections were busy until now."""
        for pull in self.known.values():
            if pull.busy_since_s is not None:
                self._rates.busy(pull.link, time_s - pull.busy_since_s)
                pull.busy_since_s = time_s

    def out_of(self, host: str) -> list[Pull]:
        """Return the connections out of a host."""
        return list(self._out[host].values())

    def into(self, host: str) -> list[Pull]:
        """Return the connections into a host that are given pieces."""
        return [pull for pull in self._into[host].values() if not pull.is_draining]

    def least_laden(self, link: Link, number: int) -> list[Pull]:
        """Return `n` connections of a link that are given pieces, those with least first."""
        active = [p for p in self.out_of(link[0]) if p.link == link and not p.is_draining]
        return sorted(active, key=lambda pull: pull.waiting_bytes)[:number]

    def oldest(self, host: str, most_copies: int, there: Container[Piece]) -> Piece | None:
        """Return what connections out of a host have had for longest, and is not there yet.

        None where nothing is on fewer than `most_copies` of them.
        """
        waiting = (
            (given_s, pull.number, piece)
            for pull in self.out_of(host)
            for piece, given_s in pull.waiting.items()
            if self.copies[piece] < most_copies and piece not in there
        )
        oldest = min(waiting, default=None)
        return None if oldest is None else oldest[2]

    def relays(self, host: str, piece: Piece) -> None:
        """Count a piece that is at a relay, or will be."""
        if host != self._destination and piece not in self._relayed[host]:
            self._relayed[host].add(piece)
            self.relayed_bytes[host] += piece.n_bytes

    def has_left(self, host: str, piece: Piece) -> None:
        """Count a piece no more: it has got on from a relay, or did not get there."""
        if piece in self._relayed[host]:
            self._relayed[host].remove(piece)
            self.relayed_bytes[host] -= piece.n_bytes

    def _rests(self, pull: Pull, time_s: float) -> None:
        if pull.busy_since_s is not None:
            self._rates.busy(pull.link, time_s - pull.busy_since_s)
            pull.busy_since_s = None
        pull.idle_since_s = time_s
