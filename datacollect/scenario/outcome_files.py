"""Files of an outcome: what a run measured, as one JSON object and in a folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.documents import not_made, write_atomically

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

    from datacollect.scenario.outcome import Outcome
    from datacollect.simulation.run import Run

TABLES = ("storage", "routes", "background", "wires", "connections")
FORMATS = ("csv", "parquet")
RUN_FORMAT = "datacollect-run/1"


def outcome_to_dict(outcome: Outcome) -> dict[str, Any]:
    """Return the object that ``datacollect simulate --json`` prints; missing numbers are None.

    Curves over time and the log of connections are tables of the run, not in it; `write_outcome`
    adds them.

    Examples
    --------
    >>> from datacollect.scenario.carry_out import carry_out
    >>> wires = [{"a": "N", "b": "M", "rate_bytes_per_s": 1e6}]
    >>> hosts = {"destination": {"at": "M"}, "sources": [{"at": "N", "backlog_bytes": 1_000_000}]}
    >>> scenario = {"topology": {"kind": "explicit", "wires": wires}, "hosts": hosts}
    >>> tree = outcome_to_dict(carry_out(scenario, engine="fluid", time_limit_s=0.1))
    >>> tree["complete"], tree["makespan_s"], tree["source_finish_s"]
    (False, None, {'S1': None})
    """
    run, predicted = outcome.run, outcome.schedule.makespan_s
    peaks = run.peak_storage_bytes()
    tree = {
        "format": RUN_FORMAT,
        "engine": run.engine,
        "complete": run.complete,
        "makespan_s": run.makespan_s,
        "predicted_makespan_s": predicted,
        "measured_over_predicted": run.makespan_s / predicted if predicted else None,
        "collected_bytes": run.collected_bytes,
        "source_finish_s": run.source_finish_s,
        "peak_storage_bytes": {
            host: {"own": round(own), "others": round(others)}
            for host, own, others in zip(
                peaks.index, peaks["own_bytes"], peaks["others_bytes"], strict=True
            )
        },
        "background_bytes_per_s": background_by_kind(run),
        "harm": harm_of(run),
        "routes": run.routes.to_dict("records"),
        "busiest_wires": _busiest(run.wires),
        "dropped_packets": _total(run.wires, "dropped_packets"),
        "retransmissions": _total(run.connections, "retransmissions"),
        "stalls": _total(run.connections, "stalls"),
        "n_connections": len(run.connections),
        "events": run.events,
        "cpu_s": run.cpu_s,
        "settings": run.settings,
    }
    plain: dict[str, Any] = plain_tree(tree)
    return plain


def background_by_kind(run: Run) -> dict[str, dict[str, float]]:
    """Return the goodput of all background flows of a kind together, by kind and phase."""
    table = run.background
    totals: dict[str, dict[str, float]] = {}
    for (kind, phase), rates in table.groupby(["kind", "phase"])["goodput_bytes_per_s"]:
        totals.setdefault(str(kind), {})[str(phase)] = float(rates.sum(skipna=False))
    return totals


def harm_of(run: Run) -> dict[str, float]:
    """Return what others' TCP flows lose while a collection lasts, against before it.

    Returns
    -------
    dict
        ``tcp_loss``, a part of their rate, and ``tcp_lost_bytes``; NaN where there are none, or the
        run is incomplete.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import pandas as pd
    >>> rows = [(0, "tcp", "before", 100.0), (0, "tcp", "during", 75.0), (0, "tcp", "after", 100.0)]
    >>> names = ["flow", "kind", "phase", "goodput_bytes_per_s"]
    >>> harm_of(SimpleNamespace(background=pd.DataFrame(rows, columns=names), makespan_s=8.0))
    {'tcp_loss': 0.25, 'tcp_lost_bytes': 200.0}
    """
    tcp = background_by_kind(run).get("tcp", {})
    before, during = tcp.get("before", math.nan), tcp.get("during", math.nan)
    return {
        "tcp_loss": 1 - during / before if before > 0 else math.nan,
        "tcp_lost_bytes": (before - during) * run.makespan_s,
    }


def outcome_files(tables: str) -> list[str]:
    """Return the names of all files that `write_outcome` may write."""
    frames = [f"{name}.{tables}" for name in (*TABLES, "samples")]
    return ["run.json", "problem.json", "schedule.json", *frames]


def write_outcome(outcome: Outcome, folder: str | PathLike[str], tables: str = "csv") -> list[Path]:
    """Write a run and what led to it into a folder, which is made if need be.

    Parameters
    ----------
    outcome : Outcome
    folder : path-like
    tables : {"csv", "parquet"}

    Returns
    -------
    list of Path
        ``run.json``, with all tables by columns; each table by itself; ``problem.json`` and
        ``schedule.json``, which the other commands take; ``samples``, where estimates were
        measured.

    Raises
    ------
    ProblemError
        A file cannot be written.
    """
    if tables not in FORMATS:
        raise ProblemError(f"tables must be one of {', '.join(FORMATS)}, got {tables!r}")
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_made(folder, error) from None
    frames = {name: getattr(outcome.run, name) for name in TABLES}
    if outcome.measurement is not None:
        frames["samples"] = outcome.measurement.samples
    written = [root / "run.json", root / "problem.json", root / "schedule.json"]
    columns = {name: frame.to_dict("list") for name, frame in frames.items()}
    _write_json(written[0], outcome_to_dict(outcome) | {"tables": plain_tree(columns)})
    _write_json(written[1], outcome.problem.to_dict())
    outcome.schedule.to_file(written[2])
    for name, frame in frames.items():
        file = root / f"{name}.{tables}"
        write_atomically(file, _encoded(frame, tables))
        written.append(file)
    return written


def _encoded(frame: pd.DataFrame, tables: str) -> bytes:
    if tables == "parquet":
        import io

        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        return buffer.getvalue()
    return bytes(frame.to_csv(index=False, lineterminator="\n").encode())


def _write_json(file: Path, tree: Mapping[str, Any]) -> None:
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False, indent=2)
    write_atomically(file, f"{text}\n".encode())


def _busiest(wires: pd.DataFrame, n: int = 10) -> list[dict[str, Any]]:
    if wires.empty:
        return []
    top = wires.sort_values("utilisation", ascending=False, kind="stable").head(n)
    return [{str(key): value for key, value in row.items()} for row in top.to_dict("records")]


def _total(table: pd.DataFrame, column: str) -> float | None:
    if table.empty or table[column].isna().any():
        return None
    return int(table[column].sum())


def plain_tree(value: Any) -> Any:
    """Return a tree in Python's own types; what is not finite becomes None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain_tree(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_tree(item) for item in value]
    return value
