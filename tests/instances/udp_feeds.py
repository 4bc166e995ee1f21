"""A feed by UDP over loopback: both ends in this process, the connection in place of TLS plain."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from datacollect.errors import DatacollectError
from datacollect.feeds.formats.clock import SteadyClock
from datacollect.feeds.formats.feed_file import FeedFile
from datacollect.feeds.formats.frames import hello_of, line_of
from datacollect.feeds.formats.udp_settings import UdpSettings
from datacollect.feeds.receiver.disk import Folder
from datacollect.feeds.receiver.kept_feed import kept_feed
from datacollect.feeds.receiver.udp_taking import UdpLimits, UdpTaking, require_udp
from datacollect.feeds.sender.udp_sender import UdpSender

__all__ = ["Plain", "UdpHost", "feed_file", "sender"]

USER = "ed25519:test"


class Plain:
    """A connection as `Control`, over a socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.address = "127.0.0.1"

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self, timeout_s: float) -> bytes | None:
        self._socket.settimeout(timeout_s)
        try:
            return self._socket.recv(65536)
        except TimeoutError:
            return None
        except OSError:
            return b""

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@dataclass
class UdpHost:
    """A receiver of feeds by UDP, a thread for each connection."""

    folder: Path
    most_rate_bytes_per_s: float | None = 1e9
    require_room: Callable[[int], None] = lambda _: None
    takings: list[UdpTaking] = field(default_factory=list)
    connections: list[socket.socket] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def connect(self) -> Plain:
        here, there = socket.socketpair()
        self.connections.append(there)
        thread = threading.Thread(target=self._serve, args=(there,), daemon=True)
        self.threads.append(thread)
        thread.start()
        return Plain(here)

    def cut(self) -> None:
        """End the last connection."""
        with suppress(OSError):
            self.connections[-1].shutdown(socket.SHUT_RDWR)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                self._take(connection)
            except (DatacollectError, OSError) as error:
                with suppress(OSError):
                    connection.sendall(line_of({"why": str(error), "again": False}))

    def _take(self, connection: socket.socket) -> None:
        data = b""
        while b"\n" not in data:
            data += connection.recv(65536)
        line, _, rest = data.partition(b"\n")
        hello, limits = hello_of(line), UdpLimits(("127.0.0.1", 0), self.most_rate_bytes_per_s)
        require_udp(hello, limits)
        disk = Folder(self.folder)
        kept = kept_feed(disk, hello, USER, "2026-01-01T00:00:00Z")
        clock = SteadyClock()
        taking = UdpTaking(kept, hello, clock, limits, self.require_room, connection.sendall)
        self.takings.append(taking)
        try:
            connection.sendall(taking.welcome())
            data = rest
            while True:
                if data:
                    connection.sendall(taking.take(data, "2026-01-01T00:00:01Z"))
                if taking.is_whole:
                    return
                data = connection.recv(65536)
                if not data:
                    return
        finally:
            taking.close()
            disk.close()

    def close(self) -> None:
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive()


def feed_file(**more: object) -> FeedFile:
    """Return a feed by UDP of 4 Mbit/s, messages of 1000 bytes."""
    tree = {
        "format": "datacollect-feed/1",
        "name": "scan7",
        "to": "D",
        "key": "k",
        "agents": {"D": {"url": "https://127.0.0.1:7443", "ca": "ca.pem"}},
        "rate": "4 Mbit/s",
        "message_bytes": 1000,
        "transport": "udp",
        "give_up": 20,
    }
    return FeedFile.from_dict(
        {key: value for key, value in (tree | more).items() if value is not None}
    )


@contextmanager
def sender(
    host: UdpHost, settings: UdpSettings | None = None, **more: object
) -> Iterator[UdpSender]:
    """Yield a sender that has begun; in the end it, and the host, have ended."""
    made = UdpSender(
        feed_file(**more),
        settings or UdpSettings(),
        "stream-1",
        host.connect,
        SteadyClock(),
        lambda _: None,
    )
    try:
        made.begin()
        yield made
    finally:
        made.abort()
        host.close()
