"""Checksums for FTS: one ``ALGORITHM:value`` for each file, and none that its library cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.exports.schemes import AS_IS, scheme_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.exports.jobs import FetchJob
    from datacollect.exports.templates import Templates
    from datacollect.problem.manifest import Files

# Which of several known checksums it gets: nearly all storage systems of grids know the first.
BY_PREFERENCE = ("adler32", "md5", "sha256")


@dataclass(frozen=True)
class Checksums:
    """Checksums that FTS compares.

    Attributes
    ----------
    values : dict
        By source and path, ``ALGORITHM:value``; none where nothing is compared.
    n_cut : int
        Files whose checksum is known and left out, because gfal2 would cut it.
    """

    values: dict[tuple[str, str], str]
    n_cut: int = 0


def checksums_for_fts(
    jobs: Sequence[FetchJob],
    templates: Templates,
    manifest: Mapping[str, Files],
    algorithm: str | None = None,
) -> Checksums:
    """Choose what FTS is to compare of each file.

    Between two XRootD servers gfal2 compares the first eight digits with the whole
    (``gfal_xrootd_3rd_copy_bulk``; 2.21 tried), so that any other than adler32 fails. There such
    are left out, unless one is asked for.

    Parameters
    ----------
    jobs : sequence of FetchJob
    templates : Templates
    manifest : mapping of str to Files
        By source.
    algorithm : {"adler32", "md5", "sha256"}, optional
        No other; by default the first of these that is known of a file.

    Raises
    ------
    ProblemError
        No file has the one that is asked for.
    """
    known: dict[tuple[str, str], str] = {}
    for source, files in manifest.items():
        for name in reversed(BY_PREFERENCE if algorithm is None else (algorithm,)):
            for path, value in zip(files.paths, files.checksums(name), strict=True):
                if value:
                    known[source, path] = f"{name.upper()}:{value}"
    if algorithm is not None:
        if not known:
            raise ProblemError(
                f"--checksum {algorithm}: the manifest has this checksum for no file; add a "
                f"column {algorithm!r} to it, or leave the option out"
            )
        return Checksums(known)
    cut = {
        file_of(job)
        for job in jobs
        if not known.get(file_of(job), "ADLER32:").startswith("ADLER32:")
        and all(xrootd_at_ends(job, templates))
    }
    values = {key: value for key, value in known.items() if key not in cut}
    return Checksums(values, len(cut))


def file_of(job: FetchJob) -> tuple[str, str]:
    """Return the source and the path of what a job moves."""
    return job.piece.source, job.piece.path


def xrootd_at_ends(job: FetchJob, templates: Templates) -> list[bool]:
    """Return of either end of a copy whether it is XRootD's."""
    return [
        scheme_of(templates.template(host, job.piece.source)) in AS_IS
        for host in (job.request_from, job.host)
    ]
