"""Controller of adaptive: connections move to where they bring most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.relaying import CHAINS, QUEUES
from datacollect.methods.controllers.scheduled import connection_budget, make_chained
from datacollect.methods.execution import MadeController
from datacollect.methods.prediction import predicted_adaptive

if TYPE_CHECKING:
    from datacollect.methods.execution import ControllerInputs


def make_adaptive(given: ControllerInputs) -> MadeController:
    """Return what moves connections; over chains that cannot move, what pulls routes' shares."""
    problem, how = given.problem, given.how
    if how.relays == CHAINS and not _may_move(given):
        return make_chained(given)
    connections = connection_budget(problem, given.schedule, how)
    expected = predicted_adaptive(problem, connections, in_packets=given.in_packets)
    controller = AdaptiveController(
        problem,
        connections,
        relays=how.relays or QUEUES,
        harm=how.harm,
        room_bytes=given.room_bytes,
        piece_bytes=how.piece_bytes,
        window_bytes=how.window_bytes,
        recovery=how.recovery,
        expected_s=None if expected is None else expected.makespan_s,
    )
    return MadeController(controller, connections, prediction=expected)


def _may_move(given: ControllerInputs) -> bool:
    """Say whether connections over chains can move: links are known, and the longest chain fits."""
    longest = max((route.n_hops for route in given.schedule.routes), default=1)
    how = given.how
    return how.is_known and connection_budget(given.problem, given.schedule, how) >= longest
