"""Bandwidth estimates as users get them: transfers between pairs of hosts, measured in ns-3."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from datacollect.control.controller import Controller
from datacollect.control.decisions import Close, Open, Send, WakeMe
from datacollect.control.events import RangeArrived, Timer
from datacollect.errors import ProblemError
from datacollect.simulation.ns3.engine import describe
from datacollect.simulation.ns3.messages import RunRequest
from datacollect.simulation.ns3.network_text import check_network, hosts_of, scenario_text
from datacollect.simulation.ns3.process import worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from datacollect.control.decisions import Decision
    from datacollect.control.events import Event
    from datacollect.simulation.network import SimulatedNetwork
    from datacollect.simulation.run import OnProgress

# A probe that is given up counts what has arrived, in this many parts.
PARTS = 20

# Between two probes, that the queues of the first do not slow down the second.
PAUSE_S = 1.0

COLUMNS = [
    "from",
    "to",
    "time_s",
    "bandwidth_bytes_per_s",
    "bytes",
    "duration_s",
    "streams",
    "concurrency",
]


@dataclass(frozen=True, eq=False)
class Probes:
    """Samples of bandwidth, and what it cost to simulate them.

    Attributes
    ----------
    samples : DataFrame
        Columns from, to, time_s, bandwidth_bytes_per_s, bytes, duration_s, streams, concurrency:
        a row per probe, as estimates are made of.
    carried_bytes : int
        What the probes together put on the network.
    simulated_s : float
        How long they took.
    events : int
    cpu_s : float
    """

    samples: pd.DataFrame
    carried_bytes: int
    simulated_s: float
    events: int
    cpu_s: float


class ProbeController(Controller):
    """Measure one pair after the other: a connection, a transfer, a pause.

    Attributes
    ----------
    answer : list of tuple
        A row per probe: from, to, when it began, bytes that arrived, seconds from asking for
        the connection to the last arrival.
    finished : bool
        Ends the run; the alarms that were set for slow probes have yet to ring.
    """

    def __init__(
        self, pairs: Sequence[tuple[str, str]], n_bytes: int, streams: int, give_up_s: float
    ) -> None:
        self._pairs = list(pairs)
        self._n_bytes = n_bytes
        self._streams = streams
        self._give_up_s = give_up_s
        self._probe = -1
        self._pausing = False
        self._began_s = 0.0
        self._arrived_bytes = 0
        self.answer: list[tuple[str, str, float, int, float]] = []
        self.finished = False

    def start(self) -> list[Decision]:
        """Begin with the first pair."""
        return self._next(0.0)

    def handle(self, event: Event) -> list[Decision]:
        """Count what arrives; go on when all has, or when the time is up."""
        match event:
            case Timer(time_s, tag):
                if self._pausing and tag == self._probe:
                    return self._next(time_s)
                if not self._pausing and tag == -1 - self._probe:
                    return self._finish(time_s, self._give_up_s)
            case RangeArrived() if self._is_mine(event.connection):
                self._arrived_bytes += event.n_bytes
                if self._arrived_bytes == self._n_bytes:
                    return self._finish(event.time_s, event.time_s - self._began_s)
        return []

    def _is_mine(self, connection: int) -> bool:
        return not self._pausing and connection // self._streams == self._probe

    def _next(self, time_s: float) -> list[Decision]:
        self._probe += 1
        self._pausing = False
        if self._probe == len(self._pairs):
            self.finished = True
            return []
        self._began_s, self._arrived_bytes = time_s, 0
        a, b = self._pairs[self._probe]
        decisions: list[Decision] = [WakeMe(time_s + self._give_up_s, -1 - self._probe)]
        for stream in range(self._streams):
            connection = self._probe * self._streams + stream
            decisions.append(Open(connection, (a, b)))
            first = self._n_bytes * stream // self._streams
            n = self._n_bytes * (stream + 1) // self._streams - first
            edges = [first + n * i // PARTS for i in range(PARTS + 1)]
            decisions += [
                Send(connection, a, start, end - start)
                for start, end in pairwise(edges)
                if end > start
            ]
        return decisions

    def _finish(self, time_s: float, duration_s: float) -> list[Decision]:
        self.answer.append(
            (*self._pairs[self._probe], self._began_s, self._arrived_bytes, duration_s)
        )
        self._pausing = True
        first = self._probe * self._streams
        decisions: list[Decision] = [
            Close(connection, drop_queue=True) for connection in range(first, first + self._streams)
        ]
        return [*decisions, WakeMe(time_s + PAUSE_S, self._probe)]


def probe_ns3(
    network: SimulatedNetwork,
    pairs: Sequence[tuple[str, str]] | None = None,
    n_bytes: int = 5_000_000,
    repeats: int = 1,
    *,
    streams: int = 1,
    seed: int = 1,
    warm_up_s: float = 0.0,
    give_up_s: float = 1000.0,
    progress: OnProgress | None = None,
) -> Probes:
    """Measure bandwidths by TCP transfers, one pair at a time, under the network's background.

    A sample's bandwidth is what arrived over the time from asking for the connections to the last
    arrival: handshake and slow start count, as they do in such measurements.

    Parameters
    ----------
    network : SimulatedNetwork
    pairs : sequence of (from, to), optional
        Hosts, in the order of probing; by default every ordered pair that has routes.
    n_bytes : int
        Of each probe.
    repeats : int
        Rounds over all pairs, one after the other in the same simulation.
    streams : int
        Parallel connections of each probe.
    seed : int
    warm_up_s : float
        How long the background runs before the first probe.
    give_up_s : float
        A probe ends after this time; its sample then gives what had arrived.
    progress : callable, optional
        Called with the simulated time and 0.

    Returns
    -------
    Probes
    """
    apart = check_network(network)
    hosts = hosts_of(network)
    if pairs is None:
        pairs = [(a, b) for a in hosts for b in hosts if a != b and (a, b) not in apart]
    for option, value in (("n_bytes", n_bytes), ("repeats", repeats), ("streams", streams)):
        if int(value) != value or value < 1:
            raise ProblemError(f"{option} must be whole and >= 1, got {value}")
    if not give_up_s > 0:
        raise ProblemError(f"give_up_s must be > 0, got {give_up_s}")
    rounds = [(a, b) for _ in range(repeats) for a, b in pairs]
    controller = ProbeController(rounds, int(n_bytes), int(streams), float(give_up_s))
    backlog = dict.fromkeys((a for a, _ in rounds), int(n_bytes))
    limit_s = min(1e9, len(rounds) * (give_up_s + PAUSE_S) + 1.0)
    scenario = scenario_text(
        network,
        backlog,
        None,
        seed=seed,
        warm_up_s=float(warm_up_s),
        time_limit_s=limit_s,
        stall_s=limit_s,
        relay_buffer_bytes=None,
    )
    request = RunRequest(scenario, hosts, backlog, apart, controller, 0.0)
    result = worker().run(request, f"probes, {describe(network, seed)}", progress)
    rows = result.answer
    return Probes(
        _samples(rows, streams),
        sum(row[3] for row in rows),
        result.end_s,
        result.events,
        result.cpu_s,
    )


def _samples(rows: list[tuple[str, str, float, int, float]], streams: int) -> pd.DataFrame:
    import pandas as pd

    table = [
        (a, b, began_s, n / duration_s, n, duration_s, streams, 0)
        for a, b, began_s, n, duration_s in rows
    ]
    return pd.DataFrame(table, columns=COLUMNS)
