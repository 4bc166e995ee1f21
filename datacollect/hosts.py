"""What a problem is made of: hosts, links, shared bottlenecks, held data, parcels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Host:
    """A machine that takes part.

    Parameters
    ----------
    name : str
        Unique, not empty.
    backlog_bytes : int
        Bytes that it holds at its release time and that must reach the destination.
    release_s : float
        Instant from which its backlog may leave.
    storage_bytes : int or float
        Room for other hosts' data; infinite by default; 0: never a store-and-forward relay.
    uplink_bytes_per_s, downlink_bytes_per_s : float
        What all links out of it, or into it, carry together; infinite by default.
    """

    name: str
    backlog_bytes: int = 0
    release_s: float = 0.0
    storage_bytes: float = math.inf
    uplink_bytes_per_s: float = math.inf
    downlink_bytes_per_s: float = math.inf


@dataclass(frozen=True)
class Link:
    """An ordered pair of hosts with an estimated available bandwidth.

    Parameters
    ----------
    from_host, to_host : str
        Names of two different hosts.
    bandwidth_bytes_per_s : float or sequence of float
        One number, or one per period of the problem's ``periods_s``; 0 means no capacity.
    price_per_gb : float
        Price per 10^9 bytes in any currency.
    """

    from_host: str
    to_host: str
    bandwidth_bytes_per_s: float | Sequence[float]
    price_per_gb: float = 0.0


@dataclass(frozen=True)
class SharedBottleneck:
    """A capacity that several links use together.

    Parameters
    ----------
    name : str
        Unique among shared bottlenecks.
    bandwidth_bytes_per_s : float
        What its links carry together.
    links : sequence of (str, str)
        Pairs (from, to); each must be a link of the problem.
    """

    name: str
    bandwidth_bytes_per_s: float
    links: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Held:
    """Part of a source's backlog that already lies at another host.

    Parameters
    ----------
    host : str
        Where it lies; at the destination it counts as collected.
    source : str
        Whose backlog it is part of.
    offset_bytes, n_bytes : int
        The range within the source's backlog.
    """

    host: str
    source: str
    offset_bytes: int
    n_bytes: int


@dataclass(frozen=True)
class Parcel:
    """A contiguous range of one source's backlog that lies at a host and has yet to move.

    ``host`` and ``source`` are indices of hosts. They differ where data were held elsewhere.
    """

    host: int
    source: int
    offset_bytes: int
    n_bytes: int
    release_s: float
