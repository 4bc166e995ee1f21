"""The shell, which joins an agent's core to the world: clocks, sessions by number, the log."""

from __future__ import annotations

import errno
import json
import socket
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from datacollect.files.refusals import refusal_of
from datacollect.net.hop_ends import hop_end
from datacollect.net.pacing import set_pacing_rate
from datacollect.net.safe_text import safe_text
from datacollect.net.tcp_options import keep_alive, set_buffers, stop_accepting, without_pacing
from datacollect.transfer.agent.core import actions, events
from datacollect.transfer.agent.shell.handling import handler_for
from datacollect.transfer.agent.shell.loop import READABLE, Loop
from datacollect.transfer.agent.shell.plain import PlainSession
from datacollect.transfer.agent.shell.serving import TlsSession
from datacollect.transfer.agent.shell.splicing import pipe_bytes
from datacollect.transfer.agent.shell.tunnelling import TunnelSession, asks_for_tunnel
from datacollect.transfer.rates.throttle import Throttle

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from datacollect.net.hop_ends import HopEnd
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.core.actions import Action
    from datacollect.transfer.agent.core.core import AgentCore
    from datacollect.transfer.agent.core.events import ClockReading, Event
    from datacollect.transfer.agent.shell.files import Folder
    from datacollect.transfer.agent.shell.handling import Handler, Service
    from datacollect.transfer.agent.shell.nonces import UsedNonces

T = TypeVar("T")

# Accepted in one go, before others get their turn.
ACCEPTED_AT_ONCE = 64

# What a connection may have received of an agent with a rate before it is read.
WINDOW_S, LEAST_WINDOW_BYTES, MOST_WINDOW_BYTES = 0.2, 64 * 1024, 64 * 2**20

# Why nobody can be accepted until something else ends.
OUT_OF_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Shell:
    """Tells the core what happens and has done what it says; holds no opinion of its own.

    Parameters
    ----------
    core : AgentCore
    config : AgentConfig
    listener : socket.socket
        Listening, not blocking.
    tls : ssl.SSLContext
    folder : Folder or None
    nonces : UsedNonces
    log : callable
        Takes a line.
    handlers : mapping
        See `handler_for`.
    tunnel_tls : ssl.SSLContext, optional
        Of tunnels; None: there are none.
    services : mapping, optional
        See `Service`, by name.
    """

    def __init__(
        self,
        core: AgentCore,
        config: AgentConfig,
        listener: socket.socket,
        tls: ssl.SSLContext,
        folder: Folder | None,
        nonces: UsedNonces,
        log: Callable[[str], None],
        handlers: Mapping[str, Handler],
        tunnel_tls: ssl.SSLContext | None = None,
        services: Mapping[str, Service] | None = None,
    ) -> None:
        self._handlers, self._services = handlers, services or {}
        self._tunnel_tls = tunnel_tls
        self.loop = Loop(self._tick, self._failed)
        self.tls = tls
        self.nonces = nonces
        self.head_s = config.limits.head_s
        self.connect_s = config.limits.connect_s
        self._buffer_bytes = config.limits.buffer_bytes
        self.throttle = _throttle_of(config)
        self._core = core
        self._congestion = config.congestion
        self._folder = folder
        self._listener: socket.socket | None = listener
        self._log = log
        self._lock = threading.Lock()
        self._sessions: dict[int, PlainSession | TlsSession | TunnelSession] = {}
        self._n_accepted = 0
        self._size_bytes = 0
        self._is_paused = False
        self.loop.watch(listener.fileno(), READABLE, self._accept)

    def run(self) -> None:
        """Serve until the core says that all is done."""
        self.loop.run()

    def tell(self, event: Event) -> None:
        """Tell the core what has happened, and do what it says."""
        with self._lock:
            todo = self._core.handle(event)
        for action in todo:
            self._perform(action)

    def now(self) -> ClockReading:
        """Return this instant."""
        return events.ClockReading(time.monotonic(), time.time())

    def handler_of(self, target: str) -> Handler | None:
        """Return who answers requests for a target, where it is not the core."""
        return handler_for(target, self._handlers)

    @property
    def serves_collectors(self) -> bool:
        """Return whether somebody collects here, or through this host, now."""
        with self._lock:
            return self._core.serves_collectors

    def service_of(self, name: str) -> Service | None:
        """Return who serves users of a service of the agent's own."""
        return self._services.get(name)

    def look(self, at: Callable[[AgentCore], T]) -> T:
        """Return what somebody sees who looks at the core, which stands still meanwhile."""
        with self._lock:
            return at(self._core)

    def forget(self, number: int) -> None:
        """A session has released all that it held."""
        self._sessions.pop(number, None)

    def start_tls(self, number: int, connection: socket.socket) -> None:
        """Hand a session to a thread of its own."""
        connection.setblocking(True)
        session = TlsSession(self, number, connection, self._folder)
        self._sessions[number] = session
        run = partial(self._run_tls, session, number, connection)
        try:
            threading.Thread(target=run, name=f"tls-{number}", daemon=True).start()
        except RuntimeError:  # no more threads to be had
            connection.close()
            self.forget(number)
            self.tell(events.Ended(self.now(), number, "no thread is available", is_failure=True))

    def _run_tls(self, session: TlsSession, number: int, connection: socket.socket) -> None:
        """Serve a client by what it offers to speak, in the thread of its session."""
        tls = self._tunnel_tls
        if tls is not None and asks_for_tunnel(connection, self.head_s):
            tunnel = TunnelSession(self, number, connection, tls)
            self._sessions[number] = tunnel
            tunnel.run()
        else:
            session.run()

    def tune(self, connection: socket.socket, *, is_loopback: bool = False) -> None:
        """Set what all connections have in common."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._buffer_bytes is not None:
            set_buffers(connection, self._buffer_bytes)
        if self.throttle is not None:
            # What has come before it is its turn is little, and still enough for long round trips.
            most_bytes = int(self.throttle.most_bytes_per_s * WINDOW_S)
            window_bytes = min(max(most_bytes, LEAST_WINDOW_BYTES), MOST_WINDOW_BYTES)
            asked_bytes = min(window_bytes // 2, self._buffer_bytes or window_bytes)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, asked_bytes)
            # A turn need not leave at once. What all connections share, the kernel does not know.
            with suppress(OSError):  # kernels before 4.13
                set_pacing_rate(connection, self.throttle.most_bytes_per_s)
        # A peer that has vanished without a word is noticed within minutes.
        keep_alive(connection)
        if self._congestion is not None:
            connection.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._congestion.encode()
            )
        elif is_loopback:
            without_pacing(connection)

    def hop_end(self, connection: socket.socket) -> HopEnd:
        """Return what clients are told of this end of a connection."""
        return hop_end(connection, self._buffer_bytes)

    def pipe_bytes(self) -> int:
        """Return how large pipes may be now; those of the other sessions follow."""
        n_relays = sum(isinstance(one, PlainSession) for one in list(self._sessions.values()))
        size_bytes = pipe_bytes(n_relays)
        if size_bytes != self._size_bytes:
            self._size_bytes = size_bytes
            for session in list(self._sessions.values()):
                if isinstance(session, PlainSession):
                    session.resize(size_bytes)
        return size_bytes

    def tcp_facts(self, number: int) -> dict[str, Any]:
        """Return what TCP knows of a session."""
        session = self._sessions.get(number)
        facts = {"collector_side": None, "far_side": None}
        return facts if session is None else facts | session.tcp_facts()

    def note(self, what: str, facts: dict[str, Any]) -> None:
        """Write a record into the log."""
        self._write(what, facts)

    def _perform(self, action: Action) -> None:
        if isinstance(action, actions.WriteLog):
            self._write(action.what, action.facts)
        elif isinstance(action, actions.StopListening):
            self.stop_listening()
        elif isinstance(action, actions.Exit):
            self.loop.finish()
        else:
            session = self._sessions.get(action.session)
            if session is not None:
                session.perform(action)

    def _accept(self, _: int) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            if self._listener is None:
                return
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in OUT_OF_ROOM:
                    self._pause(error)
                # Otherwise it was gone again already.
                return
            connection.setblocking(False)
            with suppress(OSError):
                self.tune(connection)
            self._n_accepted += 1
            number = self._n_accepted
            try:
                self._sessions[number] = PlainSession(self, number, connection)
            except OSError as error:
                connection.close()
                self._pause(error)
                return
            self.tell(events.Accepted(self.now(), number, str(address[0])))

    def _pause(self, error: OSError) -> None:
        """Accept nobody until the next tick: as long as nothing is freed, each try fails."""
        assert self._listener is not None
        self._write("failed", {"why": f"cannot accept: {refusal_of(error)}"})
        self.loop.forget(self._listener.fileno())
        self._is_paused = True

    def _go_on(self) -> None:
        if self._is_paused and self._listener is not None:
            try:
                self.loop.watch(self._listener.fileno(), READABLE, self._accept)
            except OSError:  # there is still no room; the next tick tries again
                return
        self._is_paused = False

    def stop_listening(self) -> None:
        """Accept nobody any more."""
        if self._listener is not None:
            self.loop.forget(self._listener.fileno())
            stop_accepting(self._listener)
            self._listener.close()
            self._listener = None

    def _tick(self) -> None:
        self._go_on()
        for session in list(self._sessions.values()):
            session.report_passed()
        self.tell(events.Tick(self.now()))

    def _failed(self, error: Exception) -> None:
        self._write("failed", {"why": f"{type(error).__name__}: {error}"})

    def _write(self, what: str, facts: dict[str, Any]) -> None:
        shown = {
            key: safe_text(value) if isinstance(value, str) else value
            for key, value in facts.items()
        }
        self._log(json.dumps({"time_s": round(time.time(), 3), "what": what, **shown}))


def _throttle_of(config: AgentConfig) -> Throttle | None:
    """Return the limit of all that passes an agent; None where there is none."""
    if config.limits.rate is None:
        return None
    if config.timezone is None:
        return Throttle(config.limits.rate)
    from datacollect.files.clock import zone_of

    return Throttle(config.limits.rate, zone_of(config.timezone))
