"""The command ``datacollect pulls``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import emit, emit_facts, emit_json, emit_table, note_text, working
from datacollect.commands.conversion import number_in
from datacollect.commands.inputs import require_kept
from datacollect.commands.named_entries import named_in, own_options
from datacollect.commands.options import Force, Json, ProblemFile, ScheduleFile, require_new
from datacollect.commands.reading import clock_times, read_both
from datacollect.errors import InfeasibleError, ProblemError, nearest_hint
from datacollect.exports.formats import EXPORTS
from datacollect.files.documents import not_made
from datacollect.files.kinds import Whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.exports.export import Export
    from datacollect.exports.formats import ExportFormat
    from datacollect.problem.manifest import Files
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# At most this many hosts are listed where none is like the one that was named.
MOST_NAMED = 10


def _bytes(text: str | None) -> str | None:
    """Return a number of bytes as digits, whatever unit it was given in."""
    if text is None:
        return None
    try:
        return str(Whole("bytes", minimum=1).read(number_in(text), "N"))
    except ProblemError as error:
        raise typer.BadParameter(str(error).removeprefix("N ")) from None


def pulls(
    context: typer.Context,
    problem_file: ProblemFile,
    schedule_file: ScheduleFile,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="HOST", help="Show the requests of this host only."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            help="Write files that let these programs carry the plan out.",
            **named_in(EXPORTS),
        ),
    ] = None,
    manifest_file: Annotated[
        str | None,
        typer.Option(
            "--manifest",
            metavar="FILE",
            help="CSV of all files: host, path, bytes, checksums. Default: the problem's manifest.",
        ),
    ] = None,
    url: Annotated[
        list[str] | None,
        typer.Option(
            "--url",
            metavar="[HOST=]TEMPLATE",
            help="URL at which a host, or each host, serves files, with {host}, {source} and "
            "{path} in it; repeatable.",
        ),
    ] = None,
    relay_url: Annotated[
        list[str] | None,
        typer.Option(
            "--relay-url",
            metavar="[HOST=]TEMPLATE",
            help="URL at which a relay serves its script's folder, if not as in --url; repeatable.",
        ),
    ] = None,
    piece_bytes: Annotated[
        str | None,
        typer.Option(
            "--piece-bytes",
            metavar="N",
            callback=_bytes,
            help="Most bytes of a piece that passes relays, also '1 GB'. Default: a fiftieth of "
            "the route's bytes, or less if the plan's deadline needs it.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            help="With --as: the folder to write to; with --as csv, the file.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Print the pull lists, or write scripts that carry them out.

    What each host has to request: from whom, which range, when and at what rate.
    """
    options = own_options(context)
    export_options = {
        "--manifest": manifest_file,
        "--url": url,
        "--relay-url": relay_url,
        "--piece-bytes": piece_bytes,
        "-o": output,
        **{f"--{name}": value for name, value in options.items()},
    }
    if kind is None:
        for option, value in export_options.items():
            if value is not None:
                raise ProblemError(f"{option} is for --as; say which kind of file to write")
    problem, schedule = read_both(problem_file, schedule_file)
    if host is not None and host not in problem.names:
        few = ", ".join(problem.names[:MOST_NAMED]) + ", …" * (len(problem.names) > MOST_NAMED)
        hint = nearest_hint(host, problem.names) or f"; there are {few}"
        raise ProblemError(f"--host: {problem_file} has no host {host!r}{hint}")
    if kind is None:
        _print_lists(problem, schedule, host, as_json=as_json)
        return
    file_format = EXPORTS.get(kind)
    file_format.require_options(options)
    if output is None and (as_json or not file_format.is_one_file):
        raise ProblemError(f"--as {kind} needs -o: where to write")
    from datacollect.exports.export import export
    from datacollect.exports.templates import read_templates

    inputs = (problem_file, schedule_file, *filter(None, [manifest_file]))
    with working("cutting into pieces"):
        manifest = _manifest(problem, problem_file, manifest_file)
        name = manifest_file or problem_file
        templates = read_templates(
            url or (),
            relay_url or (),
            problem.names,
            is_url=file_format.is_url,
            example=file_format.example,
            keeper=file_format.keeper,
        )

        def scripts(problem: Problem, schedule: Schedule) -> Export:
            return export(
                problem,
                schedule,
                manifest,
                kind,
                templates,
                manifest_name=name,
                piece_bytes=None if piece_bytes is None else int(piece_bytes),
                options=options,
            )

        found = _written_or_refused(scripts, problem, schedule, (problem_file, schedule_file))
    texts = _texts_of(found, host, kind)
    if output is None:
        emit(texts[""].removesuffix("\n"))
        for text in found.notes:
            note_text(f"note: {text}")
        return
    paths = _write(texts, output, inputs, force=force)
    if as_json:
        emit_json(
            {
                "format": kind,
                "files": paths,
                "makespan_s": found.makespan_s,
                "with_requests_s": found.with_requests_s,
                "plan_makespan_s": schedule.makespan_s,
                "deadline_s": schedule.deadline_s,
                **clock_times(problem, found.makespan_s),
                "pieces": len(found.jobs.jobs),
                "notes": list(found.notes),
            }
        )
    else:
        _show(found, texts, problem, schedule, file_format, output)


def _written_or_refused(
    scripts: Callable[[Problem, Schedule], Export],
    problem: Problem,
    schedule: Schedule,
    files: tuple[str, str],
) -> Export:
    """Write scripts; where their plan cannot be kept, name the command that makes one that can."""
    from datacollect.exports.fitting import RefusedScripts

    try:
        return scripts(problem, schedule)
    except RefusedScripts as refused:
        if refused.is_of_format:
            raise
        with working("looking for a plan that scripts can keep"):
            from datacollect.commands.plan_for_scripts import remedy_that_holds

            remedy = remedy_that_holds(problem, schedule, refused, scripts, files)
        if remedy is None:
            raise
        raise InfeasibleError(f"{refused.what}; {remedy}", refused.hosts) from None


def _print_lists(problem: Problem, schedule: Schedule, host: str | None, *, as_json: bool) -> None:
    from datacollect.commands.answers import pull_rows, show_pulls
    from datacollect.schedule.data.belonging import require_belonging
    from datacollect.schedule.pulls import pull_list

    require_belonging(problem, schedule)
    table = pull_list(schedule, host, hosts=problem.names, manifest=problem.manifest)
    if as_json:
        totals = {"destination": schedule.destination, "makespan_s": schedule.makespan_s}
        clocks = clock_times(problem, schedule.makespan_s)
        emit_json({**totals, **clocks, "pulls": pull_rows(table, problem.clock)})
    else:
        show_pulls(table, host, problem.clock)


def _manifest(
    problem: Problem, problem_file: str, manifest_file: str | None
) -> Mapping[str, Files]:
    """Return the files that are given, or else the problem's own."""
    from datacollect.problem.manifest import read_manifest, with_hashes_of_both

    if manifest_file is not None:
        given = read_manifest(manifest_file)
        if problem.manifest is None:
            return given
        return with_hashes_of_both(given, problem.manifest, manifest_file)
    if problem.manifest is None:
        raise ProblemError(
            f"--as needs to know the files, and {problem_file} has no manifest; give --manifest "
            "FILE, a CSV with the columns host, path, bytes and, where known, sha256, adler32, "
            'md5, or name it in the problem: manifest = "FILE"'
        )
    return problem.manifest


def _texts_of(found: Export, host: str | None, kind: str) -> dict[str, str]:
    if host is None:
        return found.texts
    if not found.hosts:
        raise ProblemError(
            f"--host is for scripts; --as {kind} writes one file for all hosts; leave --host out"
        )
    texts = {name: text for name, text in found.texts.items() if found.hosts[name] == host}
    if not texts:
        raise ProblemError(f"--host: {host!r} neither fetches nor forwards anything")
    return texts


def _write(texts: dict[str, str], output: str, inputs: Sequence[str], *, force: bool) -> list[str]:
    from datacollect.files.documents import write_atomically

    if "" in texts:
        paths = {output: texts[""]}
    else:
        paths = {str(Path(output, name)): text for name, text in texts.items()}
        try:
            Path(output).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_made(output, error) from None
    for path in paths:
        require_kept(path, *inputs)
        require_new(path, force=force)
    for path, text in paths.items():
        write_atomically(path, text.encode())
    return list(paths)


def _show(
    found: Export,
    texts: dict[str, str],
    problem: Problem,
    schedule: Schedule,
    file_format: ExportFormat,
    output: str,
) -> None:
    from datacollect.exports.makespan import REQUEST_S
    from datacollect.exports.script_texts import summary_lines
    from datacollect.exports.scripts import Scripts
    from datacollect.files.clock import duration_or_instant
    from datacollect.files.units import format_duration

    rows: list[tuple[str, ...]] = []
    for name in texts:
        if name in found.hosts:
            n, amount, rate = summary_lines(found.jobs.of(found.hosts[name]))
            rows.append((name, str(n), amount, rate))
    if rows:
        emit_table(("script", "pieces", "bytes", "rate at most"), rows, "<>>>")
        emit("")
    expected = (
        f"expected of {file_format.name}"
        if file_format.next_step
        else "if pieces are fetched as listed"
    )
    facts: list[tuple[str, Any]] = [
        ("makespan", f"{format_duration(found.makespan_s)}, {expected}"),
        ("with requests", f"{format_duration(found.with_requests_s)}, {REQUEST_S:g} s for each"),
        ("plan", format_duration(schedule.makespan_s)),
        ("saved to", output),
    ]
    if schedule.deadline_s is not None:
        facts.insert(3, ("deadline", duration_or_instant(schedule.deadline_s, problem.clock)))
    if file_format.next_step:
        facts.append(("next", file_format.next_step))
    if isinstance(file_format, Scripts) and problem.clock is not None:
        # Who starts them by day fetches by day, whatever hours the plan is for.
        begins = problem.clock.text(0)
        waits = f"DATACOLLECT_START={problem.clock.start.timestamp():.0f} sh SCRIPT FOLDER"
        facts.append(
            ("begin", f"when they are started; the plan begins {begins}: {waits} waits for that")
        )
    emit_facts(facts)
    for text in found.notes:
        note_text(f"note: {text}")
