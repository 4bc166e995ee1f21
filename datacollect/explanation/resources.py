"""Constraints of a problem, one by one: what each is called, its value, the problem without it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.units import format_bytes, format_duration, format_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.problem.problem import Problem

RATES = ("link", "uplink", "downlink", "shared")

# What has no limit carries all data in this part of the makespan.
UNLIMITED_PART = 1e-6

HOST_COLUMNS = {
    "uplink": "uplink_bytes_per_s",
    "downlink": "downlink_bytes_per_s",
    "storage": "storage_bytes",
    "release": "release_s",
}


@dataclass(frozen=True)
class Resource:
    """A constraint of a problem that can be relaxed.

    Attributes
    ----------
    kind : str
        ``"link"``, ``"uplink"``, ``"downlink"``, ``"shared"``, ``"storage"`` or ``"release"``.
    number : int
        Index of the link, of the host, or of the shared bottleneck.
    """

    kind: str
    number: int


# Hosts that wait for their turn: a constraint of a plan, not of the problem.
TURNS = Resource("turns", 0)


def resource_name(problem: Problem, resource: Resource) -> str:
    """Return what people call it.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> resource_name(problem, Resource("link", 0))
    "link 'S' -> 'D'"
    """
    number = resource.number
    if resource.kind == "link":
        tail, head = problem.link_from[number], problem.link_to[number]
        return f"link {problem.names[tail]!r} -> {problem.names[head]!r}"
    if resource.kind == "shared":
        return f"shared bottleneck {problem.shared[number].name!r}"
    return (
        f"{resource.kind} {'at' if resource.kind == 'storage' else 'of'} {problem.names[number]!r}"
    )


def resource_value(problem: Problem, resource: Resource) -> float:
    """Return the present value: bytes per second, bytes, or seconds; of a forecast the last."""
    number = resource.number
    if resource.kind == "link":
        return float(problem.bandwidth_bytes_per_s[-1, number])
    if resource.kind == "shared":
        return float(problem.shared[number].bandwidth_bytes_per_s)
    return float(getattr(problem, HOST_COLUMNS[resource.kind])[number])


def value_text(kind: str, value: float) -> str:
    """Write the value of a resource of some kind for people.

    >>> value_text("link", 312_500.0), value_text("storage", 5e9), value_text("release", 75.0)
    ('2.5 Mbit/s', '5 GB', '1 min 15 s')
    """
    if kind == "storage":
        return format_bytes(value)
    return format_duration(value) if kind == "release" else format_rate(value)


def relaxed(problem: Problem, resource: Resource, step: float) -> Problem:
    """Return the problem with one resource larger, or its data released earlier, by `step`."""
    if resource.kind == "link":
        now = problem.bandwidth_bytes_per_s[:, resource.number]
        return _with_link(problem, resource.number, np.where(now > 0, now + step, 0.0))
    value = resource_value(problem, resource)
    return _with_value(
        problem, resource, value - step if resource.kind == "release" else value + step
    )


def relaxed_by_part(problem: Problem, resource: Resource, part: float) -> Problem:
    """Return the problem with one resource larger, or its data released earlier, by a part of it.

    Of a forecast every period grows by that part.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> relaxed_by_part(problem, Resource("link", 0), 0.1).bandwidth_bytes_per_s.tolist()
    [[5.5]]
    """
    if resource.kind == "link":
        now = problem.bandwidth_bytes_per_s[:, resource.number]
        return _with_link(problem, resource.number, now * (1 + part))
    step = part * resource_value(problem, resource)
    return relaxed(problem, resource, math.ceil(step) if resource.kind == "storage" else step)


def relaxed_tree(
    resources: Sequence[Resource],
    names: Sequence[str],
    now: Sequence[float],
    steps: Sequence[float],
) -> list[dict[str, Any]]:
    """Return what is relaxed, its value now and by how much, as a plain tree."""
    return [
        {"kind": resource.kind, "name": name, "now": value, "step": step}
        for resource, name, value, step in zip(resources, names, now, steps, strict=True)
    ]


def unlimited(problem: Problem, resource: Resource, ample_bytes_per_s: float) -> Problem:
    """Return the problem with one resource so large that it never binds.

    A link, or a shared bottleneck, has to have some number: that much more than now.
    """
    if resource.kind in ("link", "shared"):
        return relaxed(problem, resource, ample_bytes_per_s)
    return _with_value(problem, resource, 0.0 if resource.kind == "release" else np.inf)


def ample_bytes_per_s(problem: Problem, makespan_s: float) -> float:
    """Return a bandwidth that never binds, for what needs some number."""
    return problem.total_bytes / (makespan_s * UNLIMITED_PART)


def _with_link(problem: Problem, link: int, bandwidth_bytes_per_s: np.ndarray) -> Problem:
    bandwidth = problem.bandwidth_bytes_per_s.copy()
    bandwidth[:, link] = bandwidth_bytes_per_s  # an outage stays one
    return problem.replace(bandwidth_bytes_per_s=bandwidth)


def _with_value(problem: Problem, resource: Resource, value: float) -> Problem:
    if resource.kind == "shared":
        shared = list(problem.shared)
        shared[resource.number] = replace(shared[resource.number], bandwidth_bytes_per_s=value)
        return problem.replace(shared=tuple(shared))
    name = HOST_COLUMNS[resource.kind]
    column: Any = getattr(problem, name).copy()
    column[resource.number] = value
    return problem.replace(**{name: column})
