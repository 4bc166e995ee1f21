"""One run of an experiment as a row of the results, and as the document that is kept of it."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.methods.choice import spec_of
from datacollect.methods.options.spec import IN_ALL
from datacollect.schedule.data.transfers import UNKNOWN
from datacollect.study.columns import BACKGROUND, COLUMNS, REAL, TEXT
from datacollect.study.peering import moved_bytes, planned_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from datacollect.scenario.outcome import Outcome
    from datacollect.schedule.schedule import Schedule
    from datacollect.simulation.run import Run

RUN_FORMAT = "datacollect-sweep-run/1"

MOST_POINTS = 200


def row_of(outcome: Outcome, key: str, labels: Mapping[str, str], seed: int) -> dict[str, Any]:
    """Return what a run's row of the results says.

    Parameters
    ----------
    outcome : Outcome
    key : str
        Hash of all that shaped the run.
    labels : mapping of str to str
        Label of each axis, by its name.
    seed : int

    Returns
    -------
    dict
        The axes, then `COLUMNS`; missing values are NaN. ``storage_mean`` and
        ``storage_max`` are the most that a source stores, its own data included, over its backlog,
        which is what direct stores there: mean and largest of the sources. ``storage_bytes`` is
        that most in bytes, the mean of the sources. ``peering_bytes`` and
        ``planned_peering_bytes`` are what the collection moved over each peering wire, and what
        the schedule has there (`datacollect.study.peering`). ``tcp_loss`` is the part of their
        rate that others' TCP flows lose while the collection lasts, against before, and
        ``tcp_lost_bytes`` what they lose in all; NaN where there are none. ``reference_s``
        is what adaptive is measured against (`datacollect.scenario.reference`).
    """
    run, schedule, measurement = outcome.run, outcome.schedule, outcome.measurement
    backlog, prediction = outcome.setting.backlog_bytes, outcome.prediction
    peaks = _peaks(run, backlog)
    over = [peak / backlog[host] for host, peak in peaks.items()]
    row = {
        "key": key,
        "seed": seed,
        "engine": run.engine,
        "method": labels.get("method", schedule.method),
        "complete": bool(run.complete),
        "makespan_s": run.makespan_s,
        "predicted_s": math.nan if outcome.predicted_s is None else outcome.predicted_s,
        "lower_bound_s": schedule.lower_bound_s,
        "reference_s": _reference_s(outcome),
        "predicted_low_s": math.nan if prediction is None else prediction.low_s,
        "predicted_high_s": math.nan if prediction is None else prediction.high_s,
        "connections": outcome.connections,
        "collected_bytes": run.collected_bytes,
        "storage_mean": float(np.mean(over)) if over else math.nan,
        "storage_max": max(over, default=math.nan),
        "storage_bytes": float(np.mean(list(peaks.values()))) if peaks else math.nan,
        "peering_bytes": moved_bytes(run, outcome.setting),
        "planned_peering_bytes": planned_bytes(schedule, outcome.setting),
        **_background(run),
        "dropped_packets": _sum(run.wires, "dropped_packets"),
        "retransmissions": _sum(run.connections, "retransmissions"),
        "stalls": _sum(run.connections, "stalls"),
        "busiest_wire": _busiest(run.wires),
        "events": run.events,
        "plan_time_s": schedule.plan_time_s,
        "cpu_s": run.cpu_s,
        "probes_cpu_s": 0.0 if measurement is None else measurement.cost["cpu_s"],
        "finished_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }
    return {**labels, **{column: row[column] for column in COLUMNS}}


def document_of(outcome: Outcome, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a run: its row, what shaped it, its schedule, storage over time."""
    settings = dict(outcome.run.settings)
    return {
        "format": RUN_FORMAT,
        "row": dict(row),
        "scenario": settings.pop("scenario"),
        "settings": settings,
        "schedule": _schedule_tree(outcome.schedule),
        "storage": _storage_curves(outcome),
    }


def table_of(rows: Iterable[Mapping[str, Any]], axes: Sequence[str]) -> pd.DataFrame:
    """Return rows as a table sorted by key, each column of one kind whatever is in it."""
    import pandas as pd

    kinds = {axis: TEXT for axis in axes if axis not in COLUMNS} | COLUMNS
    table = pd.DataFrame(list(rows))
    table = table.reindex(columns=list(kinds))
    numbers = [column for column, kind in kinds.items() if kind == REAL]
    table[numbers] = table[numbers].apply(pd.to_numeric)
    return table.astype(kinds).sort_values("key", ignore_index=True)


def rows_by_key(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the rows of a table by their keys; none where columns are missing."""
    if not set(COLUMNS) <= set(table.columns):
        return {}
    rows = table.to_dict("records")
    return {row["key"]: {str(name): value for name, value in row.items()} for row in rows}


def _peaks(run: Run, backlog_bytes: Mapping[str, int]) -> dict[str, float]:
    """Most that each source stores, its own data included, in bytes."""
    storage = run.storage
    peak = (storage["own_bytes"] + storage["others_bytes"]).groupby(storage["host"]).max()
    return {host: float(peak[host]) for host, n in backlog_bytes.items() if n}


def _reference_s(outcome: Outcome) -> float:
    """Say what is measured against whose connections move; of other methods it says nothing new."""
    from datacollect.scenario.reference import reference_s

    controller = spec_of(outcome.schedule.method).controller
    if controller is None or controller.connections_per != IN_ALL:
        return math.nan
    return reference_s(outcome.setting, outcome.connections)


def _background(run: Run) -> dict[str, float]:
    from datacollect.scenario.outcome_files import background_by_kind, harm_of

    found = background_by_kind(run)
    rates = {
        column: found.get(kind, {}).get(phase, math.nan)
        for column, (kind, phase) in BACKGROUND.items()
    }
    return rates | harm_of(run)


def _sum(table: pd.DataFrame, column: str) -> float:
    """Sum; NaN where the engine does not count."""
    return math.nan if table.empty else float(table[column].sum(skipna=False))


def _busiest(wires: pd.DataFrame) -> str:
    if wires.empty:
        return ""
    busiest = wires.iloc[int(wires["utilisation"].to_numpy().argmax())]
    return f"{busiest['from']} -> {busiest['to']}"


def _schedule_tree(schedule: Schedule) -> dict[str, Any]:
    """The schedule, its transfers as columns."""
    columns = schedule.columns
    names = ("route", "hop", "n_bytes", "start_s", "finish_s", "streams")
    return {
        "method": schedule.method,
        "destination": schedule.destination,
        "makespan_s": schedule.makespan_s,
        "lower_bound_s": schedule.lower_bound_s,
        "status": schedule.status,
        "solver": schedule.solver,
        "bottleneck": "" if schedule.bottleneck == UNKNOWN else schedule.bottleneck.text,
        "routes": [[route.source, list(route.hosts)] for route in schedule.routes],
        "transfers": {name: getattr(columns, name).tolist() for name in names},
    }


def _storage_curves(outcome: Outcome) -> dict[str, dict[str, list[float]]]:
    """Others' bytes over time at each host that ever has any, at `MOST_POINTS` instants at most."""
    curves = {}
    for host, rows in outcome.run.storage.groupby("host"):
        others = rows["others_bytes"].to_numpy()
        if host == outcome.setting.destination or not others.max() > 0:
            continue
        # The highest point stays.
        kept = np.linspace(0, len(others) - 1, min(len(others), MOST_POINTS - 1)).round()
        at = np.union1d(kept.astype(np.int64), others.argmax())
        curves[str(host)] = {
            "time_s": rows["time_s"].to_numpy()[at].round(3).tolist(),
            "others_bytes": others[at].round().tolist(),
        }
    return curves
