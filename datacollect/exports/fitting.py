"""Pieces so small that a plan's deadline and its hosts' storage hold when tools carry it out.

A tool forwards whole pieces, at one mean rate each. So a script ends after its plan: by about a
piece for each relay, and by hours where that moves the last bytes past the end of a window. Pieces
that end where rates change, and last no longer than a chunk of the plan, keep the plan's instants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datacollect.errors import InfeasibleError
from datacollect.exports.jobs import LEAST_PIECE_BYTES, PIECES_PER_ROUTE, Cuts, jobs_of
from datacollect.exports.makespan import REQUEST_S, finish_times_s
from datacollect.exports.missed import margin_s, margin_text, missed_window
from datacollect.files.clock import instant_text
from datacollect.files.units import format_bytes, format_duration
from datacollect.numbers.tolerances import SAME_INSTANT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacollect.exports.formats import ExportFormat
    from datacollect.exports.jobs import Jobs
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.manifest import Files
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleContents

# Of more pieces nobody would read the scripts, and to see how long they take would take minutes.
MOST_JOBS = 12_000

# Without a deadline, scripts that end later than this part of the plan's makespan get finer pieces.
LATE = 1.1

# Requests may take so much of the time until the deadline: rates are not known better.
REQUESTS_PART = 0.05

# How many more pieces each try makes of a route, and how many tries there are at most; how much
# smaller each size is that might be advised instead of one that was asked for.
FINER, MOST_TRIES = 2, 8
SMALLER = 4


class RefusedScripts(InfeasibleError):
    """Scripts that would not keep what their plan promises.

    Attributes
    ----------
    what : str
        What they would do.
    late_s : float or None
        By how much they are late; None: they overfill a relay.
    is_of_format : bool
        Whether other pieces, or another format, keep this very plan.
    """

    def __init__(
        self,
        what: str,
        remedy: str,
        hosts: Sequence[str],
        late_s: float | None = None,
        *,
        is_of_format: bool = False,
    ) -> None:
        super().__init__(f"{what}; {remedy}", hosts)
        self.what, self.late_s, self.is_of_format = what, late_s, is_of_format


@dataclass(frozen=True, eq=False)
class Fitted:
    """Jobs for tools to carry out, and their outcome.

    Attributes
    ----------
    jobs : Jobs
    finish_s : ndarray of float
        When each job ends, without the time that requests take by themselves.
    with_requests_s : float
        When the last one ends with that time.
    """

    jobs: Jobs
    finish_s: FloatArray
    with_requests_s: float

    @property
    def makespan_s(self) -> float:
        """Return when the last job ends; infinite where that is never."""
        return float(self.finish_s.max(initial=0.0))


def fitted(
    problem: Problem,
    schedule: ScheduleContents,
    manifest: Mapping[str, Files],
    file_format: ExportFormat,
    piece_bytes: int | None,
) -> Fitted:
    """Cut a plan into the largest pieces with which its deadline and its hosts' storage hold.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Of this problem.
    manifest : mapping of str to Files
    file_format : ExportFormat
        Whose tool is to fetch them.
    piece_bytes : int or None
        Most bytes of a piece that passes relays, if they are asked for.

    Raises
    ------
    RefusedScripts
        No pieces, or none of that size, keep the deadline, or fit into a relay's storage.
    """
    search = _Search(problem, schedule, manifest, file_format)
    found = None
    for cuts in search.ways(piece_bytes):
        jobs = search.jobs(cuts)
        if found is not None and (len(jobs.jobs) > MOST_JOBS or jobs == found.jobs):
            continue
        search.require_storage(stored_bytes(problem, jobs, copied=False))
        tried = search.timed(jobs)
        if found is None or search.rank(tried) < search.rank(found):
            found = tried
        if search.is_held(tried):
            return tried
    assert found is not None
    search.require_storage(stored_bytes(problem, found.jobs), piece_bytes)
    search.require_deadline(found, piece_bytes)
    return found


@dataclass(frozen=True, eq=False)
class _Search:
    """Ways to cut one plan for one tool."""

    problem: Problem
    schedule: ScheduleContents
    manifest: Mapping[str, Files]
    file_format: ExportFormat

    def ways(self, piece_bytes: int | None) -> Iterator[Cuts]:
        """Yield ways to cut, from the coarsest to the finest; a size that is asked for is kept."""
        yield Cuts(most_bytes=piece_bytes)
        if not self.file_format.may_cut:
            return
        yield Cuts(most_bytes=piece_bytes, at_rates=True)
        if piece_bytes is None:
            chunk_s = self.schedule.chunk_s or math.inf
            for k in range(MOST_TRIES):
                per_route = PIECES_PER_ROUTE * FINER**k
                longest_s = self.schedule.makespan_s / per_route
                yield Cuts(at_rates=True, per_route=per_route, longest_s=longest_s)
            # What a relay passes on lags by a chunk: these keep the plan's instants.
            yield Cuts(at_rates=True, longest_s=chunk_s)

    def jobs(self, cuts: Cuts) -> Jobs:
        """Cut."""
        may_cut = self.file_format.may_cut
        return jobs_of(self.problem, self.schedule, self.manifest, may_cut=may_cut, cuts=cuts)

    def timed(self, jobs: Jobs) -> Fitted:
        """Look when each piece arrives."""
        timed = self.file_format.is_timed
        finish_s, asked_s = (
            finish_times_s(self.problem, jobs.jobs, timed=timed, requests=requests)
            for requests in (False, True)
        )
        return Fitted(jobs, finish_s, float(asked_s.max(initial=0.0)))

    def is_held(self, found: Fitted) -> bool:
        """Return whether the deadline is kept, or without one the end is near the plan's.

        And storage.
        """
        needed = stored_bytes(self.problem, found.jobs)
        return self._is_in_time(found) and not self._overfull(needed)

    def rank(self, found: Fitted) -> tuple[bool, float]:
        """Return what makes one way better than another: it fits, and then it ends early."""
        return bool(self._overfull(stored_bytes(self.problem, found.jobs))), found.with_requests_s

    def _is_in_time(self, found: Fitted) -> bool:
        deadline_s = self.schedule.deadline_s
        if deadline_s is None:
            return ends_near(self.schedule, found)
        are_data_in_time = found.makespan_s <= deadline_s * (1 + SAME_INSTANT)
        return are_data_in_time and found.with_requests_s <= deadline_s * (1 + REQUESTS_PART)

    def _overfull(self, needed: Mapping[str, int]) -> list[str]:
        room, index = self.problem.storage_bytes, self.problem.host_index
        return [host for host, n_bytes in needed.items() if n_bytes > room[index[host]]]

    def require_storage(self, needed: Mapping[str, int], piece_bytes: int | None = None) -> None:
        """Refuse scripts for which a relay has no room."""
        over = self._overfull(needed)
        if not over:
            return
        host = over[0]
        room = float(self.problem.storage_bytes[self.problem.host_index[host]])
        smaller = self._smaller_that_holds(piece_bytes)
        remedy = smaller or (
            "plan with --keep-relayed, which lets no more pass than each relay can keep"
        )
        raise RefusedScripts(
            f"nothing deletes at {host!r} what has been forwarded: {self.file_format.name} needs "
            f"{format_bytes(needed[host])} there, its storage_bytes is {format_bytes(room)}",
            remedy,
            (host,),
            is_of_format=bool(smaller),
        )

    def require_deadline(self, found: Fitted, piece_bytes: int | None) -> None:
        """Refuse scripts that end after the plan's deadline."""
        deadline_s = self.schedule.deadline_s
        if deadline_s is None or self._is_in_time(found):
            return
        clock, name = self.problem.clock, self.file_format.name
        deadline = f"the plan's deadline, {instant_text(deadline_s, clock)}"
        missed = missed_window(self.problem, found.jobs.jobs, timed=self.file_format.is_timed)
        if missed is not None:
            late_s = missed.late_s
            what = f"{missed.text(self.problem)}: it ends after {deadline}"
        else:
            ends_s, besides = found.makespan_s, ""
            if ends_s <= deadline_s * (1 + SAME_INSTANT):
                ends_s, besides = found.with_requests_s, f" with {REQUEST_S} s for each request"
            late_s = ends_s - deadline_s
            what = f"never ends, let alone by {deadline}"
            if math.isfinite(late_s):
                ends = f"ends at {instant_text(ends_s, clock)}{besides}"
                what = f"{ends}, {format_duration(late_s)} after {deadline}"
        own = self._remedy_of_format(piece_bytes)
        raise RefusedScripts(
            f"what {name} carries out {what}",
            own or self._remedy_of_plan(late_s),
            self.problem.sources,
            late_s,
            is_of_format=bool(own),
        )

    def _remedy_of_format(self, piece_bytes: int | None) -> str:
        """Return what keeps this plan; empty: no scripts do."""
        if smaller := self._smaller_that_holds(piece_bytes):
            return smaller
        if not self.file_format.may_cut and self.in_pieces().some_hold():
            return (
                f"{self.file_format.name} forwards whole files: take --as curl or --as rclone, "
                "which fetch pieces, or plan by an earlier deadline"
            )
        return ""

    def _remedy_of_plan(self, late_s: float) -> str:
        # Where a plan has a margin already, it was too short.
        needed_s = margin_s((self.schedule.margin_s or 0.0) + late_s)
        if needed_s >= (self.schedule.deadline_s or math.inf):
            return "plan by an earlier deadline, or allow more time"
        return (
            f"plan with --margin '{margin_text(needed_s)}', which ends so much earlier, or allow "
            "more time"
        )

    def _smaller_that_holds(self, piece_bytes: int | None) -> str:
        """Say which size would do, where one was asked for that does not; else nothing."""
        if piece_bytes is None or not self.file_format.may_cut:
            return ""
        size = piece_bytes
        while size > LEAST_PIECE_BYTES:
            size = max(size // SMALLER, LEAST_PIECE_BYTES)
            jobs = self.jobs(Cuts(most_bytes=size, at_rates=True))
            if len(jobs.jobs) > MOST_JOBS:
                break
            if self.is_held(self.timed(jobs)):
                return f"with --piece-bytes {size} they keep it, or leave the option out"
        # Of one size for all routes there would be too many; each may have its own.
        return "leave --piece-bytes out: then they keep it" if self.some_hold() else ""

    def in_pieces(self) -> _Search:
        """Search for a tool that fetches pieces, at their times."""
        return replace(self, file_format=replace(self.file_format, may_cut=True, is_timed=True))

    def some_hold(self) -> bool:
        """Return whether there are pieces with which it holds."""
        for cuts in self.ways(None):
            jobs = self.jobs(cuts)
            if len(jobs.jobs) <= MOST_JOBS and self.is_held(self.timed(jobs)):
                return True
        return False


def ends_near(schedule: ScheduleContents, found: Fitted) -> bool:
    """Return whether scripts end about when their plan does."""
    return found.with_requests_s <= LATE * schedule.makespan_s


def stored_bytes(problem: Problem, jobs: Jobs, *, copied: bool = True) -> dict[str, int]:
    """Return what each relay needs room for, by host: all that it fetches or holds for others.

    Nothing is deleted at relays. Unless `copied` is false, what lies twice for a moment counts: in
    each lane a piece, when it is copied to its place in a file that is not whole.
    """
    needed: dict[str, int] = {}
    twice: dict[tuple[str, int], int] = {}
    for entry in problem.held:
        if entry.host not in (problem.destination, entry.source):
            needed[entry.host] = needed.get(entry.host, 0) + entry.n_bytes
    for job in jobs.jobs:
        if job.forward_to is None:
            continue
        piece = job.piece
        needed[job.host] = needed.get(job.host, 0) + piece.n_bytes
        part = 0 if piece.is_whole else piece.n_bytes
        twice[job.host, job.lane] = max(twice.get((job.host, job.lane), 0), part)
    for (host, _), n_bytes in twice.items():
        needed[host] += n_bytes if copied else 0
    return needed
