"""Estimates gone wrong: problems whose links are faster or slower than was thought."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.with_units import PART, in_units, in_whole
from datacollect.numbers.containers import ArrayAxis
from datacollect.problem.numbers import floats_of
from datacollect.problem.other_rates import with_link_rates

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from datacollect.numbers.arrays import IntArray
    from datacollect.problem.problem import Problem


def perturb(
    problem: Problem,
    factor: npt.ArrayLike,
    links: Iterable[tuple[str, str]] | npt.NDArray[Any] | None = None,
) -> Problem:
    """Return the problem with the bandwidths of some links multiplied by factors.

    What if the estimates are wrong? Plan with them, judge with the perturbed problem.

    Parameters
    ----------
    problem : Problem
    factor : array_like
        One number, or one per chosen link in the order of `links`; >= 0. It applies to all
        periods.
    links : iterable of (from, to), or ndarray, optional
        Pairs of names, indices of links, or a mask of shape (n_links,); by default all links.

    Returns
    -------
    Problem

    Raises
    ------
    ProblemError
        There is no such link, or a factor is negative or not finite.

    Examples
    --------
    >>> from datacollect.problem.problem import Problem
    >>> problem = Problem.from_matrix(["S", "D"], [[0, 8.0], [0, 0]], [10, 0], "D")
    >>> perturb(problem, 0.5, [("S", "D")]).bandwidth_bytes_per_s.tolist()
    [[4.0]]
    """
    chosen = _chosen_links(problem, links)
    names, tails, heads = problem.names, problem.link_from[chosen], problem.link_to[chosen]
    pairs = ArrayAxis(
        "link", lambda: ((names[a], names[b]) for a, b in zip(tails, heads, strict=True))
    )
    factors = floats_of("factor", in_units(factor, PART, "factor", (pairs,)))
    if factors.ndim and factors.shape != chosen.shape:
        raise ProblemError(
            f"factor must be a number or one per chosen link ({len(chosen)}), got shape "
            f"{factors.shape}"
        )
    if not (np.isfinite(factors) & (factors >= 0)).all():
        raise ProblemError(f"factor must be >= 0 and finite, got {factor!r}")
    of_links = np.ones(problem.n_links)
    of_links[chosen] = factors
    return with_link_rates(problem, lambda rates: rates * of_links)


def perturb_random(
    problem: Problem,
    sigma: float,
    *,
    seed: int,
    links: Iterable[tuple[str, str]] | npt.NDArray[Any] | None = None,
) -> Problem:
    """Return the problem with lognormal noise on the bandwidths of some links.

    Each link's bandwidth is multiplied by exp(sigma·z), z standard normal: the median factor is
    1, and twice as much is as likely as half as much.

    Parameters
    ----------
    problem : Problem
    sigma : float
        Standard deviation of the factor's logarithm, >= 0; for small values about the relative
        error. With 0.2 about 31 % of the links move by more than 20 %, see `estimate`.
    seed : int
        The same seed gives the same noise.
    links : iterable of (from, to), or ndarray, optional
        Pairs of names, indices of links, or a mask of shape (n_links,); by default all links.

    Returns
    -------
    Problem

    Raises
    ------
    ProblemError
        There is no such link, or `sigma` is negative or not finite.

    Examples
    --------
    >>> from datacollect.problem.problem import Problem
    >>> problem = Problem.from_matrix(["S", "D"], [[0, 8.0], [0, 0]], [10, 0], "D")
    >>> perturb_random(problem, 0.0, seed=1).bandwidth_bytes_per_s.tolist()
    [[8.0]]
    """
    sigma, seed = in_units(sigma, PART, "sigma"), in_whole(seed, "seed")
    if not (math.isfinite(sigma) and sigma >= 0):
        raise ProblemError(f"sigma must be >= 0 and finite, got {sigma!r}")
    chosen = _chosen_links(problem, links)
    z = np.random.default_rng(seed).standard_normal(len(chosen))
    return perturb(problem, np.exp(sigma * z), chosen)


def _chosen_links(
    problem: Problem, links: Iterable[tuple[str, str]] | npt.NDArray[Any] | None
) -> IntArray:
    if links is None:
        return np.arange(problem.n_links)
    if isinstance(links, np.ndarray) and links.dtype == bool:
        if links.shape != (problem.n_links,):
            raise ProblemError(
                f"links: a mask must have shape ({problem.n_links},), got {links.shape}"
            )
        return np.flatnonzero(links)
    if isinstance(links, np.ndarray) and links.dtype.kind in "iu":
        chosen = links.astype(np.int64).ravel()
        bad = (chosen < 0) | (chosen >= problem.n_links)
        if bad.any():
            raise ProblemError(
                f"links: an index must lie in 0 ... {problem.n_links - 1}, "
                f"got {chosen[np.argmax(bad)]}"
            )
    else:
        chosen = np.array([_link_index(problem, pair) for pair in links], dtype=np.int64)
    if len(np.unique(chosen)) < len(chosen):
        raise ProblemError("links: a link is given twice; give each once, with one factor")
    return chosen


def _link_index(problem: Problem, pair: object) -> int:
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise ProblemError(f"links: must hold pairs (from, to) of names, got {pair!r}")
    for name in pair:
        if name not in problem.host_index:
            raise ProblemError(
                f"links: unknown host {name!r}" + nearest_hint(str(name), problem.names)
            )
    a, b = pair
    found = int(problem.link_indices(problem.host_index[a], problem.host_index[b]))
    if found < 0:
        raise ProblemError(f"links: the problem has no link {a!r} -> {b!r}")
    return found
