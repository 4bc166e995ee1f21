"""Turns in reading: of many connections that bring data, few are read at a time, each for long.

A thread lets others run whenever it reads a record of TLS. Where many threads read, they wake each
other at every record, mostly in vain: that takes a quarter more of the processors, and processors
of virtual machines sleep meanwhile. A thread that waits for data waits without a turn.
"""

from __future__ import annotations

import math
import os
import select
import ssl
import threading
import time
from typing import TYPE_CHECKING

from datacollect.net.tls_stream import RECORD_BYTES

if TYPE_CHECKING:
    import socket
    from contextlib import AbstractContextManager

# Read in a turn at most: some milliseconds.
TURN_BYTES = 4 * 2**20
# Of each record an eighth is Python's own, one thread at a time: more would only wake each other.
MOST_TURNS = 8


def turns_on(processors: int) -> int:
    """Return how many may read at a time.

    Less than half of the work is reading: the other half of the processors hashes, writes, and does
    the kernel's part of receiving. Rounded down, it would leave one of three without work.
    """
    return min((processors + 1) // 2, MOST_TURNS)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


READING = threading.Semaphore(turns_on(_processors()))


class InTurns:
    """A connection that is read in turns, by one thread at a time.

    Parameters
    ----------
    connection : ssl.SSLSocket or socket.socket
    turns : context manager, optional
        What is held while data are read that are there.
    """

    def __init__(
        self,
        connection: ssl.SSLSocket | socket.socket,
        turns: AbstractContextManager[bool] = READING,
    ) -> None:
        self._connection, self._turns = connection, turns
        self._has_ended = False
        self._failure: OSError | None = None
        self._awaited = select.POLLIN

    def recv_into(self, view: memoryview) -> int:
        """Wait until something comes, and read what there is; 0: the end.

        It waits as long as the connection's timeout says for each record.

        Raises
        ------
        OSError
            As the connection's own ``recv_into``; what came before is returned first.
        """
        if self._failure is not None:
            raise self._failure
        if self._has_ended:
            return 0
        if len(view) <= RECORD_BYTES:
            return self._connection.recv_into(view)
        timeout_s = self._connection.gettimeout()
        until_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        self._connection.settimeout(0)
        try:
            while True:
                self._wait(until_s)
                with self._turns:
                    n_bytes = self._read(view[:TURN_BYTES])
                if n_bytes or self._has_ended:
                    return n_bytes
        finally:
            self._connection.settimeout(timeout_s)

    def _read(self, view: memoryview) -> int:
        """Read what is there, and note what stands behind it."""
        taken, self._awaited = 0, select.POLLIN
        try:
            while taken < len(view) and not self._has_ended:
                n_bytes = self._connection.recv_into(view[taken:])
                self._has_ended = n_bytes == 0
                taken += n_bytes
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except ssl.SSLWantWriteError:  # TLS answers something first
            self._awaited = select.POLLOUT
        except OSError as error:
            if not taken:
                raise
            self._failure = error
        return taken

    def _wait(self, until_s: float) -> None:
        if isinstance(self._connection, ssl.SSLSocket) and self._connection.pending():
            return
        # Not `select`, which knows a thousand descriptors.
        polling = select.poll()
        polling.register(self._connection, self._awaited)
        left_s = max(until_s - time.monotonic(), 0.0)
        if not polling.poll(None if left_s == math.inf else math.ceil(left_s * 1000)):
            raise TimeoutError("timed out")
