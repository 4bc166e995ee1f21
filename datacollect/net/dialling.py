"""Plain connections to other hosts, directly or through relays; each step has a deadline."""

from __future__ import annotations

import errno
import socket
import ssl
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

from datacollect.errors import IdentityError, ProblemError, RefusedError, TransferError
from datacollect.files.kinds import shown
from datacollect.files.refusals import refusal_of
from datacollect.net import connect as connecting
from datacollect.net.http_heads import HeadReader
from datacollect.net.names import host_port_text
from datacollect.net.safe_text import safe_text
from datacollect.net.tcp_options import set_buffers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacollect.net.deadline import Deadline

REFUSAL_BYTES = 64 * 1024
# Whoever is connected to has no part in these.
OF_THIS_HOST = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


@dataclass(frozen=True)
class RelayHop:
    """A relay of a route.

    Attributes
    ----------
    name : str
        As the relay before it calls it; of the first, any.
    address : tuple of str and int
        Host and port; used of the first only, the others are reached by name.
    ticket : str
        Token of the relay ticket for this relay.
    """

    name: str
    address: tuple[str, int]
    ticket: str


def open_route(
    hops: Sequence[RelayHop],
    name: str,
    address: tuple[str, int],
    *,
    deadline: Deadline,
    congestion: str | None = None,
    buffer_bytes: int | None = None,
    heard: Callable[[str, bytes], None] | None = None,
) -> socket.socket:
    """Return a plain connection to `name` through the hops; without hops, to its address.

    Parameters
    ----------
    hops : sequence of RelayHop
        Relays, the nearest first.
    name : str
        The last host, as the last relay calls it (``connect_to``).
    address : tuple of str and int
        Its host and port, used without hops.
    deadline : Deadline
        Of all steps together.
    congestion : str or None
        Congestion control of this host's own connection, such as ``"cubic"``; None: the kernel's.
    buffer_bytes : int or None
        Buffers of this host's own connection; None: they grow by themselves.
    heard : callable, optional
        Gets the name of each relay once it has connected, and the head of its answer.

    Raises
    ------
    RefusedError
        A relay refuses: its status is kept.
    TransferError
        The first host cannot be reached, or a relay does not answer.
    """
    first = hops[0].address if hops else address
    names = [*(hop.name for hop in hops), name]
    connection = dial([first], names[0], deadline, congestion=congestion, buffer_bytes=buffer_bytes)
    try:
        for hop, target in zip(hops, names[1:], strict=True):
            with naming_peer(hop.name):
                connection.settimeout(deadline.left_s())
                connection.sendall(connecting.connect_request(target, hop.ticket))
                head = _established(connection, hop.name, target, deadline)
            if heard is not None:
                heard(hop.name, head)
    except BaseException:
        connection.close()
        raise
    return connection


def dial(
    addresses: Sequence[tuple[str, int]],
    name: str,
    deadline: Deadline,
    *,
    congestion: str | None = None,
    buffer_bytes: int | None = None,
    what: str = "agent",
) -> socket.socket:
    """Return a connection to the first of some addresses that accepts one.

    Raises
    ------
    IdentityError
        No host has the name: to try again is of no use.
    TransferError
        None accepts.
    """
    why = ""
    for address in addresses:
        try:
            connection = _connected(address, deadline, buffer_bytes)
            return _tuned(connection, congestion)
        except socket.gaierror as error:
            why = f"{address[0]}: {error.strerror}"
            if error.errno == socket.EAI_NONAME:
                where = host_port_text(*addresses[0])
                raise IdentityError(
                    f"{name}: cannot be reached at {where}: no host has this name; correct its url "
                    "in the file that names it"
                ) from None
        except OSError as error:
            if error.errno in OF_THIS_HOST:
                raise TransferError(
                    f"{name}: this host could not connect: {refusal_of(error)}"
                ) from None
            why = error.strerror or str(error)
    where = host_port_text(*addresses[0])
    at = "" if where == name else f" at {where}"
    raise TransferError(
        f"{name}: cannot be reached{at}: {why}; is its {what} running, and may this host connect "
        "to it?"
    )


def start_tls(
    plain: socket.socket, context: ssl.SSLContext, host: str, name: str, deadline: Deadline
) -> ssl.SSLSocket:
    """Greet as TLS's client over a plain connection, which is closed where that fails."""
    try:
        with naming_peer(name):
            plain.settimeout(deadline.left_s())
            return context.wrap_socket(plain, server_hostname=host)
    except BaseException as error:
        _close_lost(error)
        plain.close()
        raise


def _close_lost(error: BaseException) -> None:
    """Close what wrapping has begun with: Python loses it where the other side is gone by then."""
    for frame, _ in walk_tb(error.__traceback__):
        lost = frame.f_locals.get("self")
        if isinstance(lost, ssl.SSLSocket):
            lost.close()
    if error.__context__ is not None:
        _close_lost(error.__context__)


def _connected(
    address: tuple[str, int], deadline: Deadline, buffer_bytes: int | None
) -> socket.socket:
    """Connect as `socket.create_connection` does, by buffers that are set before."""
    if buffer_bytes is None:
        return socket.create_connection(address, timeout=deadline.left_s())
    failure: OSError | None = None
    for family, kind, _, _, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
        connection = socket.socket(family, kind)
        try:
            set_buffers(connection, buffer_bytes)
            connection.settimeout(deadline.left_s())
            connection.connect(place)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure or OSError("no address")


def _tuned(connection: socket.socket, congestion: str | None) -> socket.socket:
    """Return a connection, set up; closed where that fails."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if congestion is not None:
            _set_congestion(connection, congestion)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_congestion(connection: socket.socket, congestion: str) -> None:
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    except OSError:
        raise TransferError(
            f"this kernel has no congestion control {shown(congestion)}; "
            "/proc/sys/net/ipv4/tcp_available_congestion_control lists those it has"
        ) from None


def _established(connection: socket.socket, relay: str, target: str, deadline: Deadline) -> bytes:
    """Read a relay's answer to its end and not a byte further; return its head."""
    reader = HeadReader()
    while not reader.is_whole:
        if reader.is_too_long:
            raise TransferError(f"{relay}: its response to CONNECT is too long")
        connection.settimeout(deadline.left_s())
        ahead = connection.recv(reader.room_bytes, socket.MSG_PEEK)
        if not ahead:
            raise TransferError(f"{relay}: closed the connection instead of connecting to {target}")
        reader.take(connection.recv(reader.wanted_of(ahead)))
    with as_failure(relay):
        status = connecting.answered_status(reader.data)
    if status != 200:
        connection.settimeout(deadline.left_s())
        text = safe_text(connection.recv(REFUSAL_BYTES).decode(errors="replace").strip())
        why = f"{relay}: does not connect to {target} ({status}): {text}"
        raise RefusedError(why, status, by=relay)
    return reader.data


@contextmanager
def naming_peer(name: str) -> Iterator[None]:
    """Turn what sockets and TLS raise into our errors, which name the peer."""
    try:
        yield
    except TimeoutError as error:
        why = str(error) if str(error).startswith("the step") else "no data within the time limit"
        raise TransferError(f"{name}: {why}; the connection is given up") from None
    except ssl.SSLCertVerificationError as error:
        raise IdentityError(f"{name}: its certificate is not valid: {_reason(error)}") from None
    except (OSError, ValueError) as error:
        if isinstance(error, ProblemError):
            raise
        raise TransferError(f"{name}: the connection failed: {_reason(error)}") from None


@contextmanager
def as_failure(name: str) -> Iterator[None]:
    """A peer's malformed answer is a failed transfer, not bad input of this program's user."""
    try:
        yield
    except ProblemError as error:
        raise TransferError(f"{name}: {error}") from None


def _reason(error: Any) -> str:
    reason = getattr(error, "verify_message", None) or getattr(error, "reason", None)
    return safe_text(str(reason or getattr(error, "strerror", None) or error))
