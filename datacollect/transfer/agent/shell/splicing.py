"""Bytes from one socket to another through a pipe; they never leave the kernel."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

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


class Relay:
    """Two sockets whose bytes are passed on in both directions, until both have ended or one fails.

    Parameters
    ----------
    loop : Loop
    near, far : socket.socket
        Not blocking; the relay closes them.
    most_bytes : int or None
        Bytes in both directions together.
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
        spent: Callable[[], None],
        ended: Callable[[str], None],
        throttle: Throttle | None = None,
    ) -> None:
        self.near, self.far = near, far
        self._throttle = throttle
        self._loop = loop
        self._left_bytes = most_bytes
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
        more = False
        for flow in (self._up, self._down):
            try:
                more |= self._turn(flow)
            except OSError as error:
                self.end(f"one side failed: {error.strerror}", reset=True)
                return
        if self._up.done and self._down.done:
            self.end("both sides have ended", reset=False)
        elif self._left_bytes == 0 and not (self._up.held_bytes or self._down.held_bytes):
            self._spent()
        elif more and not self._queued:
            self._queued = True
            self._loop.run_soon(self._move)

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
        self._at_end = False
        self._source, self._sink = source, sink
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._size_bytes = fcntl.fcntl(self._in, _GET_SIZE)

    @property
    def room_bytes(self) -> int:
        return self._size_bytes - self.held_bytes

    @property
    def may_take(self) -> bool:
        """Whether something may be there to take in, and there is room for it."""
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


def reset_on_close(connection: socket.socket) -> None:
    """Let closing tell the other side that something was cut off."""
    with suppress(OSError):  # not connected any more
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
