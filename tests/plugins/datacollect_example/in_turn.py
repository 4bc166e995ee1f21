"""A method with a controller of its own: sources send one after another, the smallest first.

A schedule could say that, too; the controller needs none of its times: whoever is done says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.control.connections import ConnectionTable, Lane, Piece, Recovery, RouteHop
from datacollect.control.controller import Controller
from datacollect.control.events import ConnectionClosed, ConnectionStalled, RangeArrived, Timer
from datacollect.control.planned.rows import stripes
from datacollect.methods.execution import MadeController
from datacollect.methods.options.option import MethodOptions, option
from datacollect.methods.options.shared import SOLVER
from datacollect.methods.options.spec import PER_SOURCE, ControllerSpec, MethodSpec

if TYPE_CHECKING:
    import datacollect as dc
    from datacollect.control.decisions import Decision
    from datacollect.control.events import Event
    from datacollect.methods.execution import ControllerInputs
    from datacollect.solvers.registry import Solver


def in_turn(problem: dc.Problem, *, solver: Solver = "auto") -> dc.Schedule:
    """Plan as `datacollect.direct` does where sources take turns in that order."""
    import datacollect as dc

    return dc.direct(problem, order=list(_smallest_first(problem)), solver=solver)


class InTurnController(Controller):
    """Have one source after another send, over some connections each, whatever is released when."""

    def __init__(self, problem: dc.Problem, streams: int, recovery: Recovery) -> None:
        self._waiting = _smallest_first(problem)
        self._destination, self._streams = problem.destination, streams
        self._table = ConnectionTable(recovery)
        self._lanes: list[Lane] = []
        self._n_left = 0

    def start(self) -> list[Decision]:
        return self._next()

    def handle(self, event: Event) -> list[Decision]:
        match event:
            case RangeArrived():
                self._n_left -= self._table.arrived(event) is not None
                return [] if self._n_left else self._next()
            case Timer() | ConnectionClosed() | ConnectionStalled():
                return self._table.handle(event)
            case _:
                return []

    def _next(self) -> list[Decision]:
        decisions: list[Decision] = [d for lane in self._lanes for d in self._table.close(lane)]
        if not self._waiting:
            return decisions
        host = next(iter(self._waiting))
        self._lanes = [Lane(host, self._destination, 0, i) for i in range(self._streams)]
        for piece in self._waiting.pop(host):
            for lane, part in zip(self._lanes, stripes(piece, self._streams), strict=True):
                if part.n_bytes:
                    decisions += self._table.send(lane, part, RouteHop(0, 0))
                    self._n_left += 1
        return decisions


def _smallest_first(problem: dc.Problem) -> dict[str, list[Piece]]:
    """Return what lies at each host, those first that have least."""
    found: dict[str, list[Piece]] = {}
    for parcel in problem.parcels:
        piece = Piece(problem.names[parcel.source], parcel.offset_bytes, parcel.n_bytes)
        found.setdefault(problem.names[parcel.host], []).append(piece)
    return dict(sorted(found.items(), key=lambda item: sum(piece.n_bytes for piece in item[1])))


def _make(given: ControllerInputs) -> MadeController:
    how = given.how
    controller = InTurnController(given.problem, how.streams, how.recovery)
    return MadeController(controller, how.streams)


@dataclass(frozen=True, kw_only=True)
class InTurnOptions(MethodOptions):
    """Options of `in_turn`."""

    method = "in-turn"

    solver: Solver = option(SOLVER, "auto")


IN_TURN = MethodSpec(
    "in-turn",
    InTurnOptions,
    in_turn,
    controller=ControllerSpec(_make, PER_SOURCE),
    exceeds=("sharing",),
    is_max_min_fair=True,
    has_relays=False,
)
