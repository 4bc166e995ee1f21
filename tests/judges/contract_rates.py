"""The contract on bandwidths: links, hosts and shared bottlenecks, at every instant."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from judges.contract_moves import RELATIVE, Broken, Move, Route, Tree, require, snapped

Steps = list[tuple[Fraction, Fraction]]  # from when on, how much
Links = set[tuple[str, str]]

COUNTED = ("per_connection_bytes_per_s", "capacity_bytes_per_s", "competitors")


def rates(problem: Tree, moves: Sequence[Move], slot: Fraction | None) -> None:
    """'At every instant each link's, host's and shared bottleneck's rates sum to at most …'.

    'A single transfer is also judged by itself: its bytes over its duration.'
    """
    for name, steps, links in [*_resources(problem, slot), *_crowded(problem, moves)]:
        using = [move for move in moves if move.link in links]
        for move in using:
            _within(steps, [move], f"rate by itself, {name}")
        _within(steps, _one_after_the_other(using), f"rates, {name}")
        _none_at_zero(steps, using, name)


def _resources(problem: Tree, slot: Fraction | None) -> Iterator[tuple[str, Steps, Links]]:
    """Every limit: its name, bandwidths from when on, the links that use it.

    Links and hosts may have forecasts, shared bottlenecks are constants.
    """
    links = {(link["from"], link["to"]) for link in problem["links"]}
    periods = [Fraction(start) for start in problem.get("periods_s", [0.0])]
    for link in problem["links"]:
        if set(COUNTED) & link.keys():
            continue
        pair = (link["from"], link["to"])
        yield f"link {pair}", _steps(periods, link["bandwidth_bytes_per_s"], slot), {pair}
    for name, host in problem["hosts"].items():
        for side, key in enumerate(("uplink_bytes_per_s", "downlink_bytes_per_s")):
            if key in host:
                used_by = {pair for pair in links if pair[side] == name}
                yield f"{key} of {name!r}", _steps(periods, host[key], slot), used_by
    for shared in problem.get("shared", []):
        if set(COUNTED) & shared.keys():
            continue
        steps = [(Fraction(0), Fraction(shared["bandwidth_bytes_per_s"]))]
        yield f"shared {shared['name']!r}", steps, {(a, b) for a, b in shared["links"]}


def _steps(
    periods: Sequence[Fraction], numbers: float | list[float], slot: Fraction | None
) -> Steps:
    """One number for ever, or one for each period."""
    if not isinstance(numbers, list):
        return [(Fraction(0), Fraction(numbers))]
    steps = list(zip(periods, map(Fraction, numbers), strict=True))
    return steps if slot is None else _in_slots(steps, slot)


def _crowded(problem: Tree, moves: Sequence[Move]) -> Iterator[tuple[str, Steps, Links]]:
    """What grows with connections: at each instant, what all streams under way get together.

    A link's and a wire's bandwidth is what one gets; of a capacity C beside m others n get
    C n/(n + m), and none more than it gets alone. What is left out follows from the bandwidth.
    """
    for link in problem["links"]:
        if set(COUNTED) & link.keys():
            pair = (link["from"], link["to"])
            yield f"link {pair}", _by_streams(link, [m for m in moves if m.link == pair]), {pair}
    for shared in problem.get("shared", []):
        if set(COUNTED) & shared.keys():
            links = {(a, b) for a, b in shared["links"]}
            steps = _by_streams(shared, [m for m in moves if m.link in links])
            yield f"shared {shared['name']!r}", steps, links


def _by_streams(entry: Tree, moves: Sequence[Move]) -> Steps:
    one = Fraction(entry["bandwidth_bytes_per_s"])
    alone = Fraction(entry["per_connection_bytes_per_s"]) if COUNTED[0] in entry else None

    def growth(n: int) -> Fraction:
        found = [n * alone] if alone is not None else []
        if "capacity_bytes_per_s" in entry or "competitors" in entry:
            competitors, capacity = (entry.get(key) for key in reversed(COUNTED[1:]))
            if competitors is None and alone is not None and alone <= one * Fraction("1.01"):
                competitors = 0
            if competitors is None:
                competitors = Fraction(capacity) / one - 1
            if capacity is None:
                capacity = one * (1 + Fraction(competitors))
            found.append(Fraction(capacity) * n / (n + Fraction(competitors)))
        return min(found)

    cuts = sorted({Fraction(0)} | {at for move in moves for at in (move.start, move.finish)})
    counts = [sum(m.streams for m in moves if m.start <= at < m.finish) for at in cuts]
    return [(at, one * growth(max(n, 1)) / growth(1)) for at, n in zip(cuts, counts, strict=True)]


def _in_slots(steps: Steps, slot: Fraction) -> Steps:
    """'A slot that straddles two periods has the lower bandwidth of the two'."""
    steps = [(snapped(start, slot), rate) for start, rate in steps]
    ends = [start for start, _ in steps[1:]]
    borders = {slot * k for at, _ in steps for k in (at // slot, -(-at // slot))}

    def lowest(border: Fraction) -> Fraction:
        """In the slot that begins there."""
        overlapping = [
            rate
            for i, (start, rate) in enumerate(steps)
            if start < border + slot and (i == len(ends) or ends[i] > border)
        ]
        return min(overlapping)

    return [(border, lowest(border)) for border in sorted(borders)]


def _within(steps: Steps, moves: Sequence[Move], name: str) -> None:
    """'(relative tolerance 1e-6; or, where that is more, one byte of rounding for each route …)'.

    Goes through time with the most bytes over the bandwidth of any stretch that ends now. Where
    that is above one byte, the stretch and all that begin later must have a route for each byte.
    """
    seen: list[tuple[Fraction, set[Route]]] = []
    most = Fraction(0)
    for start, finish, bandwidth, active in pieces(steps, moves):
        excess = sum((move.rate for move in active), Fraction(0)) - bandwidth
        if 0 < excess <= RELATIVE * bandwidth:
            excess = Fraction(0)
        if most <= 0:
            seen, most = [], Fraction(0)
        seen.append((excess * (finish - start), {move.route for move in active}))
        most += seen[-1][0]
        if excess <= 0 or most <= 1:
            continue
        n_bytes, routes = Fraction(0), set()
        for more, used in reversed(seen):
            n_bytes, routes = n_bytes + more, routes | used
            if n_bytes > len(routes) * (1 + RELATIVE):
                over = f"{float(n_bytes):.9g} bytes too many of {len(routes)} routes"
                raise Broken(f"{name}: {over} until {float(finish)!r} s")


def _one_after_the_other(moves: Sequence[Move]) -> list[Move]:
    """'Between two instants … relative tolerance 1e-6': instants are doubles, and rounded.

    What begins within four of its last places before something else ends begins when that ends, at
    its own rate, where it loses no more bytes than the tolerance.
    """
    ends, following = sorted(move.finish for move in moves), []
    for move in moves:
        latest = move.start + 4 * Fraction(math.ulp(float(move.start)))
        end = ends[max(bisect_right(ends, latest) - 1, 0)]
        lost = (end - move.start) * move.rate
        if move.start < end <= latest and lost <= RELATIVE * move.n_bytes:
            move = replace(move, start=end, n_bytes=move.n_bytes - lost)
        following.append(move)
    return following


def _none_at_zero(steps: Steps, moves: Sequence[Move], name: str) -> None:
    """'Zero means no capacity.' To a millionth of a byte, lest rounding of instants decides."""
    n_bytes = sum(
        (finish - start) * move.rate
        for start, finish, bandwidth, active in pieces(steps, moves)
        for move in active
        if bandwidth == 0
    )
    require(n_bytes < 1 - RELATIVE, f"rates, {name}: {float(n_bytes):.9g} bytes at no capacity")


def pieces(
    steps: Steps, moves: Sequence[Move]
) -> Iterator[tuple[Fraction, Fraction, Fraction, list[Move]]]:
    """Pieces of time in which nothing changes: start, finish, bandwidth, transfers under way."""
    changes = {at for move in moves for at in (move.start, move.finish)}
    cuts = sorted(changes | {at for at, _ in steps})
    waiting = sorted(moves, key=lambda move: move.start, reverse=True)
    active: list[Move] = []
    for start, finish in pairwise(cuts):
        active = [move for move in active if move.finish > start]
        while waiting and waiting[-1].start <= start:
            active.append(waiting.pop())
        yield start, finish, [rate for at, rate in steps if at <= start][-1], active
