"""Says how to collect: directly, over more connections, over relays, or by measuring first."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from datacollect.explanation.advisory import Advisory, Way
from datacollect.files.units import format_duration
from datacollect.methods.comparison import compare
from datacollect.methods.leaning.flood_tests import HOSTS_FILE, flood_of
from datacollect.methods.options.names import COORDINATED, DIRECT
from datacollect.methods.prediction import (
    RouteLoad,
    bare_adaptive_s,
    bare_makespan_s,
    knows_rates,
)
from datacollect.methods.warnings import plan_warnings
from datacollect.schedule.data.use import connections_by_link

if TYPE_CHECKING:
    from datacollect.explanation.advisory import Take
    from datacollect.methods.comparison import Comparison
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.assumptions import Assumptions
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver

# A way that ends sooner by less than this factor is not worth relays, or more connections.
WORTH = 1.1
# More connections are at least so many for each source.
FEWEST = 2
# Makespans in the study, in ns-3 beside flows of others, over coordinated's: of adaptive, and of
# direct with as many connections, under equal load and 2:1. A test holds them against its tables.
ADAPTIVE_OVER_COORDINATED = 0.449
AS_MANY_OVER_COORDINATED = (0.62, 0.79)


def advise(problem: Problem, *, solver: Solver = "auto") -> Advisory:
    """Say how to collect, by how much each way is faster, and what to measure to be sure.

    Direct and relays are the plans that `compare` shows. Direct over more connections, and
    adaptive, have a number where the problem says how rates grow with connections.

    Parameters
    ----------
    problem : Problem
    solver : str
        ``"auto"``, the fastest that is installed, or a name of `datacollect.solvers.registry`.

    Returns
    -------
    Advisory

    Raises
    ------
    InfeasibleError
        Some data cannot reach the destination by any method.

    Examples
    --------
    S sends 4 MB to D at 1 MB/s in 4 s. Over K as well it takes 2 s, if S can send 2 MB/s at once:

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]], [4_000_000, 0, 0], "D"
    ... )
    >>> found = dc.advise(problem)
    >>> found.take, [(way.name, way.makespan_s) for way in found.ways[:1]]
    ('measure', [('direct', 4.0)])
    >>> found.measure[0].split(" --streams")[0]
    'datacollect measure flood hosts.toml --from S --to D --to K'
    """
    compared = compare(problem, solver=solver)
    plan, straight = compared.schedules.get(COORDINATED), compared.schedules.get(DIRECT)
    leaning = None if plan is None else plan.assumptions
    ways = _ways(problem, compared, plan, straight, leaning)
    take, text = _verdict(problem, compared, ways)
    text += _adaptively(take, ways)
    return Advisory(
        take,
        text,
        is_measured(problem),
        ways,
        compared.lower_bound_s,
        leaning,
        _to_measure(problem, plan),
        tuple(plan_warnings(problem, compared.advised)),
    )


def is_measured(problem: Problem) -> bool:
    """Return whether a problem says that some of its numbers were measured, and how.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> is_measured(problem), is_measured(problem.replace(measured_s=1.7e9))
    (False, True)
    """
    said = (
        problem.measured_s,
        problem.bandwidth_intervals,
        problem.per_connection_bytes_per_s,
        problem.capacity_bytes_per_s,
        problem.shown_uplink_bytes_per_s,
        problem.shown_downlink_bytes_per_s,
    )
    return any(each is not None for each in said)


# The ways ---------------------------------------------------------------------------------------


def _ways(
    problem: Problem,
    compared: Comparison,
    plan: Schedule | None,
    straight: Schedule | None,
    leaning: Assumptions | None,
) -> tuple[Way, ...]:
    direct_s = None if straight is None else straight.makespan_s
    found = [_way("direct", direct_s, direct_s, compared.errors.get(DIRECT, ""))]
    connections = 0 if plan is None else sum(connections_by_link(plan).values())
    found.append(_over_connections(problem, direct_s, connections))
    if plan is None:
        return (*found, Way("relays", None, None, compared.errors.get(COORDINATED, "")))
    matters = leaning is not None and leaning.matter
    given = "hosts do more at once than was shown" if matters else ""
    found.append(_way("relays", plan.makespan_s, direct_s, given))
    if leaning is not None and matters:
        name = "relays, no more than shown"
        found.append(_way(name, leaning.cautious_makespan_s, direct_s, leaning.why_none))
    return (*found, _adaptive(problem, direct_s, connections))


def _way(name: str, makespan_s: float | None, direct_s: float | None, takes: str = "") -> Way:
    gain = None
    if makespan_s is not None and direct_s is not None:
        gain = direct_s / makespan_s if makespan_s > 0 else 1.0
    return Way(name, makespan_s, gain, takes)


def _over_connections(problem: Problem, direct_s: float | None, connections: int) -> Way:
    """Return direct over as many connections as the plan over relays opens, shared out evenly."""
    n = max(FEWEST, round(connections / max(len(problem.sources), 1)))
    name = f"direct, {n} connections each"
    if direct_s is None or not knows_rates(problem):
        study = " to ".join(f"{part:.2f}" for part in AS_MANY_OVER_COORDINATED)
        return Way(name, None, None, f"untested; the study had {study} of relays' time")
    jobs = [
        RouteLoad((problem.names[parcel.host], problem.destination), parcel.n_bytes, n)
        for parcel in problem.parcels
    ]
    makespan_s = bare_makespan_s(problem, jobs)
    why = "" if makespan_s is not None else "the capacity of some link is not known"
    return _way(name, makespan_s, direct_s, why or "others stay as many as they were")


def _adaptive(problem: Problem, direct_s: float | None, connections: int) -> Way:
    """Return what moves connections while data flow, which no plan foresees."""
    makespan_s = bare_adaptive_s(problem, connections) if knows_rates(problem) else None
    if makespan_s is not None:
        return _way("adaptive", makespan_s, direct_s, "at best, over as many connections")
    study = f"the study had {ADAPTIVE_OVER_COORDINATED:.2f} of relays' time beside others' flows"
    return Way("adaptive", None, None, f"no plan; {study}")


# What to do -------------------------------------------------------------------------------------


def _verdict(problem: Problem, compared: Comparison, ways: tuple[Way, ...]) -> tuple[Take, str]:
    direct, more, relays, *rest = ways
    cautious = rest[0] if len(rest) > 1 else relays
    if problem.total_bytes == 0:
        return "nothing", "There is nothing to move."
    if direct.makespan_s is None:
        return "relays", f"Take relays: {direct.takes.removeprefix('direct: ')}."
    if more.gain is not None and more.gain >= WORTH and _is_near(more, relays):
        return "connections", (
            f"Open more connections, and no relays: {more.name.removeprefix('direct, ')} end in "
            f"{format_duration(more.makespan_s or 0.0)}, {more.gain:.2f} × faster than one."
        )
    if relays.gain is None or relays.gain < WORTH:
        why = compared.bottleneck.text
        return "direct", f"Send directly: relays would save less than a tenth of the time. {why}"
    if cautious.gain is None or cautious.gain < WORTH:
        return "measure", (
            f"Measure before you take relays: they are {relays.gain:.2f} × faster than direct only "
            "where hosts do more at once than any test has shown."
        )
    sure = f", and {cautious.gain:.2f} × in any case" if cautious is not relays else ""
    tail = "" if more.gain is not None else " Try more connections first: that needs no relays."
    return "relays", f"Take relays: they are {relays.gain:.2f} × faster than direct{sure}.{tail}"


def _adaptively(take: Take, ways: tuple[Way, ...]) -> str:
    """Say where adaptive may end sooner than what is to be taken; at best, so it is no verdict."""
    direct, more, relays, *_, adaptive = ways
    taken = {"direct": direct, "connections": more, "relays": relays}.get(take)
    if taken is None or taken.makespan_s is None or adaptive.makespan_s is None:
        return ""
    if WORTH * adaptive.makespan_s > taken.makespan_s:
        return ""
    return (
        f" Adaptive may end sooner still, in {format_duration(adaptive.makespan_s)} at best: "
        "`pull --method adaptive` plans nothing, and moves connections while data flow."
    )


def _is_near(more: Way, relays: Way) -> bool:
    """Return whether relays would end hardly sooner than more connections."""
    if more.makespan_s is None or relays.makespan_s is None:
        return more.makespan_s is not None
    return more.makespan_s < WORTH * relays.makespan_s


def _to_measure(problem: Problem, plan: Schedule | None) -> tuple[str, ...]:
    """Return commands that show what nobody knows: hosts first, then connections, then all."""
    leaning, found = None if plan is None else plan.assumptions, []
    if plan is not None and leaning is not None and leaning.matter:
        found = [flood_of(problem, plan, load).command() for load in leaning.leans_on]
    if problem.total_bytes and not knows_rates(problem):
        found.append(_command("curve", "--to", problem.destination))
    if not is_measured(problem):
        found.append(_command("cycle"))
    return tuple(dict.fromkeys(found))


def _command(tool: str, *options: str) -> str:
    return shlex.join(["datacollect", "measure", tool, HOSTS_FILE, *options])
