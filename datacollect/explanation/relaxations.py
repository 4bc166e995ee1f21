"""Relaxations of a problem's binding constraints, and what each would gain.

Candidates are the resources of the bound that is tight at the earliest end T*: whatever does not
cross it gains nothing by itself. Each gain is the difference of T* and of the changed problem's
own T*, found by solving that problem; nothing is extrapolated. Where a second cut is as tight, no
resource may gain anything alone: then pairs are tried, one resource of each cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from datacollect.explanation.resources import (
    HOST_COLUMNS,
    RATES,
    Relaxed,
    RelaxedTogether,
    Resource,
    ValueFrom,
    ample_bytes_per_s,
    joined,
    most_through,
    relaxed,
    resource_name,
    unlimited,
    values_between,
    varies,
)
from datacollect.explanation.tolerances import NEGLIGIBLE, PROGRAM_NEGLIGIBLE
from datacollect.explanation.window_hours import ENDS, STEP_S, closed_links, hours_of
from datacollect.files.stages import counting, stage
from datacollect.files.units import BYTES_PER_GB, bytes_per_s_from_mbit_per_s
from datacollect.flow.arrival_curve import arrival_curve
from datacollect.flow.makers import makers_of
from datacollect.flow.network.layered import NO_LINK
from datacollect.flow.optimum import fluid_optimum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.arrival_bounds import Bound
    from datacollect.flow.arrival_curve import ArrivalCurve
    from datacollect.flow.makers import Makers
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget

# How many candidates are solved for, and how many pairs where none helps alone.
MOST_CANDIDATES = 10
MOST_FIRSTS, MOST_SECONDS = 3, 4

STEPS = dict.fromkeys(RATES, bytes_per_s_from_mbit_per_s(1.0)) | {
    "storage": float(BYTES_PER_GB),
    "release": 1.0,
    "window": STEP_S,
}


@dataclass(frozen=True)
class Relaxation(RelaxedTogether):
    """Gain of relaxing one constraint, or two together.

    Attributes
    ----------
    relaxed : tuple of Relaxed
        Each with its values while it crosses the binding cut. Steps are 1 Mbit/s (of what changes
        by time in every period in which it has bandwidth), 1 GB, up to 1 s earlier, an hour longer
        each time, at the end of a window at which that saves more.
    saves_s : float
        Seconds that these steps save.
    saves_unlimited_s : float
        Seconds saved if the resources had no limit at all, or data were there from time 0.
    """

    saves_s: float
    saves_unlimited_s: float

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        return {
            "resources": [one.to_dict() for one in self.relaxed],
            "saves_s": self.saves_s,
            "saves_unlimited_s": self.saves_unlimited_s,
        }


@dataclass(frozen=True)
class Advice:
    """Relaxations that were tried, best first.

    Attributes
    ----------
    alone : tuple of Relaxation
        One resource each, gaining nothing or something.
    pairs : tuple of Relaxation
        Two resources each; tried only where none helps alone.
    n_candidates : int
        Resources that cross the binding cut; of many only the largest were tried.
    """

    alone: tuple[Relaxation, ...]
    pairs: tuple[Relaxation, ...]
    n_candidates: int

    @property
    def helps(self) -> tuple[Relaxation, ...]:
        """Those that gain something."""
        return tuple(r for r in (*self.alone, *self.pairs) if r.saves_unlimited_s > 0)

    @property
    def text(self) -> str:
        """Return how far it goes, in a sentence."""
        tried = f"{len(self.alone)} of {self.n_candidates} constraints that bind were tried"
        if not self.alone:
            return "No constraint can be relaxed."
        if not self.pairs:
            return f"{tried}, each alone:"
        every = len(self.alone) == self.n_candidates
        text = f"{'Nothing alone helps' if every else 'Nothing tried helps alone'} ({tried})"
        if self.helps:
            return f"{text}: another cut is as tight. Two together do:"
        return f"{text}, nor does any of {len(self.pairs)} pairs: several cuts are as tight."

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        return {
            "alone": [relaxation.to_dict() for relaxation in self.alone],
            "pairs": [relaxation.to_dict() for relaxation in self.pairs],
            "n_candidates": self.n_candidates,
            "text": self.text,
        }


def advise(problem: Problem, curve: ArrivalCurve, budget: Budget) -> Advice:
    """Relax what binds and solve again.

    Parameters
    ----------
    curve : ArrivalCurve
        The problem's own.
    """
    candidates = _candidates(problem, curve)
    tried = _largest(candidates)
    alone = _relaxations(problem, [{one: candidates[one]} for one in tried], budget)
    pairs: list[Relaxation] = []
    if alone and not any(found.saves_unlimited_s for found in alone):
        pairs = _relaxations(problem, _pairs(problem, candidates, tried, budget), budget)
    return Advice(_ranked(alone), _ranked(pairs), len(candidates))


def _ranked(found: list[Relaxation]) -> tuple[Relaxation, ...]:
    return tuple(sorted(found, key=lambda r: (-r.saves_s, -r.saves_unlimited_s)))


# Candidates -----------------------------------------------------------------------------------


# What binds, and with which values.
_Candidates: TypeAlias = "dict[Resource, tuple[ValueFrom, ...]]"


def _candidates(problem: Problem, curve: ArrivalCurve) -> _Candidates:
    """Find what crosses the bound that is tight at the end, with its values where it does."""
    if curve.network is None:
        return {}
    makers = makers_of(problem)
    if makers is not None:
        problem = makers.expanded
    network, bound = curve.network, curve.bounds[-1]
    end_s = float(curve.time_s[-1])
    crossing = _crossing_links(network, bound)
    for number, piece in sorted(bound.shared):
        crossing.setdefault(Resource("shared", number), set()).add(piece)
    crossing |= _host_rates(problem, network, bound)
    found = {
        resource: _values_in_pieces(problem, network, resource, pieces, end_s)
        for resource, pieces in crossing.items()
    }
    behind = bound.behind
    late = {pool.host for pool in network.pools if pool.release_s > 0 and behind[pool.node]}
    others = [
        *_full_storage(network, bound),
        *_missing_storage(problem, network, bound),
        *_closed(problem, network, bound, end_s),
        *(Resource("release", host) for host in sorted(late)),
    ]
    every = found | {one: values_between(problem, one, 0.0, end_s) for one in others}
    return every if makers is None else _without_hidden(every, makers)


def _without_hidden(found: _Candidates, makers: Makers) -> _Candidates:
    """Return what is relaxed of a problem, from what crosses in the one with hidden hosts."""
    known: _Candidates = {}
    problem, index = makers.expanded, makers.problem.host_index
    for resource, values in found.items():
        one = resource
        if one.kind == "link":
            tail, head = (
                problem.names[ends[one.number]] for ends in (problem.link_from, problem.link_to)
            )
            if tail in makers.source_of:
                one = Resource("production", index[makers.source_of[tail]])
            else:
                [number] = makers.problem.link_indices([index[tail]], [index[head]]).tolist()
                one = Resource("link", number)
        elif one.kind in HOST_COLUMNS and problem.names[one.number] in makers.source_of:
            one = replace(one, number=index[makers.source_of[problem.names[one.number]]])
        known.setdefault(one, values)
    return known


def _crossing_links(network: LayeredNetwork, bound: Bound) -> dict[Resource, set[int]]:
    """Find links that cross, and the pieces of time in which they do."""
    arcs = bound.arcs[network.link[bound.arcs] != NO_LINK]
    found: dict[Resource, set[int]] = {}
    order = arcs[np.argsort(network.link[arcs], kind="stable")]
    for link, piece in zip(
        network.link[order].tolist(), network.piece[order].tolist(), strict=True
    ):
        found.setdefault(Resource("link", link), set()).add(piece)
    return found


def _host_rates(
    problem: Problem, network: LayeredNetwork, bound: Bound
) -> dict[Resource, set[int]]:
    """Find hosts' limits that cross, and the pieces of time in which they do."""
    found: dict[Resource, set[int]] = {}
    arcs = bound.arcs[network.link[bound.arcs] == NO_LINK]
    for arc in arcs[np.isfinite(network.rate_bytes_per_s[arcs])].tolist():
        # Gates are numbered after all hosts' nodes; an uplink leads into one.
        up = network.tail[arc] < problem.n_hosts * network.n_pieces
        resource = Resource("uplink" if up else "downlink", _host_before(network, arc))
        found.setdefault(resource, set()).add(int(network.piece[arc]))
    return dict(sorted(found.items(), key=lambda item: (item[0].kind, item[0].number)))


def _full_storage(network: LayeredNetwork, bound: Bound) -> list[Resource]:
    arcs = bound.arcs[network.stored[bound.arcs] & np.isfinite(network.room_bytes[bound.arcs])]
    return [Resource("storage", host) for host in sorted({_host_before(network, a) for a in arcs})]


def _host_before(network: LayeredNetwork, arc: int) -> int:
    return int(network.node_host[network.tail[arc]])


def _values_in_pieces(
    problem: Problem, network: LayeredNetwork, resource: Resource, pieces: set[int], end_s: float
) -> tuple[ValueFrom, ...]:
    """Return a constraint's values in some pieces of time."""
    ends = [*network.starts_s.tolist(), end_s]
    return joined(
        then
        for piece in sorted(pieces)
        for then in values_between(problem, resource, ends[piece], ends[piece + 1])
    )


def _missing_storage(problem: Problem, network: LayeredNetwork, bound: Bound) -> list[Resource]:
    """Find hosts that store nothing, where data would be worth more later: no arc shows them."""
    found = []
    for host in np.flatnonzero(problem.storage_bytes == 0).tolist():
        nodes = host + problem.n_hosts * np.arange(network.n_pieces)
        worth = bound.worth[nodes]
        if host != problem.destination_index and (worth[1:] > worth[:-1]).any():
            found.append(Resource("storage", host))
    return found


def _closed(
    problem: Problem, network: LayeredNetwork, bound: Bound, end_s: float
) -> list[Resource]:
    """Find windows that close links by which data would gain, while they are closed.

    No arc shows them either: a link that is closed has none.
    """
    worth = bound.worth[: problem.n_hosts * network.n_pieces].reshape(network.n_pieces, -1)
    gains = worth[:, problem.link_to] > worth[:, problem.link_from]
    return [
        Resource("window", number)
        for number in range(len(hours_of(problem)))
        if (closed_links(problem, number, network.starts_s, end_s) & gains).any()
    ]


def _largest(candidates: _Candidates) -> list[Resource]:
    """Keep the largest of each sort, by what crosses there; rates fill up what the others leave."""
    by_size = sorted(candidates, key=lambda one: -most_through(one.kind, candidates[one]))
    others = [resource for resource in by_size if resource.kind not in RATES]
    rates = [resource for resource in by_size if resource.kind in RATES]
    others = others[: max(MOST_CANDIDATES // 2, MOST_CANDIDATES - len(rates))]
    return rates[: MOST_CANDIDATES - len(others)] + others


def _pairs(
    problem: Problem, candidates: _Candidates, tried: list[Resource], budget: Budget
) -> list[_Candidates]:
    """Pair a resource of the binding cut with one of the cut that binds once it is relaxed."""
    pairs: dict[frozenset[Resource], _Candidates] = {}
    for first in tried[:MOST_FIRSTS]:
        changed = relaxed(problem, first, _step(candidates[first], first))
        seconds = _candidates(changed, arrival_curve(changed, budget))
        seconds.pop(first, None)
        for second in _largest(seconds)[:MOST_SECONDS]:
            pair = {first: candidates[first], second: seconds[second]}
            pairs.setdefault(frozenset(pair), pair)
    return list(pairs.values())


# Gains ----------------------------------------------------------------------------------------


def _relaxations(
    problem: Problem, every: Sequence[_Candidates], budget: Budget
) -> list[Relaxation]:
    found = []
    with counting(len(every), "constraints relaxed") as step:
        for binding in every:
            with stage("relaxing a constraint of the lower bound"):
                found.append(_relaxation(problem, binding, budget))
            step()
    return found


def _relaxation(problem: Problem, binding: _Candidates, budget: Budget) -> Relaxation:
    before_s = fluid_optimum(problem, budget).makespan_s
    most_s = _saved_s(problem, binding, budget, without_limit=True)
    # What no limit at all does not help, a step does not either.
    step_s = 0.0
    if most_s:
        found = [(one, _saved_s(problem, one, budget)) for one in _with_ends(binding)]
        binding, step_s = max(found, key=lambda pair: pair[1])
    return Relaxation(
        tuple(
            Relaxed(
                resource,
                resource_name(problem, resource),
                values,
                (_step(values, resource),) * len(values),
                varies(problem, resource, before_s),
            )
            for resource, values in binding.items()
        ),
        step_s,
        most_s,
    )


def _with_ends(binding: _Candidates) -> list[_Candidates]:
    """Return a binding once for each choice of which ends of its windows move."""
    each = [
        [replace(one, end=end) for end in ENDS] if one.kind == "window" else [one]
        for one in binding
    ]
    return [dict(zip(chosen, binding.values(), strict=True)) for chosen in product(*each)]


def _saved_s(
    problem: Problem, binding: _Candidates, budget: Budget, *, without_limit: bool = False
) -> float:
    before_s = fluid_optimum(problem, budget).makespan_s
    ample = ample_bytes_per_s(problem, before_s)
    changed = problem
    for resource, values in binding.items():
        changed = (
            unlimited(changed, resource, ample)
            if without_limit
            else relaxed(changed, resource, _step(values, resource))
        )
    saved_s = before_s - fluid_optimum(changed, budget).makespan_s
    part = PROGRAM_NEGLIGIBLE if problem.shared else NEGLIGIBLE
    return saved_s if saved_s > part * before_s else 0.0


def _step(values: tuple[ValueFrom, ...], resource: Resource) -> float:
    step = STEPS[resource.kind]
    return min(step, values[0].value) if resource.kind == "release" else step
