"""Connections counted from the moment they are accepted: all, and those of each address.

A connection takes an open file before a byte has come, and while TLS is agreed upon: servers of
HTTP count too late.
"""

from __future__ import annotations

import ipaddress
import resource
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.net.addresses import origin_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from datacollect.bistro.http.config_fields import IPNetwork

# What one process serves at most, and the files that it needs besides.
MOST_CONNECTIONS = 20_000
KEPT_FILES = 128
# With fewer than this a service says so: on many systems a shell has 1024 files.
FEW_CONNECTIONS = 4096
# The part of all that one address may have: a campus has one, and others must get in.
PART_OF_ADDRESS = 4


@dataclass
class Places:
    """How many may connect, and who has.

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

    def take(self, address: str) -> bool:
        """Whether an address may have one more; if so, it has."""
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
        if not self.places.take(address[0]):
            connection.close()
            raise ConnectionAbortedError("there is no place for one more")
        leave = self.places.leave
        return _Counted(connection, lambda: leave(address[0])), address


class _Counted(socket.socket):
    """A connection that says once that it is closed."""

    def __init__(self, connection: socket.socket, closed: Callable[[], None]) -> None:
        super().__init__(connection.family, connection.type, connection.proto, connection.detach())
        self._closed_first: Callable[[], None] | None = closed

    def close(self) -> None:
        super().close()
        closed, self._closed_first = self._closed_first, None
        if closed is not None:
            closed()


def is_within(address: str, networks: Sequence[IPNetwork]) -> bool:
    """Whether an address is in one of some networks.

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
