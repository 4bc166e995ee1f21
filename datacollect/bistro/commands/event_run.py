"""The commands ``datacollect event run`` and ``event status``."""

from __future__ import annotations

import json
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit, emit_json, emit_table, emit_text, note
from datacollect.commands.ending import Terminated, ending_on_sigterm
from datacollect.commands.options import Json
from datacollect.commands.streams import complain
from datacollect.commands.streams import emit as emit_line
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.bistro.destination.run.evidence import Evidence
    from datacollect.bistro.destination.run.standing import Standing
    from datacollect.bistro.http.config import DestinationConfig
    from datacollect.bistro.log_service.server.verdict_log import VerdictLog

# Of a piece of evidence, which may hold what was signed, whole.
MOST_CHARACTERS = 200

EventFile = Annotated[str, typer.Argument(metavar="EVENT", help="The event's file, as published.")]
DestinationFile = Annotated[
    str,
    typer.Option("--destination", metavar="FILE", help="File of the destination, TOML."),
]


def run(
    event_file: EventFile,
    destination: DestinationFile,
    once: Annotated[
        bool, typer.Option("--once", help="Do what can be done now, and stop.")
    ] = False,
    page: Annotated[
        int | None,
        typer.Option(
            "--page",
            metavar="PORT",
            min=0,
            max=65535,
            help="Show progress in a browser on this host; 0: any free port.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Collect what people have handed in, and say for everybody what became of it.

    Fetches from the event's bistros while people still push, opens, checks, writes verdicts into
    a log that witnesses sign, and lets bistros go what is covered. Says when it is ready; its log
    goes to standard error, a JSON object per line. Ends by itself after collect_until, or on
    SIGTERM; started again it goes on. SIGHUP rereads its certificate.

    Exit 0: all is collected, as `event status` finds it, or it was ended; 1: something is lacking,
    and it says what.
    """
    from datacollect.bistro.destination.run.event_run import run_event
    from datacollect.bistro.http.config import DestinationConfig

    def ready(url: str | None, overview: str | None) -> None:
        if as_json:
            emit_line(json.dumps({"url": url, "page": overview}))
            return
        emit_line("collecting" if url is None else f"collecting; verdicts are read at {url}")
        if overview is not None:
            emit_line(f"progress: {overview}")

    with _rereading() as begun:
        try:
            with ending_on_sigterm():
                found = run_event(
                    event_file, destination, ready, _say, once=once, page=page, begun=begun
                )
        except Terminated:
            return 0
    evidence = _evidence(DestinationConfig.from_file(destination), found, int(time.time()))
    if not as_json:
        _show(found)
        _show_lacks(evidence)
    return evidence.exit_code


def status(
    destination: Annotated[
        str, typer.Argument(metavar="DESTINATION", help="File of the destination, TOML.")
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Read files again, and compare their hashes.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Say how far an event is: what is collected, waits, is refused or missing, and who has lied.

    Looks for each file on this disk, and in the register for what should be here. Exit 0: the
    deadline has passed, all logs are read, and all that is in time lies here, as long as it was
    written, or has another verdict that is published; 1: it says what is missing, by whose doing,
    and what to do, also where files lie on another machine; 2: nothing was begun; 3: the disk or
    the database fails.
    """
    from datacollect.bistro.destination.run.standing import (
        FORMAT,
        MISSING_FILE,
        STANDING_FILE,
        is_at_work,
        read_standing,
    )
    from datacollect.bistro.http.config import DestinationConfig
    from datacollect.errors import ProblemError
    from datacollect.files.units import format_duration

    config = DestinationConfig.from_file(destination)
    is_running = is_at_work(config.folder)
    try:
        found = read_standing(config.folder)
    except ProblemError:
        # Others may have collected with the same register, somewhere else.
        evidence = None if (config.folder / STANDING_FILE).exists() else _elsewhere(config)
        if evidence is None:
            raise
        if as_json:
            emit_json({"format": FORMAT, **evidence.to_dict(), "running": is_running})
        else:
            _show_lacks(evidence)
        return evidence.exit_code
    now_s = int(time.time())
    evidence = _evidence(config, found, now_s, is_running=is_running, is_read=verify)
    age_s = max(now_s - found.time_s, 0)
    if as_json:
        facts = {"age_s": age_s, "running": is_running}
        emit_json({**found.to_dict(), **evidence.to_dict(), **facts})
        return evidence.exit_code
    _show(found)
    _show_lacks(evidence)
    if found.missing:
        note(f"which ones: {config.folder / MISSING_FILE}")
    ago = f"written {format_duration(age_s)} ago"
    note(f"{ago}; event run is running" if is_running else ago)
    return evidence.exit_code


def _evidence(
    config: DestinationConfig,
    found: Standing,
    now_s: int,
    *,
    is_running: bool = False,
    is_read: bool = False,
) -> Evidence:
    """Look for all that should be here, on this disk and in the register."""
    from datacollect.bistro.destination.place import Place
    from datacollect.bistro.destination.register_reading import reading
    from datacollect.bistro.destination.run.evidence import evidence_of, evidence_of_cancelled
    from datacollect.bistro.destination.run.moved_deadline import moved_to_s
    from datacollect.bistro.destination.run.standing import read_missing

    missing, here = read_missing(config.folder), Place.of(config.folder)

    def look(moved_s: int | None = None) -> Evidence:
        with reading(config.register, found.event) as rows:
            if found.cancelled is not None:
                return evidence_of_cancelled(found, rows, here, config.folder, is_read=is_read)
            return evidence_of(
                found,
                missing,
                rows,
                here,
                config.folder,
                now_s=now_s,
                is_running=is_running,
                is_read=is_read,
                moved_to_s=moved_s,
            )

    evidence = look()
    # Asked only where all else is there: it may take some seconds.
    if not evidence.lacks and (moved_s := moved_to_s(found, config.folder)) is not None:
        return look(moved_s)
    return evidence


def _elsewhere(config: DestinationConfig) -> Evidence | None:
    """Return where the register says that files lie; None: it is not there, or does not know."""
    from pathlib import Path

    from datacollect.bistro.destination.databases import POSTGRES, REGISTER_FILE
    from datacollect.bistro.destination.place import Place
    from datacollect.bistro.destination.register_reading import reading
    from datacollect.bistro.destination.run.evidence import evidence_without_standing

    place = config.register
    if not place.startswith(POSTGRES) and not (Path(place) / REGISTER_FILE).exists():
        return None
    with reading(place, None) as rows:
        found = evidence_without_standing(rows, Place.of(config.folder))
    return found if found.lacks else None


def _show_lacks(found: Evidence) -> None:
    from datacollect.bistro.person.instants import both_clocks
    from datacollect.files.units import counted

    how = ", read again" if found.is_read else ""
    emit_text(
        f"{counted(found.n_here, 'file')} here as collected{how}: on {found.here.host} in "
        f"{found.here.folder}"
    )
    if found.n_unmeasured:
        emit_text(
            f"{counted(found.n_unmeasured, 'file')}: collected by an earlier version, which "
            "recorded neither machine nor length; only that such a file exists is known"
        )
    for each in found.lacks:
        since = "" if each.since_s is None else f", since {both_clocks(each.since_s)}"
        # Of what was cancelled nothing will ever be.
        begin = "" if each.kind == "cancelled" else "not yet: "
        emit_text(f"{begin}{each.text}{since}; {each.remedy}")
    if not found.lacks:
        emit("all is collected")


def _show(found: Standing) -> None:
    from datacollect.bistro.person.instants import both_clocks
    from datacollect.files.units import format_bytes, format_duration

    emit(f"event {found.event}")
    emit_text(f"as of {both_clocks(found.time_s)}; deadline {both_clocks(found.deadline_s)}")
    rows = [(f"{found.in_time:,}", "in time, according to bistros")]
    rows += [
        (f"{getattr(found, name):,}", f"  {name}")
        for name in ("collected", "superseded", "refused", "waiting")
    ]
    if found.never_came:
        rows.insert(4, (f"{found.never_came:,}", "    of these never arrived"))
    rows.append((f"{found.late:,}", "late"))
    rows += [(f"{n:,}", f"missing so far: {kind}") for kind, n in sorted(found.missing.items())]
    rows.append((f"{found.n_verdicts:,}", "verdicts in the log, signed by enough witnesses"))
    emit_table(("entries", ""), rows, "><")
    bistros = [
        (
            each.name,
            format_bytes(each.stored_bytes),
            format_bytes(each.free_bytes),
            "none" if each.oldest_s is None else format_duration(found.time_s - each.oldest_s),
        )
        for each in found.bistros
    ]
    if bistros:
        emit_table(("bistro", "stored", "room", "oldest waits for"), bistros, "<>>>")
    for name in found.silent:
        at_s = found.contacts[name]
        ago = "it has not answered yet"
        if at_s is not None:
            ago = f"it has not answered for {format_duration(found.time_s - at_s)}"
        emit_text(f"{name} is silent: {ago}")
    if found.predicted_s:
        emit(f"the rest arrives in {format_duration(found.predicted_s)}, according to the plan")
    for who, text in found.lies:
        cut = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}… (all: --json)"
        emit_text(f"evidence: {who}: {cut}")


@contextmanager
def _rereading() -> Iterator[_Begun]:
    """Yield what takes the log whose certificate SIGHUP has reread."""
    begun = _Begun()
    before = signal.signal(signal.SIGHUP, begun.reread)
    try:
        yield begun
    finally:
        signal.signal(signal.SIGHUP, before)


class _Begun:
    def __init__(self) -> None:
        self._log: VerdictLog | None = None

    def __call__(self, log: VerdictLog) -> None:
        self._log = log

    def reread(self, *_: object) -> None:
        if self._log is not None:
            self._log.reread_certificate()


def _say(text: str) -> None:
    # As agents write theirs.
    complain(json.dumps({"time_s": round(time.time(), 3), "what": "note", "why": safe_text(text)}))
