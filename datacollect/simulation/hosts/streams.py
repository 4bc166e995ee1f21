"""Streams to a simulated host: packets at a constant rate, or frames of a video."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle, islice

from datacollect.errors import ProblemError
from datacollect.simulation.hosts.data_path import Train

NS_PER_S = 10**9
# Trains of packets of one run: each takes some 200 bytes of memory.
MOST_FRAMES = 2_000_000


def kinds_in_order(ratio: tuple[int, int, int]) -> str:
    """Return the frames of a group in their order: as many B before each P as there are for it.

    >>> kinds_in_order((1, 4, 10)), kinds_in_order((1, 5, 11)), kinds_in_order((1, 0, 0))
    ('IBBPBBPBBPBBPBB', 'IBBPBBPBBPBBPBBPB', 'I')
    """
    intra, predicted, between = ratio
    anchors = "I" * intra + "P" * predicted
    shares = [-(-(between - i) // len(anchors)) for i in range(len(anchors))]
    return "".join(kind + "B" * share for kind, share in zip(anchors, shares, strict=True))


@dataclass(frozen=True)
class Stream:
    """Packets that are sent to a host.

    Attributes
    ----------
    trains : tuple of Train
        When they arrive, where the host keeps up.
    frames : dict of int to str
        Of videos: the kind of the frame whose first packet has this number.
    """

    trains: tuple[Train, ...]
    frames: dict[int, str] = field(default_factory=dict)

    @property
    def packets(self) -> int:
        """Return how many there are."""
        return sum(train.packets for train in self.trains)


def constant(every_ns: int, end_ns: int) -> Stream:
    """Return a packet at each multiple of some time.

    >>> constant(10, 35).trains
    (Train(first_ns=10, every_ns=10, packets=3),)
    """
    n = end_ns // every_ns
    return Stream((Train(every_ns, every_ns, n),) if n else ())


def video(
    packets: dict[str, int],
    ratio: tuple[int, int, int],
    period_ns: int,
    end_ns: int,
    wire_ns: int | None = None,
) -> Stream:
    """Return the packets of frames, spread over the period of each; with `wire_ns` back to back.

    Parameters
    ----------
    packets : dict of str to int
        Of frames, by their kind.
    ratio : tuple of int
        How many I, P and B make a group.
    period_ns, end_ns : int
    wire_ns : int, optional
        What a packet takes on the wire.

    Examples
    --------
    >>> video({"I": 2, "P": 1, "B": 1}, (1, 1, 0), period_ns=10, end_ns=20).trains
    (Train(first_ns=5, every_ns=5, packets=2), Train(first_ns=20, every_ns=10, packets=1))
    """
    n_frames = -(-end_ns // period_ns)
    if n_frames > MOST_FRAMES:
        raise ProblemError(
            f"time_s: {n_frames} frames are more than {MOST_FRAMES}, the most of one simulation; "
            "simulate a shorter time"
        )
    trains, frames, number = [], {}, 0
    for i, kind in enumerate(islice(cycle(kinds_in_order(ratio)), n_frames)):
        every_ns = wire_ns or period_ns // packets[kind]
        first_ns = i * period_ns + every_ns
        n = min(packets[kind], max(0, (end_ns - first_ns) // every_ns + 1))
        if n:
            trains.append(Train(first_ns, every_ns, n))
            frames[number] = kind
            number += n
    return Stream(tuple(trains), frames)
