"""Context of one session: what it needs of the agent's shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import socket
    import ssl

    from datacollect.net.hop_ends import HopEnd
    from datacollect.transfer.agent.core.events import ClockReading, Event
    from datacollect.transfer.agent.shell.handling import Handler, Service
    from datacollect.transfer.agent.shell.loop import Loop
    from datacollect.transfer.agent.shell.nonces import UsedNonces
    from datacollect.transfer.rates.throttle import Throttle


class AgentContext(Protocol):
    """The agent around a session.

    Attributes
    ----------
    loop : Loop
    tls : ssl.SSLContext
    nonces : UsedNonces
    head_s : float
        How long a greeting may take, seconds.
    connect_s : float
        How long the next host may take to accept a connection, seconds.
    throttle : Throttle or None
        The limit of all that passes the agent.
    """

    loop: Loop
    tls: ssl.SSLContext
    nonces: UsedNonces
    head_s: float
    connect_s: float
    throttle: Throttle | None

    def tell(self, event: Event) -> None:
        """Hand an event to the core, and carry out its actions."""

    def now(self) -> ClockReading:
        """Return this instant."""

    def handler_of(self, target: str) -> Handler | None:
        """Return who answers requests for a target, where it is not the core."""

    def service_of(self, name: str) -> Service | None:
        """Return who serves users of a service of the agent's own."""

    @property
    def serves_collectors(self) -> bool:
        """Return whether somebody collects here, or through this host, now."""

    def forget(self, number: int) -> None:
        """A session has released all that it held."""

    def start_tls(self, number: int, connection: socket.socket) -> None:
        """Hand a session to a thread of its own."""

    def tune(self, connection: socket.socket, *, is_loopback: bool = False) -> None:
        """Set what all connections have in common."""

    def hop_end(self, connection: socket.socket) -> HopEnd:
        """Return what clients are told of this end of a connection."""

    def pipe_bytes(self) -> int:
        """Return how large pipes may be now."""

    def tcp_facts(self, number: int) -> dict[str, Any]:
        """Return what TCP knows of a session."""
