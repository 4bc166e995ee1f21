"""The TCP connections that a tunnel consists of, as the hosts at their ends tell them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.files.units import format_bytes
from datacollect.net.hop_ends import FAR, NEAR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacollect.net.hop_ends import HopEnd


@dataclass(frozen=True)
class Hop:
    """One connection of a route.

    Attributes
    ----------
    start, end : str
        The host that has opened it, and the one that it leads to; the last leads to the service.
    start_side, end_side : HopEnd or None
        Congestion control, buffers asked for and granted, and what may be under way from there;
        None: nobody has told.
    """

    start: str
    end: str
    start_side: HopEnd | None
    end_side: HopEnd | None


class Hops(tuple[Hop, ...]):
    """The connections of a route, from here on; printed as a table.

    Examples
    --------
    >>> from datacollect.net.hop_ends import HopEnd
    >>> end = HopEnd("cubic", 65536, 131072, 131072, 14480)
    >>> last = Hop("S", "S:ssh", end, None)
    >>> hops = Hops([Hop("D", "K", end, end), Hop("K", "S", end, end), last])
    >>> hops.window_bytes, hops.back_window_bytes
    (43440, 28960)
    """

    __slots__ = ()

    @property
    def window_bytes(self) -> int:
        """Return what may be under way towards the service, over all of them.

        The sum of their windows.
        """
        return _sum(hop.start_side for hop in self)

    @property
    def back_window_bytes(self) -> int:
        """The same on the way back."""
        return _sum(hop.end_side for hop in self)

    def __str__(self) -> str:
        lines = []
        for hop in self:
            lines.append(f"{hop.start} → {hop.end}")
            for side in (hop.start_side, hop.end_side):
                host = hop.start if side is hop.start_side else hop.end
                lines.append(f"  at {host}: {'not told' if side is None else _words(side)}")
        there, back = format_bytes(self.window_bytes), format_bytes(self.back_window_bytes)
        lines.append(f"under way at most: {there} there, {back} back")
        return "\n".join(lines)


def hops_of(
    names: Sequence[str], here: HopEnd | None, told: Mapping[str, Mapping[str, HopEnd]]
) -> Hops:
    """Return the connections between hosts, each told by the agents at its ends.

    Parameters
    ----------
    names : sequence of str
        This host, relays, the agent, the service.
    here : HopEnd or None
        What this host's kernel says.
    told : mapping
        By agent, its near and its far end.
    """
    starts = [here, *(told.get(name, {}).get(FAR) for name in names[1:-1])]
    ends = [*(told.get(name, {}).get(NEAR) for name in names[1:-1]), None]
    pairs = zip(names, names[1:], starts, ends, strict=False)
    return Hops(Hop(*each) for each in pairs)


def _words(end: HopEnd) -> str:
    asked = "automatic" if end.asked_bytes is None else f"asked {format_bytes(end.asked_bytes)}"
    window = "" if end.window_bytes is None else f", window {format_bytes(end.window_bytes)}"
    granted = (
        f"{format_bytes(end.send_bytes)} to send, {format_bytes(end.receive_bytes)} to receive"
    )
    return f"{end.congestion}, buffers {asked}, granted {granted}{window}"


def _sum(ends: Iterator[HopEnd | None]) -> int:
    return sum(end.window_bytes or 0 for end in ends if end is not None)
