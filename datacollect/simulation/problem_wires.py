"""A problem's links and limits as wires that carry packets.

A problem says nothing of wires. So each link is a wire of its own, and so are each limited uplink
and downlink and each shared bottleneck, one behind the other::

    S -> uplink of 'S' -> link -> shared bottleneck -> downlink of 'D' -> D

Each carries as many bytes of data as the problem says, headers besides, and changes its rate when
the problem's periods change. Links take `DELAY_S` one way; queues hold what comes in a round trip,
so that one connection fills its route. Acknowledgements take the link back, where there is one, and
else a wire that nothing limits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.clock import instant_text
from datacollect.simulation.network import (
    HEADER_BYTES,
    NO_WIRE,
    RateChange,
    SimulatedNetwork,
    Transport,
)

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem

DELAY_S = 0.01
LEAST_QUEUE_PACKETS, LEAST_BUFFER_BYTES = 50, 1 << 20
REMEDY = "use the fluid engine, --engine fluid"


def wires_of(problem: Problem, until_s: float) -> SimulatedNetwork:
    """Return the wires of a problem's links and limits.

    Parameters
    ----------
    problem : Problem
    until_s : float
        How far what recurs is listed.

    Raises
    ------
    ProblemError
        The problem says something that wires cannot: no capacity for a while, room at relays,
        rates by connections, data that are released late or lie elsewhere, a link in two shared
        bottlenecks; or more periods than can be listed.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "D"], [[0, 5e6], [0, 0]], [10, 0], "D", uplink_bytes_per_s=[4e6, 1e6]
    ... )
    >>> network = wires_of(problem, 1e6)
    >>> [network.wire_name(wire) for wire in network.path(0, 1)]
    ["S -> uplink of 'S'", "uplink of 'S' -> D"]
    """
    _require_there_from_the_start(problem)
    listed = problem.until(until_s)
    if listed.daily is not None and listed.daily.until_s < until_s:
        raise ProblemError(
            f"problem: daily hours can be listed for {listed.daily.until_s:g} s at most, but "
            f"run.time_limit_s is {until_s:g}; lower run.time_limit_s, or {REMEDY}"
        )
    return _Laid(listed).network()


def _require_there_from_the_start(problem: Problem) -> None:
    """Refuse what changes who holds what, and what is no capacity."""
    roomy = np.isinf(problem.storage_bytes)
    roomy[problem.host_index[problem.destination]] = True
    for wrong, what in (
        (problem.release_s > 0, "its data are released later than at 0 s"),
        (~roomy, "its room is limited (storage_bytes)"),
    ):
        if wrong.any():
            name = problem.names[int(np.argmax(wrong))]
            raise ProblemError(
                f"problem: host {name!r}: {what}, which ns-3 cannot simulate; {REMEDY}"
            )
    if problem.held:
        name = problem.held[0].host
        raise ProblemError(
            f"problem: data lie at {name!r} already, which ns-3 cannot simulate; {REMEDY}"
        )
    if problem.per_connection_bytes_per_s is not None:
        raise ProblemError(
            "problem: ns-3 cannot be given rates by connections, it finds them out itself; "
            f"{REMEDY}"
        )


class _Laid:
    """Nodes, wires and routes, as they are laid."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._nodes = list(problem.names)
        self._tail: list[int] = []
        self._head: list[int] = []
        self._delay_s: list[float] = []
        self._rates: list[FloatArray] = []  # by period, headers included
        self._hops: list[tuple[int, int, int]] = []  # node, target, wire
        self._buffer_bytes = float(LEAST_BUFFER_BYTES)
        self._segment = Transport().segment_bytes
        self._on_the_wire = (self._segment + HEADER_BYTES) / self._segment
        self._out = [self._limit("uplink", i) for i in range(problem.n_hosts)]
        self._into = [self._limit("downlink", i) for i in range(problem.n_hosts)]
        self._shared = self._shared_wires()
        self._beyond: dict[tuple[int, int], int] = {}
        for link in range(problem.n_links):
            self._lay(link)

    def network(self) -> SimulatedNetwork:
        """Return what was laid."""
        n_nodes = len(self._nodes)
        next_wire = np.full((n_nodes, n_nodes), NO_WIRE, dtype=np.int64)
        for node, target, wire in self._hops:
            next_wire[node, target] = wire
        rates = np.array(self._rates).reshape(len(self._rates), -1)
        queue = rates.max(axis=1, initial=0.0) * 2 * DELAY_S / (self._segment + HEADER_BYTES)
        starts = self._problem.periods_s.tolist()
        return SimulatedNetwork(
            node_names=tuple(self._nodes),
            host_node=dict(self._problem.host_index),
            tail=np.array(self._tail, dtype=np.int64),
            head=np.array(self._head, dtype=np.int64),
            rate_bytes_per_s=rates[:, 0],
            delay_s=np.array(self._delay_s),
            queue_packets=np.maximum(np.ceil(queue), LEAST_QUEUE_PACKETS).astype(np.int64),
            next_wire=next_wire,
            transport=Transport(buffer_bytes=math.ceil(self._buffer_bytes)),
            changes=tuple(
                RateChange(starts[period], wire, float(rates[wire, period]))
                for period in range(1, len(starts))
                for wire in np.flatnonzero(rates[:, period] != rates[:, period - 1]).tolist()
            ),
        )

    def _node(self, name: str) -> int:
        self._nodes.append(name)
        return len(self._nodes) - 1

    def _wire(self, tail: int, head: int, rate: FloatArray, what: str, delay_s: float = 0) -> int:
        """Lay a wire with a rate for each period; `what` is its name in messages."""
        if not (rate > 0).all():
            at_s = float(self._problem.periods_s[int(np.argmin(rate > 0))])
            raise ProblemError(
                f"problem: {what} carries nothing from "
                f"{instant_text(at_s, self._problem.clock)} on, and TCP gives up meanwhile; "
                f"{REMEDY}"
            )
        self._tail.append(tail)
        self._head.append(head)
        self._delay_s.append(delay_s)
        self._rates.append(np.asarray(rate * self._on_the_wire))
        return len(self._tail) - 1

    def _limit(self, kind: str, host: int) -> tuple[int, int | None]:
        """Return the node behind a host's limit, and its wire; the host where it has none."""
        rate: FloatArray = getattr(self._problem, f"{kind}_bytes_per_s")[:, host]
        if math.isinf(rate[0]):
            return host, None
        what = f"{kind} of {self._problem.names[host]!r}"
        node = self._node(what)
        ends = (host, node) if kind == "uplink" else (node, host)
        return node, self._wire(*ends, rate, what)

    def _shared_wires(self) -> dict[int, int]:
        """Return the wire of the shared bottleneck of each link that is in one."""
        problem, found = self._problem, {}
        for bottleneck, links in zip(problem.shared, problem.shared_links, strict=True):
            what = f"shared bottleneck {bottleneck.name!r}"
            rate = np.full(problem.n_periods, float(bottleneck.bandwidth_bytes_per_s))
            wire = self._wire(self._node(what), self._node(f"end of {what}"), rate, what)
            for link in links.tolist():
                if link in found:
                    raise ProblemError(
                        f"problem: {self._name(link)} is in {what} and in another, which ns-3 "
                        f"cannot simulate; {REMEDY}"
                    )
                found[link] = wire
        return found

    def _name(self, link: int) -> str:
        problem = self._problem
        tail, head = int(problem.link_from[link]), int(problem.link_to[link])
        return f"link {problem.names[tail]!r} -> {problem.names[head]!r}"

    def _lay(self, link: int) -> None:
        problem, shared = self._problem, self._shared.get(link)
        tail, head = int(problem.link_from[link]), int(problem.link_to[link])
        (node, up), (end, down) = self._out[tail], self._into[head]
        rate = problem.bandwidth_bytes_per_s[:, link]
        first = end if shared is None else self._tail[shared]
        self._hops.append((node, head, self._wire(node, first, rate, self._name(link), DELAY_S)))
        if up is not None:
            self._hops.append((tail, head, up))
        if shared is not None:
            self._hops.append((first, head, shared))
            self._hops.append((self._head[shared], head, self._past(shared, end)))
        if down is not None:
            self._hops.append((end, head, down))
        if int(problem.link_indices(head, tail)) < 0:
            back = self._wire(head, tail, np.full_like(rate, rate.max()), "", DELAY_S)
            self._hops.append((head, tail, back))
        passed = [wire for wire in (up, shared, down) if wire is not None]
        most = min([rate.max() * self._on_the_wire, *(self._rates[w].max() for w in passed)])
        self._buffer_bytes = max(self._buffer_bytes, 4 * DELAY_S * float(most))

    def _past(self, shared: int, end: int) -> int:
        """Return the wire from a shared bottleneck on, no narrower than that."""
        if (shared, end) not in self._beyond:
            rate = self._rates[shared] / self._on_the_wire
            self._beyond[shared, end] = self._wire(self._head[shared], end, rate, "")
        return self._beyond[shared, end]
