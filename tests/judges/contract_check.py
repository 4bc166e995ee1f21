"""A second judge of schedules, written from the contract's sentences alone.

Slow and simple on purpose: plain trees in, exact fractions inside, one function per sentence, which
its docstring quotes. It shares no code with the library: where the two agree, two readers have
understood the same text alike.

Where the wording allows several readings, this judge takes (a) of each:

1. "at every instant … one byte of rounding for each route in use at that instant": a byte is no
   rate, so the sentence is about stretches of time. (a) In any stretch, at most bandwidth times
   time, and one byte for each route that is in use in it, which counts once. (b) The same of each
   stretch that is over the bandwidth without a break: then pauses between bursts hide any speed.
   (c) As (b), but one byte for each route in use at one single instant of the stretch: then plans
   that round several routes one after the other are refused. (d) Of each piece of time in which
   nothing changes: then a byte at a time may have any speed.
2. "relative tolerance 1e-6; or, where that is more": (a) instants within the relative tolerance
   count as within the bandwidth; in others all above the bandwidth itself counts in bytes, and a
   byte is measured to 1e-6, too. (b) Both tolerances add up.
3. "a single transfer is also judged by itself: its bytes over its duration": (a) against whatever
   it uses, with one byte of rounding, whoever else is there. (b) Against its link only. (c) By the
   relative tolerance alone: then a slot that has room for 10.5 bytes takes no more than 10. In (a)
   and (b) a single byte is rounding however short it takes; in all
   of them bytes in no time at all have no rate, and are refused.
4. "where chunk_s is at most a hundredth of the makespan": (a) as the two are written, in decimals:
   0.01 is a hundredth of 1.0. (b) As doubles, exactly: it is more.
5. "longer chunks count as storage": (a) all of a longer chunk. (b) What exceeds a hundredth.
6. "its chunk_s times its rate": the rate of a route at a relay is the highest (a) with which it
   came within the last chunk_s or leaves within the next: a chunk may lie there between the two.
   (b) At that instant. (c) At any time.
7. "one chunk per route in flight": (a) of its own bytes, which a relay is passing on: a route
   leaves no room to another, and what [[held]] puts there is no chunk. (b) All chunks together.
8. "never exceed": (a) by one whole byte: part of a byte is no byte yet. (b) By any part. (c) To the
   tolerance of the rates: the sentence has none.
9. "other hosts' bytes at a host": storage_bytes of the destination (a) says nothing about what is
   collected. (b) Limits it.
10. "no earlier than it has arrived there": (a) instants that the file gives are compared exactly;
    those inside a transfer, which follow from two of them, to their last place. (b) All exactly:
    then the same line, cut at other bytes, differs by rounding. (c) To a tolerance. A byte is where
    its share of the duration puts it: its first part may go on before its last has come, or there
    would be no cut-through.
11. "start and finish on the grid": (a) a multiple of slot_s as both are written, in decimals: 0.3
    is on the grid of 0.1. (b) As doubles, exactly. (c) To a tolerance. So are releases and periods
    on the grid.
12. "in a slotted schedule it leaves in a later slot", of transfers longer than a slot: (a) each
    part of a byte. (b) The byte as a whole: it comes with its last part, and leaves with its first.
13. "a slot that straddles two periods has the lower bandwidth of the two": (a) of more, the lowest.
14. "nothing leaves a source before its release": (a) no data that lie there: what is held elsewhere
    may leave, and may pass through the source. (b) None of its backlog, wherever it lay. (c) Nobody
    else's either.
15. "makespan_s is the last arrival": (a) that very number. (b) To a tolerance.
16. "transfer: bytes of one route": (a) of no bytes there is none: refused. (b) It does no harm.
17. "may visit a host twice only where storage limits make that necessary": (a) where any host has
    such a limit. (b) Where that host has.
18. "no schedule … can be faster" than the lower bound: (a) what the file calls lower_bound_s is no
    part of the plan. (b) It may not exceed the makespan.
19. "slot_s is null for pipelined schedules, chunk_s null for slotted ones": a number in both, or in
    neither, is refused.
20. "Zero means no capacity": (a) no whole byte crosses meanwhile. (b) One is rounding, too.
21. "between two instants", which are doubles, and "relative tolerance 1e-6": what begins within
    four of its last places before something else ends (a) begins when that ends, where it loses no
    more than the relative tolerance of its bytes: instants that were computed are rounded, and who
    writes 0.2 + 0.1 for the end and 0.3 for the next start means one instant. (b) Overlaps it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from judges.contract_moves import WRITTEN, Broken, Move, Tree, move_of, require, snapped
from judges.contract_rates import rates
from judges.contract_storage import short, storage_of_pipeline, storage_of_slots


def judge(problem: Tree, schedule: Tree) -> str | None:
    """None where the schedule is valid, else the first rule that it breaks, and how."""
    try:
        _numbers(schedule)
        _destination(problem, schedule)
        moves = [move_of(row) for row in schedule["transfers"]]
        _routes(problem, moves)
        _visits(problem, moves)
        _each_byte_once(problem, moves)
        _makespan(schedule, moves)
        slot, chunk = (
            None if schedule[name] is None else Fraction(schedule[name])
            for name in ("slot_s", "chunk_s")
        )
        if slot is not None:
            moves = _on_grid(slot, moves)
        _releases(problem, moves, slot)
        for before, after in _handed_on(moves):
            if slot is None:
                _no_earlier(before, after)
            else:
                _later_slot(before, after, slot)
        rates(problem, moves, slot)
        if slot is None:
            makespan = Fraction(schedule["makespan_s"])
            storage_of_pipeline(problem, moves, short(chunk, makespan))
        else:
            storage_of_slots(problem, moves)
    except Broken as broken:
        return str(broken)
    return None


# Numbers, hosts, links ---------------------------------------------------------------------------


def _numbers(schedule: Tree) -> None:
    """'Inside: bytes (int), seconds and bytes per second (float)'; 'streams … 1 if absent'.

    'slot_s is null for pipelined schedules, chunk_s null for slotted ones.' 'Transfer: bytes of one
    route moved over one hop between two instants, at constant rate'.
    """
    for name in ("makespan_s", "lower_bound_s"):
        require(_is_number(schedule[name]), f"numbers: {name} is {schedule[name]!r}")
    slot_s, chunk_s = schedule["slot_s"], schedule["chunk_s"]
    require((slot_s is None) != (chunk_s is None), "numbers: a slot or a chunk, one of them")
    require(slot_s is None or (_is_number(slot_s) and slot_s > 0), f"numbers: slot_s {slot_s!r}")
    require(chunk_s is None or _is_number(chunk_s), f"numbers: chunk_s is {chunk_s!r}")
    require(slot_s is None or chunk_s is None, "numbers: both slot_s and chunk_s")
    for row in schedule["transfers"]:
        for name in ("offset_bytes", "bytes", "hop"):
            require(_is_whole(row[name]), f"numbers: {name} is {row[name]!r}")
        for name in ("start_s", "finish_s"):
            require(_is_number(row[name]), f"numbers: {name} is {row[name]!r}")
        streams = row.get("streams", 1)
        require(_is_whole(streams) and streams >= 1, f"numbers: streams is {streams!r}")
        require(row["bytes"] > 0, f"numbers: nothing is moved by {row}")
        require(row["finish_s"] > row["start_s"], f"numbers: no time to move bytes in {row}")


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and math.isfinite(value) and value >= 0


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value)


def _destination(problem: Tree, schedule: Tree) -> None:
    """'Destination: the one host that collects everything'."""
    found, wanted = schedule["destination"], problem["destination"]
    require(found == wanted, f"destination: {found!r}, not {wanted!r}")


def _routes(problem: Tree, moves: Iterable[Move]) -> None:
    """'Route: hosts from a source to the destination, each consecutive pair a link'."""
    links = {(link["from"], link["to"]) for link in problem["links"]}
    for move in moves:
        require(move.source in problem["hosts"], f"routes: no source {move.source!r}")
        require(move.hop < len(move.hosts) - 1, f"routes: no such hop: {move}")
        require(move.hosts[-1] == problem["destination"], f"routes: ends elsewhere: {move}")
        for pair in pairwise(move.hosts):
            require(pair in links, f"routes: {pair} is no link: {move}")


def _visits(problem: Tree, moves: Iterable[Move]) -> None:
    """'A route may visit a host twice only where storage limits make that necessary.'"""
    if any("storage_bytes" in host for host in problem["hosts"].values()):
        return
    for move in moves:
        require(len(set(move.hosts)) == len(move.hosts), f"visits: a host twice: {move}")


# Every byte --------------------------------------------------------------------------------------


def _each_byte_once(problem: Tree, moves: Sequence[Move]) -> None:
    """'Every byte of a source's backlog travels each hop of exactly one route.'

    'A route starts where the data lie: at the source, or at the host that holds them'; 'the
    destination counts as collected'.
    """
    for source, host in problem["hosts"].items():
        backlog = host.get("backlog_bytes", 0)
        held = [part for part in problem.get("held", []) if part["source"] == source]
        own = [(move.offset, move.end, move) for move in moves if move.source == source]
        require(all(end <= backlog for _, end, _ in own), f"bytes: more than {source!r} has")
        cuts = {0, backlog}.union(*((offset, end) for offset, end, _ in own))
        for part in held:
            cuts |= {part["offset_bytes"], part["offset_bytes"] + part["bytes"]}
        for first, last in pairwise(sorted(cuts)):
            lies_at = _where(first, held, source)
            carriers = [move for offset, end, move in own if offset <= first < end]
            text = f"bytes: {first} to {last} of {source!r}, at {lies_at!r},"
            if lies_at == problem["destination"]:
                require(not carriers, f"{text} are collected already")
            else:
                _carried_once(carriers, lies_at, text)


def _where(byte: int, held: Iterable[Tree], source: str) -> str:
    for part in held:
        if part["offset_bytes"] <= byte < part["offset_bytes"] + part["bytes"]:
            return str(part["host"])
    return source


def _carried_once(carriers: Sequence[Move], lies_at: str, text: str) -> None:
    routes = {move.hosts for move in carriers}
    require(len(routes) == 1, f"{text} travel {len(routes)} routes")
    (hosts,) = routes
    hops = sorted(move.hop for move in carriers)
    require(hops == list(range(len(hosts) - 1)), f"{text} travel hops {hops} of {hosts}")
    require(hosts[0] == lies_at, f"{text} start at {hosts[0]!r}")


def _makespan(schedule: Tree, moves: Iterable[Move]) -> None:
    """'`makespan_s` is the last arrival at the destination.'"""
    arrivals = [move.finish for move in moves if move.hop == len(move.hosts) - 2]
    last, said = max(arrivals, default=Fraction(0)), Fraction(schedule["makespan_s"])
    require(last == said, f"makespan: {float(said)!r} s, last arrival {float(last)!r} s")


# When --------------------------------------------------------------------------------------------


def _on_grid(slot: Fraction, moves: Iterable[Move]) -> list[Move]:
    """'Slotted transfers start and finish on the grid'. Returns them exactly there."""
    exact = []
    for move in moves:
        start, finish = snapped(move.start, slot), snapped(move.finish, slot)
        off = start % slot or finish % slot
        require(not off, f"grid: off the grid of {float(slot)!r} s: {move}")
        require(start < finish, f"grid: no slot to move bytes in: {move}")
        exact.append(replace(move, start=start, finish=finish))
    return exact


def _releases(problem: Tree, moves: Iterable[Move], slot: Fraction | None) -> None:
    """'Nothing leaves a source before its release'.

    'Data released inside a slot can leave in the next', which starts at or after the release.
    """
    for move in moves:
        release = Fraction(problem["hosts"][move.source].get("release_s", 0))
        if slot is not None:
            release = snapped(release, slot)
        if move.hop == 0 and move.hosts[0] == move.source:
            require(move.start >= release, f"release: at {float(release)!r} s only: {move}")


def _handed_on(moves: Iterable[Move]) -> Iterator[tuple[Move, Move]]:
    """Transfers into a relay with those out of it that carry some of the same bytes."""
    by_hop = defaultdict(list)
    for move in moves:
        by_hop[move.route, move.hop].append((move.offset, move.end, move))
    for (route, hop), leaving in by_hop.items():
        for offset, end, before in by_hop.get((route, hop - 1), ()):
            for first, last, after in leaving:
                if offset < last and first < end:
                    yield before, after


def _no_earlier(before: Move, after: Move) -> None:
    """'A byte leaves a relay no earlier than it has arrived there … cut-through with zero chunk'.

    Both instants follow lines over the bytes: the first and the last byte that the two transfers
    have in common speak for all between.
    """
    first, last = max(before.offset, after.offset), min(before.end, after.end)
    given = {first: before.offset == after.offset, last: before.end == after.end}
    for byte in (first, last):
        arrives, leaves = before.instant(byte), after.instant(byte)
        rounding = 0 if given[byte] else max(before.finish, after.finish) * WRITTEN
        early = f"{float(arrives - leaves):.3g} s before it is there"
        require(leaves >= arrives - rounding, f"causality: byte {byte} leaves {early}: {after}")


def _later_slot(before: Move, after: Move, slot: Fraction) -> None:
    """'In a slotted schedule it leaves in a later slot.'

    Between two bytes at which either line crosses into another slot, both slots stay the same.
    """
    first, last = max(before.offset, after.offset), min(before.end, after.end)
    if all(after.instant(byte) - before.instant(byte) >= slot for byte in (first, last)):
        return
    cuts = {Fraction(first), Fraction(last)}
    for move in (before, after):
        for k in range(int(move.start / slot), int(move.finish / slot) + 1):
            crossing = move.offset + (k * slot - move.start) * move.rate
            if first < crossing < last:
                cuts.add(crossing)
    for a, b in pairwise(sorted(cuts)):
        middle = (a + b) / 2
        arrives, leaves = (
            (move.start + (middle - move.offset) / move.rate) // slot for move in (before, after)
        )
        text = f"causality: byte {int(a)} leaves in slot {leaves}, comes in {arrives}: {after}"
        require(leaves > arrives, text)
