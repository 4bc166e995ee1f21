"""Sensitivity of the earliest end to each capacity: what more bandwidth would save.

A bound on the earliest end is a weighted sum of capacities that all data must pass; the weights
are prices of a linear program, or 1 on the arcs of a minimum cut. Widening one of them moves the
bound, and the end with it, as long as nothing else binds (sensitivity analysis: Dantzig, Linear
Programming and Extensions, 1963).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from datacollect.flow.network.layered import NO_LINK

if TYPE_CHECKING:
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.flow.quickest.quickest import Quickest
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Savings:
    """Seconds by which everything arrives earlier, per byte/s that a capacity has more.

    Each is the derivative of the earliest end, with its sign changed: >= 0, in seconds per
    (byte per second), where the capacity grows in all periods alike. Multiply by 125 000 for one
    more Mbit/s. It holds for small changes; where several bottlenecks tie, widening one alone may
    save less, down to nothing.

    Attributes
    ----------
    link : ndarray of float, shape (n_links,)
    uplink, downlink : ndarray of float, shape (n_hosts,)
    shared : ndarray of float, shape (n_shared,)
    """

    link: FloatArray
    uplink: FloatArray
    downlink: FloatArray
    shared: FloatArray


def savings_by_prices(
    problem: Problem,
    network: LayeredNetwork,
    seconds: FloatArray,
    shared: FloatArray,
) -> Savings:
    """Sum what arcs save over the links and hosts that they stand for.

    Parameters
    ----------
    seconds : ndarray of float, shape (n_arcs,)
        Seconds saved per byte/s more of each arc's rate.
    shared : ndarray of float, shape (n_shared,)
        The same of each shared bottleneck.
    """
    links = np.flatnonzero(network.link != NO_LINK)
    gates = np.flatnonzero((network.link == NO_LINK) & np.isfinite(network.rate_bytes_per_s))
    # A host's uplink leads from its node to its gate; gates are numbered after all host nodes.
    up = gates[network.tail[gates] < network.head[gates]]
    down = gates[network.tail[gates] > network.head[gates]]
    hosts = network.node_host

    def total(keys: IntArray, arcs: npt.NDArray[np.integer], n: int) -> FloatArray:
        return np.bincount(keys, seconds[arcs], n).astype(float)

    return Savings(
        link=total(network.link[links], links, problem.n_links),
        uplink=total(hosts[network.tail[up]], up, problem.n_hosts),
        downlink=total(hosts[network.head[down]], down, problem.n_hosts),
        shared=shared,
    )


def savings_by_cut(problem: Problem, found: Quickest) -> Savings:
    """Tell what widening the arcs of the binding cut would save.

    Examples
    --------
    10 bytes at 5 bytes/s take 2 s; at 5 + x bytes/s 10 / (5 + x): 0.4 s less per byte/s.

    >>> import datacollect as dc
    >>> from datacollect.solvers.choice import load_flow_solver
    >>> from datacollect.flow.quickest.quickest import quickest
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> found = quickest(problem, np.array([0.0]), 0.0, load_flow_solver())
    >>> savings_by_cut(problem, found).link
    array([0.4])
    """
    network, lengths = found.network, found.lengths_s
    seconds = np.zeros(network.n_arcs)
    if found.cut is not None:
        crossing = found.cut[network.tail] & ~found.cut[network.head]
        crossing &= np.isfinite(network.rate_bytes_per_s)
        in_last = crossing & (network.piece == network.n_pieces - 1)
        rate = float(network.rate_bytes_per_s[in_last].sum())
        seconds[crossing] = lengths[network.piece[crossing]] / rate
    return savings_by_prices(problem, network, seconds, np.zeros(len(problem.shared)))
