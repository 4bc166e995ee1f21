"""Contents of schedules and progress, as plain data.

Readers and writers of files, the judge, and all that is computed from transfers know these only.
`datacollect.schedule.schedule.Schedule` and `datacollect.schedule.progress.Progress` have the same
attributes, and answer questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from datacollect.schedule.data.transfers import UNKNOWN

if TYPE_CHECKING:
    from datacollect.files.choices import First, Preference
    from datacollect.files.quantities import Seconds
    from datacollect.problem.hosts import Held
    from datacollect.schedule.data.new_links import NewLinks
    from datacollect.schedule.data.transfers import Bottleneck, Route, Transfers, Turns

OPTIMAL = "optimal"  # in the fluid model or in slots fastest, then best by preference, to 1e-6
HEURISTIC = "heuristic"  # direct and best-path: valid, no claim to be fastest
TIME_LIMIT = "time_limit"  # complete and valid, stopped before it was proved or made best


@dataclass(frozen=True, eq=False)
class ScheduleContents:
    """The attributes of a `datacollect.schedule.schedule.Schedule`."""

    method: str
    destination: str
    makespan_s: float
    lower_bound_s: float
    slot_s: float | None
    chunk_s: float | None
    solver: str
    problem_sha256: str
    routes: tuple[Route, ...]
    columns: Transfers
    status: str = OPTIMAL
    bottleneck: Bottleneck = UNKNOWN
    plan_time_s: float = 0.0
    prefer: Preference | None = None
    deadline_s: float | None = None
    turns: Turns | None = None
    hysteresis: float | None = None
    first: First | None = None
    derate: float | None = None
    most_transfers: int | None = None
    connections: int | None = None
    most_by_s: float | None = None
    hosts: tuple[str, ...] = ()
    cautious: bool = False
    margin_s: float | None = None
    starts_at: str | None = None


class _ScheduleWords(TypedDict, total=False):
    """The attributes that a schedule may do without, but for numbers with units."""

    status: str
    prefer: Preference | None
    turns: Turns | None
    hysteresis: float | None
    first: First | None
    derate: float | None
    most_transfers: int | None
    connections: int | None
    cautious: bool
    starts_at: str | None


class ScheduleRemarks(_ScheduleWords, total=False):
    """The attributes that a schedule may do without."""

    plan_time_s: float
    deadline_s: float | None
    most_by_s: float | None
    margin_s: float | None


class ScheduleChanges(_ScheduleWords, total=False):
    """Arguments of `Schedule.replace`: any of the attributes, times as texts with units, too."""

    plan_time_s: Seconds
    deadline_s: Seconds | None
    most_by_s: Seconds | None
    margin_s: Seconds | None
    method: str
    destination: str
    makespan_s: Seconds
    lower_bound_s: Seconds
    slot_s: Seconds | None
    chunk_s: Seconds | None
    solver: str
    problem_sha256: str
    routes: tuple[Route, ...]
    columns: Transfers
    bottleneck: Bottleneck
    hosts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ProgressContents:
    """The attributes of a `datacollect.schedule.progress.Progress`, not checked yet."""

    at_s: float
    held: tuple[Held, ...] = ()
    links: NewLinks | None = None
    lost_hosts: tuple[str, ...] = ()
