"""``datacollect host calibrate``: what bytes cost this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.brought import CommandSpec
from datacollect.commands.console import complain_text, emit, emit_facts, emit_json, note, working
from datacollect.commands.conversion import TIME
from datacollect.commands.options import Json
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.machine.profile import HostProfile

REFUSED = 1


def calibrate(
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="PROFILE", help="File of the profile, TOML."),
    ],
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar=TIME, help="About how long all measurements may take."),
    ] = 60.0,
    disk: Annotated[
        str | None,
        typer.Option(
            "--disk",
            metavar="FOLDER",
            help="Folder on the disk that pulls write to. Default: the folder of PROFILE.",
        ),
    ] = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway",
            help="Measure TCP, TLS and disk even if other programs are busy; the profile says so.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Measure what bytes cost this machine, into a profile."""
    from datacollect.files.documents import write_atomically
    from datacollect.measuring.hosts.calibrating import LEAST_S, calibrated
    from datacollect.measuring.hosts.disk_writes import require_disk

    if not LEAST_S <= seconds <= 3600:
        raise ProblemError(
            f"--seconds must be from {LEAST_S:g} to 3600, got {seconds:g}; 60 give each number "
            "five repeats"
        )
    path = Path(output)
    if path.is_dir():
        raise ProblemError(f"-o {output}: is a folder; name a file")
    if not path.parent.is_dir():
        raise ProblemError(f"-o {output}: its folder does not exist; make the folder first")
    folder = str(path.parent) if disk is None else disk
    require_disk(folder)
    with working("measuring this machine"):
        profile = calibrated(folder, seconds, anyway=anyway, tell=lambda what: note(f"  {what}"))
    write_atomically(path, profile.to_toml().encode())
    if as_json:
        emit_json(profile.to_dict())
    else:
        _show(profile, output)
    for work, why in profile.refused.items():
        complain_text(f"refused: {work}: {why}")
    if profile.refused:
        complain_text(
            "all other measurements are written; measure again when the machine is idle, or with "
            "--anyway: predictions then say so"
        )
    return REFUSED if profile.refused else 0


def _show(profile: HostProfile, output: str) -> None:
    from datacollect.files.units import format_bytes
    from datacollect.machine.parts import DISK, TLS
    from datacollect.machine.throughput import rounded_rate

    parts = profile.parts
    rows = [("processors", f"{parts.processors:g}, {profile.seen.get('processor', '')}")]
    for cost in parts.costs:
        per_gib = f"{cost.s_per_gib:.2g} s per GiB"
        if cost.unit:
            per_gib += f", {cost.us_per_unit:.2g} µs a {cost.unit}"
        between = f"({cost.low_s_per_gib:.2g} to {cost.high_s_per_gib:.2g})"
        rows.append((f"{cost.work} {cost.end}", f"{per_gib} {between}, over {cost.over}"))
    for rate in parts.rates:
        size = f", {format_bytes(rate.block_bytes)} each" if rate.block_bytes else ""
        words = f"{rounded_rate(rate.bytes_per_s)}, {rate.at_once} at once{size}"
        rows.append((f"{rate.of} carries", words))
    rows.append(("others were busy", f"{parts.load:.0%} of all processors at most"))
    emit_facts(rows)
    if not {TLS, DISK} & profile.refused.keys():
        emit(f"next: datacollect host predict {output} --tls --to-disk")


COMMAND = CommandSpec("calibrate", calibrate)
