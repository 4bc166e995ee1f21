"""Pools: parcels that start together, where plans begin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datacollect.hosts import Parcel
    from datacollect.problem import Problem


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
        """Whether the host's own backlog is part of it."""
        return any(parcel.source == self.host for parcel in self.parcels)

    @property
    def release_s(self) -> float:
        """When its data may leave."""
        return self.parcels[0].release_s


def pools_by_host(problem: Problem) -> list[Pool]:
    """One pool per host: what its data may do does not depend on whose they are."""
    return list(_pools_by_host(problem.parcels))


# Problems that differ in their links only ask for the same pools again and again.
@lru_cache(maxsize=4)
def _pools_by_host(parcels: tuple[Parcel, ...]) -> tuple[Pool, ...]:
    groups = groupby(parcels, key=itemgetter(0))
    return tuple(Pool(host, host, tuple(group)) for host, group in groups)


def pools_by_owner(problem: Problem) -> list[Pool]:
    """A host's own data apart from what it holds of others.

    Own data may be released later and do not count as stored; held data are there from time 0.
    """
    groups: dict[tuple[int, bool], list[Parcel]] = {}
    for parcel in problem.parcels:
        groups.setdefault((parcel.host, parcel.host == parcel.source), []).append(parcel)
    return [Pool(host, host, tuple(parcels)) for (host, _), parcels in groups.items()]
