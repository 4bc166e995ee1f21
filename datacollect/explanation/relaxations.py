"""What to relax first: constraints that bind, and what each would gain.

Candidates are the resources of the bound that is tight at the earliest end T*: whatever does not
cross it gains nothing by itself. Each gain is the difference of T* and of the changed problem's
own T*, found by solving that problem; nothing is extrapolated. Where a second cut is as tight, no
resource may gain anything alone: then pairs are tried, one resource of each cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.explanation.resources import (
    RATES,
    Resource,
    ample_bytes_per_s,
    relaxed,
    relaxed_tree,
    resource_name,
    resource_value,
    unlimited,
)
from datacollect.explanation.tolerances import NEGLIGIBLE, PROGRAM_NEGLIGIBLE
from datacollect.flow.arrival_curve import arrival_curve
from datacollect.flow.layered import NO_LINK
from datacollect.flow.optimum import fluid_optimum
from datacollect.units import BYTES_PER_GB, bytes_per_s_from_mbit_per_s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.flow.arrival_bounds import Bound
    from datacollect.flow.arrival_curve import ArrivalCurve
    from datacollect.flow.layered import LayeredNetwork
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget

# How many candidates are solved for, and how many pairs where none helps alone.
MOST_CANDIDATES = 10
MOST_FIRSTS, MOST_SECONDS = 3, 4

STEPS = dict.fromkeys(RATES, bytes_per_s_from_mbit_per_s(1.0)) | {
    "storage": float(BYTES_PER_GB),
    "release": 1.0,
}


@dataclass(frozen=True)
class Relaxation:
    """What relaxing one constraint, or two together, gains.

    Attributes
    ----------
    resources : tuple of Resource
    names : tuple of str
        The same in words.
    now : tuple of float
        Bytes per second; bytes of storage; release in seconds.
    steps : tuple of float
        By how much each is relaxed: 1 Mbit/s (a link: in every period in which it carries
        anything), 1 GB, up to 1 s earlier.
    saves_s : float
        Seconds that these steps save.
    saves_unlimited_s : float
        Seconds saved if the resources had no limit at all, or data were there from time 0.
    """

    resources: tuple[Resource, ...]
    names: tuple[str, ...]
    now: tuple[float, ...]
    steps: tuple[float, ...]
    saves_s: float
    saves_unlimited_s: float

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        return {
            "resources": relaxed_tree(self.resources, self.names, self.now, self.steps),
            "saves_s": self.saves_s,
            "saves_unlimited_s": self.saves_unlimited_s,
        }


@dataclass(frozen=True)
class Advice:
    """What was tried, best first.

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
        """How far it goes, in a sentence."""
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
    tried = _largest(problem, candidates)
    alone = [_relaxation(problem, (resource,), budget) for resource in tried]
    pairs: list[Relaxation] = []
    if alone and not any(found.saves_unlimited_s for found in alone):
        pairs = [_relaxation(problem, pair, budget) for pair in _pairs(problem, tried, budget)]
    return Advice(_ranked(alone), _ranked(pairs), len(candidates))


def _ranked(found: list[Relaxation]) -> tuple[Relaxation, ...]:
    return tuple(sorted(found, key=lambda r: (-r.saves_s, -r.saves_unlimited_s)))


# Candidates -----------------------------------------------------------------------------------


def _candidates(problem: Problem, curve: ArrivalCurve) -> list[Resource]:
    """Find what crosses the bound that is tight at the end."""
    if curve.network is None:
        return []
    network, bound = curve.network, curve.bounds[-1]
    links = network.link[bound.arcs]
    found = [Resource("link", link) for link in np.unique(links[links != NO_LINK]).tolist()]
    found += [Resource("shared", number) for number in sorted({n for n, _ in bound.shared})]
    found += _host_limits(problem, network, bound.arcs[links == NO_LINK])
    found += _missing_storage(problem, network, bound)
    behind = bound.behind
    late = {pool.host for pool in network.pools if pool.release_s > 0 and behind[pool.node]}
    return found + [Resource("release", host) for host in sorted(late)]


def _host_limits(problem: Problem, network: LayeredNetwork, arcs: np.ndarray) -> list[Resource]:
    found = set()
    limited = np.isfinite(network.rate_bytes_per_s) | np.isfinite(network.room_bytes)
    for arc in arcs[limited[arcs]].tolist():
        if network.stored[arc]:
            kind = "storage"
        else:  # gates are numbered after all hosts' nodes; an uplink leads into one
            kind = (
                "uplink" if network.tail[arc] < problem.n_hosts * network.n_pieces else "downlink"
            )
        found.add((kind, int(network.node_host[network.tail[arc]])))
    return [Resource(kind, host) for kind, host in sorted(found)]


def _missing_storage(problem: Problem, network: LayeredNetwork, bound: Bound) -> list[Resource]:
    """Find hosts that store nothing, where data would be worth more later: no arc shows them."""
    found = []
    for host in np.flatnonzero(problem.storage_bytes == 0).tolist():
        nodes = host + problem.n_hosts * np.arange(network.n_pieces)
        if host != problem.destination_index and (np.diff(bound.worth[nodes]) > 0).any():
            found.append(Resource("storage", host))
    return found


def _largest(problem: Problem, candidates: Iterable[Resource]) -> list[Resource]:
    """Keep the largest of each sort; rates fill up what the others leave."""
    by_size = sorted(candidates, key=lambda resource: -resource_value(problem, resource))
    others = [resource for resource in by_size if resource.kind not in RATES]
    rates = [resource for resource in by_size if resource.kind in RATES]
    others = others[: max(MOST_CANDIDATES // 2, MOST_CANDIDATES - len(rates))]
    return rates[: MOST_CANDIDATES - len(others)] + others


def _pairs(
    problem: Problem, tried: list[Resource], budget: Budget
) -> list[tuple[Resource, Resource]]:
    """Pair a resource of the binding cut with one of the cut that binds once it is relaxed."""
    pairs: dict[frozenset[Resource], tuple[Resource, Resource]] = {}
    for first in tried[:MOST_FIRSTS]:
        changed = relaxed(problem, first, _step(problem, first))
        seconds = [
            resource
            for resource in _candidates(changed, arrival_curve(changed, budget))
            if resource != first
        ]
        for second in _largest(changed, seconds)[:MOST_SECONDS]:
            pairs.setdefault(frozenset((first, second)), (first, second))
    return list(pairs.values())


# Gains ----------------------------------------------------------------------------------------


def _relaxation(problem: Problem, resources: tuple[Resource, ...], budget: Budget) -> Relaxation:
    most_s = _saved_s(problem, resources, budget, without_limit=True)
    return Relaxation(
        resources,
        tuple(resource_name(problem, resource) for resource in resources),
        tuple(resource_value(problem, resource) for resource in resources),
        tuple(_step(problem, resource) for resource in resources),
        # What no limit at all does not help, a step does not either.
        _saved_s(problem, resources, budget, without_limit=False) if most_s else 0.0,
        most_s,
    )


def _saved_s(
    problem: Problem, resources: tuple[Resource, ...], budget: Budget, *, without_limit: bool
) -> float:
    before_s = fluid_optimum(problem, budget).makespan_s
    ample = ample_bytes_per_s(problem, before_s)
    changed = problem
    for resource in resources:
        changed = (
            unlimited(changed, resource, ample)
            if without_limit
            else relaxed(changed, resource, _step(problem, resource))
        )
    saved_s = before_s - fluid_optimum(changed, budget).makespan_s
    part = PROGRAM_NEGLIGIBLE if problem.shared else NEGLIGIBLE
    return saved_s if saved_s > part * before_s else 0.0


def _step(problem: Problem, resource: Resource) -> float:
    step = STEPS[resource.kind]
    return min(step, resource_value(problem, resource)) if resource.kind == "release" else step
