"""Profiles of machines, small enough to reckon with by hand."""

from __future__ import annotations

from datacollect.machine.parts import GIB, Cost, Nic, Parts, PullUse, Rate
from datacollect.machine.profile import HostProfile, now_text


def cost(work: str, end: str, s_per_gib: float, **more: object) -> Cost:
    """Return a cost that was the same in all repeats."""
    return Cost(work, end, "veth", s_per_gib, s_per_gib, s_per_gib, **more)


def rate(of: str, gib_per_s: float, **more: object) -> Rate:
    """Return a rate that was the same in all repeats."""
    return Rate(of, *3 * (gib_per_s * GIB,), **more)


# Seconds per GiB: TCP 0.5 each end; TLS 2 to send, 3 to receive; 2 to write. The disk writes half
# a GiB per second, memory copies 12.
COSTS = (
    cost("tcp", "sends", 0.5),
    cost("tcp", "receives", 0.5),
    cost("tls", "sends", 2.0),
    cost("tls", "receives", 3.0, own_s_per_gib=2.5),
    cost("disk", "receives", 2.0, own_s_per_gib=1.0),
    cost("udp", "sends", 0.0625, us_per_unit=2.0, unit="packet"),
    cost("udp", "receives", 0.0625, us_per_unit=0.5, unit="packet"),
)
RATES = (
    rate("disk", 0.5),
    rate("memory", 12.0, block_bytes=2**26, at_once=2),
    rate("memory", 90.0, block_bytes=2**14),
    rate("tcp", 1.5, at_once=1),
    rate("tls", 0.25, at_once=1),
)


def profile(
    processors: float = 2,
    costs: tuple[Cost, ...] = COSTS,
    rates: tuple[Rate, ...] = RATES,
    nics: tuple[Nic, ...] = (),
    pulls: tuple[PullUse, ...] = (),
    **more: object,
) -> HostProfile:
    """Return a profile that was measured now."""
    return HostProfile("D", Parts(processors, costs, rates, nics, pulls), now_text(), **more)
