"""Feeds by UDP in a simulation: sender's, receiver's and guard's cores, a path, a disk, a clock.

What a path may do it does: it loses, delays, reorders and doubles packets, and is cut; the receiver
is killed, and begins again with what it has kept; reports come late, twice, forged; others send
packets there, too; the disk is full. In the end every message is in its place in the file, or
listed as missing.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

from datacollect.feeds.formats.feed_file import DROP_NEW, DROP_OLD, STOP
from datacollect.feeds.formats.packets import HEAD
from datacollect.feeds.formats.udp_settings import BUNCHES, SINGLE, UdpSettings
from datacollect.feeds.udp.drop_sets import dropped
from datacollect.feeds.udp.heads import heads_of
from datacollect.feeds.udp.receiving import Receiving, UdpTerms
from datacollect.feeds.udp.reports import EACH_S, ReceiverReport
from datacollect.feeds.udp.sending import Sending

MESSAGE_BYTES = 8
ODD = (None, [], {}, {"number": 1}, "x", 7)


@dataclass
class Kept:
    """What outlasts the receiver: the file by messages, holes, and up to where both are whole."""

    file: dict[int, bytes] = field(default_factory=dict)
    holes: list[tuple[int, int]] = field(default_factory=list)
    next: int = 0

    def restart(self) -> None:
        """Begin again: holes that were listed after all was whole are not known to be so."""
        self.holes = [
            (first, min(n, self.next - first)) for first, n in self.holes if first < self.next
        ]


class World:
    """One schedule, by a seed."""

    def __init__(self, seed: int, *, is_kind: bool = False) -> None:
        self.rng = rng = random.Random(f"udp feed {seed}")
        self.is_kind = is_kind
        self.now_s, self.order = 0.0, count()
        self.due: list[tuple[float, int, Callable[[], None]]] = []
        self.per_s = rng.choice([20.0, 200.0, 2000.0])
        self.n = rng.choice([0, 1, 50, int(self.per_s * rng.uniform(0.5, 4))])
        # Messages that are made, and packets that are taken, at once.
        self.together, self.taken = rng.choice([1, 1, 7]), rng.choice([1, 1, 5])
        self.arrived: list[bytes] = []
        self.settings = UdpSettings(
            most_loss=rng.choice([0.01, 0.3, 0.9]),
            mean_bunch=rng.choice([1.0, 5.0]),
            drop=rng.choice([0.0, 0.0, 0.065, 0.3]),
            drop_set=rng.choice([SINGLE, BUNCHES]),
            seed=seed,
            reorder=rng.choice([1, 4, 64, 65_536]),
        )
        when_full = rng.choice([STOP, DROP_NEW, DROP_OLD])
        self.loss = 0.0 if is_kind else rng.choice([0.0, 0.001, 0.05, 0.5])
        self.jitter_s = 0.0 if is_kind else rng.choice([0.0, 0.001, 0.05])
        self.twice = 0.0 if is_kind else rng.choice([0.0, 0.02])
        self.sending = Sending(
            *(self.settings, MESSAGE_BYTES, self.per_s, rng.choice([1, 20, 1000]), when_full),
            self.now_s,
        )
        if is_kind:
            self.settings = replace(self.settings, reorder=65_536)
            self.sending = Sending(self.settings, MESSAGE_BYTES, self.per_s, 1000, STOP, self.now_s)
        self.kept = Kept()
        self.connection = 0
        self.receiving: Receiving | None = None
        self.last: dict[int, bytes] = {}
        self.is_over = False

    # What happens when ---------------------------------------------------------------------

    def at(self, after_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self.due, (self.now_s + after_s, next(self.order), do))

    def run(self) -> str | None:
        """Run to the end; return what is wrong, None where nothing is."""
        self.open()
        for i in range(self.n):
            if i % self.together == 0:
                self.at(i / self.per_s, self.make)
        end_s = self.n / self.per_s
        if not self.is_kind:
            for _ in range(self.rng.randrange(4)):
                trouble = self.rng.choice([self.cut, self.kill, self.forge, self.fill_disk])
                self.at(self.rng.uniform(0, end_s + 0.01), trouble)
        while self.due:
            self.now_s, _, do = heapq.heappop(self.due)
            do()
            if self.now_s > end_s + 1 and not self.sending.n_waiting:
                break
        return self.finish(end_s)

    def nonce(self) -> bytes:
        return self.connection.to_bytes(16, "big")

    def open(self) -> None:
        self.connection += 1
        feed = UdpTerms(self.nonce(), MESSAGE_BYTES, self.per_s, 2**62, self.settings.reorder)
        self.receiving = Receiving(feed, self.kept.next, self.now_s)
        self.sending.connected(self.now_s, self.nonce())
        connection = self.connection
        self.at(EACH_S, lambda: self.report(connection))

    def message(self, number: int) -> bytes:
        is_last = number == self.n - 1
        return number.to_bytes(MESSAGE_BYTES, "big")[-(3 if is_last else MESSAGE_BYTES) :]

    def make(self) -> None:
        first = self.sending.made
        numbers = range(first, min(first + self.together, self.n))
        data = b"".join(map(self.message, numbers))
        self.sending.make(data, self.now_s, int(self.now_s * 1e9))
        self.leave()

    def leave(self) -> None:
        size = HEAD.size + MESSAGE_BYTES
        if (row := self.sending.due(self.now_s)) is not None:
            for packet in (bytes(row[at : at + size]) for at in range(0, len(row), size)):
                for _ in range(1 + (self.rng.random() < self.twice)):
                    if self.rng.random() >= self.loss:
                        self.arrive(packet)
        if self.sending.n_waiting:
            self.at(max(self.sending.next_s - self.now_s, 1e-4), self.leave)

    def arrive(self, packet: bytes) -> None:
        self.at(0.01 + self.rng.random() * self.jitter_s, lambda: self.take(packet))

    def take(self, packet: bytes) -> None:
        """Take a packet, with those before that were not taken yet."""
        if self.receiving is None:
            return
        size = HEAD.size + MESSAGE_BYTES
        if len(packet) == size:
            self.arrived.append(packet)
            if len(self.arrived) < self.taken:
                return
            packet = b""
        self.take_arrived()
        if packet:
            self.take_row(packet, max(min(len(packet), size), HEAD.size))

    def take_arrived(self) -> None:
        """Take what has arrived, at once."""
        data, self.arrived = b"".join(self.arrived), []
        if self.receiving is not None and data:
            self.take_row(data, HEAD.size + MESSAGE_BYTES)

    def take_row(self, data: bytes, size: int) -> None:
        assert self.receiving is not None
        heads = heads_of(data, size)
        last_bytes = len(data) - (len(data) - 1) // size * size - HEAD.size
        for place in self.receiving.take(self.now_s, heads, last_bytes):
            for i in range(place.n):
                at, message = (place.at + i) * size, place.message + i
                assert message not in self.last, "written twice"
                self.last[message] = self.kept.file[message] = data[at + HEAD.size : at + size]
        self.keep_holes()

    def keep_holes(self) -> None:
        assert self.receiving is not None
        self.kept.holes += [(run.first, run.n) for run in self.receiving.take_holes()]

    def report(self, connection: int) -> None:
        if connection != self.connection or self.receiving is None:
            return
        self.take_arrived()
        self.keep_holes()
        self.kept.next = self.receiving.decided
        tree = self.receiving.report().to_dict()
        self.at(self.rng.random() * 0.03, lambda: self.hear(connection, tree))
        if not self.is_kind and self.rng.random() < 0.1:
            odd = self.rng.choice([*ODD, tree | {"n_lost": 2**40}, tree | {"n_packets": -1}, tree])
            self.at(self.rng.random() * 0.2, lambda: self.hear(connection, odd))
        self.at(EACH_S, lambda: self.report(connection))

    def hear(self, connection: int, tree: object) -> None:
        if connection == self.connection:
            self.sending.report(self.now_s, ReceiverReport.from_dict(tree))

    # Trouble ---------------------------------------------------------------------------------

    def cut(self) -> None:
        """The connection over TLS ends; both ends see it, and it is opened again later."""
        if self.receiving is not None:
            self.take_arrived()
            self.receiving.end()
            self.keep_holes()
            self.kept.next = self.receiving.decided
        self.lose()

    def kill(self) -> None:
        """The receiver is gone, with what it had not kept."""
        self.kept.restart()
        self.lose()

    def fill_disk(self) -> None:
        """The receiver cannot write, and gives the feed up: as if it was killed."""
        self.kill()

    def lose(self) -> None:
        self.receiving, self.arrived = None, []
        # What lies beyond what is whole counts as missing, whatever the file has there.
        for number in [number for number in self.last if number >= self.kept.next]:
            del self.last[number], self.kept.file[number]
        self.sending.disconnected()
        self.connection += 1
        self.at(self.rng.uniform(0.0, 0.3), self.open_again)

    def open_again(self) -> None:
        if self.receiving is None and not self.is_over:
            self.open()

    def forge(self) -> None:
        rng = self.rng
        for packet in (
            HEAD.pack(rng.randbytes(16), 3, 3, 0) + bytes(MESSAGE_BYTES),
            HEAD.pack(self.nonce(), 2**63, 2, 0) + bytes(MESSAGE_BYTES),
            HEAD.pack(self.nonce(), 2, 2**63, 0) + bytes(MESSAGE_BYTES),
            HEAD.pack(self.nonce(), 2, 2, 0),
            b"",
            rng.randbytes(HEAD.size + MESSAGE_BYTES),
        ):
            self.take_arrived()
            if self.receiving is not None:
                before = self.receiving.n_received, self.receiving.next
                self.take(packet)
                self.take_arrived()
                assert (self.receiving.n_received, self.receiving.next) == before, packet

    # The end ---------------------------------------------------------------------------------

    def finish(self, end_s: float) -> str | None:
        self.is_over = True
        self.now_s = max(self.now_s, end_s + 1)
        if self.receiving is None:
            self.open()
        assert self.receiving is not None
        self.take_arrived()
        self.receiving.end(self.sending.made)
        self.keep_holes()
        missing = [i for first, n in self.kept.holes for i in range(first, first + n)]
        if len(set(missing)) < len(missing):
            return "a message is listed as missing twice"
        if self.sending.made != self.n:
            return f"made {self.sending.made} of {self.n}"
        if sorted([*missing, *self.kept.file]) != list(range(self.n)):
            return "received and missing are not what was made"
        if any(self.kept.file[i] != self.message(i) for i in self.kept.file):
            return "a message is not what was made"
        on_purpose = set(
            dropped(self.settings.drop_set, self.settings.drop, self.settings.seed, self.n)
        )
        if not on_purpose <= set(missing):
            return "something came that was left out"
        if self.is_kind and (set(missing) != on_purpose or self.sending.n_alarms):
            return f"missing {missing[:9]} of a path that loses nothing; {self.sending.not_sent}"
        if len(missing) < self.sending.not_sent.n:
            return "less is missing than was not sent"
        return None


def case(seed: int) -> str | None:
    """Carry out a schedule; return what is wrong."""
    return World(seed, is_kind=seed % 5 == 0).run()
