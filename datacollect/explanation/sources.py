"""Limits of each source's finishing time."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.explanation.plan_limits import SourceLimits
from datacollect.explanation.resources import values_text
from datacollect.explanation.tolerances import SAME
from datacollect.files.stages import counting, stage
from datacollect.files.units import counted, format_duration
from datacollect.flow.alone import Alone
from datacollect.flow.on_demand import OnDemand
from datacollect.flow.quickest.bottleneck import name_hosts
from datacollect.methods.choice import is_max_min_fair, spec_of
from datacollect.schedule.data.use import source_completion_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.explanation.plan_limits import Limit, PlanLimits
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Bottleneck
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget

# Each source by itself is a problem to solve: links times sources beyond this are for the slowest
# and largest sources only.
MOST_LINKS_SOLVED = 20_000_000
FEWEST_SOURCES_SOLVED = 10

# The most rivals of a source that are listed, and the most limits before its end.
MOST_RIVALS, MOST_EARLIER = 20, 2


@dataclass(frozen=True, eq=False)
class BindingInterval:
    """Binding constraint between two instants, if as much as possible arrives at every instant.

    Attributes
    ----------
    from_s, to_s, rate_bytes_per_s : float
    bottlenecks : sequence of Bottleneck
        Those of all intervals; of thousands few are put into words.
    number : int
        Which of them is the interval's own.
    """

    from_s: float
    to_s: float
    rate_bytes_per_s: float
    bottlenecks: Sequence[Bottleneck] = field(repr=False)
    number: int = field(repr=False)

    @property
    def bottleneck(self) -> Bottleneck:
        """Return what binds."""
        return self.bottlenecks[self.number]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BindingInterval):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return self.from_s, self.to_s, self.rate_bytes_per_s, self.bottleneck


@dataclass(frozen=True)
class SourceExplanation:
    """Finish of one source, and why it is not sooner.

    Attributes
    ----------
    source : str
    n_bytes : int
        What has yet to arrive.
    finish_s : float or None
        In the plan; None without one.
    alone_s : float or None
        The earliest if it alone had to move; None where it was not computed, in large problems.
    limited_by : str
        ``"itself"``: alone it is no faster; ``"binding cut"``: it shares what binds when it
        finishes; ``"others"``: neither; then others go first, or the method keeps it back. In a
        direct or best-path plan the kind of what holds it back at its end: ``"link"``,
        ``"uplink"``, ``"downlink"``, ``"shared"``, ``"storage"``, ``"release"`` or ``"turns"``.
        ``"deadline"``: it ends after all could have ended, as a deadline allows.
    text : str
    limits : tuple of Limit
        What holds its data back in the plan, and when: constraints that are full on their routes.
    shared_with : tuple of str
        Other sources that use what holds it back at its end; of many the first.
    n_shared_with : int
    """

    source: str
    n_bytes: int
    finish_s: float | None
    alone_s: float | None
    limited_by: str
    text: str
    limits: tuple[Limit, ...] = ()
    shared_with: tuple[str, ...] = ()
    n_shared_with: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        return {
            "source": self.source,
            "n_bytes": self.n_bytes,
            "finish_s": self.finish_s,
            "alone_s": self.alone_s,
            "limited_by": self.limited_by,
            "text": self.text,
            "limits": [limit.to_dict() for limit in self.limits],
            "shared_with": list(self.shared_with),
            "n_shared_with": self.n_shared_with,
        }


def explain_sources(
    problem: Problem,
    plan: Schedule | None,
    binds: Sequence[BindingInterval],
    limits: PlanLimits,
    budget: Budget,
) -> Sequence[SourceExplanation]:
    """Say of each source when it finishes, and what that is limited by.

    With a plan, which says in which order they finish, each is explained when asked for.

    Parameters
    ----------
    plan : Schedule, optional
    binds : sequence of BindingInterval
        What binds when, if all is coordinated.
    limits : PlanLimits
        Of the plan; empty without one.
    """
    n_bytes = dict.fromkeys(problem.sources, 0)
    for parcel in problem.parcels:
        n_bytes[problem.names[parcel.source]] += parcel.n_bytes
    finish_s = {} if plan is None else source_completion_s(plan)
    order = sorted(n_bytes, key=lambda s: (-finish_s.get(s, 0.0), -n_bytes[s]))
    affordable = max(FEWEST_SOURCES_SOLVED, MOST_LINKS_SOLVED // max(problem.n_links, 1))
    intervals, by_themselves = _Intervals(binds), Alone(problem, budget)

    def explained(number: int) -> SourceExplanation:
        source = order[number]
        by_itself = by_themselves.of(source) if number < affordable else None
        known = limits.of_source.get(source, SourceLimits())
        limited_by, text = _reason(source, finish_s.get(source), by_itself, intervals, plan, known)
        return SourceExplanation(
            source,
            n_bytes[source],
            finish_s.get(source),
            None if by_itself is None else by_itself[0],
            limited_by,
            text,
            known.limits,
            tuple(known.rivals[:MOST_RIVALS]),
            len(known.rivals),
        )

    found = OnDemand(explained, len(order))
    if plan is not None:
        return found
    n_solved = min(affordable, len(order))
    with stage("each source alone"), counting(n_solved, "sources alone") as step:
        for number in range(n_solved):
            _ = found[number]
            step()
    return tuple(sorted(found, key=lambda each: -(each.alone_s or 0.0)))


class _Intervals:
    """Intervals in which constraints bind; of many sources each is looked up in no time."""

    def __init__(self, binds: Sequence[BindingInterval]) -> None:
        self.binds = binds
        self._ends_s = [interval.to_s for interval in binds]
        self._hosts: dict[int, frozenset[str]] = {}

    @property
    def end_s(self) -> float:
        """Return when the last one ends."""
        return self._ends_s[-1]

    def number_at(self, time_s: float) -> int:
        """Return the number of the first one that does not end before an instant.

        One that ends with it but for rounding does not.
        """
        return bisect_left(self._ends_s, time_s * (1 - SAME))

    def hosts(self, number: int) -> frozenset[str]:
        """Return the sources behind the bottleneck of one."""
        if number not in self._hosts:
            self._hosts[number] = frozenset(self.binds[number].bottleneck.hosts)
        return self._hosts[number]


def _reason(
    source: str,
    finish_s: float | None,
    alone: tuple[float, Bottleneck] | None,
    intervals: _Intervals,
    plan: Schedule | None,
    known: SourceLimits,
) -> tuple[str, str]:
    """Return what limits a source, and a sentence about it."""
    if plan is not None and not spec_of(plan.method).attains_bound and known.at_end:
        return known.at_end[0].resource.kind, _own_text(known, fair=is_max_min_fair(plan.method))
    end_s = intervals.end_s
    late = finish_s is not None and finish_s > end_s * (1 + SAME)
    if late and plan is not None and plan.deadline_s is not None:
        return "deadline", f"the deadline lets it end later{_full_text(known)}"
    number = intervals.number_at(min(finish_s or end_s, end_s))
    if alone is not None and alone[0] >= (finish_s or end_s) * (1 - SAME):
        return "itself", alone[1].text
    if source in intervals.hosts(number):
        return "binding cut", _cut_text(intervals.binds[number].bottleneck)
    text = (
        "could finish earlier, which would not end the collection sooner: what binds is elsewhere"
    )
    return "others", text


def _own_text(known: SourceLimits, *, fair: bool) -> str:
    """Say what holds a source back at its end, with whom it shares that, and what did before."""
    ends = " and ".join(f"the {limit.text}" for limit in known.at_end)
    are = "are" if len(known.at_end) > 1 else "is"
    text = f"limited by {ends}" if fair else f"at its end {ends} {are} full on its way"
    if known.rivals:
        text += f", shared with {name_hosts(known.rivals)}"
    return text + "".join(f"; {earlier}" for earlier in _earlier(known))


def _earlier(known: SourceLimits) -> Iterable[str]:
    """Say what held a source back before its end: a release, turns, the longest of capacities."""
    last = {limit.resource for limit in known.at_end}
    runs: dict[str, list[Limit]] = {}
    for limit in known.limits:
        if limit.resource not in last:
            runs.setdefault(limit.text, []).append(limit)
    for limits in runs.values():
        if limits[0].resource.kind == "release":
            yield f"released at {format_duration(limits[0].to_s)}"
        if limits[0].resource.kind == "turns":
            waits_s = sum(limit.held_s for limit in limits)
            yield f"waits {format_duration(waits_s)} for its turn"
    rates = [
        limits for limits in runs.values() if limits[0].resource.kind not in ("release", "turns")
    ]
    longest = sorted(rates, key=lambda limits: -sum(limit.held_s for limit in limits))
    for limits in sorted(longest[:MOST_EARLIER], key=lambda limits: limits[0].from_s):
        until = f"from {format_duration(limits[0].from_s)} to {format_duration(limits[-1].to_s)}"
        yield f"{until} by the {limits[0].text}"


def _full_text(known: SourceLimits) -> str:
    if not known.at_end:
        return ""
    ends = known.at_end
    makes = "".join(
        f"; it makes no more than {values_text('production', limit.values)}"
        for limit in ends
        if limit.resource.kind == "production"
    )
    others = [limit for limit in ends if limit.resource.kind != "production"]
    if not others:
        return makes
    full = " and ".join(f"the {limit.text}" for limit in others)
    return f"{makes}; {full} {'are' if len(others) > 1 else 'is'} full on its way"


def _cut_text(bottleneck: Bottleneck) -> str:
    what = {
        "destination": "all that leads into the destination",
        "source": "all that leads out of it",
        "hosts": "all that leads out of them together",
        "shared": "shared bottlenecks",
        "release": "the release",
    }
    others = len(bottleneck.hosts) - 1
    together = f", like {counted(others, 'other source')}," if others else ""
    return f"limited{together} by {what[bottleneck.kind]}"
