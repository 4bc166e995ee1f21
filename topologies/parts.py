"""Parts of a topology: nodes and wires."""

from __future__ import annotations

from dataclasses import dataclass

from datacollect.topologies.rules import DEFAULT_QUEUE_PACKETS


@dataclass(frozen=True)
class Node:
    """A router or an end host.

    Parameters
    ----------
    name : str
        Unique, not empty.
    kind : str
        ``"transit"``, ``"stub"``, ``"router"``, ``"external"`` or ``"host"``. A host hangs on one
        wire and forwards nothing.
    domain : str
        The routing domain that it belongs to; empty for none.
    """

    name: str
    kind: str = "router"
    domain: str = ""


@dataclass(frozen=True)
class Wire:
    """A line between two nodes, used in both directions.

    Parameters
    ----------
    a, b : str
        Names of its ends.
    rate_bytes_per_s : float or (float, float)
        Of each direction, or from `a` to `b` and back; > 0.
    delay_s : float
        Propagation time from end to end, the same in both directions; >= 0.
    queue_packets : int or (int, int)
        Packets that wait before the wire at most, at both ends or at `a` and at `b`; >= 1.
    kind : str
        ``"peering"``, ``"transit"``, ``"transit-stub"``, ``"stub"``, ``"backbone"`` or
        ``"access"``.
    name : str
        Unique; by default the names of its ends, ``"a-b"``.
    """

    a: str
    b: str
    rate_bytes_per_s: float | tuple[float, float]
    delay_s: float
    queue_packets: int | tuple[int, int] = DEFAULT_QUEUE_PACKETS
    kind: str = "backbone"
    name: str = ""
