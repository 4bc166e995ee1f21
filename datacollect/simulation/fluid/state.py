"""State of the fluid engine: who has which bytes, what moves, and when that changes.

Between two events everything moves at constant rate. A connection's head range takes bytes from
its sending host: bytes that are there (they may end before the range does, at a *gap*), or bytes
that come just now on another connection, its *upstream* one, which it can overtake by no byte.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from datacollect.numbers.byte_ranges import ByteRanges
from datacollect.numbers.tolerances import SAME_INSTANT, SAME_RATE
from datacollect.simulation.fluid.buffers import RelayBuffers
from datacollect.simulation.fluid.parts import FluidConnection, FluidHost, FullRelay, QueuedRange
from datacollect.simulation.fluid.rates import FluidRates

if TYPE_CHECKING:
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.simulation.fluid.wires import FluidNetwork, FluidPath
    from datacollect.simulation.recorder import Recorder


NO_FLOW = -1

# Rows of closed connections are dropped once they are more than the others and than this number:
# each connection is moved a few times at most, however many there are one after the other.
MOST_CLOSED_ROWS = 16

# A range's position is a sum of many steps; nobody waits for less than this.
POSITION_SLACK_BYTES = 0.01
# Plans are in whole bytes, at rates that are right to this share. What is missing of a range for
# no more than that must not wait for a whole period in which nothing moves.
ROUNDED_BYTES, ROUNDED_SHARE = 1.0, 1e-6


class FluidState:
    """Everything that moves. The driver adds connections and ranges, and advances the time."""

    def __init__(
        self,
        network: FluidNetwork,
        recorder: Recorder,
        destination: str,
        relay_buffer_bytes: float = math.inf,
    ) -> None:
        self.network = network
        self.recorder = recorder
        self.now_s = 0.0
        self.hosts: dict[str, FluidHost] = {}
        self.connections: list[FluidConnection] = []  # by row; of those closed, not all
        self._ever: list[FluidConnection] = []
        self._n_closed_rows = 0
        self.flow_rates = FluidRates(network.n_resources, network.background_paths)
        self.n_background = self.flow_rates.n_background
        self.buffers = RelayBuffers(relay_buffer_bytes, network.storage_bytes, destination)
        # One entry per row.
        self.left = np.zeros(0)
        self.gap = np.zeros(0)
        self.rate = np.zeros(0)
        self.gap_closes = np.zeros(0)
        self.active = np.zeros(0, dtype=bool)
        self.upstream = np.zeros(0, dtype=np.int64)
        self.idle_since_s = np.zeros(0)
        # One entry per flow, others' first.
        self.moved_bytes = np.zeros(self.n_background)
        self.all_rates = np.zeros(self.n_background)
        self._dirty: dict[int, FluidConnection] = {}
        self._solved: tuple[object, ...] | None = None
        # What most events leave as it is need not be looked at: no gaps, nobody idle, same rates.
        self._with_gap: set[int] = set()  # by number
        self._any_idle = False
        self._is_stale = True  # rates, for some other reason than a gap or a full relay
        self._divisor = np.zeros(0)  # rates, NaN for 0
        self.refresh_network()

    def host(self, name: str) -> FluidHost:
        """Return a host, a new one at first sight."""
        if name not in self.hosts:
            self.hosts[name] = FluidHost(name, len(self.hosts))
        return self.hosts[name]

    # What the driver does --------------------------------------------------------------------

    def refresh_network(self) -> None:
        """Read capacities and others' flows again."""
        # What rounding leaves before a change must not hide the change.
        soon_s = self.now_s + self.tie_s
        self._capacity = self.network.capacity_bytes_per_s(soon_s)
        self._background_active = self.network.background_active(soon_s)
        self._solved, self._is_stale = None, True

    def add_connection(
        self,
        number: int,
        hosts: tuple[FluidHost, ...],
        path: FluidPath,
        window_bytes: int | None,
    ) -> FluidConnection:
        """Add a connection, not yet open."""
        connection = FluidConnection(number, len(self.connections), hosts, path, window_bytes)
        self.connections.append(connection)
        self._ever.append(connection)
        connection.to_host.incoming[number] = connection
        for name, value in (("left", 0.0), ("gap", math.inf), ("rate", 0.0), ("gap_closes", 0.0)):
            setattr(self, name, np.append(getattr(self, name), value))
        self._divisor = np.append(self._divisor, math.nan)
        self.active = np.append(self.active, np.False_)
        self.upstream = np.append(self.upstream, NO_FLOW)
        self.idle_since_s = np.append(self.idle_since_s, math.inf)
        self.moved_bytes = np.append(self.moved_bytes, 0.0)
        self.all_rates = np.append(self.all_rates, 0.0)
        self.buffers.add_connection()
        self._is_stale = True
        return connection

    def enqueue(self, connection: FluidConnection, queued: QueuedRange) -> None:
        """Queue a range."""
        connection.queue.append(queued)
        connection.queued_bytes += queued.n_bytes
        if len(connection.queue) == 1:
            self._new_head(connection)

    def opened(self, connection: FluidConnection) -> None:
        """Let a connection carry data."""
        connection.is_open = True
        self._dirty[connection.number] = connection

    def put(self, host: str, source: str, offset_bytes: int, n_bytes: int) -> None:
        """Let data be at a host that were not moved there."""
        here = self.host(host)
        here.ranges(source).add(offset_bytes, n_bytes)
        self.recorder.put(host, source, self.now_s, n_bytes)
        self.buffers.put(here, source, n_bytes)
        self._dirty |= here.dependents

    def gone(self, connection: FluidConnection) -> int:
        """Take a connection away; return how much of its head has arrived, and stays there."""
        connection.is_gone, connection.is_open = True, False
        self._n_closed_rows += 1
        del connection.to_host.incoming[connection.number]
        done_bytes = 0
        if connection.queue:
            head = connection.queue[0]
            self._flush(connection)
            done_bytes = int(head.n_bytes - self.left[connection.index] + 1e-6)
            self._book(connection, head, done_bytes)
            connection.queue.clear()
            connection.queued_bytes = 0
            self._new_head(connection)
        self._dirty[connection.number] = connection
        self._dirty |= connection.to_host.dependents
        return done_bytes

    def finished(self, connection: FluidConnection) -> QueuedRange:
        """Take a connection's head off its queue: all of it has left."""
        self.left[connection.index] = 0.0
        self._flush(connection)
        head = connection.queue.popleft()
        connection.queued_bytes -= head.n_bytes
        self._book(connection, head, head.n_bytes)
        self._new_head(connection)
        self._dirty |= connection.to_host.dependents
        return head

    def lose(self, host: FluidHost) -> None:
        """Lose a host and all on it; its connections are gone already."""
        host.is_lost = True
        host.arrived.clear()
        self.recorder.lost(host.name, self.now_s)
        self.buffers.lose(host)

    # Time ------------------------------------------------------------------------------------

    @property
    def tie_s(self) -> float:
        """Return what is so near is now."""
        return SAME_INSTANT * max(abs(self.now_s), 1e-3)

    def next_s(self, stall_s: float) -> float:
        """Return when something here happens next if nothing else does."""
        if not len(self.left):
            return math.inf
        drains_s = float(np.fmin.reduce(self.left / self._divisor, initial=math.inf))
        closes_s = math.inf
        if self._with_gap:
            with np.errstate(divide="ignore", invalid="ignore"):
                closing = np.where(self.gap_closes > 0, self.gap / self.gap_closes, math.inf)
            closes_s = float(closing.min())
        soonest_s = self.now_s + max(0.0, min(drains_s, closes_s, self.buffers.next_s()))
        if not self._any_idle:
            return soonest_s
        return min(soonest_s, float(self.idle_since_s.min()) + stall_s)

    def advance(self, to_s: float) -> None:
        """Move everything on."""
        passed_s = to_s - self.now_s
        self.now_s = to_s
        if passed_s > 0:
            self.left -= self.rate * passed_s
            if self._with_gap:
                self.gap -= self.gap_closes * passed_s
            self.moved_bytes += self.all_rates * passed_s
            self.buffers.advance(passed_s)

    def drained(self) -> list[FluidConnection]:
        """Return the connections whose heads have left entirely."""
        due = self.left <= self._divisor * self.tie_s
        return [self.connections[i] for i in due.nonzero()[0].tolist()]

    def all_but_drained(self) -> list[FluidConnection]:
        """Return the connections whose heads have left but for what plans round."""
        least = np.maximum(ROUNDED_BYTES, self.rate * (ROUNDED_SHARE * self.now_s))
        due = (self.rate > 0) & (self.left < least)
        return [self.connections[i] for i in np.flatnonzero(due).tolist()]

    def stalled(self, stall_s: float) -> list[FluidConnection]:
        """Return the connections that have not moved for the stall time; each stall once."""
        if not self._any_idle:
            return []
        due = np.flatnonzero(self.idle_since_s + stall_s <= self.now_s + self.tie_s)
        self.idle_since_s[due] = math.inf
        return [self.connections[i] for i in due.tolist()]

    def settle(self) -> None:
        """Find out what each connection can do after what has happened, and the rates."""
        if self._with_gap:
            at_gap = (self.gap_closes > 0) & (self.gap <= self.gap_closes * self.tie_s)
            for i in np.flatnonzero(at_gap).tolist():
                self._dirty[self.connections[i].number] = self.connections[i]
        while self._dirty:
            _, connection = self._dirty.popitem()
            if self._evaluate(connection):
                self._dirty |= connection.to_host.dependents
        if self._is_stale or self._with_gap or self.buffers.any_bounded:
            self._solve()
        if self._n_closed_rows > max(MOST_CLOSED_ROWS, len(self.connections) // 2):
            self._drop_closed_rows()

    def carried_bytes(self) -> FloatArray:
        """Return what has passed each resource."""
        for row, connection in enumerate(self.connections):
            connection.moved_bytes = float(self.moved_bytes[self.n_background + row])
        paths = [*self.network.background_paths, *(c.path for c in self._ever)]
        others = self.moved_bytes[: self.n_background]
        moved = np.concatenate([others, [c.moved_bytes for c in self._ever]])
        uses = np.array([r for path in paths for r in path.resources], dtype=np.int64)
        by_use = np.repeat(moved, [len(path.resources) for path in paths])
        carried = np.bincount(uses, weights=by_use, minlength=self.network.n_resources)
        return carried.astype(np.float64)

    # ------------------------------------------------------------------------------------------

    def _drop_closed_rows(self) -> None:
        """Move the rows of those that are not closed together; nothing flows from the others."""
        n = self.n_background
        row_now = np.full(len(self.connections) + 1, NO_FLOW)  # the last one stands for none
        kept: list[FluidConnection] = []
        for row, connection in enumerate(self.connections):
            if connection.is_gone:
                connection.moved_bytes = float(self.moved_bytes[n + row])
                continue
            row_now[row] = connection.index = len(kept)
            kept.append(connection)
        rows = np.flatnonzero(row_now >= 0)
        flows = np.concatenate([np.arange(n), n + rows])
        for name in ("left", "gap", "rate", "gap_closes", "active", "idle_since_s"):
            setattr(self, name, getattr(self, name)[rows])
        self.upstream = row_now[self.upstream[rows]]
        self.moved_bytes, self.all_rates = self.moved_bytes[flows], self.all_rates[flows]
        self.buffers.keep(rows)
        self.flow_rates.keep(flows)
        self.connections, self._n_closed_rows, self._solved = kept, 0, None
        self._divisor = self._divisor[rows]
        self._is_stale = True

    def _new_head(self, connection: FluidConnection) -> None:
        i = connection.index
        self.left[i] = connection.queue[0].n_bytes if connection.queue else 0.0
        connection.since_s, connection.since_left = self.now_s, float(self.left[i])
        self.buffers.new_head(connection)
        self._dirty[connection.number] = connection
        # The next range starts without a pause: those behind it look again.
        self._dirty |= connection.to_host.dependents
        if not connection.queue:
            self.rate[i], self._divisor[i] = 0.0, math.nan
            self._is_stale = True

    def _evaluate(self, connection: FluidConnection) -> bool:
        """Find where a head's next bytes come from; return whether it began or ceased to move."""
        i, host = connection.index, connection.from_host
        was_active, head = bool(self.active[i]), None
        if connection.is_open and connection.queue:
            head = connection.queue[0]
            gap, upstream = self._supply(connection, head)
        else:
            gap, upstream = math.inf, None
        active = head is not None and gap >= 0
        self.gap[i] = gap if active else math.inf
        self.gap_closes[i] = 0.0
        self.upstream[i] = upstream.index if upstream else NO_FLOW
        self.active[i] = active
        if active != was_active:
            self._is_stale = True
        had_gap = connection.number in self._with_gap
        if active and gap < math.inf:
            self._with_gap.add(connection.number)
        elif had_gap:
            self._with_gap.remove(connection.number)
            self._is_stale = True
        if head is None or gap == math.inf:
            host.dependents.pop(connection.number, None)
        else:
            host.dependents[connection.number] = connection
        return active != was_active

    def _supply(
        self, connection: FluidConnection, head: QueuedRange
    ) -> tuple[float, FluidConnection | None]:
        """Bytes until the next gap (infinite: none before its end), and who brings more.

        A gap of -1: its next byte is not there and not under way.
        """
        i, host = connection.index, connection.from_host
        position = head.end_bytes - float(self.left[i])
        slack = POSITION_SLACK_BYTES + 1e-12 * head.n_bytes + 2 * float(self.rate[i]) * self.tie_s
        here = host.arrived.get(head.source)
        end = here.end_after(min(position + slack, head.end_bytes - 1)) if here else None
        if end is not None:
            return (math.inf if end >= head.end_bytes else end - position), None
        best, furthest = None, -1.0
        for other in host.incoming.values():
            if self.active[other.index] and other.queue and other.queue[0].source == head.source:
                incoming = other.queue[0]
                reached = incoming.end_bytes - float(self.left[other.index])
                covers = incoming.offset_bytes - slack <= position
                covers = covers and position <= incoming.end_bytes - min(slack, 0.5)
                if covers and reached >= max(position - slack, furthest):
                    best, furthest = other, reached
        if best is None:
            return -1.0, None
        head.behind_s = max(head.behind_s, best.queue[0].behind_s + best.path.delay_s)
        gap = furthest - position
        return (0.0 if gap <= slack else gap), best

    def _solve(self) -> None:
        n = self.n_background
        waits = (self.upstream >= 0) & (self.gap <= 0)
        upstream = np.full(n + len(self.rate), NO_FLOW)
        upstream[n:][waits] = self.upstream[waits] + n
        self._find_rates(waits, upstream)
        while self.buffers.set_rates(self.rate):
            self._find_rates(waits, upstream)
        brought = np.where(self.upstream >= 0, self.rate[self.upstream], 0.0)
        closes = self.rate - brought
        closes[waits & (np.abs(closes) <= SAME_RATE * brought)] = 0.0
        closes[self.gap == math.inf] = 0.0
        self.gap_closes = closes
        self._divisor = np.where(self.rate > 0, self.rate, math.nan)
        self._any_idle = bool((self.idle_since_s < math.inf).any())
        self._is_stale = False

    def _find_rates(self, waits: BoolArray, upstream: IntArray) -> None:
        """Share the network out, unless all is as it was the last time."""
        n, full = self.n_background, self.buffers.full(self.active)
        at_full = [flows.tobytes() for relay in full for flows in relay]
        solved = (self.active.tobytes(), upstream.tobytes(), len(self.rate), *at_full)
        if solved == self._solved:
            self.rate[:] = self.all_rates[n:]
            return
        self._solved = solved
        self._set_rates(
            self.flow_rates.rates(
                self._capacity,
                np.concatenate([self._background_active, self.active]),
                upstream,
                [FullRelay(relay.brings + n, relay.takes + n) for relay in full],
            )
        )
        idle = self.active & (self.rate <= 0) & ~waits
        for relay in full:
            idle[relay.brings] = False
        since_s = np.minimum(self.idle_since_s, self.now_s)
        self.idle_since_s = np.where(idle, since_s, math.inf)

    def _set_rates(self, all_rates: FloatArray) -> None:
        rate = all_rates[self.n_background :]
        old = self.all_rates[self.n_background :]
        # Rounding alone starts no new stretch in the records.
        changed = np.abs(rate - old) > SAME_RATE * old
        for i in np.flatnonzero(changed | (self.rate != old)).tolist():
            self._flush(self.connections[i])
        self.all_rates = all_rates
        self.rate = rate.copy()

    def _flush(self, connection: FluidConnection) -> None:
        """Note what the head moved since the last note."""
        left = float(self.left[connection.index])
        n_bytes = connection.since_left - left
        if n_bytes > 0:
            connection.queue[0].moves.append((connection.since_s, self.now_s, n_bytes))
        connection.since_s, connection.since_left = self.now_s, left

    def _book(self, connection: FluidConnection, head: QueuedRange, done_bytes: int) -> None:
        """Count what has moved at both ends, each byte once however often it is sent."""
        moved_bytes = sum(n for _, _, n in head.moves)
        stored_bytes = freed_bytes = 0
        if done_bytes > 0:
            tail = connection.from_host.departed.setdefault(head.source, ByteRanges())
            freed_bytes = tail.add(head.offset_bytes, done_bytes)
            there = connection.to_host.ranges(head.source)
            stored_bytes = there.add(head.offset_bytes, done_bytes)
        self.buffers.booked(
            connection, head.source, stored_bytes - moved_bytes, freed_bytes - moved_bytes
        )
        if done_bytes <= 0 or moved_bytes <= 0:
            return
        freed, stored = freed_bytes / moved_bytes, stored_bytes / moved_bytes
        whole = done_bytes / moved_bytes  # 1 but for rounding
        for start_s, finish_s, n in head.moves:
            self.recorder.moved(
                connection.number,
                head.source,
                start_s,
                finish_s,
                n * whole,
                stored_bytes=n * stored,
                freed_bytes=n * freed,
            )
