"""Pools: parcels that start together, where plans begin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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
    return _pools(problem, [(parcel.host, False) for parcel in problem.parcels])


def pools_by_owner(problem: Problem) -> list[Pool]:
    """A host's own data apart from what it holds of others.

    Own data may be released later and do not count as stored; held data are there from time 0.
    """
    return _pools(problem, [(p.host, p.host == p.source) for p in problem.parcels])


def _pools(problem: Problem, key_of_parcel: list[tuple[int, bool]]) -> list[Pool]:
    groups: dict[tuple[int, bool], list[Parcel]] = {}
    for parcel, key in zip(problem.parcels, key_of_parcel, strict=True):
        groups.setdefault(key, []).append(parcel)
    return [Pool(host, host, tuple(parcels)) for (host, _), parcels in groups.items()]
