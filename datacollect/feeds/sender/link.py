"""A connection to a receiver: a tunnel, its socket never waited for but where nothing is to do."""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, RefusedError, TransferError
from datacollect.feeds.formats.frames import SERVICE, Lines
from datacollect.files.kinds import shown
from datacollect.net.hop_ends import hop_end
from datacollect.net.pacing import set_pacing_rate
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.sources.kinds import AGENTS
from datacollect.transfer.tunnel.hops import Hops, hops_of
from datacollect.transfer.tunnel.opening import RouteChoice, TunnelOpener

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from datacollect.feeds.formats.feed_file import FeedFile
    from datacollect.feeds.sender.waking import Waker
    from datacollect.transfer.tunnel.opening import OpenedTunnel

BLOCK_BYTES = 64 * 1024
# Tried in this order where the file names none.
CONGESTIONS = ("bbr", "cubic")
# What the kernel may hold that it has not sent: beyond, it waits here, where it can be dropped.
UNSENT_S, LEAST_UNSENT_BYTES = 0.02, 32 * 1024
# What heads of packets and of TLS add, at most.
WITH_HEADS = 1.1
# After so long without an acknowledgement of TCP the path counts as broken.
BROKEN_MS = 15_000
# How long the receiver is waited for once all is said.
ENDS_WITHIN_S = 5.0


class Link:
    """Sends and receives over a tunnel.

    Parameters
    ----------
    opened : OpenedTunnel
    feed : FeedFile
    waker : Waker
        Ends `wait`.

    Attributes
    ----------
    address : str
        Of the receiver, where nothing lies between, or of the first relay.
    granted, route : str
        Congestion control and buffers as the kernel has them, of all connections; and the hosts.

    Raises
    ------
    ProblemError
        The kernel does not have the congestion control that the file asks for.
    """

    def __init__(self, opened: OpenedTunnel, feed: FeedFile, waker: Waker) -> None:
        self._wire, self._stream = opened.opened.wire, opened.opened.stream
        self.address: str = self._wire.getpeername()[0]
        self._waker = waker
        self._sealed = memoryview(b"")
        self._block = memoryview(bytearray(BLOCK_BYTES))
        self._lines = Lines()
        try:
            self._tune(feed)
        except BaseException:
            self.close()
            raise
        here = hop_end(self._wire, opened.asked_bytes)
        self.congestion = here.congestion
        names = (*opened.route, f"{opened.route[-1]}:{opened.service}")
        # The last of them lies within the receiver.
        self.granted = str(Hops(hops_of(names, here, opened.opened.told)[:-1]))
        self.route = " → ".join(opened.route)

    def _tune(self, feed: FeedFile) -> None:
        wire, rate = self._wire, feed.rate_bytes_per_s
        wire.setblocking(False)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError, AttributeError):  # not everywhere
            unsent = max(int(rate * UNSENT_S), LEAST_UNSENT_BYTES)
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, unsent)
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, BROKEN_MS)
        with suppress(OSError):  # kernels before 4.13
            set_pacing_rate(wire, rate * feed.catch_up * WITH_HEADS)
        if feed.congestion is not None:
            _ask_for(wire, feed.congestion)
            return
        for name in CONGESTIONS:
            with suppress(OSError):
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
                return

    @property
    def can_take_more(self) -> bool:
        """Return whether all that was to be sent has left."""
        return not self._sealed

    def send(self, data: bytes) -> None:
        """Have bytes sent, by `move`."""
        self._stream.write(data)
        self._sealed = memoryview(bytes(self._sealed) + self._stream.to_send())

    def move(self) -> list[dict[str, Any]]:
        """Send what can be sent now; return what the receiver says.

        Raises
        ------
        TransferError
            The connection has ended.
        """
        heard: list[dict[str, Any]] = []
        try:
            self._push()
            with suppress(BlockingIOError):
                data = self._wire.recv(BLOCK_BYTES)
                if not data:
                    raise TransferError("the connection has ended")
                self._stream.feed(data)
            while n_bytes := self._stream.read_into(self._block):
                heard += self._lines.take(bytes(self._block[:n_bytes]))
        except ssl.SSLError as error:
            raise TransferError(f"TLS failed: {error.reason or error}") from None
        except OSError as error:
            raise TransferError(f"the connection failed: {error.strerror or error}") from None
        if self._stream.is_ended and not heard:
            raise TransferError("the connection has ended")
        return heard

    def wait(self, within_s: float, *, sending: bool) -> None:
        """Wait until something can be done, or somebody wakes it.

        Parameters
        ----------
        within_s : float
        sending : bool
            Whether there is something to send, once it can be.
        """
        poll = select.poll()
        poll.register(self._wire, select.POLLIN | (select.POLLOUT if sending else 0))
        poll.register(self._waker, select.POLLIN)
        poll.poll(within_s * 1000)
        self._waker.clear()

    def end(self) -> None:
        """Say that nothing more comes, and wait a little for the other side's saying so."""
        with suppress(OSError):
            self._stream.end()
            self._wire.settimeout(ENDS_WITHIN_S)
            self._wire.sendall(bytes(self._sealed) + self._stream.to_send())
            while not self._stream.is_ended and (data := self._wire.recv(BLOCK_BYTES)):
                self._stream.feed(data)
                while self._stream.read_into(self._block):
                    pass

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._wire.close()

    def _push(self) -> None:
        with suppress(BlockingIOError):
            while self._sealed:
                n_bytes = self._wire.send(self._sealed)
                self._sealed = self._sealed[n_bytes:]


def opener_of(feed: FeedFile, tell: Callable[[str], None]) -> TunnelOpener:
    """Return what opens connections to a feed's receiver."""
    agents = {each.name: each for each in (feed.to, *feed.via)}
    collection = Collection(destination="source", key=feed.key, entries={AGENTS: agents})
    choice = RouteChoice(tuple(each.name for each in feed.via))
    return TunnelOpener(
        collection,
        f"{feed.to.name}:{SERVICE}",
        choice,
        buffer_bytes=feed.socket_bytes,
        tell=tell,
    )


def opened_link(opener: TunnelOpener, feed: FeedFile, waker: Waker) -> Link:
    """Connect to the receiver.

    Raises
    ------
    ProblemError
        To come again is of no use.
    InfeasibleError, TransferError
        It may help.
    """
    try:
        return Link(opener.open(), feed, waker)
    except (ProblemError, RefusedError) as error:
        cause = error if isinstance(error, RefusedError) else error.__cause__
        if (
            isinstance(cause, RefusedError)
            and cause.status == 404
            and cause.by in ("", feed.to.name)
        ):
            raise ProblemError(
                f"{feed.to.name}: takes no feeds; write [feed] into the file of its agent, and "
                "start the agent again"
            ) from None
        raise


def _ask_for(wire: socket.socket, congestion: str) -> None:
    try:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    except OSError:
        raise ProblemError(
            f"congestion must be one that this kernel allows, got {shown(congestion)}; "
            "/proc/sys/net/ipv4/tcp_allowed_congestion_control lists them"
        ) from None
