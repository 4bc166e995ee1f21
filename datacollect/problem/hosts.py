"""Parts of a problem: hosts, links, shared bottlenecks, held data, parcels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.files.units import counted
from datacollect.files.with_units import BANDWIDTH, CAPACITY, PART, RANGE, in_units

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.files.quantities import Bytes, BytesPerS, Price, Seconds, WholeBytes
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.nominal_rates import NominalRates
    from datacollect.problem.open_links import OpenLinks


@dataclass(frozen=True)
class Host:
    """A machine that takes part.

    Amounts, instants and rates may be texts with their units, as in files: ``"6 TB"``.

    Parameters
    ----------
    name : str
        Unique, not empty.
    backlog_bytes : int or str
        Bytes that it holds at its release time and that must reach the destination.
    release_s : float or str
        Instant from which its backlog may leave.
    produces_bytes_per_s : float or str
        Rate at which it makes its backlog, byte after byte from `release_s` on; by default all is
        there then.
    made_bytes : int or str
        With `produces_bytes_per_s`: how many bytes, the first, are there at `release_s`.
    storage_bytes : float or str
        Room for other hosts' data; infinite by default; 0: never a store-and-forward relay.
    uplink_bytes_per_s, downlink_bytes_per_s : float, str, or sequence of these
        What all links out of it, or into it, carry together; infinite by default. One number per
        period of the problem's ``periods_s``, or rates from hours of the day on, every day:
        ``"08:00 10 Mbit/s, 20:00 1 Gbit/s"``, for which the problem needs a start.
        ``"none"`` where it is known that there is no limit: then nobody doubts it.
    shown_uplink_bytes_per_s, shown_downlink_bytes_per_s : float or str
        The most that it was seen to send, or to receive, at once: a lower bound and no limit.
        Plans say where they lean on more; by default on more than one of its links carries.
    most_connections : int or float
        Connections that begin or end there at a time, where plans count them; infinite by default.
    latitude, longitude : float, optional
        Where it stands, in degrees, north and east positive: for pictures. Both or neither.
    open : str or sequence of str, optional
        When links out of it and into it carry data: ``"Mo-Fr 20:00-06:00"``; always by default.
    """

    name: str
    backlog_bytes: WholeBytes = 0
    release_s: Seconds = 0.0
    storage_bytes: Bytes = math.inf
    uplink_bytes_per_s: BytesPerS | Sequence[BytesPerS] = math.inf
    downlink_bytes_per_s: BytesPerS | Sequence[BytesPerS] = math.inf
    shown_uplink_bytes_per_s: BytesPerS = 0.0
    shown_downlink_bytes_per_s: BytesPerS = 0.0
    most_connections: float = math.inf
    latitude: float | None = None
    longitude: float | None = None
    open: str | Sequence[str] | None = None
    produces_bytes_per_s: BytesPerS = math.inf
    made_bytes: WholeBytes = 0

    def __repr__(self) -> str:
        """Show what is not as by default."""
        said = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        given = [f"{key}={value!r}" for key, (value, default) in said.items() if value != default]
        return f"Host({', '.join(given)})"


@dataclass(frozen=True)
class Link:
    """An ordered pair of hosts with an estimated available bandwidth.

    Rates and prices may be texts with their units, as in files: ``"10 Gbit/s"``.

    Parameters
    ----------
    from_host, to_host : str
        Names of two different hosts.
    bandwidth_bytes_per_s : float, str, or sequence of these
        One number, or one per period of the problem's ``periods_s``; 0 means no capacity.
    price_per_gb : float or str
        Price per 10^9 bytes in any currency.
    per_connection_bytes_per_s, capacity_bytes_per_s : float or str, optional
        How the rate grows with connections, see `datacollect.problem.connection_rates`: what one
        gets at most, what all get together. The bandwidth is then what one connection gets.
    competitors : float, optional
        How many connections are others'. All three None: a constant.
    open : str or sequence of str, optional
        When it carries data: ``"Mo-Fr 20:00-06:00"``; always by default.
    """

    from_host: str
    to_host: str
    bandwidth_bytes_per_s: BytesPerS | Sequence[BytesPerS]
    price_per_gb: Price = 0.0
    per_connection_bytes_per_s: BytesPerS | None = None
    capacity_bytes_per_s: BytesPerS | None = None
    competitors: float | None = None
    open: str | Sequence[str] | None = None


@dataclass(frozen=True)
class SharedBottleneck:
    """A capacity that several links use together.

    Parameters
    ----------
    name : str
        Unique among shared bottlenecks.
    bandwidth_bytes_per_s : float or str
        What its links carry together; a text has its unit: ``"10 Gbit/s"``.
    links : sequence of (str, str)
        Pairs (from, to); each must be a link of the problem.
    capacity_bytes_per_s : float or str, optional
        Of a wire that gives to each connection: what all get together. The bandwidth is then what
        a single connection of ours gets.
    competitors : float, optional
        How many connections are others'. Both None: a constant.

    Raises
    ------
    ProblemError
        A text is no rate.

    Examples
    --------
    >>> SharedBottleneck("uplink", "8 kbit/s", [("S", "D"), ("T", "D")])
    <SharedBottleneck 'uplink': 1000 bytes/s, 2 links>
    """

    name: str
    bandwidth_bytes_per_s: float
    links: Sequence[tuple[str, str]]
    capacity_bytes_per_s: float | None = None
    competitors: float | None = None

    # Written out, since attributes are numbers where arguments may be texts.
    def __init__(
        self,
        name: str,
        bandwidth_bytes_per_s: BytesPerS,
        links: Sequence[tuple[str, str]],
        capacity_bytes_per_s: BytesPerS | None = None,
        competitors: float | None = None,
    ) -> None:
        where = f"shared bottleneck {name!r}"
        vars(self).update(
            name=name,
            bandwidth_bytes_per_s=in_units(
                bandwidth_bytes_per_s, BANDWIDTH, f"{where}: bandwidth_bytes_per_s"
            ),
            links=links,
            capacity_bytes_per_s=in_units(
                capacity_bytes_per_s, CAPACITY, f"{where}: capacity_bytes_per_s"
            ),
            competitors=in_units(competitors, PART, f"{where}: competitors"),
        )

    def __repr__(self) -> str:
        links = counted(len(self.links), "link")
        return f"<SharedBottleneck {self.name!r}: {self.bandwidth_bytes_per_s:g} bytes/s, {links}>"


@dataclass(frozen=True)
class DailyPeriods:
    """Recurrence: hours of the day at which a forecast's periods start, windows of links.

    Attributes
    ----------
    hours : tuple of str
        In the order of a day, such as ``("08:00", "20:00")``, or of a week, ``("Mo 08:00", …)``;
        none where bandwidths do not change.
    until_s : float
        How far they are unrolled: all starts before are in the problem's ``periods_s``. Where there
        are windows, a last period begins then in which nothing is open: nobody plans with time
        that is not listed. Who needs more asks for more days (`Problem.until`).
    windows : tuple of OpenLinks
        When links are open; always, where nothing says otherwise.
    nominal : NominalRates or None
        What links carry while they are open; None where there are no windows.
    """

    hours: tuple[str, ...]
    until_s: float
    windows: tuple[OpenLinks, ...] = ()
    nominal: NominalRates | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Held:
    """Part of a source's backlog that already lies at another host.

    Parameters
    ----------
    host : str
        Where it lies; at the destination it counts as collected.
    source : str
        Whose backlog it is part of.
    offset_bytes, n_bytes : int or str
        The range within the source's backlog; a text has its unit: ``"10 GB"``.

    Raises
    ------
    ProblemError
        A text is no whole number of bytes.

    Examples
    --------
    >>> Held("D", "S", 0, "5 kB")
    Held(host='D', source='S', offset_bytes=0, n_bytes=5000)
    """

    host: str
    source: str
    offset_bytes: int
    n_bytes: int

    # Written out, since attributes are numbers where arguments may be texts.
    def __init__(
        self, host: str, source: str, offset_bytes: WholeBytes, n_bytes: WholeBytes
    ) -> None:
        # There may be many thousands.
        if type(offset_bytes) is not int or type(n_bytes) is not int:
            where = f"held data of {source!r} at {host!r}"
            offset_bytes = in_units(offset_bytes, RANGE, f"{where}: offset_bytes")
            n_bytes = in_units(n_bytes, RANGE, f"{where}: n_bytes")
        vars(self).update(host=host, source=source, offset_bytes=offset_bytes, n_bytes=n_bytes)


class HeldColumns(NamedTuple):
    """Held data as arrays of shape (n_held,); hosts as indices, -1 where there is no such host."""

    host: IntArray
    source: IntArray
    offset_bytes: IntArray
    n_bytes: IntArray

    @classmethod
    def of(cls, held: Sequence[Held], host_index: Mapping[str, int]) -> HeldColumns:
        """Look up the hosts of held data; numbers beyond 64 bits become -1, which is none."""
        return cls(
            np.array([host_index.get(h.host, -1) for h in held], dtype=np.int64),
            np.array([host_index.get(h.source, -1) for h in held], dtype=np.int64),
            _int64([h.offset_bytes for h in held]),
            _int64([h.n_bytes for h in held]),
        )

    def stored_bytes(self, n_hosts: int) -> IntArray:
        """Return the bytes of others' data at each host."""
        stored = np.zeros(n_hosts, dtype=np.int64)
        others = (self.host != self.source) & (self.host >= 0)
        np.add.at(stored, self.host[others], self.n_bytes[others])
        return stored


def _int64(numbers: list[int]) -> IntArray:
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        return np.array([x if abs(x) < 2**63 else -1 for x in numbers], dtype=np.int64)


class Parcel(NamedTuple):
    """A contiguous range of one source's backlog that lies at a host and has yet to move.

    ``host`` and ``source`` are indices of hosts. They differ where data were held elsewhere.
    """

    host: int
    source: int
    offset_bytes: int
    n_bytes: int
    release_s: float


class ParcelColumns(NamedTuple):
    """The fields of parcels as arrays of shape (n_parcels,)."""

    host: IntArray
    source: IntArray
    offset_bytes: IntArray
    n_bytes: IntArray
    release_s: FloatArray

    @classmethod
    def of(
        cls, backlog_bytes: IntArray, release_s: FloatArray, held: HeldColumns, destination: int
    ) -> ParcelColumns:
        """Return what lies where and has yet to reach `destination`: by host, source and offset.

        What is held elsewhere may move from time 0, the remainder of a backlog from its release on.
        """
        elsewhere = np.flatnonzero((held.n_bytes > 0) & (held.host != held.source))
        # Each backlog's ranges in their order; the last is empty, at its end.
        owners = np.flatnonzero(backlog_bytes)
        host = np.append(held.host[elsewhere], owners)
        source = np.append(held.source[elsewhere], owners)
        start = np.append(held.offset_bytes[elsewhere], backlog_bytes[owners])
        size = np.append(held.n_bytes[elsewhere], np.zeros_like(owners))
        order = np.lexsort((start, source))
        host, source, start, size = host[order], source[order], start[order], size[order]
        # What lies between them is still at the source.
        position = np.zeros_like(start)
        position[1:] = np.where(source[1:] == source[:-1], (start + size)[:-1], 0)
        every = cls(
            host=np.append(source, host),
            source=np.append(source, source),
            offset_bytes=np.append(position, start),
            n_bytes=np.append(start - position, size),
            release_s=np.append(release_s[source], np.zeros(len(source))),
        )
        to_move = every.at((every.n_bytes > 0) & (every.host != destination))
        return to_move.at(np.lexsort((to_move.offset_bytes, to_move.source, to_move.host)))

    def at(self, rows: IntArray | BoolArray) -> ParcelColumns:
        """Return some rows, in that order."""
        return ParcelColumns(
            self.host[rows],
            self.source[rows],
            self.offset_bytes[rows],
            self.n_bytes[rows],
            self.release_s[rows],
        )

    @property
    def parcels(self) -> tuple[Parcel, ...]:
        """One by one."""
        return tuple(map(Parcel, *(column.tolist() for column in self)))
