"""Jobs for FTS, CERN's File Transfer Service, which has storage systems copy files to each other.

Schema: https://gitlab.cern.ch/fts/fts-rest-flask, ``fts3rest/lib/api/submit_schema.py`` (2024),
served by every FTS at ``/api-docs/schema/submit``. What its fields do is said by the code beside
it, ``lib/JobBuilder.py``, and by ``src/url-copy/UrlCopyProcess.cpp`` of
https://github.com/cern-fts/fts3 (2024):

- ``filesize`` 0 is "not known": FTS asks the source for the size in any case, and compares it with
  the destination's at the end. A file without bytes is copied as any other.
- ``checksum`` is one ``ALGORITHM:value``. With ``verify_checksum`` true FTS compares it with what
  the source computes, if it can, and with what the destination computes.
- ``overwrite_hop`` goes with ``multihop`` only, and with no other ``overwrite``: what an earlier
  attempt left at relays is replaced, what lies at the destination is not.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.exports.formats import Written
from datacollect.exports.fts_checksums import Checksums, checksums_for_fts, file_of, xrootd_at_ends
from datacollect.exports.jobs import FetchJob, FilePiece
from datacollect.exports.schemes import why_not_for_fts
from datacollect.exports.templates import folder_of_host
from datacollect.files.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from datacollect.exports.formats import ToWrite
    from datacollect.exports.templates import Templates
    from datacollect.problem.manifest import Files
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleContents

# FTS refuses much larger jobs; a job is one row of its overview.
FILES_PER_JOB = 1000

# Most names that a refusal lists.
MOST_NAMED = 3

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def write_jobs(given: ToWrite) -> Written:
    """Turn the jobs of a plan into files for FTS.

    Raises
    ------
    ProblemError
        There are files that FTS cannot take, or no file has the checksum that is asked for.
    """
    problem, schedule = given.problem, given.schedule
    empty = empty_file_jobs(problem, schedule, given.manifest, len(given.jobs.jobs))
    jobs = replace(given.jobs, jobs=(*given.jobs.jobs, *empty))
    templates = given.templates.where_collected(problem.destination)
    algorithm = given.options.get("checksum")
    compared = checksums_for_fts(jobs.jobs, templates, given.manifest, algorithm)
    streams = int(schedule.columns.streams.max(initial=1))
    trees = fts_jobs(jobs.jobs, templates, compared, streams)
    width = len(str(len(trees)))
    texts = {f"job-{k:0{width}}.json": _json(tree) for k, tree in enumerate(trees, 1)}
    return Written(texts, jobs=jobs, notes=tuple(notes_for_fts(jobs.jobs, templates, compared)))


def _json(tree: dict[str, Any]) -> str:
    return json.dumps(tree, ensure_ascii=False, indent=1) + "\n"


def fts_jobs(
    jobs: Sequence[FetchJob],
    templates: Templates,
    checksums: Checksums,
    streams: int,
) -> list[dict[str, Any]]:
    """Return the trees of job files, in the order in which they are to be submitted.

    Files that go directly share jobs, those whose checksum is known with each other; each that
    passes relays is a job of its own, a chain that FTS calls multihop.

    Parameters
    ----------
    jobs : sequence of FetchJob
        Of whole files.
    templates : Templates
    checksums : Checksums
    streams : int
        Streams of each transfer.

    Raises
    ------
    ProblemError
        Names that FTS or a scheme cannot say, with the remedy.
    """
    _require_sayable(jobs, templates)
    chains = _chains(jobs)
    direct = [chain[0] for chain in chains if len(chain) == 1]
    trees: list[dict[str, Any]] = []
    for is_known in (True, False):
        alike = [job for job in direct if (file_of(job) in checksums.values) == is_known]
        trees += [
            _tree(alike[k : k + FILES_PER_JOB], templates, checksums, streams)
            for k in range(0, len(alike), FILES_PER_JOB)
        ]
    trees += [_tree(chain, templates, checksums, streams) for chain in chains if len(chain) > 1]
    return trees


def empty_file_jobs(
    problem: Problem, schedule: ScheduleContents, manifest: Mapping[str, Files], first: int
) -> list[FetchJob]:
    """Return jobs for the files without bytes, which no plan speaks of.

    They go directly where a link leads to the destination, else by the plan's route of fewest hops.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    manifest : mapping of str to Files
        By source.
    first : int
        How many jobs there are before these.

    Raises
    ------
    ProblemError
        No link and no route leads to the destination.
    """
    found: list[FetchJob] = []
    for source, files in manifest.items():
        empty = [i for i, size in enumerate(files.n_bytes.tolist()) if size == 0]
        if not empty or source == problem.destination:
            continue
        hosts = _way(problem, schedule, source, files.paths[empty[0]])
        for i in empty:
            piece = FilePiece(source, files.paths[i], 0, 0, 0, files.sha256[i])
            for hop in range(len(hosts) - 1):
                found.append(
                    FetchJob(
                        piece=piece,
                        host=hosts[hop + 1],
                        request_from=hosts[hop],
                        forward_to=hosts[hop + 2] if hop + 2 < len(hosts) else None,
                        start_s=0.0,
                        rate_bytes_per_s=0.0,
                        lane=0,
                        after=first + len(found) - 1 if hop else None,
                    )
                )
    return found


def notes_for_fts(
    jobs: Sequence[FetchJob], templates: Templates, checksums: Checksums
) -> Iterator[str]:
    """Say what FTS decides itself, what it cannot compare, and which names may trip it."""
    yield (
        "FTS knows no start times and no rate limits by file: it chooses both itself; the "
        "makespan assumes that all begin at once, at the plan's rates."
    )
    files = {file_of(job) for job in jobs}
    if checksums.values:
        # src/fts3/cli/jobsubmitter.py sends its option's value, "none" by default.
        yield (
            "fts-rest-transfer-submit compares checksums only with --checksum-mode both, whatever "
            "a job says; FTS's REST interface takes jobs as they are."
        )
    if checksums.n_cut:
        yield (
            f"Of {checksums.n_cut} of {len(files)} files only MD5 or SHA-256 is known, which gfal2 "
            "cannot compare between two root:// addresses: FTS compares sizes only; add adler32 to "
            "the manifest."
        )
    if unknown := len(files - checksums.values.keys()) - checksums.n_cut:
        of_which = "any file" if unknown == len(files) else f"{unknown} of {len(files)} files"
        yield f"No checksum is known of {of_which}: there FTS compares sizes only."
    rare = sum(checksums.values.get(key, "").startswith("SHA256:") for key in files)
    if rare:
        yield (
            f"Of {rare} of {len(files)} files SHA-256 is compared, which few storage systems "
            "compute: FTS fails where the destination does not; add adler32 or md5 to the manifest."
        )
    odd = {
        file_of(job)
        for job in jobs
        if not job.piece.path.isascii() and any(xrootd_at_ends(job, templates))
    }
    if odd:
        yield (
            f"{counted(len(odd), 'name')} with more than ASCII: root:// addresses have them as "
            "they are, and an FTS whose database is MySQL keeps Latin-1 only."
        )
    if any(_CONTROL.search(path) for _, path in files):
        yield (
            "Some names hold control characters: they are percent-encoded in URLs, which not every "
            "storage system takes."
        )


def _way(problem: Problem, schedule: ScheduleContents, source: str, path: str) -> tuple[str, ...]:
    """Return the hosts by which a file without bytes goes."""
    tail, head = problem.host_index[source], problem.destination_index
    row = np.flatnonzero((problem.link_from == tail) & (problem.link_to == head))
    if np.any(problem.bandwidth_bytes_per_s[..., row] > 0):
        return source, problem.destination
    routes = [tuple(route.hosts) for route in schedule.routes if route.hosts[0] == source]
    if not routes:
        raise ProblemError(
            f"{path!r} of {source!r} has no bytes, and neither a link nor a route of the plan "
            f"leads from {source!r} to {problem.destination!r}; add a link, or leave it out of the "
            "manifest"
        )
    return min(routes, key=len)


def _chains(jobs: Sequence[FetchJob]) -> list[list[FetchJob]]:
    """Return the hops of each file, by when its first begins."""
    chains: list[list[FetchJob]] = []
    chain_of: dict[int, list[FetchJob]] = {}
    for i, job in enumerate(jobs):
        if job.after is None:
            chain_of[i] = [job]
            chains.append(chain_of[i])
        else:
            chain_of[i] = chain_of[job.after]
            chain_of[i].append(job)
    return sorted(chains, key=lambda chain: chain[0].start_s)


def _tree(
    jobs: Sequence[FetchJob],
    templates: Templates,
    checksums: Checksums,
    streams: int,
) -> dict[str, Any]:
    """Return the tree of one job: of files that go directly, or of one file's hops."""
    is_chain = jobs[0].forward_to is not None
    params: dict[str, Any] = {
        "overwrite": False,
        "retry": 3,
        "multihop": is_chain,
        "verify_checksum": file_of(jobs[0]) in checksums.values,
    }
    if is_chain:
        params["overwrite_hop"] = True
    if streams > 1:
        params["nostreams"] = streams
    return {"files": [_file(job, templates, checksums) for job in jobs], "params": params}


def _file(job: FetchJob, templates: Templates, checksums: Checksums) -> dict[str, Any]:
    source, path = file_of(job)
    tree: dict[str, Any] = {
        "sources": [templates.address(job.request_from, source, path)],
        "destinations": [templates.address(job.host, source, path)],
        "filesize": job.piece.n_bytes,
        "metadata": {"source": source, "from": job.request_from, "to": job.host},
    }
    if (source, path) in checksums.values:
        tree["checksum"] = checksums.values[source, path]
    return tree


def _require_sayable(jobs: Iterable[FetchJob], templates: Templates) -> None:
    """Refuse what FTS would not find, or would write under another name."""
    refused: dict[tuple[str, str], str] = {}
    for job in jobs:
        source, path = file_of(job)
        for host in (job.request_from, job.host):
            address = templates.address(host, source, path)
            why = why_not_for_fts(address, (host, folder_of_host(source), path))
            if why is not None:
                refused.setdefault((source, path), why)
    if refused:
        named = [f"{path!r} of {source!r} ({why})" for (source, path), why in refused.items()]
        more = f"; and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        raise ProblemError(
            f"FTS cannot take these files: {'; '.join(named[:MOST_NAMED])}{more}; rename them, "
            "or have them served by https:// or davs://, which encode names: "
            "--url 'HOST=davs://…'"
        )
