"""Export of a schedule as scripts, job files or a table, with warnings of what is lost in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.exports.fitting import ends_near, fitted
from datacollect.exports.formats import EXPORTS, ToWrite
from datacollect.exports.missed import margin_s, margin_text, missed_window
from datacollect.files.units import format_bytes, format_duration
from datacollect.problem.manifest import require_fit
from datacollect.schedule.data.belonging import require_belonging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from datacollect.exports.fitting import Fitted
    from datacollect.exports.formats import ExportFormat
    from datacollect.exports.jobs import Jobs
    from datacollect.exports.templates import Templates
    from datacollect.problem.manifest import Files
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleContents


@dataclass(frozen=True, eq=False)
class Export:
    """Result of an export.

    Attributes
    ----------
    texts : dict of str to str
        By file name.
    hosts : dict of str to str
        Whose file each is, by file name; none where each host has none of its own.
    jobs : Jobs
    makespan_s : float
        When the last piece has reached the destination if links are as the problem says;
        infinite where that is never. Without the time that requests take by themselves.
    with_requests_s : float
        When it has with that time, some half a second each.
    notes : tuple of str
        What the format cannot say, and what to know before starting.
    """

    texts: dict[str, str]
    hosts: dict[str, str]
    jobs: Jobs
    makespan_s: float
    with_requests_s: float
    notes: tuple[str, ...]


def export(
    problem: Problem,
    schedule: ScheduleContents,
    manifest: Mapping[str, Files],
    kind: str,
    templates: Templates,
    *,
    manifest_name: str = "manifest",
    piece_bytes: int | None = None,
    options: Mapping[str, str] | None = None,
) -> Export:
    """Turn a schedule into files for a tool.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Of this problem.
    manifest : mapping of str to Files
        By source; together they are exactly the backlogs.
    kind : str
        The name of a format, among ``datacollect.exports.formats.EXPORTS``.
    templates : Templates
        Where the tool finds what a host serves. For a table there may be none.
    manifest_name : str
        For messages.
    piece_bytes : int, optional
        Most bytes of a piece that passes relays. Default: a fiftieth of what its route carries, or
        less where that keeps the plan's deadline.
    options : mapping of str to str, optional
        What the format takes besides, by name.

    Raises
    ------
    ProblemError
        Schedule, manifest and problem do not belong together, an address is missing, or the format
        cannot say it, or does not take an option.
    InfeasibleError
        What the tool carries out would miss the plan's deadline, or overfill a relay.
    """
    file_format = EXPORTS.get(kind)
    file_format.require_options(options or {})
    require_belonging(problem, schedule)
    require_fit(problem, manifest, manifest_name)
    found = fitted(problem, schedule, manifest, file_format, piece_bytes)
    jobs, finish_s = found.jobs, found.finish_s
    address = _checked_addresses(templates, file_format)
    notes = (
        *_notes(schedule, jobs, file_format),
        *_about_windows(problem, schedule, found, file_format),
    )
    given = ToWrite(
        problem, schedule, manifest, jobs, finish_s.tolist(), templates, address, options or {}
    )
    written = file_format.write(given)
    return Export(
        written.texts,
        written.hosts,
        written.jobs or jobs,
        found.makespan_s,
        found.with_requests_s,
        (*notes, *written.notes),
    )


def _checked_addresses(
    templates: Templates, file_format: ExportFormat
) -> Callable[[str, str, str], str]:
    """Return what says where a file is found; hosts that the tool would not take are refused."""
    taken: set[tuple[str, str]] = set()

    def address(host: str, source: str, path: str) -> str:
        found = file_format.address(templates, host, source, path)
        if (host, source) not in taken:
            file_format.require_address(host, templates.template(host, source), found)
            taken.add((host, source))
        return found

    return address


# What to know -------------------------------------------------------------------------------


def _notes(schedule: ScheduleContents, jobs: Jobs, file_format: ExportFormat) -> Iterable[str]:
    yield from _about_relays(jobs)
    if jobs.n_cut:
        yield (
            f"{file_format.name} fetches whole files: {jobs.n_cut} that the plan cuts go whole, by "
            "the route that carries most of each."
        )
    if schedule.slot_s is not None and file_format.is_timed:
        yield f"Slots of {format_duration(schedule.slot_s)} are kept as start times."


def _about_windows(
    problem: Problem, schedule: ScheduleContents, found: Fitted, file_format: ExportFormat
) -> Iterable[str]:
    """Name the window that is missed where no deadline forbids that."""
    is_of_no_account = schedule.deadline_s is not None or not file_format.is_timed
    if is_of_no_account or ends_near(schedule, found):
        return
    missed = missed_window(problem, found.jobs.jobs)
    if missed is not None:
        yield (
            f"what {file_format.name} carries out {missed.text(problem)}; "
            f"plan with --margin '{margin_text(margin_s(missed.late_s))}' if that is too late."
        )


def _about_relays(jobs: Jobs) -> Iterable[str]:
    longest = max((job.piece.n_bytes for job in jobs.jobs if job.forward_to is not None), default=0)
    if longest:
        yield (
            "Relays forward whole pieces, here of at most "
            f"{format_bytes(longest)}: the plan has them forward chunks as they arrive. "
            "Nothing is deleted there."
        )
