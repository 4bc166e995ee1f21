"""Runs of problems whose sources make their data: simulated with hidden hosts, shown without.

In either engine a hidden host (`datacollect.flow.makers`) sends what its source makes over a link
of that rate, and the source passes it on, as a relay does. What is told of the run is the source's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.flow.makers import makers_of
from datacollect.methods.choice import METHODS
from datacollect.methods.execution import execution_of, n_connections
from datacollect.simulation.fluid.problem_network import ProblemNetwork

if TYPE_CHECKING:
    import pandas as pd

    from datacollect.flow.makers import Makers
    from datacollect.methods.execution import Execution, ExecutionOptions
    from datacollect.problem.problem import Problem
    from datacollect.scenario.setting import Setting
    from datacollect.schedule.schedule import Schedule
    from datacollect.simulation.run import Run


def engine_setting(setting: Setting) -> Setting:
    """Return what an engine is given: with hidden hosts where sources make their data."""
    network = setting.network
    if not isinstance(network, ProblemNetwork):
        return setting
    makers = makers_of(network.problem)
    if makers is None:
        return setting
    hidden = makers.expanded
    amounts = zip(hidden.names, hidden.backlog_bytes.tolist(), strict=True)
    return replace(
        setting,
        network=ProblemNetwork(hidden),
        backlog_bytes={name: n for name, n in amounts if n and name != hidden.destination},
        hosts=hidden.names,
        problem=hidden,
    )


def execution_with_makers(
    problem: Problem,
    how: ExecutionOptions,
    schedule: Schedule,
    relay_buffer_bytes: int | None,
    *,
    in_packets: bool,
) -> Execution:
    """Return what carries a collection out, as `execution_of` does.

    Raises
    ------
    ProblemError
        The method follows no plan: its connections end at sources, which cannot be told what is
        there yet.
    """
    makers = makers_of(problem)
    if makers is None:
        return execution_of(
            problem,
            how,
            schedule=schedule,
            relay_buffer_bytes=relay_buffer_bytes,
            in_packets=in_packets,
        )
    if METHODS.get(how.name).plan is None:
        source = problem.names[int(problem.makers[0])]
        raise ProblemError(
            f"problem: host {source!r} makes its data (produces_bytes_per_s), which method "
            f"{how.name!r} cannot follow; choose coordinated, best-path or direct"
        )
    routes, columns = makers.with_hidden(schedule.routes, schedule.columns)
    hidden = schedule.replace(
        routes=routes,
        columns=columns,
        hosts=makers.expanded.names,
        problem_sha256=makers.expanded.sha256,
    )
    carried = execution_of(
        makers.expanded,
        # One connection for each hop: what is made comes in one order, whatever its route.
        replace(how, shared_connections=True),
        schedule=hidden,
        relay_buffer_bytes=relay_buffer_bytes,
        in_packets=in_packets,
    )
    return carried._replace(schedule=schedule, connections=n_connections(schedule, how))


def run_without_hidden(run: Run, setting: Setting) -> Run:
    """Return a run as one of the sources alone."""
    network = setting.network
    makers = makers_of(network.problem) if isinstance(network, ProblemNetwork) else None
    if makers is None:
        return run
    finish_s: dict[str, float] = {}
    for name, at_s in run.source_finish_s.items():
        source = makers.source_of.get(name, name)
        # NaN, which nothing exceeds, is of what has not arrived.
        finish_s[source] = at_s if not finish_s.get(source, at_s) > at_s else finish_s[source]
    return replace(
        run,
        source_finish_s=finish_s,
        storage=_storage(run, makers),
        routes=_routes(run.routes, makers),
        wires=_without(run.wires, makers),
        connections=_without(run.connections, makers),
    )


def _without(table: pd.DataFrame, makers: Makers) -> pd.DataFrame:
    """Leave out what leads out of hidden hosts, or into what stands before their links."""
    hidden = table["from"].astype(str).isin(makers.source_of)
    hidden |= table["from"].astype(str).map(makers.said) != table["from"].astype(str)
    return table[~hidden].reset_index(drop=True)


def _routes(table: pd.DataFrame, makers: Makers) -> pd.DataFrame:
    left = _without(table, makers)
    left = left.assign(source=left["source"].map(lambda name: makers.source_of.get(name, name)))
    return left.groupby(["source", "from", "to"], sort=False, as_index=False).agg({"bytes": "sum"})


def _storage(run: Run, makers: Makers) -> pd.DataFrame:
    """A source's own data have come from its hidden host: as those of others, to the engine."""
    table = run.storage[~run.storage["host"].isin(makers.source_of)].reset_index(drop=True)
    for source in dict.fromkeys(makers.source_of.values()):
        own = [source, *(name for name, of in makers.source_of.items() if of == source)]
        passing = run.routes[(run.routes["from"] == source) & ~run.routes["source"].isin(own)]
        rows = table["host"] == source
        if not len(passing):
            table.loc[rows, "own_bytes"] += table.loc[rows, "others_bytes"]
            table.loc[rows, "others_bytes"] = 0.0
    return table
