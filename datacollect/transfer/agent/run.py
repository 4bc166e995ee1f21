"""Runs an agent from its file to its end."""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from contextlib import nullcontext, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from datacollect.errors import DatacollectError, ProblemError, TransferError
from datacollect.files.documents import document_name
from datacollect.files.kinds import shown
from datacollect.files.memory import is_memory_short
from datacollect.files.refusals import refusal_of
from datacollect.net.fan_out import Begun
from datacollect.net.names import host_port_text
from datacollect.net.tcp_options import set_buffers, stop_accepting
from datacollect.net.tls import fingerprint_of_file, server_context
from datacollect.transfer.agent.config.certificate import make_own_certificate
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.core import events
from datacollect.transfer.agent.core.core import AgentCore
from datacollect.transfer.agent.sealed_pieces import SealedPieces
from datacollect.transfer.agent.shell.files import Folder
from datacollect.transfer.agent.shell.nonces import UsedNonces
from datacollect.transfer.agent.shell.shell import Shell
from datacollect.transfer.protocol.tunnel import TUNNEL_PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.net.fan_out import Outcome
    from datacollect.net.metrics import Family, MetricsServer
    from datacollect.transfer.agent.shell.handling import Handler, Service
    from datacollect.transfer.agent.spooling import Spooling

BACKLOG = 1024


class Agent:
    """An agent that listens; `run` serves until `stop`.

    Parameters
    ----------
    config : AgentConfig
    log : callable
        Takes each line of the log, a JSON object.
    handlers : mapping, optional
        Who answers requests for other paths than the agent's own, by path: see `handler_for`.
    also : callable, optional
        Gets what the file says each time that it has been read again, in a thread of its own.
    services : mapping, optional
        Who serves users of tables that have a service, by the table's name.

    Attributes
    ----------
    address : tuple of str and int
        Where it listens, the port as it is.
    url : str
    fingerprint : str
        Of its certificate.
    metrics : MetricsServer or None
        Who tells its metrics, where its file has a place for them.

    Raises
    ------
    ProblemError
        The file cannot be carried out: the port is taken, a folder is missing, and so on.
    TransferError
        This host fails: a disk, no memory, no more open files.
    """

    def __init__(
        self,
        config: AgentConfig,
        log: Callable[[str], None],
        handlers: Mapping[str, Handler] | None = None,
        also: Callable[[AgentConfig], None] | None = None,
        services: Mapping[str, Service] | None = None,
    ) -> None:
        _require_linux()
        self._also = also
        self._spooling: Spooling | None = None
        try:
            self._set_up(config, log, handlers or {}, services or {})
        except (OSError, ImportError, MemoryError) as error:  # imports open files
            raise _failed(config, "cannot start", error) from error

    def _set_up(
        self,
        config: AgentConfig,
        log: Callable[[str], None],
        handlers: Mapping[str, Handler],
        services: Mapping[str, Service],
    ) -> None:
        self._config = config
        make_own_certificate(config)
        self._tls = server_context(config.certificate, config.key)
        self.fingerprint = fingerprint_of_file(config.certificate)
        listener = _listener(config)
        try:
            now_s = time.time()
            self._nonces = UsedNonces(config.nonces, now_s)
        except BaseException:
            stop_accepting(listener)
            listener.close()
            raise
        self.address: tuple[str, int] = listener.getsockname()[:2]
        self._folder = None if config.serve is None else Folder(config.serve)
        used = self._nonces.still_counting(now_s)
        core = AgentCore(config, _version(), used)
        tunnel_tls = None
        if config.tunnel is not None or config.services:
            tunnel_tls = server_context(config.certificate, config.key, protocol=TUNNEL_PROTOCOL)
        try:
            own = self._own_handlers(config, core, log)
        except BaseException:
            stop_accepting(listener)
            listener.close()
            self._close()
            raise
        self._shell = Shell(
            core,
            config,
            listener,
            self._tls,
            self._folder,
            self._nonces,
            log,
            {**handlers, **own},
            tunnel_tls,
            services,
        )
        self._n_rereadings = 0
        self.metrics = None if config.metrics is None else self._metrics_at(config.metrics)

    def _metrics_at(self, address: tuple[str, int]) -> MetricsServer:
        """Listen for who asks for metrics; he is answered once the agent runs."""
        # With it comes a server; most agents need none.
        from datacollect.net.metrics import MetricsServer
        from datacollect.transfer.agent.metrics import agent_families

        started_s = time.time()

        def families() -> list[Family]:
            return self._shell.look(lambda core: agent_families(core, _version(), started_s))

        try:
            return MetricsServer(address, families, "metrics.listen")
        except BaseException:
            self._shell.stop_listening()
            self._close()
            raise

    @property
    def url(self) -> str:
        """Return where it can be reached, if its listening address is one that others can reach."""
        return f"https://{host_port_text(*self.address)}"

    def run(self) -> None:
        """Serve until `stop`, and until what is under way then has ended."""
        _raise_open_files()
        try:
            with self.metrics or nullcontext():
                self._shell.run()
        except (OSError, ImportError, MemoryError) as error:
            raise _failed(self._config, "has ended", error) from error
        finally:
            self._close()

    def _own_handlers(
        self, config: AgentConfig, core: AgentCore, log: Callable[[str], None]
    ) -> dict[str, Handler]:
        """Return who answers about sealed pieces: of the folder that is served, and of others."""
        found: dict[str, Handler] = {}
        if self._folder is not None:
            found |= SealedPieces(config.name, self._folder, lambda: core.collectors).handlers
        if config.spool is not None:
            # What a store needs is not imported where there is none.
            from datacollect.transfer.agent.spooling import Spooling

            self._spooling = Spooling(config, lambda: core.collectors, log)
            found |= self._spooling.handlers
        return found

    def _close(self) -> None:
        if self._spooling is not None:
            self._spooling.close()
        with suppress(OSError):  # nothing is lost with what is only closed
            self._nonces.close()
            if self._folder is not None:
                self._folder.close()

    def stop(self) -> None:
        """End after what is under way; called again, at once. From any thread."""
        self._shell.loop.run_soon(lambda: self._shell.tell(events.StopAsked(self._shell.now())))

    def reread(self) -> None:
        """Count the tickets of those whom the file names now; sessions and tests of others end.

        Its certificate is taken anew, too, for connections from now on.
        """
        self._shell.loop.run_soon(self._begin_rereading)

    def _begin_rereading(self) -> None:
        """Read the file in a thread of its own: its disk may hang, or a pipe lie in its place."""
        self._n_rereadings += 1
        number = self._n_rereadings

        def tell(outcome: Outcome[AgentConfig]) -> None:
            self._shell.loop.run_soon(lambda: self._reread(number, outcome))

        def read(_: object) -> AgentConfig:
            config = AgentConfig.from_file(self._config.file)
            self._reread_certificate(config)
            if self._also is not None and number == self._n_rereadings:
                self._also(config)
            return config

        Begun("rereading", read, tell)

    def _reread_certificate(self, config: AgentConfig) -> None:
        try:
            server_context(config.certificate, config.key)  # it may be damaged
            self._tls.load_cert_chain(config.certificate, config.key, password=b"")
        except (ProblemError, OSError) as error:
            why = f"the certificate could not be read again, the old one stays in use: {error}"
            self._shell.loop.run_soon(lambda: self._shell.note("failed", {"why": why}))

    def _reread(self, number: int, outcome: Outcome[AgentConfig]) -> None:
        if number < self._n_rereadings:  # somebody has asked again since
            return
        try:
            config = outcome.result()
        except (DatacollectError, MemoryError) as error:
            # Whom it has trusted so far it goes on trusting; a typing mistake must not end work.
            why = f"collectors, operators and users could not be read again: {error}"
            self._shell.note("failed", {"why": why})
            return
        users = frozenset() if config.tunnel is None else config.tunnel.users
        now = self._shell.now()
        self._shell.tell(events.CollectorsRead(now, config.collectors, users, config.services))


def run_agent(agent: Agent, ready: Callable[[], None]) -> None:
    """Run an agent in the main thread, with SIGTERM, SIGINT to end and SIGHUP to reread.

    Parameters
    ----------
    agent : Agent
    ready : callable
        Says that it is ready; called when signals are waited for: whoever hears it may send some.
    """
    signal.signal(signal.SIGTERM, lambda *_: agent.stop())
    signal.signal(signal.SIGINT, lambda *_: agent.stop())
    signal.signal(signal.SIGHUP, lambda *_: agent.reread())
    ready()
    agent.run()


def _failed(config: AgentConfig, what: str, error: Exception) -> TransferError:
    reason, remedy = refusal_of(error)
    if not isinstance(error, OSError) and not is_memory_short(error):
        reason = f"{type(error).__name__} {error}"
    name = getattr(error, "filename", None)
    where = "" if name is None else f" ({document_name(name)})"
    return TransferError(
        f"agent {config.name!r} {what}: {reason}{where}; {remedy or 'fix that'} on its host, and "
        "start it again"
    )


def _require_linux() -> None:
    if not hasattr(os, "splice"):
        raise ProblemError(
            "agents need Linux, whose kernel passes bytes on; run the agent on a host with Linux"
        )


def _listener(config: AgentConfig) -> socket.socket:
    host, port = config.listen
    where = f"listen: {host_port_text(host, port)}"
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = rows[0]
        listener = socket.socket(family, kind)
    except OSError as error:
        raise ProblemError(f"{where}: {error.strerror}; write an address of this host") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        if config.congestion is not None:
            _require_congestion(listener, config.congestion)
        if config.limits.buffer_bytes is not None:
            # What is accepted has them from its first packet on, which says how they are counted.
            set_buffers(listener, config.limits.buffer_bytes)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ProblemError(
            f"{where}: {error.strerror}; stop the program that listens there, or choose another "
            "port; port 0 is any free one"
        ) from None
    except BaseException:
        listener.close()
        raise
    return listener


def _require_congestion(listener: socket.socket, congestion: str) -> None:
    try:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    except OSError:
        raise ProblemError(
            f"congestion must be one that this kernel has, got {shown(congestion)}; "
            "/proc/sys/net/ipv4/tcp_available_congestion_control lists them"
        ) from None


def _raise_open_files() -> None:
    """A relayed session needs six file descriptors; usual limits allow for few of them."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _version() -> str:
    # Where only the agent is installed, its distribution has a name of its own.
    for name in ("datacollect", "datacollect-agent"):
        with suppress(PackageNotFoundError):
            return version(name)
    return "unknown"
