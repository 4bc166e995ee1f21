"""Passes bytes both ways between a plain connection and one over TLS, until both ways have ended.

What a program says by TCP the other program hears: an end of one direction, while the other goes
on; a reset. Over TLS an end is close_notify. A connection that ends without it was cut off, by
whoever, and is a reset to the program: never an end that looks as if all had come.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.net.tcp_options import reset_on_close

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.net.tls_stream import TlsStream
    from datacollect.transfer.rates.throttle import Throttle

# What is received, encrypted or decrypted at once; two such buffers for each.
BLOCK_BYTES = 256 * 1024


class CutError(TransferError):
    """The connection was cut off: not all that was to come may have come."""


@dataclass
class _Way:
    """One direction.

    Attributes
    ----------
    can_read : bool
        Whether something may be there to take in, as far as is known.
    is_over : bool
        Whether its end was passed on.
    moved_bytes : int
    turn_bytes : int
        What it may take in by a limit.
    due_bytes : int
        What it may take in once its turn has come, at `until_s`.
    """

    can_read: bool = True
    is_over: bool = False
    moved_bytes: int = 0
    turn_bytes: int = 0
    due_bytes: int = 0
    until_s: float = 0.0


class Duplex:
    """Passes bytes on between two sockets, in the thread that calls `run`.

    Parameters
    ----------
    stream : TlsStream
        Greeted.
    wire : socket.socket
        Over which it runs.
    local : socket.socket
        Of a program.
    most_bytes : int, optional
        Bytes in both directions together.
    throttle : Throttle, optional
        A limit that both directions keep to together.
    spent : callable, optional
        Called once all of `most_bytes` have moved.
    half_closed : callable, optional
        Called once the first of the two directions has ended.

    Attributes
    ----------
    why : str or None
        Why it was cut off; None: it was not.
    """

    def __init__(
        self,
        stream: TlsStream,
        wire: socket.socket,
        local: socket.socket,
        *,
        most_bytes: int | None = None,
        throttle: Throttle | None = None,
        spent: Callable[[], None] | None = None,
        half_closed: Callable[[], None] | None = None,
    ) -> None:
        self._stream, self._wire, self._local = stream, wire, local
        self._left_bytes, self._throttle, self._spent = most_bytes, throttle, spent
        self._half_closed = half_closed
        self._up, self._down = _Way(), _Way()
        self._has_ended = False  # the program has, and close_notify is on its way
        self._sealed = memoryview(b"")  # to be sent over the wire
        self._plain = memoryview(b"")  # to be sent to the program
        self._taken = memoryview(bytearray(BLOCK_BYTES))
        self._opened = memoryview(bytearray(BLOCK_BYTES))
        self._lock = threading.Lock()
        self._is_closed = self._is_spent = False
        self.why: str | None = None

    @property
    def moved_bytes(self) -> tuple[int, int]:
        """Bytes of the program that have left so far, and bytes that have come for it."""
        return self._up.moved_bytes, self._down.moved_bytes

    def run(self) -> None:
        """Pass bytes on until both directions have ended, then close both sockets.

        Raises
        ------
        CutError
            It did not come to that: the program's connection was reset, and the wire's, too.
        """
        for connection in (self._wire, self._local):
            connection.setblocking(False)
            # Whoever kills this process cuts it off.
            reset_on_close(connection)
        try:
            while not (self._up.is_over and self._down.is_over):
                if self.why is not None:
                    raise CutError(self.why)
                if not self._move():
                    self._wait()
        except ssl.SSLError as error:
            self._note(f"TLS failed: {error.reason or error}")
        except CutError as error:
            self._note(str(error))
        except OSError as error:
            self._note(f"the connection failed: {error.strerror or error}")
        finally:
            self._close()
        if self.why is not None:
            raise CutError(self.why)

    def cut(self, why: str) -> None:
        """Cut it off, from any thread: whoever is in `run` ends soon."""
        with self._lock:
            self._note(why)
            if not self._is_closed:
                # What waits for the wire wakes up.
                with suppress(OSError):
                    self._wire.shutdown(socket.SHUT_RDWR)

    def _note(self, why: str) -> None:
        self.why = self.why or why

    def _close(self) -> None:
        """Close both sockets; by a reset, where something was cut off."""
        if self._throttle is not None:
            ways = (self._up, self._down)
            self._throttle.give_back(sum(way.turn_bytes + way.due_bytes for way in ways))
        with self._lock:
            self._is_closed = True
            if not (self._up.is_over and self._down.is_over):
                self._note("it ended in the middle")
            for connection in (self._local, self._wire):
                if self.why is None:
                    reset_on_close(connection, on=False)
                connection.close()

    # Moving ----------------------------------------------------------------------------------

    def _move(self) -> bool:
        """Let both directions take in and pass on what they can; whether they could."""
        moved = [self._send(), self._take(), self._open(), self._hand_out()]
        if self._left_bytes == 0 and not (self._sealed or self._plain or self._is_spent):
            self._is_spent = True
            if self._spent is not None:
                self._spent()
        return any(moved)

    def _take(self) -> bool:
        """Take in what the program says."""
        way = self._up
        if self._sealed or self._has_ended or not way.can_read:
            return False
        allowed = self._allowed(way)
        if not allowed:
            return False
        try:
            n_bytes = self._local.recv_into(self._taken[:allowed])
        except BlockingIOError:
            way.can_read = False
            return False
        except OSError as error:
            raise CutError(f"the program's connection failed: {error.strerror}") from None
        self._count(way, n_bytes)
        if n_bytes:
            way.moved_bytes += n_bytes
            self._stream.write(self._taken[:n_bytes])
        else:
            self._stream.end()
            self._has_ended = True
        self._seal()
        return True

    def _seal(self) -> None:
        if not self._sealed:
            self._sealed = memoryview(self._stream.to_send())

    def _send(self) -> bool:
        """Send what is encrypted."""
        self._seal()  # TLS has things of its own to say, too
        n_bytes = _sent(self._wire, self._sealed)
        self._sealed = self._sealed[n_bytes:]
        if self._has_ended and not self._sealed and not self._up.is_over:
            self._over(self._up)
            return True
        return n_bytes > 0

    def _open(self) -> bool:
        """Take in what has come over the wire, and decrypt it."""
        if self._plain:
            return False
        if self._decrypt():
            return True
        way = self._down
        if not way.can_read:
            return False
        allowed = self._allowed(way)
        if not allowed:
            return False
        try:
            n_bytes = self._wire.recv_into(self._taken[:allowed])
        except BlockingIOError:
            way.can_read = False
            return False
        self._count(way, n_bytes)
        if not n_bytes:
            # After its close_notify it has not waited for ours: it has gone.
            raise CutError("the connection was cut off")
        self._stream.feed(self._taken[:n_bytes])
        self._decrypt()
        return True

    def _decrypt(self) -> bool:
        """Decrypt what is there; whether something was, or the end."""
        was_ended = self._stream.is_ended
        filled = self._stream.fill(self._opened)
        self._plain = self._opened[:filled]
        return filled > 0 or self._stream.is_ended is not was_ended

    def _hand_out(self) -> bool:
        """Pass on to the program what has come for it, and the end of that."""
        way = self._down
        try:
            n_bytes = _sent(self._local, self._plain)
            self._plain = self._plain[n_bytes:]
            way.moved_bytes += n_bytes
            if (
                self._stream.is_ended
                and not self._plain
                and not way.is_over
                and not self._decrypt()
            ):
                self._local.shutdown(socket.SHUT_WR)
                self._over(way)
                return True
        except OSError as error:
            raise CutError(f"the program's connection failed: {error.strerror}") from None
        return n_bytes > 0

    def _over(self, way: _Way) -> None:
        is_first = not (self._up.is_over or self._down.is_over)
        way.is_over = True
        if is_first and self._half_closed is not None:
            self._half_closed()

    # Limits ----------------------------------------------------------------------------------

    def _allowed(self, way: _Way) -> int:
        """Return how many bytes a direction may take in now."""
        most_bytes = BLOCK_BYTES if self._left_bytes is None else min(BLOCK_BYTES, self._left_bytes)
        if self._throttle is None or not most_bytes:
            return most_bytes
        now_s = time.monotonic()
        if not way.turn_bytes:
            if not way.due_bytes:
                way.due_bytes = self._throttle.turn_bytes(most_bytes)
                way.until_s = now_s + self._throttle.owe(way.due_bytes)
            if now_s < way.until_s:
                return 0
            way.turn_bytes, way.due_bytes = way.due_bytes, 0
        return min(most_bytes, way.turn_bytes)

    def _count(self, way: _Way, n_bytes: int) -> None:
        if self._throttle is not None:
            way.turn_bytes -= n_bytes
        if self._left_bytes is not None:
            self._left_bytes -= n_bytes

    # Waiting ---------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait until something can go on."""
        poll, wait_s = select.poll(), None
        masks = {self._wire.fileno(): 0}
        if not (self._has_ended and self._down.is_over):
            masks[self._local.fileno()] = 0  # to learn that it was reset
        for way, source, holds in (
            (self._up, self._local, self._sealed or self._has_ended),
            (self._down, self._wire, self._plain),
        ):
            if holds or self._left_bytes == 0:
                continue
            if way.due_bytes:
                left_s = max(way.until_s - time.monotonic(), 0.0)
                wait_s = left_s if wait_s is None else min(wait_s, left_s)
            else:
                masks[source.fileno()] |= select.POLLIN
        if self._sealed:
            masks[self._wire.fileno()] |= select.POLLOUT
        if self._plain:
            masks[self._local.fileno()] |= select.POLLOUT
        for number, mask in masks.items():
            poll.register(number, mask)
        # Never too early: else it would look again at once.
        for number, mask in poll.poll(None if wait_s is None else int(wait_s * 1000) + 1):
            is_local = number == self._local.fileno()
            if mask & select.POLLERR or (mask & select.POLLHUP and not is_local):
                self._fail(self._local if is_local else self._wire, is_local=is_local)
            if mask & (select.POLLIN | select.POLLHUP):
                (self._up if is_local else self._down).can_read = True

    def _fail(self, connection: socket.socket, *, is_local: bool) -> None:
        if self.why is not None:
            raise CutError(self.why)
        code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        error = OSError(code, "") if code else None
        reason = "reset" if error is None or isinstance(error, ConnectionError) else "timed out"
        raise CutError(f"the {'program' if is_local else 'connection'} was {reason}")


def _sent(connection: socket.socket, data: memoryview) -> int:
    """Send what can be sent now; return its bytes."""
    if not data:
        return 0
    try:
        return connection.send(data)
    except BlockingIOError:
        return 0
