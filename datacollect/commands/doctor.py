"""The command ``datacollect doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import emit, emit_json, emit_text, working
from datacollect.commands.options import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.transfer.doctor.checks import Finding
    from datacollect.transfer.doctor.patient import Patient

STOPS = 1


def doctor(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="File of a collection or of an agent, TOML or JSON."),
    ],
    into: Annotated[
        str,
        typer.Option("--into", metavar="DIR", help="For a collection: the folder of the pull."),
    ] = ".",
    as_json: Json = False,
) -> int:
    """Say what would keep a pull, or an agent, from working here, and how to mend it.

    Moves no data. Exit code 1 where a pull would stop, or the agent would not start.
    """
    from datacollect.transfer.doctor.checks import Level, examine

    patient = _patient(file, into)
    with working("looking"):
        rows = examine(patient)
    stops = any(finding.level is Level.STOPS for _, finding in rows)
    if as_json:
        emit_json(_tree(patient, rows, stops=stops))
    else:
        _show(patient, rows)
    return STOPS if stops else 0


def _patient(file: str, into: str) -> Patient:
    """Return what a file describes."""
    from datacollect.errors import ProblemError
    from datacollect.files.documents import COLLECTION_FORMAT, document_name, read_tree
    from datacollect.files.kinds import shown
    from datacollect.transfer.agent.config.fields import AGENT_FORMAT
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.doctor.patient import Patient
    from datacollect.transfer.pull.config.file import Collection

    if file == "-":
        raise ProblemError(
            "-: the doctor reads no standard input, since a file's folder matters; name a file"
        )
    tree = read_tree(file)
    found = tree.get("format") if isinstance(tree, dict) else None
    if found == AGENT_FORMAT:
        agent = AgentConfig.from_file(file)
        return Patient(document_name(file), agent.nonces.parent, agent=agent)
    if found == COLLECTION_FORMAT:
        collection = Collection.from_file(file)
        return Patient(document_name(file), Path(into), collection=collection)
    raise ProblemError(
        f'{document_name(file)}: format must be "{COLLECTION_FORMAT}" or "{AGENT_FORMAT}", got '
        f"{shown(found)}; the doctor checks collections and agents"
    )


def _tree(patient: Patient, rows: Sequence[tuple[str, Finding]], *, stops: bool) -> dict[str, Any]:
    return {
        "file": patient.file,
        "kind": patient.kind,
        "stops": stops,
        "lines": [
            {
                "check": name,
                "level": finding.level.value,
                "what": finding.what,
                "found": finding.found,
                "wanted": finding.wanted,
                "remedy": finding.remedy,
            }
            for name, finding in rows
        ],
    }


def _show(patient: Patient, rows: Sequence[tuple[str, Finding]]) -> None:
    from datacollect.files.units import counted
    from datacollect.transfer.doctor.checks import Level

    for _, finding in rows:
        emit_text(f"{finding.level.value:<5}  {finding.what}: {finding.found}", 7)
        if finding.wanted:
            emit_text(f"       wanted: {finding.wanted}", 9)
        if finding.remedy:
            emit_text(f"       remedy: {finding.remedy}", 9)
    n = {level: sum(each.level is level for _, each in rows) for level in Level}
    emit("")
    verdict = f"{n[Level.GOOD]} good, {counted(n[Level.NOTE], 'note')}, {n[Level.STOPS]} that stop"
    emit(f"{patient.kind} {patient.file}: {verdict}")
