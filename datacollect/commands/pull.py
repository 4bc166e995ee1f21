"""The command ``datacollect pull``."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import (
    complain,
    emit,
    emit_facts,
    emit_json,
    emit_table,
    emit_text,
    is_watched,
    note,
    note_text,
    progress_shown,
)
from datacollect.commands.conversion import TIME, number_in
from datacollect.commands.following import Metrics, Page, followed
from datacollect.commands.method_options import PullMethod
from datacollect.commands.options import Json
from datacollect.commands.streams import loudness
from datacollect.files.units import counted, format_bytes, format_duration, format_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from datacollect.transfer.pull.answer import Pulled, WithSource
    from datacollect.transfer.pull.progress.pull_progress import PullProgress
    from datacollect.transfer.pull.progress.story import PullStory
    from datacollect.transfer.store.state.state import Missing

SHOWN_MISSING, SHOWN_ALIKE = 20, 3
INCOMPLETE = 1


def pull(
    collection_file: Annotated[
        str,
        typer.Argument(
            metavar="COLLECTION", help="Collection file, TOML or JSON; - is standard input."
        ),
    ],
    into: Annotated[
        str,
        typer.Option("--into", metavar="DIR", help="Where files of source S arrive as DIR/S/…."),
    ],
    method: PullMethod = "adaptive",
    slot: Annotated[
        str | None,
        typer.Option(
            "--slot",
            metavar=TIME,
            help="Let data wait at relays with a spool: store and forward in slots of this length.",
        ),
    ] = None,
    plan_only: Annotated[
        bool,
        typer.Option(
            "--plan-only",
            "--dry-run",
            help="List and plan, move nothing; show what would be fetched.",
        ),
    ] = False,
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar="PATTERN",
            help="Only these files of each source, as in run7/**; repeatable.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", metavar="PATTERN", help="Not these files of each source; repeatable."
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Read all collected files again; fetch those that were altered."
        ),
    ] = False,
    with_source: Annotated[
        bool,
        typer.Option(
            "--with-source",
            help="With --verify: compare the files with the sources' hashes, too; fetch those that "
            "differ.",
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace files that are in the way or were altered. Default: they are kept.",
        ),
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Count verified files as collected, even if their server no longer confirms them.",
        ),
    ] = False,
    no_modes: Annotated[
        bool, typer.Option("--no-modes", help="Do not keep permission bits.")
    ] = False,
    no_times: Annotated[
        bool, typer.Option("--no-times", help="Do not keep modification times.")
    ] = False,
    page: Page = None,
    metrics: Metrics = None,
    as_json: Json = False,
) -> int:
    """Collect for real: fetch, verify, keep; started again it goes on."""
    slot_s = None if slot is None else number_in(slot)
    with progress_shown() as show, followed(_title(into), page, metrics) as story:
        answer, zone = _pulled(
            collection_file,
            into,
            method,
            watch=_watcher(show if is_watched() else None, story),
            tell=note,
            log=_logging(_SAYING[loudness().verbose], story),
            plan_only=plan_only,
            include=include or None,
            exclude=exclude or (),
            verify=verify,
            with_source=with_source,
            overwrite=overwrite,
            keep=keep,
            modes=not no_modes,
            times=not no_times,
            slot_s=slot_s,
        )
    if as_json:
        emit_json(answer.to_dict())
    else:
        _show(answer, into, plan_only)
        if plan_only:
            _show_to_come(answer)
            _show_waits(answer, zone)
            if answer.assumptions is not None and answer.assumptions.matter:
                emit("")
                emit_text(" ".join(answer.assumptions.lines))
    if plan_only:
        return 0 if answer.listed else INCOMPLETE
    if not answer.complete and not as_json:
        complain("some data are not available: fix what is named, and the same command continues")
    compared = answer.with_source
    if not answer.complete or (compared is not None and compared.not_compared):
        return INCOMPLETE
    return 0


def _pulled(
    collection_file: str, into: str, method: Any, **options: Any
) -> tuple[Pulled, str | None]:
    """Return what a pull has come to, and the zone of the collection's clocks."""
    from datacollect.transfer.pull.config.file import Collection

    collection = Collection.from_file(collection_file)
    # Mistakes of the file are reported before the slow imports of pulls.
    from datacollect.transfer.pull.run import pull as pull_for_real

    return pull_for_real(collection, into, method, **options), collection.timezone


def _title(into: str) -> str:
    return f"Pull into {Path(into).resolve().name}"


def _watcher(
    show: Callable[[str], None] | None, story: PullStory | None
) -> Callable[[Callable[[], PullProgress]], None] | None:
    """Return what shows how far a pull is, and takes a twentieth of its time for that at most."""
    if show is None and story is None:
        return None
    from datacollect.numbers.pace import Pace

    pace, next_s = Pace(), [0.0]

    def watch(look: Callable[[], PullProgress]) -> None:
        begun_s = time.monotonic()
        if begun_s < next_s[0]:
            return
        far = look()
        now_s = time.monotonic()
        if far.all_files:
            pace.note(now_s, far.n_bytes)
        if show is not None:
            show(far.words(pace))
        if story is not None:
            story.look(far)
        next_s[0] = now_s + 20 * (now_s - begun_s)

    return watch


def _logging(
    say: Callable[[Mapping[str, Any]], None] | None, story: PullStory | None
) -> Callable[[Mapping[str, Any]], None] | None:
    """Return who hears each line of the log."""
    if story is None:
        return say

    def hear(line: Mapping[str, Any]) -> None:
        story.hear(line)
        if say is not None:
            say(line)

    return hear


# Of every connection, and of what moved each second.
_FOR_PROGRAMS = ("bytes by route", "session")


def _say_what(line: Mapping[str, Any]) -> None:
    """Write what has happened to sources and files: -v."""
    what = line["what"]
    if not what.startswith(_FOR_PROGRAMS):
        about = [
            f"{key} {value}"
            for key, value in line.items()
            if key not in ("time", "s", "what") and not isinstance(value, list | dict)
        ]
        note_text(f"{line['s']:.1f} s: {what}" + (f": {', '.join(about)}" if about else ""))


def _say_all(line: Mapping[str, Any]) -> None:
    """Write a line of the log: -vv."""
    note(json.dumps(line))


# By how often -v is given.
_SAYING: tuple[Callable[[Mapping[str, Any]], None] | None, ...] = (None, _say_what, _say_all)


def _show(answer: Pulled, into: str, plan_only: bool) -> None:
    from datacollect.transfer.pull.answering import NOT_YET

    emit_facts(_facts(answer, into, plan_only))
    for text in answer.why:
        emit_text(f"later than promised: {text}", 2)
    if answer.routes:
        emit("")
        rows = [
            (
                " → ".join(use.hosts),
                format_bytes(use.n_bytes),
                format_rate(use.n_bytes / max(answer.makespan_s, 1e-9)),
                str(use.connections),
            )
            for use in sorted(answer.routes, key=lambda use: -use.n_bytes)
        ]
        emit_table(("route", "bytes", "rate", "connections"), rows, "<>>>")
    for assurance in answer.assurances:
        emit_text(f"{assurance.source}: {assurance.text}", 2)
    # What is to come is no loss: a table says below how much it is.
    missing = [each for each in answer.missing if not (plan_only and each.why.endswith(NOT_YET))]
    if answer.with_source is not None and answer.with_source.not_compared:
        emit("")
        for line in _missing_lines(answer.with_source.not_compared)[:SHOWN_MISSING]:
            emit_text(f"not compared: {line}", 2)
    if missing:
        emit("")
        lines = _missing_lines(missing)
        for line in lines[:SHOWN_MISSING]:
            emit_text(f"missing: {line}", 2)
        if len(lines) > SHOWN_MISSING:
            emit(f"and {len(lines) - SHOWN_MISSING} more; --json lists all")


def _facts(answer: Pulled, into: str, plan_only: bool) -> list[tuple[str, str]]:
    # Of files of other servers it is said below what was verified.
    verified = "" if answer.assurances else ", verified"
    predicted = answer.predicted_makespan_s
    n_files = counted(answer.n_files, "file")
    facts = [
        ("method", answer.method_text),
        ("collected", f"{n_files}, {format_bytes(answer.n_bytes)}{verified}"),
        ("predicted", "unknown" if predicted is None else format_duration(predicted)),
    ]
    low_s, high_s = answer.promised_p10_s, answer.promised_p90_s
    if low_s is not None and high_s is not None:
        between = f"{format_duration(low_s)} (p10) to {format_duration(high_s)} (p90)"
        facts.append(("promised", between))
    if not plan_only:
        facts.append(("took", format_duration(answer.makespan_s)))
    if answer.processor is not None:
        facts.append(("processor", answer.processor.text))
    if not plan_only:
        again = ", ".join(f"{format_bytes(n)} ({why})" for why, n in answer.refetched.items())
        facts.append(("received twice", again or "nothing"))
    if answer.with_source is not None:
        facts.append(("as the sources have it", _compared_words(answer.with_source)))
    if answer.narrowed_to is not None:
        facts.append(("asked for", f"{answer.narrowed_to.options}; the rest was not asked for"))
    facts.append(("folder", into))
    return facts


def _compared_words(compared: WithSource) -> str:
    words = [f"{counted(compared.n_files, 'file')}, {format_bytes(compared.n_bytes)}"]
    if compared.differing:
        n_bytes = sum(each.n_bytes for each in compared.differing)
        n_files = counted(len(compared.differing), "file")
        words.append(f"{n_files} were not: {format_bytes(n_bytes)} fetched again")
    if compared.not_compared:
        words.append(f"{counted(len(compared.not_compared), 'file')} not compared")
    return "; ".join(words)


def _show_to_come(answer: Pulled) -> None:
    """Show what a start without --plan-only would fetch."""
    emit("")
    rows = [(each.source, str(each.n_files), format_bytes(each.n_bytes)) for each in answer.to_come]
    emit_table(("source", "files to come", "bytes to come"), rows, "<>>")


def _show_waits(answer: Pulled, zone: str | None) -> None:
    """Show what would wait at which relay, by the collection's clocks."""
    if not answer.waits:
        return
    from datacollect.files.clock import Clock, zone_of

    clocks = UTC if zone is None else zone_of(zone)

    def text(unix_s: float) -> str:
        return Clock(datetime.fromtimestamp(unix_s, UTC), clocks).text(0.0)

    rows = [
        (e.relay, e.source, format_bytes(e.n_bytes), text(e.from_s), text(e.until_s))
        for e in answer.waits
    ]
    emit("")
    emit_table(("waits at", "source", "bytes", "from", "until"), rows, "<<><<")


def _missing_lines(missing: Iterable[Missing]) -> list[str]:
    """Return what is missing, a line each; of many for one reason three, and how many more.

    >>> from datacollect.transfer.store.state.state import Missing
    >>> alike = [Missing("W", path, "away") for path in "abcde"]
    >>> _missing_lines([*alike, Missing("V", "x", "gone")])
    ['W/a: away', 'W/b: away', 'W/c: away', 'W: 2 files more, --json lists them: away', 'V/x: gone']
    """
    groups: dict[tuple[str, str], list[Missing]] = {}
    for entry in missing:
        groups.setdefault((entry.source, entry.why), []).append(entry)
    lines = []
    for (source, why), entries in groups.items():
        shown = entries if len(entries) <= SHOWN_ALIKE + 1 else entries[:SHOWN_ALIKE]
        lines += [f"{source}{each.path and '/'}{each.path}: {why}" for each in shown]
        if len(entries) > len(shown):
            n_more = counted(len(entries) - len(shown), "file")
            lines.append(f"{source}: {n_more} more, --json lists them: {why}")
    return lines
