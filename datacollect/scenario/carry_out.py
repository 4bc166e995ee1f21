"""Carry a scenario out: build it, measure, plan, simulate.

The function `simulate` is the library's front; `carry_out` returns all that lay on the way.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from datacollect.comparison import summary
from datacollect.errors import InfeasibleError, ProblemError, SimulationError, nearest_hint
from datacollect.planning import controller_of, plan, require_room, require_schedule_fits
from datacollect.probing import planning_problem
from datacollect.scenario import Scenario, naming
from datacollect.scenario_fields import ENGINES
from datacollect.setting import build
from datacollect.simulation.network import SimulatedNetwork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

    import pandas as pd

    from datacollect.control import Controller
    from datacollect.probing import Measurement
    from datacollect.problem import Problem
    from datacollect.schedule import Schedule
    from datacollect.setting import Setting
    from datacollect.simulation.run import Run


@dataclass(frozen=True, eq=False)
class Outcome:
    """A run, and what led to it.

    Attributes
    ----------
    run : Run
    setting : Setting
    problem : Problem
        What the planner knew.
    schedule : Schedule
        What it planned.
    measurement : Measurement or None
        Where estimates were measured.
    """

    run: Run
    setting: Setting
    problem: Problem
    schedule: Schedule
    measurement: Measurement | None


def simulate(
    scenario: Scenario | Mapping[str, Any] | str | PathLike[str],
    *,
    engine: str = "ns3",
    method: str | None = None,
    seed: int | None = None,
    schedule: Schedule | None = None,
    time_limit_s: float | None = None,
    progress: Callable[[float, int], None] | None = None,
    cache_dir: str | PathLike[str] | None = None,
) -> Run:
    """Measure bandwidths in a scenario's network, plan a collection and carry it out there.

    Parameters
    ----------
    scenario : Scenario, mapping or path
        A scenario, the tree of a scenario file, or the file.
    engine : {"ns3", "fluid"}
        Packet by packet, or at max-min fair rates.
    method : {"direct", "best-path", "coordinated"}, optional
        Instead of the scenario's.
    seed : int, optional
        Instead of the scenario's ``run.seed``.
    schedule : Schedule, optional
        Carry this out instead of planning.
    time_limit_s : float, optional
        Simulated time, instead of the scenario's.
    progress : callable, optional
        Called now and then with simulated seconds and bytes collected; with 0 bytes while
        ns-3 measures.
    cache_dir : path-like, optional
        Folder for measurements in ns-3. Without it they are shared within this process only.

    Returns
    -------
    Run
        Its `settings` hold all that shaped it: the scenario with every default, what was drawn,
        the predicted makespan, the plan, how many connections it used (where the rest was planned
        anew on the way: at most at a time, and ``replanning`` says how often it was, when, and
        what each plan promised), what measuring cost. After the time limit it is incomplete, with
        what had been collected.

    Raises
    ------
    ProblemError
        The scenario, or the schedule for it, breaks a rule.
    InfeasibleError
        The method finds no way for some source.
    SimulationError
        The engine is not installed, or failed; the message names the scenario.

    Warns
    -----
    UserWarning
        A background flow shares no wire with any route between hosts.

    Examples
    --------
    >>> import datacollect as dc
    >>> run = dc.simulate(
    ...     {
    ...         "topology": {"kind": "two-domains"},
    ...         "hosts": {
    ...             "destination": {"at": "A0"},
    ...             "sources": [{"at": "B0", "backlog_bytes": 1_000_000}],
    ...         },
    ...         "transport": {"header_bytes": 0},
    ...     },
    ...     engine="fluid",
    ...     method="direct",
    ... )
    >>> run.complete, run.collected_bytes, round(run.makespan_s, 1)
    (True, 1000000, 1.7)
    """
    outcome = carry_out(
        scenario,
        engine=engine,
        method=method,
        seed=seed,
        schedule=schedule,
        time_limit_s=time_limit_s,
        progress=progress,
        cache_dir=cache_dir,
    )
    for text in outcome.setting.warnings:
        warnings.warn(text, UserWarning, stacklevel=2)
    return outcome.run


def carry_out(
    scenario: Scenario | Mapping[str, Any] | str | PathLike[str],
    *,
    engine: str = "ns3",
    method: str | None = None,
    seed: int | None = None,
    schedule: Schedule | None = None,
    time_limit_s: float | None = None,
    progress: Callable[[float, int], None] | None = None,
    cache_dir: str | PathLike[str] | None = None,
    stage: Callable[[str], None] | None = None,
    setting: Setting | None = None,
) -> Outcome:
    """Do what `simulate` does, and return all of it.

    Parameters
    ----------
    setting : Setting, optional
        Take this instead of building the scenario: of one that differs in [method] and
        [estimates] only.
    stage : callable, optional
        Told what begins: ``"building"``, ``"measuring"``, ``"planning"``, ``"simulating"``.
    """
    tell = stage or (lambda _: None)
    chosen = _with_overrides(scenario, method, seed, time_limit_s)
    _require_engine(engine, chosen)
    with chosen.naming_file():
        tell("building")
        setting = dataclasses.replace(setting, scenario=chosen) if setting else build(chosen)
        tell("measuring")
        problem, measurement = planning_problem(setting, engine, cache_dir, progress)
        tell("planning")
        if schedule is None:
            with naming("method"), _naming_silent_probes(chosen, measurement):
                schedule = plan(problem, chosen.section("method"))
        else:
            require_schedule_fits(schedule, problem)
        with naming("run"):
            require_room(schedule, chosen.section("run")["relay_buffer_bytes"])
        how, room = chosen.section("method"), chosen.section("run")["relay_buffer_bytes"]
        controller, connections = controller_of(problem, schedule, how, room)
    tell("simulating")
    run = _simulate(setting, controller, engine, progress)
    replanning = None
    if how["replan_s"] is not None:
        connections = most_open_at_once(run.connections)
        replanning = {**run.settings["controller"], "connections_opened": len(run.connections)}
    settings = {
        "scenario": chosen.to_dict(),
        "scenario_sha256": chosen.sha256,
        "engine": engine,
        "drawn": dict(setting.facts),
        "warnings": list(setting.warnings),
        "predicted_makespan_s": schedule.makespan_s,
        "plan": summary(schedule),
        "connections": connections,
        "replanning": replanning,
        "problem_sha256": problem.sha256,
        "measurement": None if measurement is None else measurement.cost,
        f"{engine}_settings": run.settings,
        "versions": dict(versions()),
    }
    run = dataclasses.replace(run, settings=settings)
    return Outcome(run, setting, problem, schedule, measurement)


# ----------------------------------------------------------------------------------------------


def most_open_at_once(connections: pd.DataFrame) -> int:
    """Return how many connections of a run's log there were at most at a time.

    From when they were asked for until they were closed; what closes at an instant goes before
    what opens.

    >>> import pandas as pd
    >>> log = {"asked_s": [0.0, 0.0, 5.0], "closed_s": [5.0, float("nan"), float("nan")]}
    >>> most_open_at_once(pd.DataFrame(log))
    2
    """
    changes = [(time_s, 1) for time_s in connections["asked_s"].tolist()]
    changes += [(time_s, -1) for time_s in connections["closed_s"].dropna().tolist()]
    return max(accumulate(change for _, change in sorted(changes)), default=0)


@contextmanager
def _naming_silent_probes(scenario: Scenario, measurement: Measurement | None) -> Iterator[None]:
    """Say so where no way was found because probes brought nothing in their time."""
    try:
        yield
    except InfeasibleError as error:
        samples = None if measurement is None else measurement.samples
        silent = 0 if samples is None else int((samples["bandwidth_bytes_per_s"] == 0).sum())
        if samples is None or not silent:
            raise
        give_up_s = scenario.section("estimates")["give_up_s"]
        raise InfeasibleError(
            f"{error}; {silent} of {len(samples)} probes brought nothing within "
            f"estimates.give_up_s = {give_up_s:g} s: raise it",
            error.hosts,
        ) from None


def _with_overrides(
    scenario: Scenario | Mapping[str, Any] | str | PathLike[str],
    method: str | None,
    seed: int | None,
    time_limit_s: float | None,
) -> Scenario:
    if not isinstance(scenario, Scenario):
        if isinstance(scenario, Mapping):
            scenario = Scenario.from_dict(scenario)
        else:
            scenario = Scenario.from_file(scenario)
    values = {"method.name": method, "run.seed": seed, "run.time_limit_s": time_limit_s}
    given = {place: value for place, value in values.items() if value is not None}
    return scenario.with_values(given) if given else scenario


def _require_engine(engine: str, scenario: Scenario) -> None:
    if engine not in ENGINES:
        raise ProblemError(
            f"engine must be one of {', '.join(ENGINES)}, got {engine!r}"
            + nearest_hint(engine, ENGINES)
        )
    if engine == "ns3":
        if not scenario.has_topology:
            raise ProblemError(
                f"scenario {scenario.name!r} names a problem, which has no packets to simulate; "
                'use engine "fluid" (--engine fluid)'
            )
        require_ns3(scenario)


def require_ns3(scenario: Scenario) -> None:
    """Refuse at once what would fail after minutes of measuring and planning."""
    from datacollect.simulation.ns3_process import check_installed

    try:
        check_installed()
    except SimulationError as error:
        raise SimulationError(
            f"scenario {scenario.name!r}: {error}; or use the fluid engine: --engine fluid"
        ) from None


def _simulate(
    setting: Setting,
    controller: Controller,
    engine: str,
    progress: Callable[[float, int], None] | None,
) -> Run:
    options = setting.scenario.section("run")
    common: dict[str, Any] = {
        "seed": setting.scenario.number("run"),
        "time_limit_s": options["time_limit_s"],
        "stall_s": options["stall_s"],
        "warm_up_s": options["warm_up_s"],
        "progress": progress,
    }
    room = options["relay_buffer_bytes"]
    network, backlog, destination = setting.network, setting.backlog_bytes, setting.destination
    if isinstance(network, SimulatedNetwork) and engine == "ns3":
        from datacollect.simulation.ns3 import simulate_ns3

        return simulate_ns3(
            network,
            backlog,
            destination,
            controller,
            relay_buffer_bytes=room,
            cool_down_s=options["warm_up_s"],
            name=f"scenario {setting.scenario.name!r}",
            **common,
        )
    from datacollect.simulation.fluid import simulate_fluid

    try:
        return simulate_fluid(
            network,
            backlog,
            destination,
            controller,
            relay_buffer_bytes=math.inf if room is None else room,
            udp_on_off=options["udp_on_off"],
            **_fluid_options(setting),
            **common,
        )
    except SimulationError as error:
        raise SimulationError(f"scenario {setting.scenario.name!r}: {error}") from error


def _fluid_options(setting: Setting) -> dict[str, Any]:
    """What only a topology, or only a problem, has to say."""
    if setting.problem is None:
        return {"header_bytes": setting.scenario.section("transport")["header_bytes"]}
    problem = setting.problem
    release = zip(problem.names, problem.release_s.tolist(), strict=True)
    return {"release_s": {name: at_s for name, at_s in release if at_s}, "held": problem.held}


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of what shapes a run, as far as it is installed."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in ("datacollect", "numpy", "ns3"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
