"""Connections counted from the moment they are accepted: all, and those of each address.

A connection takes an open file before a byte has come, and while TLS is agreed upon: servers of
HTTP count too late. Where places are short, idle ones go first.
"""

from __future__ import annotations

import heapq
import ipaddress
import resource
import socket
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.net.addresses import origin_of

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from datacollect.bistro.http.config_fields import IPNetwork

# What one process serves at most, and the files that it needs besides.
MOST_CONNECTIONS = 20_000
KEPT_FILES = 128
# With fewer than this a service says so: on many systems a shell has 1024 files.
FEW_CONNECTIONS = 4096
# The part of all that one address may have: a campus has one, and others must get in.
PART_OF_ADDRESS = 4
# So many may be ending whose places others have already: they are open files still.
GOING_AT_ONCE = KEPT_FILES // 2
# Who has come this instant may be about to ask: only where its address holds so much of all by
# idling has it no time for that. Else a crowd would close each other's before they have asked.
YOUNG_S, PART_OF_IDLE = 1.0, 16
# A heap of fewer than this is not made anew.
LEAST_HEAP = 64


class Idle:
    """Idle connections by whom they are counted for, proxies' apart; no step looks at all."""

    def __init__(self) -> None:
        # By origin and number of the file, those that wait longest first.
        self._of: dict[str, dict[int, _Counted]] = {}
        # Who has most, of those the one whose oldest waits longest: a heap, in which what has
        # changed since stands still.
        self._heap: list[tuple[int, float, str]] = []

    def add(self, origin: str, number: int, connection: _Counted) -> None:
        """A connection waits from now on."""
        self._of.setdefault(origin, {})[number] = connection
        self._note(origin)

    def remove(self, origin: str, number: int) -> None:
        """A connection waits no more, if it did."""
        rows = self._of.get(origin, {})
        if rows.pop(number, None) is None:
            return
        if not rows:
            del self._of[origin]
        self._note(origin)

    def of(self, origin: str) -> dict[int, _Counted]:
        """Return those of an origin."""
        return self._of.get(origin, {})

    def of_most(self) -> dict[int, _Counted]:
        """Return those of whoever has most."""
        while self._heap and self._heap[0] != self._key(self._heap[0][2]):
            heapq.heappop(self._heap)
        return self._of[self._heap[0][2]] if self._heap else {}

    def _key(self, origin: str) -> tuple[int, float, str] | None:
        rows = self._of.get(origin)
        return (-len(rows), next(iter(rows.values())).since_s, origin) if rows else None

    def _note(self, origin: str) -> None:
        key = self._key(origin)
        if key is not None:
            heapq.heappush(self._heap, key)
        if len(self._heap) > 2 * len(self._of) + LEAST_HEAP:
            self._heap = [key for key in map(self._key, self._of) if key is not None]
            heapq.heapify(self._heap)


@dataclass
class Places:
    """Places for connections: how many there are, and who has one.

    Attributes
    ----------
    most : int
    behind : sequence of networks
        Proxies, which have as many as there are.
    """

    most: int
    behind: Sequence[IPNetwork] = ()
    taken: Counter[str] = field(default_factory=Counter)
    n_taken: int = 0
    idle: Idle = field(default_factory=Idle)
    n_going: int = 0

    def take(self, address: str) -> bool:
        """Return whether an address may have one more; if so, it has."""
        origin = origin_of(address)
        of_one = self.most if is_within(address, self.behind) else self.most_of_address
        if self.n_taken >= self.most or self.taken[origin] >= of_one:
            return False
        self.taken[origin] += 1
        self.n_taken += 1
        return True

    def leave(self, address: str) -> None:
        """Take back what `take` has given."""
        origin = origin_of(address)
        self.n_taken -= 1
        self.taken[origin] -= 1
        if not self.taken[origin]:
            del self.taken[origin]

    def make_room(self, address: str) -> None:
        """Have the oldest idle connection end, and give its place away, if there is one.

        Where all places are taken it is one of the address that has most of the idle ones, so that
        whoever opens many loses his own; where only those of this address are, one of these.
        """
        if self.n_going >= GOING_AT_ONCE:
            return
        is_short = self.n_taken >= self.most
        found = self.idle.of_most() if is_short else self.idle.of(origin_of(address))
        oldest = next(iter(found.values()), None)
        is_much = is_short and len(found) > self.most // PART_OF_IDLE
        if oldest is not None and (is_much or time.monotonic() - oldest.since_s >= YOUNG_S):
            oldest.give_way()

    @property
    def most_of_address(self) -> int:
        """Connections of an address that is no proxy's."""
        return max(self.most // PART_OF_ADDRESS, 1)


class CountingListener(socket.socket):
    """A socket that closes connections at once which have no place.

    Attributes
    ----------
    places : Places or None
        None: there is place for all.
    """

    places: Places | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._by_file: dict[int, _Counted] = {}

    def accept(self) -> tuple[socket.socket, Any]:
        """Return a connection and whence it comes.

        Raises
        ------
        ConnectionAbortedError
            It had no place; event loops go on after that.
        """
        connection, address = super().accept()
        if self.places is None:
            return connection, address
        is_taken = self.places.take(address[0])
        if not is_taken:
            self.places.make_room(address[0])
            is_taken = self.places.take(address[0])
        if not is_taken:
            connection.close()
            raise ConnectionAbortedError("there is no room for another connection")
        return _Counted(connection, self.places, address[0], self._by_file), address

    @contextmanager
    def at_work(self, number: int) -> Generator[None]:
        """Have the connection of an open file keep its place within."""
        found = self._by_file.get(number)
        if found is not None:
            found.work()
        try:
            yield
        finally:
            if found is not None and self._by_file.get(number) is found:
                found.wait()


class _Counted(socket.socket):
    """A connection that has a place until it is closed, or gives way."""

    def __init__(
        self, connection: socket.socket, places: Places, address: str, by_file: dict[int, _Counted]
    ) -> None:
        super().__init__(connection.family, connection.type, connection.proto, connection.detach())
        self._places, self._address, self._origin = places, address, origin_of(address)
        self._is_proxy = is_within(address, places.behind)
        self._number, self._by_file = self.fileno(), by_file
        self._has_place, self._is_going = True, False
        by_file[self._number] = self
        self.wait()

    def wait(self) -> None:
        """Be idle from now on."""
        self.since_s = time.monotonic()
        if self._has_place and not self._is_proxy:
            self._places.idle.add(self._origin, self._number, self)

    def work(self) -> None:
        """Be idle no more."""
        self._places.idle.remove(self._origin, self._number)

    def give_way(self) -> None:
        """Leave the place; the event loop closes what has an end."""
        self._leave()
        self._is_going = True
        self._places.n_going += 1
        with suppress(OSError):  # it has gone by itself
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        super().close()
        if self._by_file.get(self._number) is self:
            del self._by_file[self._number]
        self._leave()
        self._places.n_going -= self._is_going
        self._is_going = False

    def _leave(self) -> None:
        self.work()
        if self._has_place:
            self._has_place = False
            self._places.leave(self._address)


def is_within(address: str, networks: Sequence[IPNetwork]) -> bool:
    """Return whether an address is in one of some networks.

    >>> is_within("::ffff:10.0.0.1", [ipaddress.ip_network("10.0.0.0/8")])
    True
    """
    if not networks:
        return False
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return any((mapped or found) in network for network in networks)


def few_connections_text() -> str:
    """Say how many connections a process can have where that is few; empty: it is not."""
    most = most_connections()
    if most >= FEW_CONNECTIONS:
        return ""
    return (
        f"each process can have {most} connections at a time, {Places(most).most_of_address} of "
        f"one address; for {FEW_CONNECTIONS} raise the limit of open files to "
        f"{FEW_CONNECTIONS + KEPT_FILES} (ulimit -n, or LimitNOFILE of systemd)"
    )


def most_connections() -> int:
    """Return how many connections this process can have, after its limit of files was raised."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(MOST_CONNECTIONS, max(now - KEPT_FILES, now // 2, 1))
