"""Recorder of an engine's run: storage curves, routes, the log of connections, as a `Run`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.numbers.arrays import FloatArray, IntArray, running_totals
from datacollect.simulation.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


# Amounts below this are what is left of rounding.
NOTHING_BYTES = 1e-3


@dataclass(slots=True)
class ConnectionLog:
    """History of a connection; times are NaN until they come."""

    hosts: tuple[str, ...]
    asked_s: float
    opened_s: float = math.nan
    first_byte_s: float = math.nan
    last_byte_s: float = math.nan
    closed_s: float = math.nan
    n_bytes: float = 0.0
    stalls: int = 0
    retransmissions: int = 0

    @property
    def from_host(self) -> str:
        """The host that sends."""
        return self.hosts[0]

    @property
    def to_host(self) -> str:
        """The host that receives."""
        return self.hosts[-1]


@dataclass(frozen=True, slots=True)
class _Move:
    """Bytes on a connection between two instants, at constant rate."""

    hosts: tuple[str, ...]
    source: str
    start_s: float
    finish_s: float
    n_bytes: float
    stored_bytes: float
    freed_bytes: float


class Recorder:
    """Collect what an engine sees; `finish` makes the `Run` of it.

    Parameters
    ----------
    backlog_bytes : mapping of str to int
        What each source's data amount to.
    destination : str

    Examples
    --------
    >>> seen = Recorder({"S": 10}, "D")
    >>> seen.put("S", "S", 0.0, 10)
    >>> seen.asked(1, ("S", "D"), 0.0)
    >>> seen.moved(1, "S", 0.5, 2.5, 10)
    >>> seen.collected("S", 2.5, 10)
    >>> run = seen.finish(engine="fluid")
    >>> run.makespan_s, run.routes.to_dict("records")
    (2.5, [{'source': 'S', 'from': 'S', 'to': 'D', 'bytes': 10}])
    """

    def __init__(self, backlog_bytes: Mapping[str, int], destination: str) -> None:
        self.backlog_bytes = {name: int(n) for name, n in backlog_bytes.items() if n}
        self.destination = destination
        self.connections: dict[int, ConnectionLog] = {}
        self.collected_bytes = dict.fromkeys(self.backlog_bytes, 0)
        self._last_arrival_s = dict.fromkeys(self.backlog_bytes, 0.0)
        self._moves: list[_Move] = []
        self._puts: list[tuple[str, str, float, float]] = []
        self._lost_s: dict[str, float] = {}

    # What an engine tells --------------------------------------------------------------------

    def put(self, host: str, source: str, time_s: float, n_bytes: int) -> None:
        """Note data that lie at a host from an instant on, without having been moved there."""
        self._puts.append((host, source, time_s, float(n_bytes)))

    def asked(self, connection: int, hosts: tuple[str, ...], time_s: float) -> None:
        """Note that a connection was asked for, or a chain."""
        self.connections[connection] = ConnectionLog(hosts, time_s)

    def opened(self, connection: int, time_s: float) -> None:
        """Note that a connection carries data from now on."""
        self.connections[connection].opened_s = time_s

    def closed(self, connection: int, time_s: float) -> None:
        """Note that a connection is gone."""
        self.connections[connection].closed_s = time_s

    def stalled(self, connection: int) -> None:
        """Count a stall."""
        self.connections[connection].stalls += 1

    def moved(
        self,
        connection: int,
        source: str,
        start_s: float,
        finish_s: float,
        n_bytes: float,
        *,
        stored_bytes: float | None = None,
        freed_bytes: float | None = None,
    ) -> None:
        """Note that a connection moved bytes of a source between two instants, evenly.

        Parameters
        ----------
        stored_bytes, freed_bytes : float, optional
            How many of them the receiver did not have yet, and how many the sender had not sent
            before; by default all. Duplicates are on the wire, not in anybody's storage.
        """
        log = self.connections[connection]
        log.n_bytes += n_bytes
        if not log.first_byte_s <= start_s:  # NaN at first
            log.first_byte_s = start_s
        if not log.last_byte_s >= finish_s:
            log.last_byte_s = finish_s
        self._moves.append(
            _Move(
                log.hosts,
                source,
                start_s,
                finish_s,
                n_bytes,
                n_bytes if stored_bytes is None else stored_bytes,
                n_bytes if freed_bytes is None else freed_bytes,
            )
        )

    def collected(self, source: str, time_s: float, new_bytes: int) -> None:
        """Note that bytes of a source are at the destination that had not been there."""
        if new_bytes:
            self.collected_bytes[source] += new_bytes
            self._last_arrival_s[source] = max(self._last_arrival_s[source], time_s)

    def lost(self, host: str, time_s: float) -> None:
        """Note that a host is gone with all that it stored."""
        self._lost_s.setdefault(host, time_s)

    # What it amounts to ----------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """True once every byte is at the destination."""
        return self.collected_bytes == self.backlog_bytes

    def finish(
        self,
        *,
        engine: str,
        background: pd.DataFrame | None = None,
        wires: pd.DataFrame | None = None,
        events: int = 0,
        cpu_s: float = 0.0,
        settings: Mapping[str, Any] | None = None,
    ) -> Run:
        """Return the run. Tables that the engine does not give are empty."""
        finish_s = {
            source: self._last_arrival_s[source] if self.collected_bytes[source] == n else math.nan
            for source, n in self.backlog_bytes.items()
        }
        complete = self.is_complete
        return Run(
            engine=engine,
            complete=complete,
            makespan_s=max(finish_s.values(), default=0.0) if complete else math.nan,
            collected_bytes=sum(self.collected_bytes.values()),
            source_finish_s=finish_s,
            storage=self.storage(),
            routes=self.routes(),
            background=_empty_background() if background is None else background,
            wires=_empty_wires() if wires is None else wires,
            connections=self.connection_table(),
            events=events,
            cpu_s=cpu_s,
            settings=dict(settings or {}),
        )

    def routes(self) -> pd.DataFrame:
        """Return what went over which hop, duplicates included, in order of first use."""
        import pandas as pd

        totals: dict[tuple[str, str, str], float] = {}
        for move in self._moves:
            for hop in pairwise(move.hosts):
                key = (move.source, *hop)
                totals[key] = totals.get(key, 0.0) + move.n_bytes
        rows = [(*key, round(total)) for key, total in totals.items() if round(total)]
        return pd.DataFrame(rows, columns=["source", "from", "to", "bytes"])

    def connection_table(self) -> pd.DataFrame:
        """Return the log, a row per connection."""
        import pandas as pd

        logs = self.connections
        columns: dict[str, Any] = {
            "connection": list(logs),
            "from": [log.from_host for log in logs.values()],
            "to": [log.to_host for log in logs.values()],
            "via": [" ".join(log.hosts[1:-1]) for log in logs.values()],
            "hops": np.array([len(log.hosts) - 1 for log in logs.values()], dtype=np.int64),
        }
        for name in ("asked_s", "opened_s", "first_byte_s", "last_byte_s", "closed_s"):
            columns[name] = np.array([getattr(log, name) for log in logs.values()], dtype=float)
        columns["bytes"] = np.array([round(log.n_bytes) for log in logs.values()], dtype=np.int64)
        for name in ("stalls", "retransmissions"):
            columns[name] = np.array([getattr(log, name) for log in logs.values()], dtype=np.int64)
        return pd.DataFrame(columns)

    def storage(self) -> pd.DataFrame:
        """Return what each host stores over time; between two rows amounts change linearly.

        A jump has two rows at one instant.
        """
        import pandas as pd

        names = self._names()
        key, start, finish, amount = self._changes({name: i for i, name in enumerate(names)})
        key, time_s, before, after = _piecewise(key, start, finish, amount)
        host, is_others = key // 2, key % 2
        rows = []
        for number, name in enumerate(names):
            curves = []
            for others in (0, 1):
                mine = (host == number) & (is_others == others)
                curves.append((time_s[mine], before[mine], after[mine]))
            rows.append(_host_rows(curves, self._lost_s.get(name, math.inf)))
        table = np.concatenate(rows, axis=1)
        hosts = np.repeat(np.array(names, dtype=object), [part.shape[1] for part in rows])
        return pd.DataFrame(
            {"host": hosts, "time_s": table[0], "own_bytes": table[1], "others_bytes": table[2]}
        )

    def _names(self) -> list[str]:
        names = [put[0] for put in self._puts]
        for move in self._moves:
            names += (move.hosts[0], move.hosts[-1])
        return sorted(dict.fromkeys([*names, self.destination]))

    def _changes(
        self, index: Mapping[str, int]
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Every change of an amount: key (2 · host + is others'), from when, to when, bytes."""
        rows: list[tuple[int, float, float, float]] = [
            (2 * index[host] + (host != source), time_s, time_s, n)
            for host, source, time_s, n in self._puts
        ]
        for m in self._moves:
            # The relays of a chain store nothing.
            for end, n_bytes in ((m.hosts[-1], m.stored_bytes), (m.hosts[0], -m.freed_bytes)):
                rows.append((2 * index[end] + (end != m.source), m.start_s, m.finish_s, n_bytes))
        if not rows:
            empty = np.zeros(0)
            return np.zeros(0, dtype=np.int64), empty, empty, empty
        table = np.array(rows, dtype=float)
        return table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3]


def _piecewise(
    key: IntArray, start_s: FloatArray, finish_s: FloatArray, amount: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Add up changes at constant rate: key, instant, and the totals just before and from then on.

    Changes in no time are jumps.
    """
    lasts = finish_s > start_s
    slope = np.divide(amount, finish_s - start_s, out=np.zeros(len(amount)), where=lasts)
    shift = slope * start_s
    one, zero = lasts.astype(np.int64), np.zeros(len(amount))
    jump = np.where(lasts, 0.0, amount)
    at, time_s, (slopes, shifts, active, done, jumps) = running_totals(
        np.concatenate([key, key]),
        np.concatenate([start_s, finish_s]),
        np.concatenate([slope, -slope]),
        np.concatenate([shift, -shift]),
        np.concatenate([one, -one]),
        np.concatenate([zero, np.where(lasts, amount, 0.0)]),
        np.concatenate([jump, zero]),
    )
    # Exact amounts where nothing moves: the rounding of past rates must not stay behind.
    after = done + jumps + np.where(active > 0, slopes * time_s - shifts, 0.0)
    new_key = np.ones(len(at), dtype=bool)
    new_key[1:] = at[1:] != at[:-1]
    jumped = np.diff(jumps, prepend=0.0)
    jumped[new_key] = jumps[new_key]
    return at, time_s, after - jumped, after


def _host_rows(
    curves: list[tuple[FloatArray, FloatArray, FloatArray]], lost_s: float
) -> FloatArray:
    """Instants of both curves, and a host's own and others' bytes then, one row each."""
    instants = np.unique(np.concatenate([[0.0], *(time_s for time_s, _, _ in curves)]))
    if lost_s < math.inf:
        instants = np.append(instants[instants < lost_s], lost_s)
    pairs = [_values_at(instants, *curve) for curve in curves]
    before = np.array([pair[0] for pair in pairs])
    after = np.array([pair[1] for pair in pairs])
    if lost_s < math.inf:
        after[:, -1] = 0.0
    jumps = np.any(np.abs(after - before) > NOTHING_BYTES, axis=0)
    jumps[0] = False  # before time 0 nobody looks
    order = np.concatenate([np.arange(len(instants)), np.flatnonzero(jumps)])
    values = np.concatenate([after, before[:, jumps]], axis=1)
    rank = np.concatenate([np.ones(len(instants)), np.zeros(int(jumps.sum()))])
    rows = np.lexsort((rank, order))
    values = np.where(values < NOTHING_BYTES, 0.0, values)[:, rows]
    return np.vstack([instants[order[rows]], values])


def _values_at(
    instants: FloatArray, time_s: FloatArray, before: FloatArray, after: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Value just before and from each instant on, of a curve that is 0 before its first point."""
    if len(time_s) == 0:
        return np.zeros(len(instants)), np.zeros(len(instants))
    # Two points per instant of the curve; interpolation between an `after` and the next `before`.
    i = np.searchsorted(time_s, instants, side="right") - 1
    nearest = np.clip(i, 0, len(time_s) - 1)
    following = np.minimum(nearest + 1, len(time_s) - 1)
    length = time_s[following] - time_s[nearest]
    share = np.divide(
        instants - time_s[nearest], length, out=np.zeros(len(instants)), where=length > 0
    )
    inside = after[nearest] + np.minimum(share, 1.0) * (before[following] - after[nearest])
    inside = np.where(following == nearest, after[nearest], inside)
    inside = np.where(i < 0, 0.0, inside)
    exact = (i >= 0) & (time_s[nearest] == instants)
    return np.where(exact, before[nearest], inside), inside


def _empty_background() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns=["flow", "kind", "phase", "goodput_bytes_per_s"])


def _empty_wires() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns=["wire", "from", "to", "utilisation", "dropped_packets"])
