"""The contract on storage: other hosts' bytes at a relay, in pipelines and in slots."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from judges.contract_moves import RELATIVE, WRITTEN, Broken, Move, Tree
from judges.contract_rates import pieces


class Flow:
    """Bytes of a route that come to a host, or leave it: their sum, and all rates together."""

    def __init__(self, moves: Iterable[Move]) -> None:
        instants = {at for move in moves for at in (move.start, move.finish)}
        self.instants = sorted(instants | {Fraction(0)})
        self.moved, self.rates = [Fraction(0)], []
        for start, finish, _, active in pieces([(Fraction(0), Fraction(0))], moves):
            self.rates.append(sum((move.rate for move in active), Fraction(0)))
            self.moved.append(self.moved[-1] + self.rates[-1] * (finish - start))
        self.rates.append(Fraction(0))

    def until(self, at: Fraction) -> Fraction:
        """Bytes moved before that instant."""
        i = bisect_right(self.instants, at) - 1
        return self.moved[i] + self.rates[i] * (at - self.instants[i])

    def peak(self, first: Fraction, last: Fraction) -> Fraction:
        """The highest rate between the two instants."""
        i, k = (max(bisect_right(self.instants, at), 1) for at in (first, last))
        return max(self.rates[i - 1 : k])


@dataclass(frozen=True)
class Stay:
    """Stay of one route's data at a host."""

    come: Flow
    go: Flow
    is_relayed: bool  # else it starts there

    def there(self, at: Fraction) -> Fraction:
        """Bytes that have come and not gone; below 0 where they lay there from the start."""
        return self.come.until(at) - self.go.until(at)

    def rate(self, at: Fraction, chunk: Fraction) -> Fraction:
        """The most that came together within the last chunk or will leave within the next."""
        return max(self.come.peak(at - chunk, at), self.go.peak(at, at + chunk))

    def instants(self) -> set[Fraction]:
        return {*self.come.instants, *self.go.instants}


def short(chunk: Fraction | None, makespan: Fraction) -> Fraction:
    """'Where `chunk_s` is at most a hundredth of the makespan; longer chunks count as storage'."""
    if chunk is None or chunk > makespan / 100 * (1 + WRITTEN):
        return Fraction(0)
    return chunk


def storage_of_pipeline(problem: Tree, moves: Sequence[Move], chunk: Fraction) -> None:
    """'Other hosts' bytes at a host never exceed its `storage_bytes`'.

    'In a pipelined schedule one chunk per route in flight (its `chunk_s` times its rate, all its
    concurrent transfers together) may be there besides'. Between two changes of any rate or chunk
    the bytes of each route follow a line, so that the ends show the most.
    """
    for host, room, lying, stays in _crowded(problem, moves):
        changes = {at for stay in stays for at in stay.instants()}
        cuts = {at + by for at in changes for by in (-chunk, Fraction(0), chunk)}
        for a, b in pairwise(sorted({Fraction(0), *(cut for cut in cuts if cut > 0)})):
            # A lag of one chunk, its two instants rounded.
            lag = chunk + b * WRITTEN
            chunks = [
                lag * stay.rate((a + b) / 2, chunk) if stay.is_relayed else 0 for stay in stays
            ]
            for at in (a, b):
                there = Fraction(lying)
                for stay, in_flight in zip(stays, chunks, strict=True):
                    n_bytes = stay.there(at)
                    there += max(n_bytes - in_flight, 0) if stay.is_relayed else n_bytes
                _within_room(there, room, host, at)


def storage_of_slots(problem: Tree, moves: Sequence[Move]) -> None:
    """'In a slotted one count what is there at slot boundaries.'

    Transfers start and finish there, and between two such instants all amounts follow lines.
    """
    for host, room, lying, stays in _crowded(problem, moves):
        for at in sorted({Fraction(0)}.union(*(stay.instants() for stay in stays))):
            _within_room(lying + sum(stay.there(at) for stay in stays), room, host, at)


def _within_room(there: Fraction, room: int, host: str, at: Fraction) -> None:
    # A whole byte too many; to a millionth of it, lest rounding of instants decides.
    if there - room >= 1 - RELATIVE:
        at_s = float(at)
        raise Broken(f"storage: {float(there)!r} bytes at {host!r}, room {room}, at {at_s!r} s")


def _crowded(problem: Tree, moves: Iterable[Move]) -> Iterator[tuple[str, int, int, list[Stay]]]:
    """Hosts that might run out of room: the room, what lies there from the start, what comes."""
    for host, limits in problem["hosts"].items():
        if "storage_bytes" not in limits or host == problem["destination"]:
            continue
        held = [part for part in problem.get("held", []) if part["host"] == host]
        lying = sum(part["bytes"] for part in held if part["source"] != host)
        come, go = defaultdict(list), defaultdict(list)
        for move in moves:
            if move.source != host and host in move.link:
                (go if move.link[0] == host else come)[move.route].append(move)
        coming = sum(move.n_bytes for into in come.values() for move in into)
        if lying + coming > limits["storage_bytes"]:
            routes = sorted({*come, *go})
            relayed = [route in come for route in routes]
            flows = [(Flow(come[route]), Flow(go[route])) for route in routes]
            stays = [Stay(*both, is_it) for both, is_it in zip(flows, relayed, strict=True)]
            yield host, limits["storage_bytes"], lying, stays
