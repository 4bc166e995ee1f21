"""The cheapest flow through a layered network, by a preference.

Among all flows that empty every pool in the given pieces of time: bytes times the costs of
`datacollect.preference` on links, in storage, and at arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.preference import arc_costs, path_costs
from datacollect.quickest import ScaledFlow
from datacollect.restricted_flow import cheapest_flow

if TYPE_CHECKING:
    from datacollect.flow import FlowSolver
    from datacollect.problem import Problem
    from datacollect.quickest import Quickest

FloatArray: TypeAlias = npt.NDArray[np.float64]


def cheapest_bytes(
    problem: Problem, found: Quickest, prefer: str, solver: FlowSolver
) -> FloatArray:
    """Return the cheapest flow, in bytes, that empties all pools in the pieces of `found`.

    Raises
    ------
    InfeasibleError
        The pieces are too short.
    """
    network, lengths = found.network, found.lengths_s
    scaled = found.scaled or ScaledFlow(network, solver)
    costs = path_costs(problem, prefer, lengths, network.n_nodes)
    flow: FloatArray = (
        cheapest_flow(
            scaled.supplied(lengths),
            arc_costs(costs, network, network.piece),
            solver,
            scaled.active.copy(),
        )
        / scaled.scale
    )
    return flow
