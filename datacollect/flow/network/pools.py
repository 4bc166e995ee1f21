"""Pools: parcels that start together, where plans begin."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.problem.hosts import Parcel
    from datacollect.problem.problem import Problem


@dataclass(frozen=True)
class Pool:
    """Parcels that start together at one node: a host's own backlog, or what it holds of others.

    ``node`` numbers a node of the network that is planned on, ``host`` the host.
    """

    node: int
    host: int
    parcels: tuple[Parcel, ...]

    @cached_property
    def n_bytes(self) -> int:
        """Bytes in all parcels."""
        return sum(parcel.n_bytes for parcel in self.parcels)

    @property
    def is_own(self) -> bool:
        """Return whether the host's own backlog is part of it."""
        return any(parcel.source == self.host for parcel in self.parcels)

    @property
    def release_s(self) -> float:
        """Return when its data may leave."""
        return self.parcels[0].release_s


def pools_by_host(problem: Problem) -> list[Pool]:
    """One pool per host: what its data may do does not depend on whose they are."""
    return list(_remembered(_pools_by_host, problem.parcels))


def _pools_by_host(parcels: tuple[Parcel, ...]) -> tuple[Pool, ...]:
    groups = groupby(parcels, key=itemgetter(0))
    return tuple(Pool(host, host, tuple(group)) for host, group in groups)


def pools_by_owner(problem: Problem) -> list[Pool]:
    """A host's own data apart from what it holds of others.

    Own data may be released later and do not count as stored; held data are there from time 0.
    """
    return list(_remembered(_pools_by_owner, problem.parcels))


def _pools_by_owner(parcels: tuple[Parcel, ...]) -> tuple[Pool, ...]:
    groups: dict[tuple[int, bool], list[Parcel]] = {}
    for parcel in parcels:
        groups.setdefault((parcel.host, parcel.host == parcel.source), []).append(parcel)
    return tuple(Pool(host, host, tuple(own)) for (host, _), own in groups.items())


# Problems that differ in their links only share their parcels, and ask for the same pools again and
# again. Comparing thousands of parcels would take longer than looking at which object they are.
_recent: deque[tuple[object, tuple[Parcel, ...], tuple[Pool, ...]]] = deque(maxlen=4)


def _remembered(
    pools_of: Callable[[tuple[Parcel, ...]], tuple[Pool, ...]], parcels: tuple[Parcel, ...]
) -> tuple[Pool, ...]:
    for kind, known, pools in tuple(_recent):
        if kind is pools_of and known is parcels:
            return pools
    pools = pools_of(parcels)
    _recent.append((pools_of, parcels, pools))
    return pools
