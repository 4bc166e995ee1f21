"""``datacollect measure curve``: how a path's rate grows with the number of connections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.commands.console import emit, note, note_text
from datacollect.commands.measure_tools import (
    NEVER_WAITED_LONGER_S,
    DryRun,
    Folder,
    Hosts,
    MostBytes,
    Patience,
    Receivers,
    Seconds,
    Senders,
    bytes_in,
    finish,
    keep,
    line_of,
    operator_key,
    pairs_of,
    require_budget,
    say_tests,
)
from datacollect.commands.options import Json

if TYPE_CHECKING:
    from datacollect.commands.measure_tools import Pair


def curve(
    hosts_file: Hosts,
    senders: Senders = None,
    receivers: Receivers = None,
    seconds: Seconds = 5.0,
    most_bytes: MostBytes = "100 MB",
    folder: Folder = "samples",
    patience_s: Patience = NEVER_WAITED_LONGER_S,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Measure how rates grow with connections, and how many of others share the narrowest wire.

    Packet pairs tell the capacity; 1, 2 and 4 connections what we get of it. Where pairs do not
    tell it, 8 connections show how far the rate grows.
    """
    from datacollect.measurement.asking.curve_tests import CurveSettings, measure_curve
    from datacollect.measurement.hosts_file import HostsFile

    hosts = HostsFile.from_file(hosts_file)
    pairs = pairs_of(hosts, senders, receivers)
    settings = CurveSettings(seconds, bytes_in(most_bytes, "--bytes"))
    cost = settings.cost.times(len(pairs))
    require_budget(hosts, len(pairs), cost)
    if dry_run:
        say_tests(pairs, cost, as_json=as_json)
        return
    key, rows = operator_key(hosts), []
    for pair in pairs:
        capacity = _known_capacity(Path(folder), pair)
        for row in measure_curve(*pair, key, settings, patience_s, note, capacity):
            keep(folder, [row])
            rows.append(row)
            if not as_json:
                emit(_line(row))
    finish(folder, rows, as_json=as_json)


def _known_capacity(folder: Path, pair: Pair) -> float | None:
    """Return the capacity that packet pairs have told last; None, and say so, where none have."""
    from datacollect.measurement.sample_store import DONE, read_parts

    tail, head = (host.name for host in pair)
    table = read_parts(folder).frame if folder.is_dir() else None
    if table is not None:
        is_ours = (table["from"] == tail) & (table["to"] == head) & (table["tool"] == "pairs")
        known = table[is_ours & (table["ended"] == DONE)].sort_values("time_s")
        if (capacities := known["capacity_bytes_per_s"].dropna()).size:
            return float(capacities.iloc[-1])
    note_text(f"note: {tail} → {head}: packet pairs have not told the capacity")
    return None


def _line(row: dict[str, Any]) -> str:
    from datacollect.files.units import format_rate
    from datacollect.measurement.measured_curves import CURVE
    from datacollect.measurement.sample_store import DONE

    if row["tool"] != CURVE or row["ended"] != DONE:
        return line_of(row)
    pair = f"{row['from']} → {row['to']}"
    if row["competitors"] is None:
        return f"{pair}: one connection gets {format_rate(row['per_connection_bytes_per_s'])}"
    return (
        f"{pair}: of {format_rate(row['capacity_bytes_per_s'])} beside "
        f"{row['competitors']:.1f} connections of others"
    )
