"""Wires of the fluid engine: capacities, the paths over them, and others' traffic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pandas as pd

    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.simulation.network import BackgroundFlow, SimulatedNetwork


# What unresponsive traffic leaves to TCP on an overloaded wire, as a share of it. Nothing at all
# would be wrong: TCP's packets find room in the queue as others' do.
LEAST_SHARE = 0.01


@dataclass(frozen=True)
class FluidPath:
    """Capacities that a connection uses.

    Attributes
    ----------
    resources : tuple of int
    delay_s : float
        In one direction.
    round_trip_s : float
    limit_bytes_per_s : float
        What its window allows; infinite where nothing does.
    """

    resources: tuple[int, ...]
    delay_s: float = 0.0
    round_trip_s: float = 0.0
    limit_bytes_per_s: float = math.inf


def chained(hops: Sequence[FluidPath | None]) -> FluidPath | None:
    """Return what a chain of connections uses, each of which relays pass on as it comes.

    All hops carry the same bytes at once, so that the narrowest sets the rate; a wire that several
    hops cross carries each byte as often, and gives to each hop as to any connection. The hops
    open one after the other. None where one of them cannot be had.

    Examples
    --------
    >>> chained([FluidPath((0, 1), 0.1, 0.2), FluidPath((1,), 0.1, 0.2, 50.0)])
    FluidPath(resources=(0, 1, 1), delay_s=0.2, round_trip_s=0.4, limit_bytes_per_s=50.0)
    """
    found = [hop for hop in hops if hop is not None]
    if len(found) < len(hops):
        return None
    if len(found) == 1:
        return found[0]
    return FluidPath(
        tuple(resource for hop in found for resource in hop.resources),
        sum(hop.delay_s for hop in found),
        sum(hop.round_trip_s for hop in found),
        min(hop.limit_bytes_per_s for hop in found),
    )


class FluidNetwork(Protocol):
    """Capacities over time, and others' long-lived flows, numbered from 0."""

    @property
    def n_resources(self) -> int:
        """Number of capacities."""
        ...

    @property
    def background_paths(self) -> tuple[FluidPath, ...]:
        """Paths of others' flows that take what they get."""
        ...

    @property
    def hosts(self) -> Collection[str]:
        """Names of all hosts."""
        ...

    @property
    def storage_bytes(self) -> Mapping[str, float]:
        """Room for others' data at hosts; unlimited at those left out."""
        ...

    def path(self, from_host: str, to_host: str) -> FluidPath | None:
        """Return what a connection uses, None where there is no route."""
        ...

    def require_host(self, host: str) -> None:
        """Raise ProblemError for a host that is not in the network."""
        ...

    def capacity_bytes_per_s(self, time_s: float) -> FloatArray:
        """Return what is left for flows on each resource, from an instant on."""
        ...

    def background_active(self, time_s: float) -> BoolArray:
        """Return which of others' flows send."""
        ...

    def next_change_s(self, time_s: float) -> float:
        """Return when either changes next; infinite for never. Asked in the order of time."""
        ...

    def background_table(
        self, before: FloatArray, during: FloatArray, after: FloatArray, from_s: float, to_s: float
    ) -> pd.DataFrame:
        """Return the run's table of goodputs, from those of `background_paths`."""
        ...

    def wire_table(self, carried_bytes: FloatArray, from_s: float, to_s: float) -> pd.DataFrame:
        """Return the run's table of wires, from what flows carried over each resource."""
        ...


class WireNetwork:
    """A `SimulatedNetwork` as the fluid engine sees it.

    TCP flows of others take max-min fair shares. UDP takes what it sends, before anybody else:
    its mean rate all the time, or, with `udp_on_off`, its rate in exponential on and off times.
    Where UDP overloads a wire it loses in proportion, and 1 % is left to others.

    Parameters
    ----------
    network : SimulatedNetwork
    udp_on_off : bool
    seed : int
        For the on and off times.
    start_s : float
        When the collection begins, in the time in which background flows start; the engine's
        time 0.
    header_bytes : int
        Added to each segment; capacities shrink accordingly.
    """

    def __init__(
        self,
        network: SimulatedNetwork,
        *,
        udp_on_off: bool = False,
        seed: int = 0,
        start_s: float = 0.0,
        header_bytes: int = 0,
    ) -> None:
        segment = network.transport.segment_bytes
        self.storage_bytes: Mapping[str, float] = {}
        self._network = network
        self._useful_share = segment / (segment + header_bytes)
        self._starts_s, self._raw = _rates_over_time(network)
        self._raw *= self._useful_share
        flows = list(enumerate(network.background))
        self._tcp = [(i, flow) for i, flow in flows if flow.kind == "tcp"]
        udp = [(i, flow) for i, flow in flows if flow.kind == "udp"]
        self._tcp_start_s = np.array([flow.start_s - start_s for _, flow in self._tcp])
        self._paths: dict[tuple[int, int], FluidPath] = {}
        self.background_paths = tuple(
            self._between(flow.from_node, flow.to_node) for _, flow in self._tcp
        )
        self._udp = [
            _UdpFlow(
                number,
                flow,
                np.array(network.path(flow.from_node, flow.to_node), dtype=np.int64),
                flow.start_s - start_s,
                np.random.default_rng([seed, number]) if udp_on_off else None,
            )
            for number, flow in udp
        ]

    @property
    def n_resources(self) -> int:
        """Number of wires."""
        return self._network.n_wires

    @property
    def hosts(self) -> Collection[str]:
        """Names of the hosts that are placed at nodes."""
        return self._network.host_node.keys()

    def require_host(self, host: str) -> None:
        """Raise ProblemError for a host that is at no node."""
        if host not in self.hosts:
            raise ProblemError(f"host {host!r} is at no node of the network; place it")

    def path(self, from_host: str, to_host: str) -> FluidPath | None:
        """Return the wires between two hosts, None where there is no route."""
        node = self._network.host_node
        try:
            return self._between(node[from_host], node[to_host])
        except ProblemError:
            return None

    def _between(self, from_node: int, to_node: int) -> FluidPath:
        known = self._paths.get((from_node, to_node))
        if known is None:
            network = self._network
            wires = network.path(from_node, to_node)
            round_trip_s = network.base_round_trip_s(from_node, to_node)
            window = network.transport.buffer_bytes
            known = self._paths[from_node, to_node] = FluidPath(
                tuple(wires),
                float(network.delay_s[wires].sum()),
                round_trip_s,
                window / round_trip_s if round_trip_s > 0 else math.inf,
            )
        return known

    def capacity_bytes_per_s(self, time_s: float) -> FloatArray:
        """Return what UDP leaves of each wire."""
        raw: FloatArray = self._raw[np.searchsorted(self._starts_s, time_s, side="right") - 1]
        if not self._udp:
            return raw
        load = np.zeros(self.n_resources)
        for flow in self._udp:
            load[flow.wires] += flow.rate_at(time_s)
        return np.maximum(raw - load * self._useful_share, LEAST_SHARE * raw)

    def background_active(self, time_s: float) -> BoolArray:
        """Return which TCP flows have started."""
        return self._tcp_start_s <= time_s

    def next_change_s(self, time_s: float) -> float:
        """Return when a flow starts, UDP goes on or off, or a wire changes its rate."""
        instants = (self._tcp_start_s, self._starts_s)
        later = [float(at[at > time_s].min(initial=math.inf)) for at in instants]
        return min([*later, *(flow.next_change_s(time_s) for flow in self._udp)])

    def background_table(
        self, before: FloatArray, during: FloatArray, after: FloatArray, from_s: float, to_s: float
    ) -> pd.DataFrame:
        """Return the goodput of every flow in every phase."""
        import pandas as pd

        by_flow: dict[int, tuple[float, float, float]] = {}
        for (number, _), *rates in zip(self._tcp, before, during, after, strict=True):
            by_flow[number] = (float(rates[0]), float(rates[1]), float(rates[2]))
        survives = self._udp_survival()
        for flow in self._udp:
            mean = flow.mean_bytes_per_s * survives[flow.number]
            sent = flow.sent_bytes(from_s, to_s) * survives[flow.number]
            by_flow[flow.number] = (mean, sent / (to_s - from_s) if to_s > from_s else mean, mean)
        rows = [
            (number, self._network.background[number].kind, phase, rate)
            for number in sorted(by_flow)
            for phase, rate in zip(("before", "during", "after"), by_flow[number], strict=True)
        ]
        return pd.DataFrame(rows, columns=["flow", "kind", "phase", "goodput_bytes_per_s"])

    def _udp_survival(self) -> dict[int, float]:
        """Share of each UDP flow's mean rate that its tightest wire lets through."""
        load = np.zeros(self.n_resources)
        for flow in self._udp:
            load[flow.wires] += flow.mean_bytes_per_s * self._useful_share
        room = (1 - LEAST_SHARE) * self._raw[0]
        passes = np.minimum(1.0, np.divide(room, load, out=np.ones(len(load)), where=load > 0))
        return {flow.number: float(passes[flow.wires].min(initial=1.0)) for flow in self._udp}

    def wire_table(self, carried_bytes: FloatArray, from_s: float, to_s: float) -> pd.DataFrame:
        """Return the utilisation of every wire; a fluid drops no packets that could be counted."""
        import pandas as pd

        network, names = self._network, np.array(self._network.node_names, dtype=object)
        used = carried_bytes.copy()
        for flow in self._udp:
            used[flow.wires] += flow.sent_bytes(from_s, to_s) * self._useful_share
        ends = np.clip(np.append(self._starts_s[1:], math.inf), from_s, to_s)
        could = (ends - np.clip(self._starts_s, from_s, to_s)) @ self._raw
        share = np.divide(used, could, out=np.zeros(len(used)), where=could > 0)
        return pd.DataFrame(
            {
                "wire": np.arange(network.n_wires),
                "from": names[network.tail],
                "to": names[network.head],
                "utilisation": np.minimum(share, 1.0),
                "dropped_packets": np.full(network.n_wires, np.nan),
            }
        )


def _rates_over_time(network: SimulatedNetwork) -> tuple[FloatArray, FloatArray]:
    """Return from when on wires have other rates, and a row of all rates for each of these."""
    starts = np.unique([-math.inf, *(change.at_s for change in network.changes)])
    rates = np.tile(np.asarray(network.rate_bytes_per_s, dtype=float), (len(starts), 1))
    for change in network.changes:
        rates[np.searchsorted(starts, change.at_s) :, change.wire] = change.rate_bytes_per_s
    return starts, rates


class _UdpFlow:
    """Rate of a UDP flow over time: its mean, or in on and off times."""

    def __init__(
        self,
        number: int,
        flow: BackgroundFlow,
        wires: IntArray,
        start_s: float,
        random: np.random.Generator | None,
    ) -> None:
        self.number, self.wires, self._flow, self._start_s = number, wires, flow, start_s
        self._random = random
        cycle_s = flow.mean_on_s + flow.mean_off_s
        self.mean_bytes_per_s = flow.rate_bytes_per_s * (flow.mean_on_s / cycle_s if cycle_s else 1)
        # Instants at which it goes on (even places) and off (odd ones).
        self._turns_s = [start_s]

    def rate_at(self, time_s: float) -> float:
        """Return its rate from an instant on."""
        if time_s < self._start_s:
            return 0.0
        if self._random is None:
            return self.mean_bytes_per_s
        turn = self._turn_after(time_s)
        return self._flow.rate_bytes_per_s if turn % 2 else 0.0

    def next_change_s(self, time_s: float) -> float:
        """Return when its rate changes next."""
        if time_s < self._start_s:
            return self._start_s
        return math.inf if self._random is None else self._turns_s[self._turn_after(time_s)]

    def sent_bytes(self, from_s: float, to_s: float) -> float:
        """Return what it sends between two instants."""
        if self._random is None:
            return self.mean_bytes_per_s * max(0.0, to_s - max(from_s, self._start_s))
        self._turn_after(to_s)
        turns = np.clip(np.array(self._turns_s), from_s, to_s)
        lengths = np.diff(np.append(turns, to_s))
        return float(lengths[::2].sum()) * self._flow.rate_bytes_per_s

    def _turn_after(self, time_s: float) -> int:
        """Draw turns until one lies after an instant; return its place."""
        from bisect import bisect_right

        if self._random is None or self._flow.mean_on_s + self._flow.mean_off_s <= 0:
            self._turns_s = [self._start_s, math.inf]  # always on
        while self._turns_s[-1] <= time_s:
            is_on = len(self._turns_s) % 2 == 1
            mean_s = self._flow.mean_on_s if is_on else self._flow.mean_off_s
            assert self._random is not None
            self._turns_s.append(self._turns_s[-1] + float(self._random.exponential(mean_s)))
        return bisect_right(self._turns_s, time_s)
