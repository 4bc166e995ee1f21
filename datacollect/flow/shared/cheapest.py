"""The cheapest flow by a preference that ends as early as possible, or by a given instant."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.files.clock import instant_text
from datacollect.flow.network.layered import layered_network, lengths_until_s
from datacollect.flow.network.preference import DEFAULT, arc_costs, path_costs
from datacollect.flow.network.tolerances import ATTAINED
from datacollect.flow.quickest.cheapest import CheapestFlow
from datacollect.flow.shared.arrivals import latest_arrivals
from datacollect.flow.shared.complete import cheapest_complete
from datacollect.flow.shared.earliest import earliest_shared
from datacollect.flow.shared.model import SharedModel
from datacollect.flow.shared.pricing import largest_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.files.choices import Preference
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.flow.quickest.quickest import Quickest
    from datacollect.flow.shared.earliest import SharedEnd
    from datacollect.flow.shared.network import SharedNetwork
    from datacollect.flow.shared.pricing import PricedFlow
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


def cheapest_with_shared(
    problem: Problem,
    starts_s: FloatArray,
    guard_s: float,
    relaxed: Quickest,
    budget: Budget,
    prefer: Preference = DEFAULT,
    end_s: float | None = None,
    known: SharedEnd | None = None,
    most_by_s: float | None = None,
) -> CheapestFlow:
    """Find the cheapest flow with the earliest end, or one that ends by `end_s`.

    Parameters
    ----------
    problem : Problem
        With shared bottlenecks.
    starts_s : ndarray of float
        Instants at which pieces of time begin.
    guard_s : float
        Every piece that another follows ends this much early.
    relaxed : Quickest
        The optimum without shared bottlenecks, with the same pieces and guard.
    budget : Budget
    prefer : str
        A key of ``PREFERENCES`` in `datacollect.flow.network.preference`.
    end_s : float, optional
        When the last piece ends; without it as early as possible.
    known : SharedEnd, optional
        What `earliest_shared` found for the same arguments.
    most_by_s : float, optional
        The start of a piece before which as much as possible is to arrive, first of all.

    Raises
    ------
    InfeasibleError
        Some data cannot arrive at all, or not by `end_s`.
    """
    if end_s is None:
        end = known or earliest_shared(problem, starts_s, guard_s, relaxed, budget)
        network, lengths, arcs = end.network, end.lengths_s, end.arcs
        model = SharedModel.build(problem, network)
    else:
        network, lengths = _until(problem, starts_s, guard_s, relaxed, end_s)
        model = SharedModel.build(problem, network)
        possible = largest_share(model.at(lengths), budget)
        if possible.share < 1 - ATTAINED:
            raise _too_early(problem, end_s)
        arcs = possible.arcs
    last = None if most_by_s is None else [int(np.searchsorted(network.starts_s, most_by_s)) - 1]
    found = _cheapest(model, lengths, prefer, budget, arcs, last)
    return CheapestFlow(network, lengths, found.flow_bytes, budget.linear_solver().name, found.gap)


def _until(
    problem: Problem, starts_s: FloatArray, guard_s: float, relaxed: Quickest, end_s: float
) -> tuple[LayeredNetwork, FloatArray]:
    """Return the layered network of all pieces until `end_s`, and their lengths."""
    network, lengths = relaxed.network, lengths_until_s(starts_s, guard_s, end_s)
    if len(lengths) < network.n_pieces:
        raise _too_early(problem, end_s)
    if len(lengths) > network.n_pieces:
        network = layered_network(problem, starts_s[: len(lengths)])
    return network, lengths


def _too_early(problem: Problem, end_s: float) -> InfeasibleError:
    return InfeasibleError(
        f"not everything can arrive at {problem.destination!r} by "
        f"{instant_text(end_s, problem.clock)}; allow more time",
        problem.sources,
    )


def _cheapest(
    model: SharedModel,
    lengths_s: FloatArray,
    prefer: Preference,
    budget: Budget,
    arcs: IntArray,
    ends: Sequence[int] | None,
) -> PricedFlow:
    network = model.network
    costs = path_costs(model.problem, prefer, lengths_s, network.n_nodes)
    cost = arc_costs(costs, network, network.piece).astype(float)
    if prefer != "earliest-arrival":
        return cheapest_complete(network, partial(model.at, lengths_s), cost, budget, arcs)
    limits, arcs = latest_arrivals(model, lengths_s, budget, arcs, ends)

    def widened(slack: float) -> SharedNetwork:
        return limits.added_to(model.at(lengths_s, slack), 2 * slack)

    return cheapest_complete(network, widened, cost, budget, arcs)
