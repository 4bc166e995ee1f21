"""Parts of the fluid engine: hosts, connections with their queues, full relays."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from datacollect.numbers.byte_ranges import ByteRanges

if TYPE_CHECKING:
    from datacollect.numbers.arrays import IntArray
    from datacollect.simulation.fluid.wires import FluidPath


@dataclass(slots=True, eq=False)
class QueuedRange:
    """A range on a connection, and at what times which part of it moved.

    What comes before it of the range that was asked for, `skipped_bytes`, was at the receiver.
    """

    source: str
    offset_bytes: int
    n_bytes: int
    skipped_bytes: int = 0
    behind_s: float = 0.0  # delays of the hops before, where it was passed on as it came
    moves: list[tuple[float, float, float]] = field(default_factory=list)

    @property
    def end_bytes(self) -> int:
        """Position after its last byte."""
        return self.offset_bytes + self.n_bytes


@dataclass(slots=True, eq=False)
class FluidHost:
    """Data of a host, and what waits for it."""

    name: str
    number: int
    arrived: dict[str, ByteRanges] = field(default_factory=dict)
    departed: dict[str, ByteRanges] = field(default_factory=dict)
    incoming: dict[int, FluidConnection] = field(default_factory=dict)
    # Connections out of it that wait for bytes, or will before their heads have left.
    dependents: dict[int, FluidConnection] = field(default_factory=dict)
    is_lost: bool = False

    def ranges(self, source: str) -> ByteRanges:
        """Return what of a source has arrived."""
        return self.arrived.setdefault(source, ByteRanges())


@dataclass(slots=True, eq=False)
class FluidConnection:
    """A connection and its queue; `index` is its row, `number` is the controller's.

    Of a chain, which is one to all but its path, `hosts` has the relays, too.
    """

    number: int
    index: int
    hosts: tuple[FluidHost, ...]
    path: FluidPath
    window_bytes: int | None
    queue: deque[QueuedRange] = field(default_factory=deque)
    queued_bytes: int = 0
    is_open: bool = False
    is_closing: bool = False
    is_gone: bool = False
    since_s: float = 0.0
    since_left: float = 0.0
    moved_bytes: float = 0.0  # once its row is dropped
    from_host: FluidHost = field(init=False)
    to_host: FluidHost = field(init=False)

    def __post_init__(self) -> None:
        self.from_host, self.to_host = self.hosts[0], self.hosts[-1]


class FullRelay(NamedTuple):
    """Flows that bring others' data to a full relay, and those that take them away."""

    brings: IntArray
    takes: IntArray
