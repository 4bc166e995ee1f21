"""Asks an agent for a tunnel over one route, by one ticket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import RefusedError, TransferError
from datacollect.net.connect import answered_ends, answered_status, connect_request
from datacollect.net.dialling import REFUSAL_BYTES, as_failure, naming_peer, open_route
from datacollect.net.http_heads import HeadReader
from datacollect.net.safe_text import safe_text
from datacollect.net.tcp_options import keep_alive
from datacollect.net.tls import require_certificate
from datacollect.net.tls_stream import RECORD_BYTES, TlsStream
from datacollect.transfer.protocol.tunnel import TUNNEL_PROTOCOL

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Sequence

    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.deadline import Deadline
    from datacollect.net.dialling import RelayHop
    from datacollect.net.hop_ends import HopEnd


@dataclass(frozen=True)
class Opened:
    """A tunnel that is open.

    Attributes
    ----------
    stream : TlsStream
    wire : socket.socket
        Over which it runs.
    told : dict
        By agent, what it says of its ends.
    """

    stream: TlsStream
    wire: socket.socket
    told: dict[str, dict[str, HopEnd]]


class RouteError(TransferError):
    """A route cannot be opened.

    Attributes
    ----------
    link : tuple of str and int
        Which connection of the route, counted from here, is of no use.
    """

    def __init__(self, message: str, link: int) -> None:
        super().__init__(message)
        self.link = link


def ask_for_tunnel(
    hops: Sequence[RelayHop],
    far: AgentEntry,
    tls: ssl.SSLContext,
    service: str,
    ticket: str,
    deadline: Deadline,
    buffer_bytes: int | None = None,
) -> Opened:
    """Open a connection to an agent, and a tunnel from there to a service.

    Raises
    ------
    RouteError
        The agent is not reached over this route.
    IdentityError
        Another answers in its place.
    RefusedError
        It, or by a ticket a relay, refuses.
    TransferError
        It does not answer as an agent does.
    """
    told: dict[str, dict[str, HopEnd]] = {}
    try:
        wire = open_route(
            hops,
            far.name,
            far.address,
            deadline=deadline,
            buffer_bytes=buffer_bytes,
            heard=lambda name, head: told.__setitem__(name, answered_ends(head)),
        )
    except RefusedError as error:
        if error.status == 407:  # its clock may have been set
            raise
        raise RouteError(str(error), len(told) + 1) from error
    except TransferError as error:
        if error.is_final:
            raise
        raise RouteError(str(error), len(told)) from error
    try:
        keep_alive(wire)
        stream = _greeted(wire, tls, far, len(hops), deadline)
        _send(wire, stream, connect_request(service, ticket), far.name, deadline)
        told[far.name] = _answered(wire, stream, far.name, service, deadline)
    except BaseException:
        wire.close()
        raise
    return Opened(stream, wire, told)


def _greeted(
    wire: socket.socket, tls: ssl.SSLContext, far: AgentEntry, link: int, deadline: Deadline
) -> TlsStream:
    stream = TlsStream(tls, server_side=False, host=far.address[0])
    try:
        with naming_peer(far.name):
            while not stream.greet():
                _pass_on(wire, stream, deadline)
                _take_in(wire, stream, far.name, deadline)
            _pass_on(wire, stream, deadline)
    except TransferError as error:
        if error.is_final:
            raise
        raise RouteError(str(error), link) from error
    require_certificate(stream.certificate, far.fingerprint, tls, far.name)
    if stream.protocol != TUNNEL_PROTOCOL:
        raise RefusedError(
            f"{far.name}: has no tunnels; write [tunnel] into the file of its agent, and start "
            "the agent again",
            404,
            by=far.name,
        )
    return stream


def _answered(
    wire: socket.socket, stream: TlsStream, far: str, service: str, deadline: Deadline
) -> dict[str, HopEnd]:
    """Read the agent's answer to its end, and not a byte further; return what it says of itself."""
    reader, block = HeadReader(), memoryview(bytearray(RECORD_BYTES))
    rest = b""
    with naming_peer(far):
        while not reader.is_whole:
            if reader.is_too_long:
                raise TransferError(f"{far}: its response to CONNECT is too long")
            ahead = bytes(block[: stream.read_into(block)])
            if ahead:
                wanted = reader.wanted_of(ahead)
                reader.take(ahead[:wanted])
                rest = ahead[wanted:]
            elif stream.is_ended:
                raise TransferError(
                    f"{far}: closed the connection instead of opening a tunnel to {service}"
                )
            else:
                _take_in(wire, stream, far, deadline)
    with as_failure(far):
        status = answered_status(reader.data)
    if status == 200:
        stream.put_back(rest)
        return answered_ends(reader.data)
    with naming_peer(far):
        while len(rest) < REFUSAL_BYTES and not stream.is_ended:
            ahead = bytes(block[: stream.read_into(block)])
            rest += ahead
            if not ahead and not stream.is_ended:
                _take_in(wire, stream, far, deadline)
    text = safe_text(rest.decode(errors="replace").strip())
    raise RefusedError(f"{far}: no tunnel to {service} ({status}): {text}", status, by=far)


def _send(
    wire: socket.socket, stream: TlsStream, data: bytes, far: str, deadline: Deadline
) -> None:
    with naming_peer(far):
        stream.write(data)
        _pass_on(wire, stream, deadline)


def _pass_on(wire: socket.socket, stream: TlsStream, deadline: Deadline) -> None:
    wire.settimeout(deadline.left_s())
    wire.sendall(stream.to_send())


def _take_in(wire: socket.socket, stream: TlsStream, far: str, deadline: Deadline) -> None:
    wire.settimeout(deadline.left_s())
    data = wire.recv(RECORD_BYTES)
    if not data:
        raise TransferError(f"{far}: the connection was cut off")
    stream.feed(data)
