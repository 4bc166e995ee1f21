"""Schedule files: JSON, or Parquet with a row per transfer."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.documents import (
    SCHEDULE_FORMAT,
    decode,
    document_name,
    parse_json,
    read_bytes,
    read_tree,
    write_atomically,
)
from datacollect.files.kinds import shown_text
from datacollect.schedule.data.contents import ScheduleContents
from datacollect.schedule.data.fields import SCHEDULE
from datacollect.schedule.data.transfers import (
    UNKNOWN,
    Bottleneck,
    Route,
    Transfers,
    Turns,
    bottleneck_tree,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

# Key of the Parquet schema's metadata under which all but the transfers lies, as JSON.
PARQUET_KEY = b"datacollect-schedule"


def tree_of(schedule: ScheduleContents) -> dict[str, Any]:
    """Return the tree of a schedule file.

    Besides the transfers it holds what is known about them: status, bottleneck, plan_time_s, and
    what the plan was asked for.
    """
    columns = schedule.columns
    routes = [(route.source, list(route.hosts)) for route in schedule.routes]
    bottleneck = schedule.bottleneck
    tree = {
        "format": SCHEDULE_FORMAT,
        "method": schedule.method,
        "destination": schedule.destination,
        "makespan_s": float(schedule.makespan_s),
        "lower_bound_s": float(schedule.lower_bound_s),
        "slot_s": None if schedule.slot_s is None else float(schedule.slot_s),
        "chunk_s": None if schedule.chunk_s is None else float(schedule.chunk_s),
        "solver": schedule.solver,
        "problem_sha256": schedule.problem_sha256,
        "status": schedule.status,
        "bottleneck": None,
        "plan_time_s": float(schedule.plan_time_s),
        "prefer": schedule.prefer,
        "deadline_s": None if schedule.deadline_s is None else float(schedule.deadline_s),
        "turns": None,
        "hysteresis": None if schedule.hysteresis is None else float(schedule.hysteresis),
        "first": schedule.first,
        "derate": None if schedule.derate is None else float(schedule.derate),
        "most_transfers": schedule.most_transfers,
    }
    if schedule.connections is not None:
        tree["connections"] = schedule.connections
    if schedule.cautious:
        tree["cautious"] = True
    if schedule.most_by_s is not None:
        tree["most_by_s"] = float(schedule.most_by_s)
    if schedule.margin_s is not None:
        tree["margin_s"] = float(schedule.margin_s)
    if schedule.starts_at is not None:
        tree["starts_at"] = schedule.starts_at
    if schedule.hosts:
        tree["hosts"] = list(schedule.hosts)
    if schedule.turns is not None:
        tree["turns"] = {**asdict(schedule.turns), "order": list(schedule.turns.order)}
    if bottleneck != UNKNOWN:
        tree["bottleneck"] = bottleneck_tree(bottleneck)
    for key, value in tree.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ProblemError(f"schedule: {key} must be finite to be written, got {value}")
    names = ("route", "hop", "offset_bytes", "n_bytes", "start_s", "finish_s", "streams")
    rows = zip(*(getattr(columns, name).tolist() for name in names), strict=True)
    tree["transfers"] = [
        {
            "source": routes[route][0],
            "route": list(routes[route][1]),
            "hop": hop,
            "offset_bytes": offset,
            "bytes": size,
            "start_s": start,
            "finish_s": finish,
            "streams": streams,
        }
        for route, hop, offset, size, start, finish, streams in rows
    ]
    return tree


def contents_of(tree: Mapping[str, Any]) -> ScheduleContents:
    """Return what the tree of a schedule file says.

    Raises
    ------
    ProblemError
        Malformed. A well-formed schedule that breaks a rule is found by `Schedule.check`.
    """
    values = SCHEDULE.read(tree)
    rows = values.pop("transfers")
    del values["format"]
    number: dict[Route, int] = {}
    route_of_row = []
    for i, row in enumerate(rows):
        route = Route(row["source"], tuple(row["route"]))
        if row["hop"] >= route.n_hops:
            raise ProblemError(
                f"transfers[{i}].hop must be below {route.n_hops}, the route's number of hops, "
                f"got {row['hop']}; hops count from 0"
            )
        route_of_row.append(number.setdefault(route, len(number)))
    bottleneck, turns = values.pop("bottleneck"), values.pop("turns")
    hosts = tuple(values.pop("hosts"))
    return ScheduleContents(
        **values,
        hosts=hosts,
        routes=tuple(number),
        columns=_columns(rows, route_of_row),
        bottleneck=UNKNOWN
        if bottleneck is None
        else Bottleneck(bottleneck["kind"], tuple(bottleneck["hosts"]), bottleneck["text"]),
        turns=None
        if turns is None
        else Turns(tuple(turns["order"]), turns["at_a_time"], turns["time_slot_s"]),
    )


def read_tree_of(path: str | PathLike[str], remedy: str) -> Any:
    """Read the tree of a schedule file: JSON, or Parquet where the name ends in ``.parquet``.

    Raises
    ------
    ProblemError
        It cannot be read, or is no file of that kind.
    """
    return _read_parquet(path) if _is_parquet(path) else read_tree(path, remedy)


def write(schedule: ScheduleContents, path: str | PathLike[str]) -> None:
    """Write a schedule as JSON, or as Parquet where the name ends in ``.parquet``.

    The file appears complete or not at all: it is written beside and then renamed.

    Raises
    ------
    ProblemError
        It cannot be written there.
    """
    tree = tree_of(schedule)
    write_atomically(path, _parquet_bytes(tree) if _is_parquet(path) else _json_bytes(tree))


def _is_parquet(path: str | PathLike[str]) -> bool:
    return Path(path).suffix.lower() == ".parquet"


def _columns(rows: list[dict[str, Any]], route: list[int]) -> Transfers:
    columns: dict[str, Any] = {"route": np.array(route, dtype=np.int64)}
    for key in ("hop", "offset_bytes", "bytes", "start_s", "finish_s", "streams"):
        kind = float if key.endswith("_s") else np.int64
        columns["n_bytes" if key == "bytes" else key] = np.array([r[key] for r in rows], dtype=kind)
    # Stable: what was written sorted is read back in the same order.
    order = np.argsort(columns["start_s"], kind="stable")
    return Transfers(**{name: column[order] for name, column in columns.items()})


def _json_bytes(tree: dict[str, Any]) -> bytes:
    """Write JSON with a line for each transfer."""

    def dump(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)

    head = dump({key: value for key, value in tree.items() if key != "transfers"}, 1)
    rows = ",\n".join(f"  {dump(row)}" for row in tree["transfers"])
    return f'{head[:-2]},\n "transfers": [\n{rows}\n ]\n}}\n'.encode()


def _parquet_bytes(tree: dict[str, Any]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    rows = tree["transfers"]
    whole = ("hop", "offset_bytes", "bytes", "streams")
    kinds = {"source": pa.string(), "route": pa.list_(pa.string())}
    kinds |= dict.fromkeys(whole, pa.int64()) | dict.fromkeys(("start_s", "finish_s"), pa.float64())
    others = {key: value for key, value in tree.items() if key != "transfers"}
    schema = pa.schema(kinds, metadata={PARQUET_KEY: json.dumps(others, allow_nan=False)})
    table = pa.table({key: [row[key] for row in rows] for key in kinds}, schema=schema)
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def _read_parquet(path: str | PathLike[str]) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import parquet

    name = document_name(path)
    data = read_bytes(path)
    try:
        table = parquet.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise ProblemError(
            f"{name}: not a Parquet file: {shown_text(str(error))}; name a .json file otherwise"
        ) from None
    metadata = table.schema.metadata or {}
    if PARQUET_KEY not in metadata:
        raise ProblemError(
            f"{name}: no schedule: metadata {PARQUET_KEY.decode()} is missing; write it with "
            "`datacollect plan -o`"
        )
    others = parse_json(decode(metadata[PARQUET_KEY], name), name)
    return {**others, "transfers": table.to_pylist()}
