"""Opens tunnels to one service: chooses the route, and another one where a host of it is gone."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import (
    IdentityError,
    InfeasibleError,
    ProblemError,
    RefusedError,
    TransferError,
    nearest_hint,
)
from datacollect.files.kinds import shown
from datacollect.net.deadline import Deadline
from datacollect.net.keys import read_private_key
from datacollect.net.names import require_host_name
from datacollect.net.tickets import MOST_AGENTS
from datacollect.net.tls import client_context
from datacollect.transfer.protocol.tunnel import TUNNEL_PROTOCOL
from datacollect.transfer.sources.agent.network import RELAY_REFUSES, Network
from datacollect.transfer.sources.kinds import AGENTS
from datacollect.transfer.tunnel.asking import Opened, RouteError, ask_for_tunnel
from datacollect.transfer.tunnel.routes import widest_relays

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.net.agent_entries import AgentEntry
    from datacollect.transfer.pull.config.file import Collection

# Routes that are tried for one tunnel, and for how long a link counts as of no use.
MOST_TRIES, BROKEN_S = 8, 30.0
# Refusals that are for whoever has written the files to mend.
OF_FILES = (400, 403, 404, 407)
# Of one collection at a relay, as tickets say.
MOST_CONNECTIONS = 10_000


@dataclass(frozen=True)
class RouteChoice:
    """Choice of routes that a user makes.

    Attributes
    ----------
    via : tuple of str or None
        These relays in this order, and no others; none of them: directly. None: by estimates.
    is_strict : bool
        Whether to fall back to the direct route is an error.
    """

    via: tuple[str, ...] | None = None
    is_strict: bool = False


@dataclass(frozen=True)
class OpenedTunnel:
    """A tunnel that is open.

    Attributes
    ----------
    opened : Opened
    route : tuple of str
        This host's name, relays, the agent.
    service : str
    asked_bytes : int or None
        Buffers that this host has asked for.
    """

    opened: Opened
    route: tuple[str, ...]
    service: str
    asked_bytes: int | None


class TunnelOpener:
    """Opens tunnels to one service beside one agent; from any thread.

    Parameters
    ----------
    collection : Collection
    to : str
        ``AGENT:SERVICE``.
    choice : RouteChoice
    buffer_bytes : int, optional
        Of this host's own connections; None: they grow by themselves.
    tell : callable
        Takes a line that somebody would want to know at once.

    Raises
    ------
    ProblemError
        There is no such agent, no such relay, or they make no route.
    """

    def __init__(
        self,
        collection: Collection,
        to: str,
        choice: RouteChoice,
        *,
        buffer_bytes: int | None = None,
        tell: Callable[[str], None],
    ) -> None:
        agents = collection.entries[AGENTS]
        name, colon, self.service = to.partition(":")
        if not colon or not self.service:
            raise ProblemError(
                f"a tunnel leads to AGENT:SERVICE, got {shown(to)}; such as S1:ssh, where "
                "ssh is a name in `to` of [tunnel] of the agent's file"
            )
        require_host_name(self.service, "the service")
        self.far: AgentEntry = agents[_known(name, agents, "a tunnel leads to one")]
        self.here = collection.destination
        _require_route(choice.via, self.far.name, agents)
        self._choice, self._buffer_bytes, self._tell = choice, buffer_bytes, tell
        self._collection = collection
        self._relays = [each for each in agents if each != self.far.name]
        self._tls = client_context(self.far.ca, TUNNEL_PROTOCOL)
        self._timeout_s = collection.limits.timeout_s
        self._network = Network(
            agents,
            read_private_key(collection.key),
            f"tunnel-{secrets.token_hex(8)}",
            timeout_s=self._timeout_s,
            connections=MOST_CONNECTIONS,
        )
        self._rates: dict[tuple[str, str], float] | None = None
        self._lock = threading.Lock()
        self._broken_until_s: dict[tuple[str, str], float] = {}

    def open(self) -> OpenedTunnel:
        """Open a tunnel.

        Raises
        ------
        InfeasibleError
            No route is left.
        ProblemError
            What the files say does not fit: another certificate, no such service, a key that the
            agent does not know.
        RefusedError, TransferError
            The agent, or its service, is not ready.
        """
        failures: list[str] = []
        try:
            for _ in range(MOST_TRIES):
                relays = self._next_route(failures)
                if relays is None:
                    break
                try:
                    route = (self.here, *relays, self.far.name)
                    opened = self._ask(relays)
                    return OpenedTunnel(opened, route, self.service, self._buffer_bytes)
                except RouteError as error:
                    failures.append(str(error))
                    self._note_broken(relays, error.link)
        except IdentityError as error:
            raise ProblemError(f"agents: {error}") from error
        except RefusedError as error:
            if error.status in OF_FILES:
                raise ProblemError(str(error)) from error
            raise
        why = "; ".join(dict.fromkeys(failures))
        raise InfeasibleError(f"no route to {self.far.name}:{self.service}: {why}", [self.far.name])

    def _next_route(self, failures: Sequence[str]) -> tuple[str, ...] | None:
        """Return the relays of the next route to try; say so where it is a fall back."""
        if self._choice.via is not None:
            return None if failures else self._choice.via
        rates = self._estimates()
        with self._lock:
            now_s = time.monotonic()
            broken = {link for link, until_s in self._broken_until_s.items() if until_s > now_s}
        if not failures and not self._is_left(rates, broken):
            broken = set()  # all that was broken may be mended by now
        relays = widest_relays(self.here, self.far.name, self._relays, rates, broken)
        best = widest_relays(self.here, self.far.name, self._relays, rates)
        if relays == () and best:
            why = failures[-1] if failures else f"{best[0]} was not reached just now"
            if self._choice.is_strict:
                raise InfeasibleError(
                    f"no route to {self.far.name}:{self.service} but the direct one, which "
                    f"--strict rules out: {why}",
                    [self.far.name],
                )
            self._tell(f"falling back to the direct route to {self.far.name}: {why}")
        return relays

    def _is_left(self, rates: dict[tuple[str, str], float], broken: set[tuple[str, str]]) -> bool:
        return widest_relays(self.here, self.far.name, self._relays, rates, broken) is not None

    def _note_broken(self, relays: tuple[str, ...], link: int) -> None:
        hosts = (self.here, *relays, self.far.name)
        at = min(link, len(hosts) - 2)
        with self._lock:
            self._broken_until_s[hosts[at], hosts[at + 1]] = time.monotonic() + BROKEN_S

    def _estimates(self) -> dict[tuple[str, str], float]:
        """Return what the collection file says of links; read when it is first needed."""
        with self._lock:
            if self._rates is None:
                self._rates = _rates_of(self._collection)
            return self._rates

    # One route -------------------------------------------------------------------------------

    def _ask(self, relays: tuple[str, ...], *, again: bool = False) -> Opened:
        hosts = (*relays, self.far.name)
        for link, host in enumerate(hosts):
            if host not in self._network.known:
                self._learn(host, relays[:link], link)
        deadline = Deadline(self._timeout_s)
        try:
            return ask_for_tunnel(
                self._network.hops(relays, self.far.name, stays=True),
                self.far,
                self._tls,
                self.service,
                self._network.tunnel_ticket(self.far.name, relays, self.service),
                deadline,
                self._buffer_bytes,
            )
        except RefusedError as error:
            if error.status != RELAY_REFUSES or error.by not in hosts:
                raise
            link = hosts.index(error.by)
            # Tickets are written by each agent's clock, which may have been set meanwhile.
            if not again and self._network.has_moved(error.by, relays[:link]):
                return self._ask(relays, again=True)
            if link < len(relays):
                raise RouteError(str(error), link) from error
            raise

    def _learn(self, host: str, relays: tuple[str, ...], link: int) -> None:
        """Ask an agent for its clock, and what it can do."""
        try:
            self._network.ask(host, relays)
        except IdentityError:
            raise
        except TransferError as error:
            raise RouteError(str(error), link) from error


def _known(name: str, agents: Mapping[str, AgentEntry], what: str) -> str:
    if name not in agents:
        known = ", ".join(sorted(agents))
        hint = nearest_hint(name, agents) or "; name one of these"
        raise ProblemError(f"{what} of the collection's agents ({known}), got {shown(name)}{hint}")
    return name


def _require_route(via: tuple[str, ...] | None, far: str, agents: Mapping[str, AgentEntry]) -> None:
    via = via or ()
    for name in via:
        _known(name, agents, "--via: each relay must be one")
    if far in via:
        raise ProblemError(
            f"--via: {far} is the host that the tunnel leads to; leave it out of --via"
        )
    twice = [name for i, name in enumerate(via) if name in via[:i]]
    if twice:
        raise ProblemError(f"--via: {twice[0]} is listed twice; a route passes a relay once")
    if len(via) > MOST_AGENTS:
        raise ProblemError(f"--via: at most {MOST_AGENTS} relays, got {len(via)}; leave some out")


def _rates_of(collection: Collection) -> dict[tuple[str, str], float]:
    """Return estimates of links in bytes per second, of the first period."""
    # Much to import, and needed by those alone who say something of links.
    from datacollect.transfer.pull.planning import problem_of, says_links

    if not says_links(collection):
        return {}
    problem = problem_of(collection, {}, (), {})
    names = problem.names
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    rates = problem.bandwidth_bytes_per_s[0].tolist()
    return {
        (names[tail], names[head]): rate for (tail, head), rate in zip(ends, rates, strict=True)
    }
