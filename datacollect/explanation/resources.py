"""Constraints of a problem, one by one: what each is called, its value, the problem without it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.explanation import window_hours
from datacollect.files.units import format_bytes, format_duration, format_rate
from datacollect.problem.other_rates import with_host_limits, with_link_rates
from datacollect.problem.profile_limits import limit_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from datacollect.explanation.window_hours import WindowEnd
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem

RATES = ("link", "uplink", "downlink", "shared", "production")

# So many values of what varies are listed, each with its hours.
MOST_VALUES_SHOWN = 3

# What has no limit carries all data in this part of the makespan.
UNLIMITED_PART = 1e-6

HOST_COLUMNS = {
    "uplink": "uplink_bytes_per_s",
    "downlink": "downlink_bytes_per_s",
    "storage": "storage_bytes",
    "release": "release_s",
    "production": "produces_bytes_per_s",
}


@dataclass(frozen=True)
class Resource:
    """A constraint of a problem that can be relaxed.

    Attributes
    ----------
    kind : str
        ``"link"``, ``"uplink"``, ``"downlink"``, ``"shared"``, ``"storage"``, ``"release"``,
        ``"production"``, the rate at which a source makes its data, or ``"window"``, the hours in
        which hosts or links are open.
    number : int
        Index of the link, of the host, of the shared bottleneck, or of the hours among all.
    end : str
        Of hours: which end moves when they are longer, ``"closes"`` or ``"opens"``.
    """

    kind: str
    number: int
    end: WindowEnd = "closes"


# Hosts that wait for their turn: a constraint of a plan, not of the problem.
TURNS = Resource("turns", 0)


@dataclass(frozen=True)
class ValueFrom:
    """A constraint's value between two instants: bytes per second; bytes of storage; seconds.

    Of hours it is the time for which they are open between the two.
    """

    from_s: float
    to_s: float
    value: float


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
    if resource.kind == "window":
        return f"hours of {window_hours.hours_of(problem)[number].name}"
    if resource.kind == "release" and problem.clock is not None:
        at = problem.clock.text(float(problem.release_s[number]))
        return f"release of {problem.names[number]!r} at {at}"
    name = problem.names[number]
    if resource.kind == "storage":
        return f"storage at {name!r}"
    return f"{limit_name(problem, resource.kind, name)} of {name!r}"


def values_between(
    problem: Problem, resource: Resource, from_s: float, to_s: float, slack_s: float = 0.0
) -> tuple[ValueFrom, ...]:
    """Return a constraint's values between two instants: of a forecast one for each change.

    Parameters
    ----------
    slack_s : float
        Periods that reach no further than this into the time between the two do not count.

    Examples
    --------
    >>> import datacollect as dc
    >>> hosts = [dc.Host("S", 9), dc.Host("D")]
    >>> links = [dc.Link("S", "D", [1.0, 1.0, 2.0])]
    >>> problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0, 2, 4])
    >>> [(t.from_s, t.to_s, t.value) for t in values_between(problem, Resource("link", 0), 1, 6)]
    [(1.0, 4.0, 1.0), (4.0, 6.0, 2.0)]
    """
    if resource.kind == "window":
        hours_s = window_hours.open_s(problem, resource.number, from_s, to_s)
        return (ValueFrom(from_s, to_s, hours_s),)
    rates = _by_period(problem, resource)
    if rates is None:
        return (ValueFrom(float(from_s), float(to_s), _constant(problem, resource)),)
    periods_s = problem.periods_s
    begin = max(int(np.searchsorted(periods_s, from_s + slack_s, side="right")) - 1, 0)
    end = max(int(np.searchsorted(periods_s, to_s - slack_s)), begin + 1)
    edges = [float(from_s), *periods_s[begin + 1 : end].tolist(), float(to_s)]
    values = rates[begin:end].tolist()
    return joined(ValueFrom(*each) for each in zip(edges, edges[1:], values, strict=False))


def varies(problem: Problem, resource: Resource, until_s: float) -> bool:
    """Return whether a constraint changes before an instant."""
    return len({then.value for then in values_between(problem, resource, 0.0, until_s)}) > 1


def joined(values: Iterable[ValueFrom]) -> tuple[ValueFrom, ...]:
    """Join neighbours between which a value does not change."""
    found: list[ValueFrom] = []
    for then in values:
        if found and (found[-1].to_s, found[-1].value) == (then.from_s, then.value):
            found[-1] = replace(found[-1], to_s=then.to_s)
        else:
            found.append(then)
    return tuple(found)


def most_through(kind: str, values: Sequence[ValueFrom]) -> float:
    """Return what a constraint lets through while it binds, by which several are compared.

    Bytes of what is a rate; of anything else its value.
    """
    if kind in RATES:
        return sum(then.value * (then.to_s - then.from_s) for then in values)
    return max(then.value for then in values)


def main_value(kind: str, values: Sequence[ValueFrom]) -> float:
    """Return the value with which a constraint lets most through."""
    return max(values, key=lambda then: most_through(kind, [then])).value


def _by_period(problem: Problem, resource: Resource) -> FloatArray | None:
    """Return what a forecast may change, in each period; None for a constant of the problem."""
    if resource.kind == "link":
        return problem.bandwidth_bytes_per_s[:, resource.number]
    if resource.kind not in ("uplink", "downlink"):
        return None
    limit: FloatArray = getattr(problem, HOST_COLUMNS[resource.kind])[:, resource.number]
    return limit if (limit != limit[0]).any() else None


def _constant(problem: Problem, resource: Resource) -> float:
    """Return the value of what no forecast changes."""
    number = resource.number
    if resource.kind == "shared":
        return float(problem.shared[number].bandwidth_bytes_per_s)
    return float(getattr(problem, HOST_COLUMNS[resource.kind])[..., number].flat[0])


def value_text(kind: str, value: float) -> str:
    """Write the value of a resource of some kind for people.

    >>> value_text("link", 312_500.0), value_text("storage", 5e9), value_text("release", 75.0)
    ('2.5 Mbit/s', '5 GB', '1 min 15 s')
    """
    if kind == "storage":
        return format_bytes(value)
    if kind == "turns":
        return f"{value:.0f} at a time"
    if kind in RATES and value == 0:
        return "no bandwidth"
    if kind == "window":
        return f"open for {format_duration(value)}"
    return format_duration(value) if kind == "release" else format_rate(value)


def values_text(kind: str, values: Sequence[ValueFrom], *, hours: bool = False) -> str:
    """Write a constraint's values for people: of several from when to when each counts.

    With `hours` also of a single one.

    >>> values_text("link", [ValueFrom(0.0, 60.0, 1e6), ValueFrom(60.0, 90.0, 1e3)])
    '8 Mbit/s from 0 s to 1 min 00 s, 8 kbit/s from 1 min 00 s to 1 min 30 s'
    """
    by_text: dict[str, list[ValueFrom]] = {}
    for then in values:
        by_text.setdefault(value_text(kind, then.value), []).append(then)
    if len(by_text) == 1 and not hours:
        return next(iter(by_text))
    in_order = sorted(values, key=lambda then: then.from_s)
    if len(values) <= MOST_VALUES_SHOWN:
        return ", ".join(
            f"{value_text(kind, then.value)} from {format_duration(then.from_s)} to "
            f"{format_duration(then.to_s)}"
            for then in in_order
        )
    ends = (value_text(kind, edge(then.value for then in values)) for edge in (min, max))
    longest, when = max(by_text.items(), key=lambda item: sum(t.to_s - t.from_s for t in item[1]))
    lasts = format_duration(sum(then.to_s - then.from_s for then in when))
    span = f"{format_duration(in_order[0].from_s)} to {format_duration(in_order[-1].to_s)}"
    stretches = f"{' to '.join(dict.fromkeys(ends))} from {span} in {len(values)} stretches"
    return stretches if len(by_text) == 1 else f"{stretches}, {longest} for {lasts}"


def relaxed(problem: Problem, resource: Resource, step: float) -> Problem:
    """Return the problem with one resource larger, or its data released earlier, by `step`."""
    if resource.kind == "window":
        return window_hours.with_longer(problem, resource.number, step, resource.end)
    if _by_period(problem, resource) is not None:  # an outage stays one
        return _with_rates(problem, resource, lambda now: np.where(now > 0, now + step, 0.0))
    value = _constant(problem, resource)
    return _with_value(
        problem, resource, value - step if resource.kind == "release" else value + step
    )


def relaxed_by_part(problem: Problem, resource: Resource, part: float) -> Problem:
    """Return the problem with one resource larger, or its data released earlier, by a part of it.

    Of a forecast every period grows by that part. Hours are an hour longer each time.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> relaxed_by_part(problem, Resource("link", 0), 0.1).bandwidth_bytes_per_s.tolist()
    [[5.5]]
    """
    if resource.kind == "window":
        return relaxed(problem, resource, window_hours.STEP_S)
    if _by_period(problem, resource) is not None:
        return _with_rates(problem, resource, lambda now: now * (1 + part))
    step = part * _constant(problem, resource)
    return relaxed(problem, resource, math.ceil(step) if resource.kind == "storage" else step)


@dataclass(frozen=True)
class Relaxed:
    """A constraint that is relaxed.

    Attributes
    ----------
    resource : Resource
    name : str
    values : tuple of ValueFrom
        Its values while it binds, in order.
    steps : tuple of float
        By how much it is relaxed with each value; of what changes by time also in periods in which
        it does not bind.
    varies : bool
        Whether it has other values, too.
    """

    resource: Resource
    name: str
    values: tuple[ValueFrom, ...]
    steps: tuple[float, ...]
    varies: bool = False

    @property
    def now(self) -> float:
        """The value with which it lets most through while it binds."""
        return main_value(self.resource.kind, self.values)

    @property
    def step(self) -> float:
        """By how much that is relaxed."""
        return self.steps[[then.value for then in self.values].index(self.now)]

    @property
    def text(self) -> str:
        """Return what it is, in words, with its values."""
        values = values_text(self.resource.kind, self.values, hours=self.varies)
        return f"{self.name} ({values})"

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        return {
            "kind": self.resource.kind,
            "name": self.name,
            "now": self.now,
            "step": self.step,
            **({"end": self.resource.end} if self.resource.kind == "window" else {}),
            "binds": [
                {"from_s": then.from_s, "to_s": then.to_s, "now": then.value, "step": step}
                for then, step in zip(self.values, self.steps, strict=True)
            ],
        }


def unlimited(problem: Problem, resource: Resource, ample_bytes_per_s: float) -> Problem:
    """Return the problem with one resource so large that it never binds.

    A link, a shared bottleneck, and a host's limit that changes by time have to have some number:
    that much more than now.
    """
    if resource.kind == "shared" or _by_period(problem, resource) is not None:
        return relaxed(problem, resource, ample_bytes_per_s)
    if resource.kind == "window":
        return window_hours.without(problem, resource.number)
    return _with_value(problem, resource, 0.0 if resource.kind == "release" else np.inf)


def ample_bytes_per_s(problem: Problem, makespan_s: float) -> float:
    """Return a bandwidth that never binds, for what needs some number."""
    return problem.total_bytes / (makespan_s * UNLIMITED_PART)


def _with_rates(
    problem: Problem, resource: Resource, changed: Callable[[FloatArray], FloatArray]
) -> Problem:
    """Return the problem with other rates of a resource that a forecast may change."""

    def with_changed(rates: FloatArray) -> FloatArray:
        rates = rates.copy()
        rates[:, resource.number] = changed(rates[:, resource.number])
        return rates

    if resource.kind == "link":
        return with_link_rates(problem, with_changed)
    name = HOST_COLUMNS[resource.kind]
    return with_host_limits(problem, **{name: with_changed(getattr(problem, name))})


def _with_value(problem: Problem, resource: Resource, value: float) -> Problem:
    if resource.kind == "shared":
        shared = list(problem.shared)
        shared[resource.number] = replace(shared[resource.number], bandwidth_bytes_per_s=value)
        return problem.replace(shared=tuple(shared))
    name = HOST_COLUMNS[resource.kind]
    column: Any = getattr(problem, name).copy()
    column[..., resource.number] = value
    return problem.replace(**{name: column})


@dataclass(frozen=True)
class RelaxedTogether:
    """One constraint that is relaxed, or several together.

    Attributes
    ----------
    relaxed : tuple of Relaxed
    """

    relaxed: tuple[Relaxed, ...]

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Return what is relaxed."""
        return tuple(one.resource for one in self.relaxed)

    @property
    def names(self) -> tuple[str, ...]:
        """The same in words."""
        return tuple(one.name for one in self.relaxed)
