"""Windows that scripts miss: which, by how much, and how much earlier a plan has to be through.

Pieces come a little later than planned, since tools forward whole ones and each takes a request.
What has not come when a window closes waits until it opens again. How much is missing shows where
windows are held open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.exports.makespan import finish_times_s
from datacollect.files.units import format_duration
from datacollect.numbers.tolerances import SAME_INSTANT
from datacollect.problem.windows import spans_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.exports.jobs import FetchJob
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem

# Margins that people name, in seconds. Later plans may be cut otherwise: some time is left over.
MARGINS_S = (30, 60, 120, 300, 600, 900, 1200, 1800, 2700, 3600)
LEFT_OVER = 1.25


@dataclass(frozen=True)
class Missed:
    """A window that closes before all is there that the plan has pass it.

    Attributes
    ----------
    whose : str
        The host or link that it is of.
    closes_s, opens_s : float
        When it closes, and when it opens again; infinite: never.
    late_s : float
        How much longer any of the windows that pieces miss would have to be open.
    """

    whose: str
    closes_s: float
    opens_s: float
    late_s: float

    def text(self, problem: Problem) -> str:
        """Say it, as what happens to what tools carry out."""
        opens = "which never opens again"
        if math.isfinite(self.opens_s):
            opens = f"and waits until {_instant(problem, self.opens_s)}"
        return (
            f"misses the window of {self.whose} that closes at "
            f"{_instant(problem, self.closes_s)} by {format_duration(self.late_s)}, {opens}"
        )


def _instant(problem: Problem, at_s: float) -> str:
    return f"{at_s:.10g} s" if problem.clock is None else problem.clock.text(at_s)


def margin_s(late_s: float) -> float:
    """Return a margin with which what was late is in time: a time that people name.

    >>> margin_s(150.0), margin_s(4000.0)
    (300, 7200)
    """
    needed_s = LEFT_OVER * late_s
    return next(
        (named for named in MARGINS_S if named >= needed_s), 3600 * math.ceil(needed_s / 3600)
    )


def margin_text(margin_s: float) -> str:
    """Write a margin as options and files take it.

    >>> margin_text(30), margin_text(300), margin_text(7200)
    ('30 s', '5 min', '2 h')
    """
    for unit, seconds in (("h", 3600), ("min", 60)):
        if margin_s % seconds == 0:
            return f"{margin_s // seconds:.0f} {unit}"
    return f"{margin_s:g} s"


def missed_window(
    problem: Problem, jobs: Sequence[FetchJob], *, timed: bool = True
) -> Missed | None:
    """Return the first window that pieces miss; None where all come before theirs close.

    Parameters
    ----------
    problem : Problem
    jobs : sequence of FetchJob
    timed : bool
        Whether jobs wait for the instant at which the plan has them begin.
    """
    if problem.n_periods == 1:
        return None
    open_s = finish_times_s(_held_open(problem), jobs, timed=timed, requests=True)
    late_s, first = 0.0, None
    for job, end_s in zip(jobs, open_s.tolist(), strict=True):
        closes_s, opens_s = _closes(problem, job)
        if end_s <= closes_s * (1 + SAME_INSTANT):
            continue
        late_s = max(late_s, end_s - closes_s)
        if first is None or closes_s < first[0]:
            first = closes_s, opens_s, job
    if first is None:
        return None
    closes_s, opens_s, job = first
    whose = window_owner(problem, (job.request_from, job.host), closes_s)
    return Missed(whose, closes_s, opens_s, late_s)


def _held_open(problem: Problem) -> Problem:
    """Return the problem in which what closes goes on as it was."""
    # No hours that recur: what is asked for is listed.
    return problem.replace(
        bandwidth_bytes_per_s=_as_before(problem.bandwidth_bytes_per_s),
        uplink_bytes_per_s=_as_before(problem.uplink_bytes_per_s),
        downlink_bytes_per_s=_as_before(problem.downlink_bytes_per_s),
    )


def _as_before(rates: FloatArray) -> FloatArray:
    held = rates.copy()
    for row in range(1, len(held)):
        held[row] = np.where(held[row] > 0, held[row], held[row - 1])
    return held


def _closes(problem: Problem, job: FetchJob) -> tuple[float, float]:
    """Return when what a job uses closes after its planned end, and opens again."""
    # The middle of a piece lies within the window that it is planned for.
    middle_s = job.start_s + job.piece.n_bytes / job.rate_bytes_per_s / 2
    return closes_after(problem, (job.request_from, job.host), middle_s)


def closes_after(problem: Problem, link: tuple[str, str], at_s: float) -> tuple[float, float]:
    """Return when a link, or a host at its ends, closes after an instant, and opens again.

    Infinite: never.
    """
    tail, head = (problem.host_index[name] for name in link)
    (row,) = np.flatnonzero((problem.link_from == tail) & (problem.link_to == head))
    is_open = (
        (problem.bandwidth_bytes_per_s[:, row] > 0)
        & (problem.uplink_bytes_per_s[:, tail] > 0)
        & (problem.downlink_bytes_per_s[:, head] > 0)
    )
    at = int(np.searchsorted(problem.periods_s, at_s, side="right")) - 1
    closed = at + np.flatnonzero(~is_open[at:])
    if not len(closed):
        return math.inf, math.inf
    again = closed[0] + np.flatnonzero(is_open[closed[0] :])
    opens_s = float(problem.periods_s[again[0]]) if len(again) else math.inf
    return float(problem.periods_s[closed[0]]), opens_s


def window_owner(problem: Problem, link: tuple[str, str], closes_s: float) -> str:
    """Return whose window closes at an instant: a host's where the problem says so, or a link's."""
    tail, head = link
    daily, clock = problem.daily, problem.clock
    if daily is None or clock is None:
        return f"the link {tail!r} -> {head!r}"
    for limit in daily.windows:
        if (limit.from_host or tail, limit.to_host or head) != (tail, head):
            continue
        ends_s = [end for _, end in spans_s(limit.windows, clock, closes_s + 1)]
        if any(abs(end - closes_s) <= 1 for end in ends_s) and None in (
            limit.from_host,
            limit.to_host,
        ):
            return repr(limit.from_host or limit.to_host)
    return f"the link {tail!r} -> {head!r}"
