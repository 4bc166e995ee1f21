"""A schedule as scripts, job files or a table: what is written, and what cannot be said in it."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from datacollect.errors import ProblemError
from datacollect.exports.fts import for_fts
from datacollect.exports.jobs import Jobs, jobs_of
from datacollect.exports.makespan import MOST_JOBS_SHARED, finish_times_s
from datacollect.exports.remotes import require_remote
from datacollect.exports.scripts import TOOLS, scripts
from datacollect.exports.templates import folder_of_host
from datacollect.files.choices import Checksum, ExportFormat
from datacollect.files.units import format_bytes, format_duration
from datacollect.problem.manifest import require_fit
from datacollect.schedule.data.belonging import require_belonging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from datacollect.exports.templates import Templates
    from datacollect.files.clock import Clock
    from datacollect.problem.manifest import Files
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleContents

FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)

CSV_COLUMNS = (
    *("host", "request_from", "source", "path", "offset_bytes", "bytes", "file_bytes", "start_s"),
    *("rate_bytes_per_s", "finish_s", "at_once", "forward_to", "sha256", "address"),
)
# Where the problem has a clock.
CLOCK_COLUMNS = ("starts_at", "finishes_at")


@dataclass(frozen=True, eq=False)
class Export:
    """What has been made of a schedule.

    Attributes
    ----------
    texts : dict of str to str
        By file name.
    hosts : dict of str to str
        Whose file each is, by file name; none for FTS, which one client submits.
    jobs : Jobs
    makespan_s : float
        When the last piece has reached the destination if links are as the problem says;
        infinite where that is never.
    notes : tuple of str
        What the format cannot say, and what to know before starting.
    """

    texts: dict[str, str]
    hosts: dict[str, str]
    jobs: Jobs
    makespan_s: float
    notes: tuple[str, ...]


def export(
    problem: Problem,
    schedule: ScheduleContents,
    manifest: Mapping[str, Files],
    kind: ExportFormat,
    templates: Templates,
    *,
    manifest_name: str = "manifest",
    piece_bytes: int | None = None,
    checksum: Checksum | None = None,
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
        ``"curl"``, ``"aria2"``, ``"rclone"``, ``"rsync"``: a shell script per host; ``"fts"``: job
        files; ``"csv"``: a table.
    templates : Templates
        Where the tool finds what a host serves. For ``"csv"`` there may be none.
    manifest_name : str
        For messages.
    piece_bytes : int, optional
        Most bytes of a piece that passes relays.
    checksum : {"adler32", "md5", "sha256"}, optional
        What FTS is to compare; by default the first of these that the manifest knows of a file.

    Raises
    ------
    ProblemError
        Schedule, manifest and problem do not belong together, an address is missing, or there are
        files that FTS cannot be told.
    """
    require_belonging(problem, schedule)
    require_fit(problem, manifest, manifest_name)
    jobs = jobs_of(
        problem,
        schedule,
        manifest,
        may_cut=TOOLS[kind].may_cut if kind in TOOLS else kind == "csv",
        piece_bytes=piece_bytes,
    )
    finish_s = finish_times_s(problem, jobs.jobs, timed=kind != "fts")
    address = _address_of(templates, kind)
    hosts: dict[str, str] = {}
    special: tuple[str, ...] = ()
    if kind == "csv":
        texts = {"": _table(jobs, finish_s.tolist(), templates, address, problem.clock)}
    elif kind == "fts":
        told = for_fts(problem, schedule, jobs, manifest, templates, checksum)
        jobs, trees, special = told.jobs, told.trees, told.notes
        width = len(str(len(trees)))
        texts = {f"job-{k:0{width}}.json": _json(tree) for k, tree in enumerate(trees, 1)}
    else:
        by_host = scripts(
            jobs,
            manifest,
            address,
            TOOLS[kind],
            problem.destination,
            problem.clock,
            finish_s=finish_s.tolist(),
        )
        hosts = {script_name(host): host for host in by_host}
        texts = {script_name(host): text for host, text in by_host.items()}
    makespan_s = float(finish_s.max(initial=0.0))
    notes = (*_notes(problem, schedule, jobs, kind), *special)
    return Export(texts, hosts, jobs, makespan_s, notes)


def script_name(host: str) -> str:
    """Return the name of a host's script.

    >>> script_name("lab/4")
    'lab%2F4.sh'
    """
    return f"{folder_of_host(host)}.sh"


# Of these alone what comes can be proved.
_SCHEMES = {"curl": ("https", "http", "file"), "aria2": ("https", "http")}


def _address_of(templates: Templates, kind: ExportFormat) -> Callable[[str, str, str], str]:
    """Return what says where a file is found; hosts that the tool would not take are refused."""
    address = _written_for(templates, kind)
    if kind not in TOOLS:
        return address
    taken: set[tuple[str, str]] = set()

    def checked(host: str, source: str, path: str) -> str:
        found = address(host, source, path)
        if (host, source) not in taken:
            require_remote(kind, host, templates.template(host, source), found)
            taken.add((host, source))
        return found

    return checked


def _written_for(templates: Templates, kind: ExportFormat) -> Callable[[str, str, str], str]:
    if kind in _SCHEMES:
        return lambda *file: _require_scheme(templates.address(*file), file[0], kind)
    if kind != "rsync":
        return templates.address

    def address(host: str, source: str, path: str) -> str:
        folder = templates.address(host, source, "")
        if not folder.endswith("/") or "/./" in folder:
            raise ProblemError(
                f"--url for {host!r}: rsync needs an address that ends in /{{path}}, without /./ "
                f"in it, got {folder + '{path}'!r}"
            )
        base, below = _base_of_list(folder, host)
        return f"{base}./{below}{path}"

    return address


# Of an rsync daemon: rsync://HOST/MODULE/ and HOST::MODULE/, then what lies below the module.
_DAEMON = re.compile(r"((?i:rsync)://[^/]*/|(?:\[[^]/]*\]|[^/:]*)::)(?:([^/]+/)(.*))?", re.DOTALL)


def _base_of_list(folder: str, host: str) -> tuple[str, str]:
    """Return to what the list of names that rsync gets is relative, and how they begin there.

    A daemon is named by its module alone: one that does not use chroot looks for names of lists
    in the folder below the module twice.

    Raises
    ------
    ProblemError
        A daemon's address names no module.
    """
    daemon = _DAEMON.fullmatch(folder)
    if daemon is None:
        return folder, ""
    before, module, below = daemon.groups()
    if module is None:
        raise ProblemError(
            f"--url for {host!r}: the address of an rsync daemon must name a module before "
            f"{{path}}, such as {before + 'MODULE/{path}'!r}, got {folder + '{path}'!r}"
        )
    return before + module, below


def _require_scheme(address: str, host: str, kind: ExportFormat) -> str:
    known = _SCHEMES[kind]
    if not address.lower().startswith(tuple(f"{scheme}://" for scheme in known)):
        raise ProblemError(
            f"--url for {host!r}: {kind} scripts prove what comes by {' or '.join(known)} only, "
            f"got {address!r}; give such an address, or use rclone"
        )
    return address


def _json(tree: dict[str, Any]) -> str:
    return json.dumps(tree, ensure_ascii=False, indent=1) + "\n"


def _table(
    jobs: Jobs,
    finish_s: list[float],
    templates: Templates,
    address: Callable[[str, str, str], str],
    clock: Clock | None,
) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS if clock is None else CSV_COLUMNS + CLOCK_COLUMNS)
    for job, end_s in zip(jobs.jobs, finish_s, strict=True):
        piece = job.piece
        where = ""
        if templates.own or templates.relayed:
            where = address(job.request_from, piece.source, piece.path)
        writer.writerow(
            [
                *(job.host, job.request_from, piece.source, piece.path, piece.offset_bytes),
                *(piece.n_bytes, piece.file_bytes, job.start_s, job.rate_bytes_per_s, end_s),
                *(job.lane, job.forward_to or "", piece.sha256, where),
                *([] if clock is None else [shown(clock, job.start_s), shown(clock, end_s)]),
            ]
        )
    return text.getvalue()


def shown(clock: Clock, at_s: float) -> str:
    """Write an instant as ISO 8601; nothing where it never comes."""
    return clock.iso(at_s) if math.isfinite(at_s) else ""


# What to know -------------------------------------------------------------------------------


def _notes(
    problem: Problem, schedule: ScheduleContents, jobs: Jobs, kind: ExportFormat
) -> Iterable[str]:
    yield from _about_relays(problem, jobs)
    if jobs.n_cut:
        yield (
            f"{kind} fetches whole files: {jobs.n_cut} that the plan cuts go whole, by the route "
            "that carries most of each."
        )
    if kind not in ("csv", "fts"):
        yield (
            "Rates are means over each piece, and start times are kept to a second, by each "
            "host's own clock; what requests take by themselves is not in the makespan."
        )
        pieces = [job.piece for job in jobs.jobs]
        missing = {(piece.source, piece.path) for piece in pieces if not piece.sha256}
        if len(missing) == len({(piece.source, piece.path) for piece in pieces}) > 0:
            yield "No SHA-256 is known: sizes are compared only."
        elif missing:
            files = "one file" if len(missing) == 1 else f"{len(missing)} files"
            yield f"The SHA-256 of {files} is not known: there sizes are compared only."
    if len(jobs.jobs) > MOST_JOBS_SHARED:
        yield (
            f"The makespan of so many pieces ({len(jobs.jobs)}) takes each at its own rate, even "
            "where late ones meet others on a link."
        )
    if schedule.slot_s is not None and kind != "fts":
        yield f"Slots of {format_duration(schedule.slot_s)} are kept as start times."


def _about_relays(problem: Problem, jobs: Jobs) -> Iterable[str]:
    relayed: dict[str, int] = {}
    longest = 0
    for job in jobs.jobs:
        if job.forward_to is not None:
            relayed[job.host] = relayed.get(job.host, 0) + job.piece.n_bytes
            longest = max(longest, job.piece.n_bytes)
    if relayed:
        yield (
            "Relays forward whole pieces, here of at most "
            f"{format_bytes(longest)}: the plan has them forward chunks as they arrive."
        )
    for host, n_bytes in relayed.items():
        room = float(problem.storage_bytes[problem.host_index[host]])
        if n_bytes > room:
            yield (
                f"Nothing deletes at {host} what has been forwarded: it needs "
                f"{format_bytes(n_bytes)}, its storage_bytes is {format_bytes(room)}; delete "
                "there what has arrived at the destination, or plan with less relaying."
            )
