"""Carry a scenario out: build it, measure, plan, simulate.

The function `simulate` is the library's front; `carry_out` returns all that came of it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datacollect.errors import (
    DatacollectWarning,
    InfeasibleError,
    ProblemError,
    SimulationError,
    naming,
    nearest_hint,
)
from datacollect.files.stages import stage as timed
from datacollect.files.units import counted
from datacollect.methods.choice import plan
from datacollect.methods.finishing.recurring import planned_to_the_end
from datacollect.scenario.fields import ENGINES
from datacollect.scenario.fits import require_room, require_schedule_fits
from datacollect.scenario.hidden_makers import (
    engine_setting,
    execution_with_makers,
    run_without_hidden,
)
from datacollect.scenario.knowledge import planning_problem
from datacollect.scenario.known_wires import simulated
from datacollect.scenario.options import EstimateOptions, RunOptions, execution_options
from datacollect.scenario.outcome import Outcome, most_connections, replanning_of
from datacollect.scenario.scenario import Scenario
from datacollect.scenario.setting import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

    from datacollect.files.choices import Engine, RunMethod
    from datacollect.files.quantities import Seconds
    from datacollect.methods.execution import Execution
    from datacollect.problem.problem import Problem
    from datacollect.scenario.probe_cache import Measurement
    from datacollect.scenario.setting import Setting
    from datacollect.schedule.schedule import Schedule
    from datacollect.simulation.network import SimulatedNetwork
    from datacollect.simulation.run import Run


def simulate(
    scenario: Scenario | Mapping[str, Any] | str | PathLike[str],
    *,
    engine: Engine = "ns3",
    method: RunMethod | None = None,
    seed: int | None = None,
    schedule: Schedule | None = None,
    time_limit_s: Seconds | None = None,
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
    method : {"direct", "best-path", "coordinated", "adaptive"}, optional
        Instead of the scenario's.
    seed : int, optional
        Instead of the scenario's ``run.seed``.
    schedule : Schedule, optional
        Carry this out instead of planning.
    time_limit_s : float or str, optional
        Simulated time, instead of the scenario's: seconds, or a text such as ``"2 h"``.
    progress : callable, optional
        Called now and then with simulated seconds and bytes collected; with 0 bytes while
        ns-3 measures.
    cache_dir : path-like, optional
        Folder for measurements in ns-3. Without it they are shared within this process only.

    Returns
    -------
    Run
        Its `settings` hold all that shaped it: the scenario with every default, what was drawn,
        the predicted makespan, the plan, how many connections it used (where the remainder was
        planned again: at most at a time, and ``replanning`` says how often it was, when, and
        what each plan promised), what measuring cost. After the time limit it is incomplete, with
        what had been collected.

    Raises
    ------
    ProblemError
        The scenario, or the schedule for it, breaks a rule.
    InfeasibleError
        The method finds no route for some source.
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
        warnings.warn(text, DatacollectWarning, stacklevel=2)
    return outcome.run


def carry_out(
    scenario: Scenario | Mapping[str, Any] | str | PathLike[str],
    *,
    engine: Engine = "ns3",
    method: RunMethod | None = None,
    seed: int | None = None,
    schedule: Schedule | None = None,
    time_limit_s: Seconds | None = None,
    progress: Callable[[float, int], None] | None = None,
    cache_dir: str | PathLike[str] | None = None,
    stage: Callable[[str, int], None] | None = None,
    setting: Setting | None = None,
) -> Outcome:
    """Do what `simulate` does, and return all of it.

    Parameters
    ----------
    setting : Setting, optional
        Take this instead of building the scenario: of one that differs in [method] and
        [estimates] only.
    stage : callable, optional
        Told what begins: ``"building"``, ``"measuring"``, ``"planning"``, ``"simulating"``; and
        how many bytes are to be collected meanwhile.
    """
    tell = stage or (lambda *_: None)
    chosen = _with_overrides(scenario, method, seed, time_limit_s)
    _require_engine(engine, chosen)
    how, limits = execution_options(chosen), RunOptions.of(chosen)
    with chosen.naming_file():
        tell("building", 0)
        with timed("building"):
            setting = replace(setting, scenario=chosen) if setting else build(chosen)
        given = engine_setting(setting)
        packets = _packets(given, limits) if engine == "ns3" else None
        tell("measuring", 0)
        with timed("measuring"):
            problem, measurement = planning_problem(setting, engine, cache_dir, progress)
        tell("planning", 0)
        if schedule is None:
            options = how.first_plan()
            with naming("method"), _naming_silent_probes(chosen, measurement):
                problem, planned = planned_to_the_end(
                    problem,
                    lambda given: plan(given, options),
                    lambda found: max(found.makespan_s, found.deadline_s or 0.0),
                )
        else:
            require_schedule_fits(schedule, problem)
            planned, problem = schedule, problem.until(schedule.makespan_s)
        with naming("run"):
            require_room(planned, limits.relay_buffer_bytes)
        carried = execution_with_makers(
            problem, how, planned, limits.relay_buffer_bytes, in_packets=engine == "ns3"
        )
    tell("simulating", sum(setting.backlog_bytes.values()))
    with timed(f"simulating by {engine}") as facts:
        if packets is None:
            run = _as_fluid(given, limits, carried, progress)
        else:
            run = _in_packets(packets, given, limits, carried, progress)
        run = run_without_hidden(run, setting)
        facts.append(counted(run.events, "event"))
    connections, replanning = carried.connections, None
    if carried.controller.decides_at_destination:
        connections = most_connections(run)
    if carried.plan_remaining is not None:
        replanning = replanning_of(run)
    return Outcome(
        run,
        setting,
        problem,
        carried.schedule,
        measurement,
        connections,
        carried.predicted_s,
        replanning,
        carried.prediction,
    )


# ----------------------------------------------------------------------------------------------


@contextmanager
def _naming_silent_probes(scenario: Scenario, measurement: Measurement | None) -> Iterator[None]:
    """Say so where no route was found because probes brought nothing in their time."""
    try:
        yield
    except InfeasibleError as error:
        samples = None if measurement is None else measurement.samples
        silent = 0 if samples is None else int((samples["bandwidth_bytes_per_s"] == 0).sum())
        if samples is None or not silent:
            raise
        give_up_s = EstimateOptions.of(scenario).give_up_s
        raise InfeasibleError(
            f"{error}; {silent} of {len(samples)} probes brought nothing within "
            f"estimates.give_up_s = {give_up_s:g} s: raise it",
            error.hosts,
        ) from None


def _with_overrides(
    scenario: Scenario | Mapping[str, Any] | str | PathLike[str],
    method: RunMethod | None,
    seed: int | None,
    time_limit_s: Seconds | None,
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
        require_ns3(scenario)


def require_ns3(scenario: Scenario) -> None:
    """Refuse at once what would fail after minutes of measuring and planning."""
    from datacollect.simulation.ns3.process import check_installed

    try:
        check_installed()
    except SimulationError as error:
        raise SimulationError(
            f"scenario {scenario.name!r}: {error}; or use the fluid engine: --engine fluid"
        ) from None


def _packets(setting: Setting, limits: RunOptions) -> SimulatedNetwork:
    """Return the wires of a topology, or of a problem's links and limits."""
    if setting.problem is None:
        return simulated(setting)
    from datacollect.simulation.fluid.problem_network import ProblemNetwork
    from datacollect.simulation.problem_wires import wires_of

    assert isinstance(setting.network, ProblemNetwork)
    return wires_of(setting.network.problem, limits.time_limit_s)


def _in_packets(
    network: SimulatedNetwork,
    setting: Setting,
    limits: RunOptions,
    carried: Execution,
    progress: Callable[[float, int], None] | None,
) -> Run:
    from datacollect.simulation.ns3.engine import simulate_ns3

    return simulate_ns3(
        network,
        setting.backlog_bytes,
        setting.destination,
        carried.controller,
        seed=setting.scenario.number("run"),
        time_limit_s=limits.time_limit_s,
        relay_buffer_bytes=limits.relay_buffer_bytes,
        stall_s=limits.stall_s,
        warm_up_s=limits.warm_up_s,
        cool_down_s=limits.warm_up_s,
        plan_remaining=carried.plan_remaining,
        control=limits.control,
        name=f"scenario {setting.scenario.name!r}",
        progress=progress,
    )


def _as_fluid(
    setting: Setting,
    limits: RunOptions,
    carried: Execution,
    progress: Callable[[float, int], None] | None,
) -> Run:
    from datacollect.simulation.fluid.engine import simulate_fluid

    problem, room = setting.problem, limits.relay_buffer_bytes
    try:
        return simulate_fluid(
            setting.network,
            setting.backlog_bytes,
            setting.destination,
            carried.controller,
            seed=setting.scenario.number("run"),
            time_limit_s=limits.time_limit_s,
            stall_s=limits.stall_s,
            relay_buffer_bytes=math.inf if room is None else room,
            warm_up_s=limits.warm_up_s,
            udp_on_off=limits.udp_on_off,
            # A topology has headers to say, a problem what is released and held.
            header_bytes=setting.header_bytes if problem is None else 0,
            release_s=None if problem is None else _late_releases(problem),
            held=() if problem is None else problem.held,
            plan_remaining=carried.plan_remaining,
            control=limits.control,
            progress=progress,
        )
    except SimulationError as error:
        raise SimulationError(f"scenario {setting.scenario.name!r}: {error}") from error


def _late_releases(problem: Problem) -> dict[str, float]:
    """Return when hosts' data are released that are not there from the start."""
    release = zip(problem.names, problem.release_s.tolist(), strict=True)
    return {name: at_s for name, at_s in release if at_s}
