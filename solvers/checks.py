"""Checks that every flow solver makes before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError
from datacollect.solvers.networks import CAPACITY_SUM_LIMIT

if TYPE_CHECKING:
    from datacollect.numbers.arrays import IntArray
    from datacollect.solvers.networks import FlowNetwork


def check_terminals(network: FlowNetwork, source: int, sink: int) -> None:
    """Raise ProblemError unless `source` and `sink` are two nodes of `network`."""
    for word, node in (("source", source), ("sink", sink)):
        if not 0 <= node < network.n_nodes:
            raise ProblemError(
                f"max_flow: {word} must be a node 0 ... {network.n_nodes - 1}, got {node}"
            )
    if source == sink:
        raise ProblemError(f"max_flow: source and sink must differ, got node {source} for both")


def check_supply(network: FlowNetwork, supply: IntArray) -> IntArray:
    """Return the costs of `network` if a minimum-cost flow problem is well posed.

    Raises
    ------
    ProblemError
        The network has no costs, or `supply` is not one integer per node, or does not sum to 0,
        or sums beyond what 64-bit solvers can hold.
    """
    if network.cost is None:
        raise ProblemError("min_cost_flow: the network has no costs; give zeros for any flow")
    if not np.issubdtype(supply.dtype, np.integer) or supply.shape != (network.n_nodes,):
        raise ProblemError(
            f"min_cost_flow: supply must be {network.n_nodes} integers, one per node, "
            f"got {supply.dtype} of shape {supply.shape}"
        )
    # In floats first: an overflowing integer sum could pass for a small one.
    entering = float(np.maximum(supply, 0).sum(dtype=np.float64))
    if entering >= CAPACITY_SUM_LIMIT:
        raise ProblemError(
            f"min_cost_flow: supplies sum to {entering:.3g}, limit 2**62; count in larger units"
        )
    total = int(supply.sum())
    if total != 0:
        raise ProblemError(f"min_cost_flow: supply must sum to 0, got {total}")
    return network.cost


def unmet_supply(supply: IntArray) -> InfeasibleError:
    """Return the exception of a minimum-cost flow problem without a feasible flow."""
    entering = int(np.maximum(supply, 0).sum())
    return InfeasibleError(
        f"no flow meets the supplies ({entering} units enter): capacities are too small, or a "
        "node has no path to where units leave"
    )
