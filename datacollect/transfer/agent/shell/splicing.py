"""Splicing of bytes from one socket to another through a pipe; they never leave the kernel.

Before they flow freely the two sides greet each other (`greetings`): their first bytes are looked
at where they wait, and move as all others do.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.net.connect import refusal
from datacollect.net.http_heads import MOST_HEAD_BYTES
from datacollect.net.tcp_options import reset_on_close
from datacollect.transfer.agent.core.greetings import MOST_GREETING_BYTES, Awaited, seen_of
from datacollect.transfer.agent.shell.loop import BOTH_ON_CHANGE, FAILED, READABLE, WRITABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.transfer.agent.shell.loop import Loop
    from datacollect.transfer.rates.throttle import Throttle

# Pipes are as large as the kernel allows while they are few, and together never have more than
# this: an unprivileged user's pipes may hold 64 MiB before new ones shrink to two pages.
ALL_PIPES_BYTES = 32 * 2**20
SMALLEST_PIPE_BYTES, LARGEST_PIPE_BYTES = 64 * 1024, 2**20

# What one direction may move before others get their turn.
TURN_BYTES = 4 * 2**20

# What makes a way to a server without TLS.
NAME_IT = "name the next host in `plain_http_to` of the agent's file if it speaks no TLS"

_FLAGS = os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE
_SET_SIZE, _GET_SIZE = fcntl.F_SETPIPE_SZ, fcntl.F_GETPIPE_SZ


def pipe_bytes(n_relays: int) -> int:
    """Return how large the pipes of a relay may be, two of them for each.

    >>> [pipe_bytes(n) for n in (1, 16, 17, 100, 256, 10_000)]
    [1048576, 1048576, 524288, 131072, 65536, 65536]
    """
    fair = ALL_PIPES_BYTES // (2 * max(n_relays, 1))
    power = 1 << (max(fair, 1).bit_length() - 1)
    return min(max(power, SMALLEST_PIPE_BYTES), LARGEST_PIPE_BYTES)


class EndedError(Exception):
    """A side has ended before it has said what is awaited of it."""


class Relay:
    """Two sockets whose bytes are passed on in both directions, until both have ended or one fails.

    Parameters
    ----------
    loop : Loop
    near, far : socket.socket
        Not blocking; the relay closes them.
    most_bytes : int or None
        Bytes in both directions together.
    awaited : Awaited
        What has to be said first: a greeting, or nothing (`ALL`).
    spent : callable
        Called when all of them have been moved.
    ended : callable
        Called once with the reason, after all is closed.
    throttle : Throttle, optional
        A limit that both directions keep to together.
    """

    def __init__(
        self,
        loop: Loop,
        near: socket.socket,
        far: socket.socket,
        most_bytes: int | None,
        awaited: Awaited,
        spent: Callable[[], None],
        ended: Callable[[str], None],
        throttle: Throttle | None = None,
    ) -> None:
        self.near, self.far = near, far
        self._throttle = throttle
        self._loop = loop
        self._left_bytes = most_bytes
        self._awaited = awaited
        self._spent = spent
        self._ended = ended
        self._over = False
        self._queued = False
        self._up = _Flow(near, far)
        try:
            self._down = _Flow(far, near)
        except OSError:
            self._up.close()
            raise
        if awaited is not Awaited.ALL:
            self._up.allowed_bytes = self._down.allowed_bytes = 0

    def start(self, size_bytes: int) -> None:
        """Begin to move bytes."""
        self.resize(size_bytes)
        self._loop.watch(self.near.fileno(), BOTH_ON_CHANGE, self._near_ready)
        self._loop.watch(self.far.fileno(), BOTH_ON_CHANGE, self._far_ready)

    def resize(self, size_bytes: int) -> None:
        """Set the size of the pipes, if what is in them fits."""
        self._up.resize(size_bytes)
        self._down.resize(size_bytes)

    def take_moved(self) -> tuple[int, int]:
        """Return the bytes moved up and down since the last call."""
        moved = self._up.moved_bytes, self._down.moved_bytes
        self._up.moved_bytes = self._down.moved_bytes = 0
        return moved

    def end(self, why: str, *, reset: bool) -> None:
        """Close both sides, by a reset if something is cut off, and report why."""
        if self._over:
            return
        self._over = True
        if self._throttle is not None:
            self._throttle.give_back(self._up.turn_bytes + self._down.turn_bytes)
        for connection in (self.near, self.far):
            self._loop.forget(connection.fileno())
            if reset:
                reset_on_close(connection)
            connection.close()
        self._up.close()
        self._down.close()
        self._ended(why)

    def _near_ready(self, mask: int) -> None:
        self._ready(mask, self._up, self._down)

    def _far_ready(self, mask: int) -> None:
        self._ready(mask, self._down, self._up)

    def _ready(self, mask: int, outward: _Flow, inward: _Flow) -> None:
        """Note what one of the sockets can do: begin a flow, end the other."""
        if mask & (READABLE | select.EPOLLHUP):
            outward.can_read = True
        if mask & (WRITABLE | select.EPOLLHUP):
            inward.can_write = True
        if mask & FAILED:
            self.end("one side was reset", reset=True)
        else:
            self._move()

    def _move(self) -> None:
        self._queued = False
        if self._over:
            return
        try:
            more = self._pass_on()
        except OSError as error:
            self.end(f"one side failed: {error.strerror}", reset=True)
            return
        except EndedError as error:
            self.end(str(error), reset=False)
            return
        except ProblemError as error:
            self._refuse(str(error))
            return
        if self._down.done and (self._up.done or self._awaited is Awaited.END):
            self.end("both sides have ended", reset=False)
        elif self._left_bytes == 0 and not (self._up.held_bytes or self._down.held_bytes):
            self._spent()
        elif more and not self._queued:
            self._queued = True
            self._loop.run_soon(self._move)

    def _pass_on(self) -> bool:
        """Let both directions move their share; whether more could be moved at once."""
        while True:
            has_seen = self._look()
            more = [self._turn(flow) for flow in (self._up, self._down)]
            if not has_seen:
                return any(more)

    def _refuse(self, why: str) -> None:
        """End where a side does not greet as it should; a client hears of it in HTTP's words.

        Whoever greets otherwise may be meant to reach a server without TLS.
        """
        is_of_client = self._awaited.is_of_client
        if is_of_client:
            send_refusal(self.near, 421, f"{why}; {NAME_IT}")
        self.end(f"not passed on: {why}", reset=not is_of_client)

    def _look(self) -> bool:
        """Let what is awaited pass, where it is there; whether it was."""
        if self._awaited in (Awaited.ALL, Awaited.END):
            return False
        is_of_client = self._awaited.is_of_client
        flow = self._up if is_of_client else self._down
        if flow.allowed_bytes:  # of what was seen before not all has moved yet
            return False
        self._require_silence(is_of_client)
        ahead = flow.ahead()
        if ahead is None:
            return False
        if not ahead:
            who = "client" if is_of_client else "next host"
            raise EndedError(f"the {who} closed the connection without a greeting")
        seen = seen_of(self._awaited, ahead)
        if seen is None:
            return False
        flow.allowed_bytes, self._awaited = seen.n_bytes, seen.then
        if seen.then in (Awaited.ALL, Awaited.END):
            self._down.allowed_bytes = None
        if seen.then is Awaited.ALL:
            self._up.allowed_bytes = None
        return True

    def _require_silence(self, is_of_client: bool) -> None:
        """Refuse a next host that speaks first, as SSH and SMTP do; see that nobody has gone."""
        other, name = (self._down, "next host") if is_of_client else (self._up, "client")
        if other.allowed_bytes:
            return
        ahead = other.ahead()
        if ahead == b"":
            raise EndedError(f"the {name} closed the connection before it was greeted or answered")
        if ahead and is_of_client:
            raise ProblemError("the next host sends first: it does not speak TLS")

    def _turn(self, flow: _Flow) -> bool:
        """Let a flow move its share; whether more could be moved at once."""
        if self._throttle is not None:
            return self._throttled(flow, self._throttle)
        left_bytes = TURN_BYTES
        while left_bytes > 0:
            allowed = left_bytes if self._left_bytes is None else min(left_bytes, self._left_bytes)
            taken, passed = flow.step(allowed)
            if self._left_bytes is not None:
                self._left_bytes -= taken
            if not taken and not passed:
                return False
            left_bytes -= taken
        return True

    def _throttled(self, flow: _Flow, throttle: Throttle) -> bool:
        """Let a flow move what its turn allows, once it has come; whether to go on at once."""
        if not flow.turn_bytes and flow.may_take and not flow.waits:
            n_bytes = throttle.turn_bytes(flow.room_bytes)
            wait_s = throttle.owe(n_bytes)
            if wait_s > 0:
                flow.waits = True
                self._loop.run_later(wait_s, lambda: self._come(flow, n_bytes))
            else:
                flow.turn_bytes = n_bytes
        most_bytes = flow.turn_bytes
        if self._left_bytes is not None:
            most_bytes = min(most_bytes, self._left_bytes)
        taken, passed = flow.step(most_bytes)
        flow.turn_bytes -= taken
        if self._left_bytes is not None:
            self._left_bytes -= taken
        return bool(taken or passed)

    def _come(self, flow: _Flow, n_bytes: int) -> None:
        """It is a flow's turn."""
        flow.waits, flow.turn_bytes = False, n_bytes
        self._move()


class _Flow:
    """One direction: its pipe, and what its two ends can do as far as is known."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.can_read = self.can_write = True
        self.done = False
        # What it may take in by a limit; whether it waits for its turn.
        self.turn_bytes, self.waits = 0, False
        self.held_bytes = 0
        self.moved_bytes = 0
        # How much more it may take in; None: all that comes.
        self.allowed_bytes: int | None = None
        self._at_end = False
        self._source, self._sink = source, sink
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._size_bytes = fcntl.fcntl(self._in, _GET_SIZE)

    @property
    def room_bytes(self) -> int:
        room = self._size_bytes - self.held_bytes
        return room if self.allowed_bytes is None else min(room, self.allowed_bytes)

    @property
    def may_take(self) -> bool:
        """Return whether something may be there to take in, and there is room for it."""
        return self.can_read and not self._at_end and self.room_bytes > 0

    def resize(self, size_bytes: int) -> None:
        if size_bytes != self._size_bytes:
            # Where it is not allowed, or what it holds does not fit, it stays as it is.
            with suppress(OSError):
                fcntl.fcntl(self._in, _SET_SIZE, size_bytes)
            self._size_bytes = fcntl.fcntl(self._in, _GET_SIZE)

    def step(self, most_bytes: int) -> tuple[int, int]:
        """Fill the pipe, then empty it; return the bytes taken in and passed on."""
        taken, passed = self._fill(most_bytes), self._empty()
        if self._at_end and not self.held_bytes and not self.done:
            self.done = True
            with suppress(OSError):  # the sink has ended already
                self._sink.shutdown(socket.SHUT_WR)
        return taken, passed

    def ahead(self) -> bytes | None:
        """Return what has come and is not taken in, as far as one looks; None: nothing yet."""
        try:
            return self._source.recv(MOST_GREETING_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            return None

    def close(self) -> None:
        os.close(self._out)
        os.close(self._in)

    def _fill(self, most_bytes: int) -> int:
        room = min(self.room_bytes, most_bytes)
        if self._at_end or not self.can_read or room <= 0:
            return 0
        try:
            n_bytes = os.splice(self._source.fileno(), self._in, room, flags=_FLAGS)
        except BlockingIOError:
            # Of a pipe with something in it, it may be the pipe that is full: of small pieces.
            self.can_read = self.held_bytes > 0
            return 0
        self._at_end = n_bytes == 0
        self.held_bytes += n_bytes
        if self.allowed_bytes is not None:
            self.allowed_bytes -= n_bytes
        return n_bytes

    def _empty(self) -> int:
        if not self.held_bytes or not self.can_write:
            return 0
        try:
            n_bytes = os.splice(self._out, self._sink.fileno(), self.held_bytes, flags=_FLAGS)
        except BlockingIOError:
            self.can_write = False
            return 0
        self.held_bytes -= n_bytes
        self.moved_bytes += n_bytes
        return n_bytes


def send_refusal(connection: socket.socket, status: int, text: str) -> None:
    """Answer a client that is about to be closed, so that the answer arrives."""
    with suppress(OSError):
        connection.send(refusal(status, text))
        # Closing with something unread would reset the connection, and the refusal be lost.
        connection.shutdown(socket.SHUT_WR)
        connection.recv(MOST_HEAD_BYTES)
