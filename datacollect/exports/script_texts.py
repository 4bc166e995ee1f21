"""Shell scripts, one for each host that fetches or forwards: the plan, and what does it."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from importlib.resources import files as package_files
from itertools import accumulate
from typing import TYPE_CHECKING

from datacollect.exports.formats import Written
from datacollect.exports.templates import folder_of_host
from datacollect.files.media import documents_pattern
from datacollect.files.units import counted, format_bytes, format_rate
from datacollect.numbers.byte_ranges import ByteRanges
from datacollect.problem.manifest import MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.exports.formats import ToWrite
    from datacollect.exports.jobs import FetchJob, Jobs
    from datacollect.files.clock import Clock
    from datacollect.problem.manifest import Files

FORMAT = "datacollect-export/2"
# What a destination has not whole yet; a relay's folder is all of this kind, and what it serves.
PARTIAL = ".datacollect/partial"
# Of all scripts: what is here and what proves it, then what fetches.
RUNNER = ("processes", "marks", "peers", "tell", "pieces", "frame")


def write_scripts(tool: str, parts: Sequence[str], given: ToWrite) -> Written:
    """Return a script for each host that fetches or forwards, and for the destination.

    Parameters
    ----------
    tool : str
        The program that fetches.
    parts : sequence of str
        The shell files of which scripts consist, besides the plan and what all scripts have.
    given : ToWrite
    """
    jobs, destination = given.jobs, given.problem.destination
    forwards = {job.request_from for job in jobs.jobs if job.request_from != job.piece.source}
    hosts = dict.fromkeys([*(job.host for job in jobs.jobs), *sorted(forwards), destination])
    plan = hashlib.sha256(repr(jobs).encode()).hexdigest()
    texts = {script_name(host): _script(tool, parts, host, plan, given) for host in hosts}
    return Written(texts, {script_name(host): host for host in hosts}, notes=_notes(jobs))


def script_name(host: str) -> str:
    """Return the name of a host's script.

    >>> script_name("lab/4")
    'lab%2F4.sh'
    """
    return f"{folder_of_host(host)}.sh"


def _notes(jobs: Jobs) -> tuple[str, ...]:
    rates = (
        "Rates are means over each piece, and start times are kept to a second, by each host's own "
        "clock; requests take their time besides."
    )
    pieces = [job.piece for job in jobs.jobs]
    missing = {(piece.source, piece.path) for piece in pieces if not piece.sha256}
    if not missing:
        return (rates,)
    if len(missing) == len({(piece.source, piece.path) for piece in pieces}):
        return rates, "No SHA-256 is known: sizes are compared only."
    files = "one file" if len(missing) == 1 else f"{len(missing)} files"
    return rates, f"The SHA-256 of {files} is not known: there sizes are compared only."


def _script(tool: str, parts: Sequence[str], host: str, plan: str, given: ToWrite) -> str:
    jobs, manifest, address = given.jobs, given.manifest, given.address
    destination, clock = given.problem.destination, given.problem.clock
    ends_s = [
        end_s for end_s, job in zip(given.finish_s, jobs.jobs, strict=True) if job.host == host
    ]
    mine, is_last = jobs.of(host), host == destination
    about = {
        "format": FORMAT,
        "host": host,
        "destination": destination,
        "partial": PARTIAL if is_last else ".",
    }
    lanes: dict[int, list[FetchJob]] = {}
    for job in mine:
        lanes.setdefault(job.lane, []).append(job)
    numbers = _file_numbers(manifest) if is_last else {}
    text = package_files("datacollect.exports")
    lines = [
        *_head(host, mine, len(lanes), tool, clock, is_last=is_last),
        f"host={_word(host)}",
        f"plan={plan}",
        f"partial={PARTIAL if is_last else '.'}",
        f"about={_word(json.dumps(about))}",
        f"lanes={_word(' '.join(str(k) for k in range(len(lanes))))}",
        "every_s=${DATACOLLECT_EVERY_S:-5}",
        "most_tries=${DATACOLLECT_TRIES:-20}",
        "patience_s=${DATACOLLECT_PATIENCE_S:-3600}",
        "say_s=${DATACOLLECT_SAY_S:-60}",
        f"predicted_s={_predicted(max(ends_s, default=0.0))}",
        *([f"documents={_word(documents_pattern())}"] if "http" in parts else []),
        "",
        *((text / f"{part}.sh").read_text(encoding="utf-8") for part in (*parts, *RUNNER)),
        "# ---- The plan ".ljust(100, "-"),
        "",
        "# get START_S BYTES_PER_S OFFSET BYTES FILE_BYTES FILE ADDRESS READY_ADDRESS SHA256",
    ]
    for k, lane in enumerate(lanes.values()):
        lines += [
            f"lane_{k}() {{",
            "    bad=0",
            *_gets(lane, address, numbers, clock),
            '    return "$bad"',
            "}",
        ]
    lines += _held(host, jobs, mine, manifest if is_last else {}, address)
    lines += _files(manifest, mine, numbers)
    lines += ["", 'main "$@"', ""]
    return "\n".join(lines)


def _head(
    host: str,
    mine: Sequence[FetchJob],
    n_lanes: int,
    tool: str,
    clock: Clock | None,
    *,
    is_last: bool,
) -> list[str]:
    amount = format_bytes(sum(job.piece.n_bytes for job in mine))
    sources = counted(len({job.request_from for job in mine}), "host")
    pieces = counted(len(mine), "piece")
    end = "what others fetch from here lies in it, too: let the web server serve it."
    return [
        "#!/bin/sh",
        f"# What {json.dumps(host)} fetches: {amount} from {sources}, in {pieces},",
        f"# at most {n_lanes} at a time, by {tool}. Written by datacollect.",
        "#",
        "# sh THIS_FILE [FOLDER]   fetches into FOLDER, by default the working folder"
        + ("." if is_last else ";"),
        *([] if is_last else [f"# {end}"]),
        "# sh THIS_FILE --dry-run [FOLDER]   says what it would fetch.",
        "#",
        "# Start all hosts' scripts at the same time, or give each the same instant as",
        "# DATACOLLECT_START, in seconds since 1970. However one ends, the same command continues.",
        *_planned_times(mine, clock),
        "# Exit code 0: all is there; 1: something is missing; 2: an option or a folder is wrong;",
        "# 3: something is not installed.",
        "set -u",
        "",
    ]


def _planned_times(mine: Sequence[FetchJob], clock: Clock | None) -> list[str]:
    """Say in a comment when the plan begins, and when this host does, by the clock."""
    if clock is None:
        return []
    begins = f"# The plan begins {clock.text(0)}: DATACOLLECT_START={clock.start.timestamp():.0f}"
    first = min((job.start_s for job in mine), default=0.0)
    return [begins, *([f"# This host fetches from {clock.text(first)} on."] if mine else [])]


def _gets(
    lane: Sequence[FetchJob],
    address: Callable[[str, str, str], str],
    numbers: Mapping[tuple[str, str], int],
    clock: Clock | None,
) -> list[str]:
    """Return what fetches a lane's pieces, and in comments when, where a clock is known."""
    lines: list[str] = []
    said = ""
    for job in lane:
        if clock is not None and said != (now := clock.text(int(job.start_s))):
            lines.append(f"    # {now}")
            said = now
        lines += _get(job, address, numbers)
    return lines


def _predicted(end_s: float) -> str:
    """Write when a host's last byte is expected, for awk; nothing where that is never."""
    return f"{end_s:.3f}" if math.isfinite(end_s) else ""


def _word(text: str) -> str:
    """Quote a word for the shell."""
    return shlex.quote(text)


def _place(source: str, path: str) -> str:
    return f"{folder_of_host(source)}/{path}"


def _get(
    job: FetchJob, address: Callable[[str, str, str], str], numbers: Mapping[tuple[str, str], int]
) -> list[str]:
    piece = job.piece
    where = address(job.request_from, piece.source, piece.path)
    ready = ""
    if job.request_from != piece.source:
        mark = f"{piece.path}{MARK}{piece.offset_bytes}-{piece.n_bytes}"
        ready = address(job.request_from, piece.source, mark)
    words = [
        str(int(job.start_s)),
        str(max(1, math.ceil(job.rate_bytes_per_s))),
        str(piece.offset_bytes),
        str(piece.n_bytes),
        str(piece.file_bytes),
        _word(_place(piece.source, piece.path)),
        _word(where),
        _word(ready),
        _word(piece.sha256),
    ]
    number = numbers.get((piece.source, piece.path))
    then = "" if number is None else f" && {{ file_{number} || :; }}"
    return [f"    {{ get {' '.join(words)}{then}; }} || bad=1"]


def _held(
    host: str,
    jobs: Jobs,
    mine: Sequence[FetchJob],
    complete: Mapping[str, Files],
    address: Callable[[str, str, str], str],
) -> list[str]:
    """Return what tests the data that the plan takes for granted here.

    A relay has what it forwards without having fetched it; the destination, all that the plan
    does not fetch of the files that are to be complete.
    """
    found = [
        (piece.offset_bytes, piece.n_bytes, piece.file_bytes, piece.source, piece.path)
        for piece in (
            job.piece
            for job in jobs.jobs
            if job.request_from == host != job.piece.source and job.after is None
        )
    ]
    fetched: dict[tuple[str, str], ByteRanges] = {}
    for job in mine:
        of_file = fetched.setdefault((job.piece.source, job.piece.path), ByteRanges())
        of_file.add(job.piece.offset_bytes, job.piece.n_bytes)
    for source, files in complete.items():
        for path, size in zip(files.paths, files.n_bytes.tolist(), strict=True):
            missing = fetched.get((source, path), ByteRanges()).missing(0, size)
            found += [(offset, n_bytes, size, source, path) for offset, n_bytes in missing]
    lines = []
    for *numbers, source, path in found:
        words = [_word(_place(source, path)), _word(address(source, source, path))]
        lines.append(f"    have {' '.join(map(str, numbers))} {' '.join(words)} || bad=1")
    return ["held() {", "    bad=0", *lines, '    return "$bad"', "}"]


def _file_numbers(manifest: Mapping[str, Files]) -> dict[tuple[str, str], int]:
    names = [(source, path) for source, files in manifest.items() for path in files.paths]
    return {name: number for number, name in enumerate(names)}


def _files(
    manifest: Mapping[str, Files], mine: Sequence[FetchJob], numbers: Mapping[tuple[str, str], int]
) -> list[str]:
    """Return a function for each file, which moves it to its place once it is complete."""
    ranges: dict[tuple[str, str], list[str]] = {}
    for job in mine:
        piece = job.piece
        if numbers:
            text = f"{piece.offset_bytes}-{piece.n_bytes}"
            ranges.setdefault((piece.source, piece.path), []).append(text)
    lines = []
    for (source, path), number in numbers.items():
        files = manifest[source]
        i = number - numbers[source, files.paths[0]]
        place = _word(_place(source, path))
        words = [str(files.n_bytes[i]), files.sha256[i] or "''", place]
        words += ranges.get((source, path), [])
        lines.append(f"file_{number}() {{ finish {' '.join(words)}; }}")
    every = [f"    file_{number} || bad=1" for number in numbers.values()]
    return [*lines, "files() {", "    bad=0", *every, '    return "$bad"', "}"]


def summary_lines(jobs: Sequence[FetchJob]) -> tuple[int, str, str]:
    """Return how many jobs, how much, and at which rate together at most, in words."""
    n_bytes = sum(job.piece.n_bytes for job in jobs)
    return len(jobs), format_bytes(n_bytes), format_rate(_most_bytes_per_s(jobs))


def _most_bytes_per_s(jobs: Sequence[FetchJob]) -> float:
    """The highest rate of all jobs together, as planned."""
    moving = [job for job in jobs if job.rate_bytes_per_s > 0]
    ends_s = [job.start_s + job.piece.n_bytes / job.rate_bytes_per_s for job in moving]
    # What ends at an instant, but for rounding, makes room for what begins then.
    changes = [
        *((job.start_s, job.rate_bytes_per_s) for job in moving),
        *(
            (end_s * (1 - 1e-9), -job.rate_bytes_per_s)
            for end_s, job in zip(ends_s, moving, strict=True)
        ),
    ]
    return max(accumulate(change for _, change in sorted(changes)), default=0.0)
