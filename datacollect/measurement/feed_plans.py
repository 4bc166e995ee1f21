"""Answers about feeds: does a source of constant rate keep up over a path, with which transport.

A feed's data go over one connection, or over one for each hop where relays pass them on; each hop
mends its own losses, by its own round trip. What is said after a loss holds *at most*: windows are
often larger than the source needs, and then less is late.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.measurement.feed_models import (
    CUBIC,
    CUBIC_FALLING,
    MSS_BYTES,
    RENO,
    TCP_HEADER_BYTES,
    UDP_HEADER_BYTES,
    Path,
    WindowLaw,
    after_loss,
    bdp_bytes,
    least_spacing_s,
    of_the_wire,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

BBR = "bbr"
UDP = "udp"
LAWS: dict[str, WindowLaw | None] = {RENO.name: RENO, CUBIC.name: CUBIC, BBR: None}
# Of one loss, where the window before it was smaller than before the last one: no law is slower.
FALLING = {CUBIC.name: CUBIC_FALLING}

# What the report advises: "packet loss rates above 15% should be avoided".
MOST_DROPPED = 0.15

# A loss more or less often than this is never seen.
_NEVER_S = 1e9

# SRT sends again what is lost within its latency, which has to last for several round trips.
SRT_ROUND_TRIPS, SRT_LEAST_LATENCY_S = 4, 0.12
SRT_PAYLOAD_BYTES, SRT_PACKET_BYTES = 1316, 1472


@dataclass(frozen=True)
class FeedHop:
    """A hop of a feed, from host to host.

    Attributes
    ----------
    to : str
        Where it leads.
    rtt_s : float
    tcp_bytes_per_s, udp_bytes_per_s : float
        What it carries of data by each.
    loss : float or None
        Part of the packets; None where it is not known.
    """

    to: str
    rtt_s: float
    tcp_bytes_per_s: float
    udp_bytes_per_s: float
    loss: float | None = None

    @classmethod
    def of_wire(
        cls, to: str, rtt_s: float, wire_bytes_per_s: float, loss: float | None = None
    ) -> FeedHop:
        """Return a hop over a wire whose bandwidth counts headers, too."""
        tcp, udp = (
            of_the_wire(wire_bytes_per_s, header) for header in (TCP_HEADER_BYTES, UDP_HEADER_BYTES)
        )
        return cls(to, rtt_s, tcp, udp, loss)


@dataclass(frozen=True)
class TcpAnswer:
    """Prediction of a feed by TCP with one congestion control, over one route.

    Attributes
    ----------
    transport : str
        ``"reno"``, ``"cubic"`` or ``"bbr"``.
    via : tuple of str
        The relays that pass it on.
    in_kernel : bool or None
        Whether this machine's kernel has it; None where that cannot be seen.
    keeps_up : bool
        Whether all hops carry the rate, as often as losses come if that is known.
    worst_delay_s, late_s, buffer_bytes : float or None
        After one loss, at most: the greatest delay of a message, how long until all is timely
        again (infinite: never), and the send buffer that holds what cannot be sent yet. None: no
        model bounds it.
    losses_each_s : float or None
        How often packets are lost; None where that is not known, infinite where none are.
    timely_if_each_s, keeps_up_if_each_s : float or None
        If losses come no more often, all is timely again before the next, or at least no more is
        late with each. None: no model says so.
    lags_bytes_per_s : float
        How much more is late each second where it never keeps up for want of bandwidth.
    no_deficit_bytes_per_s : float or None
        Bandwidth from which on a loss makes no deficit, once the window has grown to it.
    """

    transport: str
    via: tuple[str, ...]
    in_kernel: bool | None
    keeps_up: bool
    worst_delay_s: float | None
    late_s: float | None
    buffer_bytes: float | None
    losses_each_s: float | None
    timely_if_each_s: float | None
    keeps_up_if_each_s: float | None
    lags_bytes_per_s: float
    no_deficit_bytes_per_s: float | None

    @property
    def name(self) -> str:
        """The transport, and over which relays."""
        return self.transport + (f" via {', '.join(self.via)}" if self.via else "")

    @property
    def verdict(self) -> str | None:
        """Say what losses do: ``"timely"`` again after each, ``"late"``, ``"behind"`` ever more."""
        if self.lags_bytes_per_s > 0:
            return "behind"
        if self.losses_each_s is None or self.timely_if_each_s is None:
            return None
        if self.losses_each_s >= self.timely_if_each_s:
            return "timely"
        assert self.keeps_up_if_each_s is not None
        return "late" if self.losses_each_s >= self.keeps_up_if_each_s else "behind"

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree; what is infinite is None, and ``never`` says of what."""
        tree: dict[str, Any] = {
            "transport": self.transport,
            "via": list(self.via),
            "in_kernel": self.in_kernel,
            "keeps_up": self.keeps_up,
            "verdict": self.verdict,
            "worst_delay_s": self.worst_delay_s,
            "late_s": self.late_s,
            "buffer_bytes": self.buffer_bytes,
            "losses_each_s": self.losses_each_s,
            "timely_if_each_s": self.timely_if_each_s,
            "keeps_up_if_each_s": self.keeps_up_if_each_s,
            "lags_bytes_per_s": self.lags_bytes_per_s,
            "no_deficit_bytes_per_s": self.no_deficit_bytes_per_s,
        }
        endless = [
            key for key, value in tree.items() if isinstance(value, float) and math.isinf(value)
        ]
        return {key: None if key in endless else value for key, value in tree.items()} | {
            "never": endless
        }


@dataclass(frozen=True)
class UdpAnswer:
    """Prediction of a feed by UDP, over the direct path.

    Attributes
    ----------
    fits : bool
        Whether the path carries the rate.
    lost : float or None
        The part that is lost if all is sent; None where losses of the path are not known.
    drop : float
        The part to leave out, evenly, so that the rest fits.
    """

    fits: bool
    lost: float | None
    drop: float

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        return {"transport": UDP, "fits": self.fits, "lost": self.lost, "drop": self.drop}


@dataclass(frozen=True)
class FeedPlan:
    """Answers for one feed.

    Attributes
    ----------
    rate_bytes_per_s : float
    direct : FeedHop
    tcp : tuple of TcpAnswer
        Each congestion control, direct and over the relays.
    udp : UdpAnswer
    """

    rate_bytes_per_s: float
    direct: FeedHop
    tcp: tuple[TcpAnswer, ...]
    udp: UdpAnswer

    @property
    def best(self) -> TcpAnswer | None:
        """The answer by TCP whose worst delay is least, of those that keep up; None: none does."""
        known = [one for one in self.tcp if one.keeps_up and one.in_kernel is not False]
        bounded = [one for one in known if one.worst_delay_s is not None]
        return min(bounded or known, key=lambda one: one.worst_delay_s or 0.0, default=None)

    @property
    def keeps_up(self) -> bool:
        """Return whether it keeps up by any transport."""
        return self.best is not None or self.udp.fits

    @property
    def srt_latency_s(self) -> float:
        """Return what SRT needs to send again what is lost."""
        return max(SRT_ROUND_TRIPS * self.direct.rtt_s, SRT_LEAST_LATENCY_S)

    @property
    def srt_command(self) -> str:
        """The command that carries the feed by SRT, with buffers that its latency needs."""
        packets = math.ceil(
            (self.srt_latency_s + self.direct.rtt_s) * self.rate_bytes_per_s / SRT_PAYLOAD_BYTES
        )
        n_bytes = packets * SRT_PACKET_BYTES
        return (
            'srt-live-transmit file://con "srt://HOST:9000?mode=caller'
            f"&latency={math.ceil(self.srt_latency_s * 1000)}"
            f"&sndbuf={n_bytes}&rcvbuf={n_bytes}&fc={max(packets, 25_600)}"
            f'&inputbw={math.ceil(self.rate_bytes_per_s)}&oheadbw=25"'
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        best = self.best
        return {
            "rate_bytes_per_s": self.rate_bytes_per_s,
            "rtt_s": self.direct.rtt_s,
            "tcp_bytes_per_s": self.direct.tcp_bytes_per_s,
            "udp_bytes_per_s": self.direct.udp_bytes_per_s,
            "loss": self.direct.loss,
            "keeps_up": self.keeps_up,
            "best": None if best is None else best.name,
            "transports": [*(one.to_dict() for one in self.tcp), self.udp.to_dict()],
            "srt_latency_s": self.srt_latency_s,
            "srt_command": self.srt_command,
        }


def feed_plan(
    rate_bytes_per_s: float,
    direct: FeedHop,
    relayed: Sequence[FeedHop] = (),
    in_kernel: Sequence[str] | None = None,
) -> FeedPlan:
    """Say what becomes of a source of constant rate over a path, by each transport.

    Parameters
    ----------
    rate_bytes_per_s : float
        What the source makes.
    direct : FeedHop
        The path without relays.
    relayed : sequence of FeedHop
        The hops over relays, the last to the destination; none: there are no relays.
    in_kernel : sequence of str, optional
        The congestion controls of this machine's kernel, where these are known.

    Examples
    --------
    16 Mbit/s over a wire of 20 Mbit/s and 50 ms, by Cubic: late by 0.37 s at most:

    >>> plan = feed_plan(2e6, FeedHop.of_wire("D", 0.05, 2.5e6))
    >>> plan.best.transport, round(plan.best.worst_delay_s, 2)
    ('cubic', 0.37)
    >>> feed_plan(128e6, FeedHop.of_wire("D", 0.01, 125e6)).udp.drop
    0.0654
    """
    answers = []
    for hops in ((direct,), tuple(relayed)) if relayed else ((direct,),):
        via = tuple(hop.to for hop in hops[:-1])
        for transport, law in LAWS.items():
            has = None if in_kernel is None else transport in in_kernel
            answers.append(_tcp_answer(transport, law, rate_bytes_per_s, hops, via, has))
    fits = direct.udp_bytes_per_s >= rate_bytes_per_s
    over = max(1.0 - direct.udp_bytes_per_s / rate_bytes_per_s, 0.0)
    # Upwards, so that what is left fits.
    drop = math.ceil(over * 10_000) / 10_000
    lost = None if direct.loss is None else 1 - (1 - direct.loss) * (1 - over)
    if lost is None and not fits:
        lost = over
    return FeedPlan(rate_bytes_per_s, direct, tuple(answers), UdpAnswer(fits, lost, drop))


def _tcp_answer(
    transport: str,
    law: WindowLaw | None,
    rate: float,
    hops: Sequence[FeedHop],
    via: tuple[str, ...],
    in_kernel: bool | None,
) -> TcpAnswer:
    narrowest = min(hop.tcp_bytes_per_s for hop in hops)
    lags = max(rate - narrowest, 0.0)
    each = [_spacing_s(hop, rate) for hop in hops]
    known = [spacing_s for spacing_s in each if spacing_s is not None]
    # On all hops together; where one is not known, nothing is.
    together = None
    if len(known) == len(each):
        per_s = sum(1 / spacing_s for spacing_s in known)
        together = 1 / per_s if per_s else math.inf
    whole_rtt_s = sum(hop.rtt_s for hop in hops)
    if law is None or lags:
        return TcpAnswer(
            *(transport, via, in_kernel, not lags),
            *(None, None, None),
            *(together, None, None),
            lags,
            None,
        )
    found = []
    for hop in hops:
        path = Path(hop.tcp_bytes_per_s, hop.rtt_s)
        loss = after_loss(FALLING.get(law.name, law), rate, path)
        found.append((hop, loss, least_spacing_s(law, rate, path)))
    # A loss is sent again a round trip of its hop later, what waits meanwhile comes after.
    worst_s = whole_rtt_s / 2 + max(hop.rtt_s + loss.deficit_bytes / rate for hop, loss, _ in found)
    late_s = max(loss.regain_s + hop.rtt_s for hop, loss, _ in found)
    buffer = max(
        loss.deficit_bytes + bdp_bytes(hop.tcp_bytes_per_s, hop.rtt_s) for hop, loss, _ in found
    )
    keeps_each_s = max(spacing_s for _, _, spacing_s in found)
    keeps_up = all(
        spacing is None or spacing >= least_s
        for spacing, (_, _, least_s) in zip(each, found, strict=True)
    )
    return TcpAnswer(
        *(transport, via, in_kernel, keeps_up and not math.isinf(keeps_each_s)),
        *(worst_s, late_s, buffer),
        *(together, late_s, keeps_each_s),
        0.0,
        rate / law.beta,
    )


def _spacing_s(hop: FeedHop, rate: float) -> float | None:
    """Return how many seconds lie between two lost packets of a hop."""
    if hop.loss is None:
        return None
    packets_per_s = rate / MSS_BYTES
    each_s = math.inf if hop.loss == 0 else 1 / (hop.loss * packets_per_s)
    return math.inf if each_s > _NEVER_S else each_s


def require_feed(rate_bytes_per_s: float, rtt_s: float) -> None:
    """Refuse what no feed has: the models follow windows of at least a segment.

    Raises
    ------
    ProblemError
        Less than a packet is under way at a time, or more than any window.
    """
    under_way = bdp_bytes(rate_bytes_per_s, rtt_s)
    if under_way > 1e12:
        raise ProblemError(
            f"the rate times the round trip must be at most 1 TB, got {under_way:.3g} bytes; "
            "check the units of both"
        )
