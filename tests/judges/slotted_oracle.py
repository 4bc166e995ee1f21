"""Least cost in slots: a linear program of its own, with one commodity per source.

It shares no code or model with the library; SciPy's HiGHS solves it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from datacollect.problem.problem import Problem


class _Program:
    """Minimise a cost; rows of coefficients, columns by name."""

    def __init__(self) -> None:
        self.columns: dict[tuple, int] = {}
        self.cost: dict[int, float] = {}
        self.rows = {"eq": ([], []), "ub": ([], [])}

    def column(self, *key) -> int:
        return self.columns.setdefault(key, len(self.columns))

    def add(self, kind: str, row: dict[int, float], side: float) -> None:
        coefficients, sides = self.rows[kind]
        coefficients.append(row)
        sides.append(side)

    def least(self) -> float | None:
        n = len(self.columns)
        cost = np.zeros(n)
        cost[list(self.cost)] = list(self.cost.values())
        unit = cost.max() or 1.0  # tolerances are absolute: costs near 1
        parts = {}
        for kind, (coefficients, sides) in self.rows.items():
            entries = [(i, c, v) for i, row in enumerate(coefficients) for c, v in row.items()]
            i, c, v = zip(*entries, strict=True)
            parts[f"A_{kind}"] = csr_array((v, (i, c)), shape=(len(coefficients), n))
            parts[f"b_{kind}"] = sides
        found = linprog(cost / unit, bounds=(0, None), method="highs", **parts)
        return float(found.fun) * unit if found.status == 0 else None


def least_slotted_cost(problem: Problem, slot_s: float, n_slots: int, wish: str) -> float | None:
    """Least cost with which all arrives in so many slots; None if it does not.

    ``"relay-bytes"``: bytes times links. ``"storage"``: others' bytes at relays, once for each slot
    boundary after time 0. ``"money"``: bytes times price. ``"earliest-arrival"``: bytes times the
    slot, counted from 0, in which they arrive. ``"late T"``: bytes that arrive after slot T.
    """
    sources = sorted({parcel.source for parcel in problem.parcels})
    links = list(zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True))
    program = _Program()
    for slot in range(n_slots):
        _capacities(problem, program, sources, links, slot, slot_s)
        for s in sources:
            for e, (_, head) in enumerate(links):
                arrives = head == problem.destination_index
                cost = _per_byte(problem, wish, e, slot, arrives=arrives)
                program.cost[program.column("flow", s, e, slot)] = cost
    for host in range(problem.n_hosts):
        for s in sources:
            _balance(problem, program, links, (s, host), n_slots, slot_s)
        if host == problem.destination_index:
            continue
        for boundary in range(n_slots):
            others = [program.column("at", s, host, boundary) for s in sources if s != host]
            if np.isfinite(problem.storage_bytes[host]) and others:
                program.add("ub", dict.fromkeys(others, 1.0), problem.storage_bytes[host])
            if wish == "storage" and boundary > 0:
                program.cost |= dict.fromkeys(others, 1.0)
    return program.least()


def _per_byte(problem: Problem, wish: str, e: int, slot: int, *, arrives: bool) -> float:
    """What a byte pays for a link in a slot."""
    if wish == "relay-bytes":
        return 1.0
    if wish == "money":
        return float(problem.price_per_gb[e]) / 1e9
    if wish == "earliest-arrival":
        return float(slot) if arrives else 0.0
    if wish.startswith("late "):
        return float(arrives and slot > int(wish.removeprefix("late ")))
    return 0.0


def _capacities(problem: Problem, program: _Program, sources, links, slot, slot_s) -> None:
    """Links, hosts and shared bottlenecks carry whole bytes per slot."""
    periods = list(pairwise([*problem.periods_s.tolist(), np.inf]))
    start, end = slot * slot_s + 1e-9, (slot + 1) * slot_s - 1e-9
    touched = [k for k, (first, last) in enumerate(periods) if first < end and last > start]
    bandwidth = problem.bandwidth_bytes_per_s[touched].min(axis=0)
    uplink = problem.uplink_bytes_per_s[touched].min(axis=0)
    downlink = problem.downlink_bytes_per_s[touched].min(axis=0)

    def limit(members: list[int], rate: float) -> None:
        used = {program.column("flow", s, e, slot): 1.0 for s in sources for e in members}
        if np.isfinite(rate) and used:
            program.add("ub", used, np.floor(rate * slot_s * (1 + 1e-12)))

    for e in range(len(links)):
        limit([e], bandwidth[e])
    for host in range(problem.n_hosts):
        limit([e for e, (a, _) in enumerate(links) if a == host], uplink[host])
        limit([e for e, (_, b) in enumerate(links) if b == host], downlink[host])
    for shared, members in zip(problem.shared, problem.shared_links, strict=True):
        limit(members.tolist(), shared.bandwidth_bytes_per_s)


def _balance(problem: Problem, program: _Program, links, who, n_slots, slot_s) -> None:
    """What is at a host at a slot's start leaves in the slot or stays; at the end all is there."""
    s, host = who
    for boundary in range(n_slots + 1):
        row = {program.column("at", s, host, boundary): 1.0}
        if boundary > 0:
            row[program.column("at", s, host, boundary - 1)] = -1.0
            for e, ends in enumerate(links):
                if host in ends:
                    row[program.column("flow", s, e, boundary - 1)] = -1.0 + 2.0 * (host == ends[0])
        entering = [
            parcel.n_bytes
            for parcel in problem.parcels
            if (parcel.host, parcel.source) == (host, s)
            and np.ceil(parcel.release_s / slot_s - 1e-9) == boundary
        ]
        program.add("eq", row, float(sum(entering)))
        if boundary < n_slots:
            leaving = {
                program.column("flow", s, e, boundary): 1.0
                for e, (a, _) in enumerate(links)
                if a == host
            }
            program.add("ub", leaving | {program.column("at", s, host, boundary): -1.0}, 0.0)
    if host != problem.destination_index:
        program.add("eq", {program.column("at", s, host, n_slots): 1.0}, 0.0)
