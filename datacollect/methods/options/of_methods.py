"""Options of the methods: a frozen class for each, which a schedule can be asked for, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from datacollect.methods.options.arguments import HYSTERESIS
from datacollect.methods.options.names import EARLY, VIA_DIRECT

if TYPE_CHECKING:
    from datacollect.files.choices import Finish, First, Preference, Solver
    from datacollect.schedule.schedule import Schedule


@dataclass(frozen=True)
class DirectOptions:
    """Options of `datacollect.methods.direct.direct`, which says what they mean."""

    order: tuple[str, ...] | None = None
    at_a_time: int | None = None
    time_slot_s: float | None = None
    solver: Solver = "auto"
    derate: float = 1.0

    @classmethod
    def like(cls, schedule: Schedule, solver: Solver) -> DirectOptions:
        """Return those that a schedule records."""
        turns = schedule.turns
        if turns is None:
            return cls(solver=solver, derate=schedule.derate or 1.0)
        order = turns.order or None
        return cls(order, turns.at_a_time, turns.time_slot_s, solver, schedule.derate or 1.0)


@dataclass(frozen=True)
class BestPathOptions:
    """Options of `datacollect.methods.best_path.best_path`, which says what they mean."""

    slot_s: float | None = None
    chunk_s: float | None = None
    hysteresis: float = HYSTERESIS
    first: First = VIA_DIRECT
    solver: Solver = "auto"
    derate: float = 1.0

    @classmethod
    def like(cls, schedule: Schedule, solver: Solver) -> BestPathOptions:
        """Return those that a schedule records."""
        hysteresis = schedule.hysteresis or HYSTERESIS
        shape = schedule.slot_s, _chunk_s(schedule)
        first = schedule.first or VIA_DIRECT
        return cls(*shape, hysteresis, first, solver, schedule.derate or 1.0)


@dataclass(frozen=True)
class CoordinatedOptions:
    """Options of `datacollect.methods.coordinated.coordinated`, which says what they mean."""

    slot_s: float | None = None
    chunk_s: float | None = None
    prefer: Preference | None = None
    deadline_s: float | None = None
    solver: Solver = "auto"
    time_limit_s: float | None = None
    derate: float = 1.0
    most_transfers: int | None = None
    finish: Finish = EARLY
    connections: int | None = None
    settle_ties: bool = True

    @classmethod
    def like(cls, schedule: Schedule, solver: Solver) -> CoordinatedOptions:
        """Return those that a schedule records."""
        return cls(
            schedule.slot_s,
            _chunk_s(schedule),
            schedule.prefer,
            schedule.deadline_s,
            solver,
            derate=schedule.derate or 1.0,
            most_transfers=schedule.most_transfers,
            connections=schedule.connections,
        )


def _chunk_s(schedule: Schedule) -> float | None:
    return None if schedule.slot_s is not None else schedule.chunk_s


MethodOptions: TypeAlias = DirectOptions | BestPathOptions | CoordinatedOptions
