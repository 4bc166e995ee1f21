"""``datacollect measure scan``: which window and how many connections a path needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import emit, note
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
    from datacollect.measuring.probes.window_scan import Cell, Choice

AUTO = "auto"


def scan(
    hosts_file: Hosts,
    senders: Senders = None,
    receivers: Receivers = None,
    streams: Annotated[
        list[int] | None,
        typer.Option(
            "--streams",
            metavar="N",
            min=1,
            max=64,
            help="Connections at a time; repeatable.  [default: 1, 2, 4, 8, 16]",
        ),
    ] = None,
    windows: Annotated[
        list[str] | None,
        typer.Option(
            "--window",
            metavar="BYTES",
            help="Most in flight on each connection, or auto: as kernels choose; repeatable.  "
            "[default: auto, 16 kB, 64 kB, 200 kB]",
        ),
    ] = None,
    seconds: Seconds = 10.0,
    most_bytes: MostBytes = "100 MB",
    folder: Folder = "samples",
    patience_s: Patience = NEVER_WAITED_LONGER_S,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Say by how few connections, and with which window, a path gets most of its rate."""
    from datacollect.measuring.operator.scan_tests import ScanSettings, cell_of, measure_scan
    from datacollect.measuring.plan.hosts_file import HostsFile
    from datacollect.measuring.probes.window_scan import choose

    hosts = HostsFile.from_file(hosts_file)
    pairs = pairs_of(hosts, senders, receivers)
    usual = ScanSettings()
    settings = ScanSettings(
        tuple(map(_window, dict.fromkeys(windows))) if windows else usual.windows_bytes,
        tuple(dict.fromkeys(streams or usual.streams)),
        seconds,
        bytes_in(most_bytes, "--bytes"),
    )
    n_tests, cost = len(settings.tests) * len(pairs), settings.cost.times(len(pairs))
    require_budget(hosts, n_tests, cost)
    if dry_run:
        say_tests(pairs, cost, as_json=as_json)
        return
    key, rows, choices = operator_key(hosts), [], []
    for sender, receiver in pairs:
        of_pair = []
        with at_test(folder, "scan", [(sender, receiver)]):
            for row in measure_scan(sender, receiver, key, settings, patience_s, note):
                of_pair.append(row)
                keep(folder, [row])
                if not as_json:
                    emit(f"{_in_words(cell_of(row))}: {TCP.line(row)}")
        choice = choose(map(cell_of, of_pair))
        rows += of_pair
        if choice is not None:
            choices.append({"from": sender.name, "to": receiver.name, **_facts(choice)})
            if not as_json:
                emit(f"{sender.name} → {receiver.name}: {_advice(choice)}")
    finish(folder, rows, as_json=as_json, choices=choices)


def _window(text: str) -> int | None:
    return None if text == AUTO else bytes_in(text, "--window")


def _in_words(cell: Cell) -> str:
    from datacollect.files.units import counted, format_bytes

    window = "windows as kernels choose"
    if cell.window_bytes is not None:
        window = f"windows of {format_bytes(cell.window_bytes)}"
    return f"{counted(cell.streams, 'stream')}, {window}"


def _advice(choice: Choice) -> str:
    from datacollect.files.units import format_rate
    from datacollect.measuring.probes.window_scan import ENOUGH

    chosen, most = (
        f"{_in_words(cell)} ({format_rate(cell.bandwidth_bytes_per_s)})"
        for cell in (choice.chosen, choice.most)
    )
    if choice.chosen == choice.most:
        return f"the most by {chosen}, and no fewer streams get {ENOUGH:.0%} of it"
    return f"{choice.part:.0%} of the most by {chosen}; the most by {most}"


def _facts(choice: Choice) -> dict[str, Any]:
    return {
        "streams": choice.chosen.streams,
        "window_bytes": choice.chosen.window_bytes,
        "bandwidth_bytes_per_s": choice.chosen.bandwidth_bytes_per_s,
        "most_bytes_per_s": choice.most.bandwidth_bytes_per_s,
    }
