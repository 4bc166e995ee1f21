"""Listens on loopback, and has a tunnel of its own for each connection that comes."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from datacollect.errors import DatacollectError, ProblemError
from datacollect.net.tcp_options import keep_alive, reset_on_close, stop_accepting
from datacollect.transfer.duplex.duplex import CutError, Duplex

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.transfer.tunnel.opening import TunnelOpener

LOOPBACK = "127.0.0.1"
# Connections at a time; others wait until one has ended.
MOST_AT_ONCE, BACKLOG = 256, 128


class TunnelListener:
    """A port of this host that leads to a service beside an agent.

    Parameters
    ----------
    opener : TunnelOpener
    port : int
        0: any free one.
    tell : callable
        Takes lines: routes, and why a connection was cut off.

    Attributes
    ----------
    port : int
        Where it listens.

    Raises
    ------
    ProblemError
        The port is in use, or not for this user.
    """

    def __init__(self, opener: TunnelOpener, port: int, tell: Callable[[str], None]) -> None:
        self._opener, self._tell = opener, tell
        try:
            self._listener = socket.create_server((LOOPBACK, port), backlog=BACKLOG)
        except OSError as error:
            raise ProblemError(
                f"--listen {port}: {error.strerror}; stop the program that listens there, or "
                "choose another port; 0 is any free one"
            ) from None
        self.port: int = self._listener.getsockname()[1]
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)

    def run(self) -> None:
        """Serve until an interruption, or `close`."""
        while True:
            self._places.acquire()
            try:
                local, _ = self._listener.accept()
            except OSError:
                if self._listener.fileno() < 0:  # closed
                    return
                self._places.release()
                continue
            threading.Thread(target=self._serve, args=(local,), daemon=True).start()

    def close(self) -> None:
        """Listen no more: `run` returns."""
        stop_accepting(self._listener)
        self._listener.close()

    def _serve(self, local: socket.socket) -> None:
        try:
            # Until a tunnel is open, an end would look like an answer.
            reset_on_close(local)
            keep_alive(local)
            local.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened = self._opener.open()
            Duplex(opened.opened.stream, opened.opened.wire, local).run()
        except CutError as error:
            self._tell(f"a connection was cut off: {error}")
        except DatacollectError as error:
            self._tell(f"error: {error}")
        finally:
            local.close()
            self._places.release()
