"""``datacollect measure flood``: what a host sends, or receives, in all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit, note, note_text
from datacollect.commands.options import Json
from datacollect.measuring.commands.tools import (
    NEVER_WAITED_LONGER_S,
    DryRun,
    Folder,
    Hosts,
    MostBytes,
    Patience,
    Receivers,
    Seconds,
    Senders,
    at_test,
    bytes_in,
    finish,
    keep,
    operator_key,
    pairs_of,
    require_budget,
    say_tests,
)
from datacollect.measuring.operator.tcp_tests import TCP

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of the time of a test: who is done before was not beside the others for all of it.
AT_ONCE = 0.8


def flood(
    hosts_file: Hosts,
    senders: Senders = None,
    receivers: Receivers = None,
    streams: Annotated[
        int,
        typer.Option(
            "--streams", metavar="N", min=1, max=64, help="Connections of each pair of hosts."
        ),
    ] = 1,
    seconds: Seconds = 10.0,
    most_bytes: MostBytes = "100 MB",
    folder: Folder = "samples",
    patience_s: Patience = NEVER_WAITED_LONGER_S,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Measure what one host sends to several at once, or receives from several.

    With --from alone it sends to all others, with --to alone it receives from all.
    """
    from datacollect.files.units import counted, format_rate
    from datacollect.measuring.operator.flood_tests import flooded_host, measure_flood
    from datacollect.measuring.operator.tcp_tests import TcpSettings
    from datacollect.measuring.plan.budget import Cost
    from datacollect.measuring.plan.hosts_file import HostsFile

    hosts = HostsFile.from_file(hosts_file)
    if senders and not receivers:
        receivers = [name for name in hosts.hosts if name not in senders]
    pairs = pairs_of(hosts, senders, receivers)
    host = flooded_host([(sender.name, receiver.name) for sender, receiver in pairs])
    settings = TcpSettings(streams, seconds, bytes_in(most_bytes, "--bytes"))
    cost = Cost(settings.cost.n_bytes * len(pairs), settings.cost.seconds)
    require_budget(hosts, len(pairs), cost, "all at once")
    if dry_run:
        say_tests(pairs, cost, as_json=as_json)
        return
    with at_test(folder, "flood", pairs):
        rows = measure_flood(pairs, operator_key(hosts), settings, patience_s, note)
    keep(folder, rows)
    rates = [row.get("bandwidth_bytes_per_s") or 0.0 for row in rows if row["ended"] == "done"]
    if not as_json:
        for row in rows:
            emit(TCP.line(row))
        does = "sends" if host == pairs[0][0].name else "receives"
        at_once = counted(len(rates), "host")
        emit(f"{host} {does} {format_rate(sum(rates))} in all, with {at_once} at once")
    if any((row.get("duration_s") or seconds) < AT_ONCE * seconds for row in rows):
        note_text(
            "note: some tests sent all their bytes before the time was over, so the others had "
            f"more bandwidth afterwards: give more --bytes{_enough(rates, seconds)}"
        )
    together = {"host": host, "together_bytes_per_s": sum(rates), "n_done": len(rates)}
    finish(folder, rows, as_json=as_json, **together)


def _enough(rates_bytes_per_s: Sequence[float], seconds: float) -> str:
    """Say how many bytes the fastest test would have sent in all its time, in two digits.

    >>> _enough([1e6, 1_234_567.0], 10.0), _enough([], 10.0)
    (', 13 MB or more', '')
    """
    from datacollect.files.units import format_bytes

    most = max(rates_bytes_per_s, default=0.0) * seconds
    if most < 1:
        return ""
    digit = 10.0 ** (math.floor(math.log10(most)) - 1)
    return f", {format_bytes(math.ceil(most / digit) * digit)} or more"
