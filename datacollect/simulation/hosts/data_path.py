"""Data path of a simulated host: packets pass its card, and its kernel takes one after the other.

All times are whole nanoseconds. Nothing is done packet by packet: trains of packets at equal
distances become runs that the kernel takes at equal distances. At one instant the kernel's work on
a packet ends first, then packets arrive; a job reads last.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Train(NamedTuple):
    """Packets that arrive, or are due, at equal distances.

    Attributes
    ----------
    first_ns : int
    every_ns : int
    packets : int
    """

    first_ns: int
    every_ns: int
    packets: int


class Places(NamedTuple):
    """Places of packets in their train, ``ceil((offset + i * step) / per)`` for i = 0, 1, ...

    With ``per=1`` these are all from `offset` on, or each `step`-th. Other numbers are what a card
    accepts that is full: the first packet after each of the instants at which a place is free.

    >>> [Places(5, 3, 2).at(i) for i in range(4)], Places(5, 3, 2).total(4)
    ([3, 4, 6, 7], 20)
    """

    offset: int = 0
    step: int = 1
    per: int = 1

    def at(self, i: int) -> int:
        """Return the place of the i-th packet."""
        return -(-(self.offset + i * self.step) // self.per)

    def up_to(self, place: int) -> int:
        """Return how many packets have this place or one before it."""
        return max(0, (place * self.per - self.offset) // self.step + 1)

    def total(self, count: int) -> int:
        """Return the sum of the first places."""
        return floor_sum(count, self.per, self.step, self.offset + self.per - 1)


ALL = Places()


def floor_sum(count: int, per: int, step: int, offset: int) -> int:
    """Return the sum of ``(offset + i * step) // per`` over i below `count`, by Euclid's algorithm.

    >>> floor_sum(4, 2, 3, 6) == sum((6 + 3 * i) // 2 for i in range(4))
    True
    """
    total = 0
    while count > 0:
        total += count * (count - 1) // 2 * (step // per) + count * (offset // per)
        step, offset = step % per, offset % per
        last = offset + step * count
        count, offset, per, step = last // per, last % per, step, per
        if per == 0:
            break
    return total


@dataclass(slots=True)
class Run:
    """Packets of a train that the kernel takes at equal distances.

    Attributes
    ----------
    train : Train
    number : int
        Of the train's first packet, counted over all trains.
    places : Places
        Which of the train's packets these are.
    first_ns, every_ns : int
        When the kernel's work on the first ends, and how much later that on each other.
    packets : int
    last_ns : int
        When its work on the last ends.
    """

    train: Train
    number: int
    places: Places
    first_ns: int
    every_ns: int
    packets: int
    last_ns: int = 0

    def __post_init__(self) -> None:
        self.last_ns = self.first_ns + (self.packets - 1) * self.every_ns

    def number_of(self, i: int) -> int:
        """Return the number of the i-th packet of these."""
        return self.number + self.places.at(i)

    def ended_by(self, time_ns: int) -> int:
        """Return on how many packets the kernel's work has ended."""
        return min(self.packets, max(0, (time_ns - self.first_ns) // self.every_ns + 1))

    def ends_total(self, begin: int, end: int) -> int:
        """Return the sum of the instants at which the work on some of its packets ends."""
        n = end - begin
        return n * (self.first_ns + begin * self.every_ns) + self.every_ns * (n * (n - 1) // 2)

    def arrived_by(self, time_ns: int) -> int:
        """Return how many of its packets have arrived."""
        place = (time_ns - self.train.first_ns) // self.train.every_ns
        return min(self.packets, self.places.up_to(place)) if place >= 0 else 0

    def arrivals_total(self, count: int) -> int:
        """Return the sum of the instants at which its first packets arrive."""
        return count * self.train.first_ns + self.train.every_ns * self.places.total(count)


@dataclass(frozen=True, slots=True)
class CardLoss:
    """Packets of a train that the card has no place for: all of a range but those it accepts.

    Attributes
    ----------
    train : Train
    number : int
        Of the train's first packet.
    first, last : int
        Places of the first and the last that are lost.
    accepted : Places
    n_accepted : int
        How many of the range the card accepts.
    """

    train: Train
    number: int
    first: int
    last: int
    accepted: Places = ALL
    n_accepted: int = 0

    @property
    def packets(self) -> int:
        """Return how many are lost."""
        return self.last - self.first + 1 - self.n_accepted

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of those that are lost."""
        before = self.accepted.up_to(self.last) if self.n_accepted else 0
        kept = {self.accepted.at(i) for i in range(before - self.n_accepted, before)}
        return (self.number + i for i in range(self.first, self.last + 1) if i not in kept)


def through_card(
    trains: Sequence[Train], kernel_ns: int, slots: int
) -> tuple[list[Run], list[CardLoss]]:
    """Return the runs that the kernel takes, and what the card loses.

    Parameters
    ----------
    trains : sequence of Train
        One after the other.
    kernel_ns : int
        What the kernel's work on one packet takes; it takes the next as soon as that has ended.
    slots : int
        How many packets the card has room for; one is there until the kernel's work on it ends.

    Examples
    --------
    A packet each 2 ns, 3 ns each, room for two: the fifth finds none.

    >>> runs, losses = through_card([Train(2, 2, 6)], kernel_ns=3, slots=2)
    >>> [(run.first_ns, run.every_ns, run.packets) for run in runs], list(losses[0].numbers())
    ([(5, 3, 4), (17, 3, 1)], [4])
    """
    card = _Card(kernel_ns, slots)
    number = 0
    for train in trains:
        card.take(train, number)
        number += train.packets
    return card.runs, card.losses


class _Card:
    """Bytes that the card has taken: `until_ns` is when the kernel's work on all of it ends."""

    def __init__(self, kernel_ns: int, slots: int) -> None:
        self.kernel_ns, self.slots = kernel_ns, slots
        self.runs: list[Run] = []
        self.losses: list[CardLoss] = []
        self.until_ns = 0

    def take(self, train: Train, number: int) -> None:
        """Take a train that begins no earlier than all before it have arrived."""
        first_ns, every_ns, count = train
        spare_ns = every_ns - self.kernel_ns
        place = self._first_that_fits(train, number)
        while place < count:
            arrival_ns = first_ns + place * every_ns
            behind_ns = self.until_ns - arrival_ns
            if spare_ns < 0:
                self._overtaken(train, number, place)
                return
            if behind_ns <= 0:
                self._add(train, number, Places(place), arrival_ns, every_ns, count - place)
                return
            # It has been behind since an earlier train, and catches up.
            n = -(-behind_ns // spare_ns) if spare_ns else count
            n = min(n, count - place)
            self._add(train, number, Places(place), self.until_ns, self.kernel_ns, n)
            place += n

    def _first_that_fits(self, train: Train, number: int) -> int:
        """Return the place of the first packet that finds room; those before it are lost."""
        behind_ns = self.until_ns - (self.slots - 1) * self.kernel_ns - train.first_ns
        place = min(train.packets, max(0, -(-behind_ns // train.every_ns)))
        if place:
            self.losses.append(CardLoss(train, number, 0, place - 1))
        return place

    def _overtaken(self, train: Train, number: int, place: int) -> None:
        """Take what arrives faster than the kernel works: the card fills, then loses some."""
        first_ns, every_ns, count = train
        if self.slots == 1:
            self._each_so_many(train, number, place)
            return
        arrival_ns = first_ns + place * every_ns
        start_ns = max(self.until_ns, arrival_ns)
        lead_ns = (self.slots - 1) * self.kernel_ns
        n = (arrival_ns + lead_ns - start_ns) // (self.kernel_ns - every_ns) + 1
        n = min(n, count - place)
        self._add(train, number, Places(place), start_ns, self.kernel_ns, n)
        place += n
        if place == count:
            return
        free_ns = self.until_ns - lead_ns - first_ns
        accepted = Places(free_ns, self.kernel_ns, every_ns)
        n = accepted.up_to(count - 1)
        if n:
            self._add(train, number, accepted, self.until_ns, self.kernel_ns, n)
        self._lose(train, number, place, accepted, n)

    def _each_so_many(self, train: Train, number: int, place: int) -> None:
        """Take each so-manieth packet: there is room for the one that is worked on."""
        first_ns, every_ns, count = train
        step = -(-self.kernel_ns // every_ns)
        accepted = Places(place, step)
        n = accepted.up_to(count - 1)
        self._add(train, number, accepted, first_ns + place * every_ns, step * every_ns, n)
        self._lose(train, number, place, accepted, n)

    def _lose(self, train: Train, number: int, place: int, accepted: Places, n: int) -> None:
        """Note what is lost from a place on, where n packets of these are accepted."""
        # Accepted places grow by one or more: as long as by one, nothing between them is lost.
        ahead = range(n)
        first_gap = bisect_left(ahead, 1, key=lambda i: accepted.at(i) - place - i)
        first, last = place + first_gap, train.packets - 1
        before = first_gap
        if n and accepted.at(n - 1) == last:
            level = last - (n - 1)
            trailing = bisect_left(ahead, level, key=lambda i: accepted.at(i) - i)
            last = accepted.at(trailing) - 1
            n = trailing
        if first <= last:
            self.losses.append(CardLoss(train, number, first, last, accepted, n - before))

    def _add(
        self, train: Train, number: int, places: Places, start_ns: int, every_ns: int, n: int
    ) -> None:
        run = Run(train, number, places, start_ns + self.kernel_ns, every_ns, n)
        self.runs.append(run)
        self.until_ns = run.last_ns


class Window:
    """A sender that stops where the receiver's buffer has no room for more: TCP on a short path.

    It sends what is due, and what it is behind with as fast as the wire and the kernel go; nothing
    is lost. What the reader takes is room for as much more, at once.

    Parameters
    ----------
    trains : sequence of Train
        When packets are due.
    kernel_ns, wire_ns : int
        What a packet takes in the kernel, and on the wire.
    room : int
        Packets that the buffer of the kernel has room for.
    """

    def __init__(self, trains: Sequence[Train], kernel_ns: int, wire_ns: int, room: int) -> None:
        self.runs: list[Run] = []
        self._trains = list(trains)
        self._kernel_ns, self._least_ns = kernel_ns, max(wire_ns, kernel_ns)
        self._at = self._place = self._number = 0
        self._next_ns = 0
        self.opens(0, room)

    def opens(self, time_ns: int, room: int) -> None:
        """Send as many packets more, from an instant on."""
        while room and self._at < len(self._trains):
            first_ns, every_ns, count = self._trains[self._at]
            due_ns = first_ns + self._place * every_ns
            start_ns = max(due_ns, self._next_ns, time_ns)
            n, apart_ns = min(room, count - self._place), self._least_ns
            if start_ns == due_ns and every_ns >= apart_ns:
                apart_ns = every_ns
            elif every_ns > apart_ns:
                n = min(n, -(-(start_ns - due_ns) // (every_ns - apart_ns)))
            self._send(start_ns, apart_ns, n)
            self._next_ns = start_ns + (n - 1) * apart_ns + self._least_ns
            room -= n
            self._place += n
            if self._place == count:
                self._at, self._place = self._at + 1, 0

    def _send(self, start_ns: int, apart_ns: int, n: int) -> None:
        train = Train(start_ns, apart_ns, n)
        end_ns = start_ns + self._kernel_ns
        self.runs.append(Run(train, self._number, Places(), end_ns, apart_ns, n))
        self._number += n


class CardTotals(NamedTuple):
    """Totals of card and kernel at an instant.

    `card_ns` is packets times the nanoseconds for which the card has held them.
    """

    accepted: int
    taken: int
    card_ns: int
    busy_ns: int


class CardMeter:
    """Adds up what card and kernel do, from instant to instant.

    Parameters
    ----------
    runs : sequence of Run
        It may grow, by packets that arrive later.
    kernel_ns : int
    """

    def __init__(self, runs: Sequence[Run], kernel_ns: int) -> None:
        self._runs, self._kernel_ns, self._at = runs, kernel_ns, 0
        # Of runs that have ended: packets, and the sums of the instants of arrivals and ends.
        self._packets = self._arrivals = self._ends = 0

    def go_to(self, time_ns: int) -> CardTotals:
        """Return the totals at an instant, which is no earlier than the last."""
        while self._at < len(self._runs) and self._runs[self._at].last_ns <= time_ns:
            run = self._runs[self._at]
            self._packets += run.packets
            self._arrivals += run.arrivals_total(run.packets)
            self._ends += run.ends_total(0, run.packets)
            self._at += 1
        accepted = taken = self._packets
        moment, busy_ns = self._ends - self._arrivals, taken * self._kernel_ns
        for i in range(self._at, len(self._runs)):
            run = self._runs[i]
            arrived, ended = run.arrived_by(time_ns), run.ended_by(time_ns)
            if not arrived:
                break
            accepted, taken = accepted + arrived, taken + ended
            moment += run.ends_total(0, ended) - run.arrivals_total(arrived)
            busy_ns += ended * self._kernel_ns
            if ended < run.packets:
                begins_ns = run.first_ns + ended * run.every_ns - self._kernel_ns
                busy_ns += min(self._kernel_ns, max(0, time_ns - begins_ns))
        return CardTotals(accepted, taken, moment + time_ns * (accepted - taken), busy_ns)


class Arrivals:
    """Counts the packets of trains that have arrived, or are due, from instant to instant.

    >>> arrivals = Arrivals([Train(10, 10, 3), Train(50, 1, 4)])
    >>> arrivals.go_to(9), arrivals.go_to(20), arrivals.go_to(51)
    (0, 2, 5)
    """

    def __init__(self, trains: Sequence[Train]) -> None:
        self._trains, self._at, self._before = trains, 0, 0

    def go_to(self, time_ns: int) -> int:
        """Return how many have by an instant, which is no earlier than the last."""
        while self._at < len(self._trains):
            first_ns, every_ns, count = self._trains[self._at]
            n = min(count, max(0, (time_ns - first_ns) // every_ns + 1))
            if n < count:
                return self._before + n
            self._before += count
            self._at += 1
        return self._before
