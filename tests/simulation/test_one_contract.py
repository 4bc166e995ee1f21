"""One controller makes the same of the same in the fluid engine, in ns-3 and in a pull's core.

Ways and rates differ from driver to driver, and so do instants; what is told, and what is decided
upon it, may not.
"""

from __future__ import annotations

from functools import partial

import pytest
from instances.ns3_networks import needs_ns3
from instances.small_networks import PLACES, line_network
from transfer.pull.fake_sources import PlanningWorld

import datacollect as dc
from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.chained.controller import ChainedController
from datacollect.control.chained.learning import LearningController
from datacollect.control.connections import Recovery
from datacollect.control.controller import Controller
from datacollect.control.decisions import Close, Open, PlanRemaining, Send, WakeMe
from datacollect.control.events import (
    BytesMoved,
    ConnectionClosed,
    ConnectionOpened,
    RangeArrived,
    RemainingPlanned,
    Timer,
)
from datacollect.control.plan_request import remaining_planned
from datacollect.methods.remaining_planner import RemainingPlanner
from datacollect.schedule.progress import Progress
from datacollect.simulation.fluid.engine import simulate_fluid
from datacollect.simulation.network import Transport
from datacollect.transfer.pull.core.core import CollectorCore
from datacollect.transfer.pull.core.todo import SourceWork

PIECE = 1 << 20
PIECES = 8
# Two pieces are more than 1.5 s at this rate: how much is on its way never depends on time.
RATE = 5e5
PROBLEM = dc.Problem.from_matrix(
    ["S", "K", "D"], [[0, RATE, RATE], [0, 0, RATE], [0, 0, 0]], [PIECES * PIECE, 0, 0], "D"
)
DRIVERS = ["fluid", pytest.param("ns3", marks=needs_ns3), "pull"]


class Noting(Controller):
    """Writes down what another controller is told, and what it decides upon it."""

    def __init__(self, controller):
        self._controller = controller
        self.watches_every_s = controller.watches_every_s
        self.answer = []

    def start(self):
        return self._noted(None, self._controller.start())

    def handle(self, event):
        return self._noted(event, self._controller.handle(event))

    def _noted(self, event, decisions):
        self.answer.append((event, list(decisions)))
        return decisions


def carried_out(driver, controller):
    """What the controller was told and decided, in order."""
    noting, plan_remaining = Noting(controller), RemainingPlanner(PROBLEM, dc.direct(PROBLEM))
    if driver == "pull":
        sizes, starts = (PIECE,) * PIECES, tuple(range(0, PIECES * PIECE, PIECE))
        core = CollectorCore({"S": SourceWork(starts, sizes, frozenset(range(PIECES)))}, noting)
        world = PlanningWorld({("S", "D"): RATE, ("S", "K", "D"): RATE})
        world.plan_remaining = lambda rest: (
            remaining_planned(plan_remaining, PlanRemaining(0, rest), 0.0).schedule
        )
        world.run(core)
        assert core.finished == "all there"
        return noting.answer
    network = line_network([RATE, RATE], PLACES, delay_s=0.01, transport=Transport())
    simulate = simulate_fluid
    if driver == "ns3":
        from datacollect.simulation.ns3.engine import simulate_ns3 as simulate
    run = simulate(
        network, {"S": PIECES * PIECE}, "D", noting, plan_remaining=plan_remaining, control="free"
    )
    assert run.complete
    return run.settings["controller"]


class Story(Controller):
    """Does all that a controller can, each upon what the one before has led to."""

    watches_every_s = 0.25

    def start(self):
        """Over a chain, before it is open."""
        return [Open(0, ("S", "K", "D")), self._send(0, 0, 2), self._send(0, 2, 1)]

    def handle(self, event):
        match event:
            case RangeArrived(connection=0, offset_bytes=offset) if offset > 0:
                return [WakeMe(event.time_s + 0.5, 7)]
            case Timer(tag=7):
                return [Open(1, ("S", "D"))]
            case ConnectionOpened(connection=1):
                # It closes once that is there; the other one has nothing left.
                return [self._send(1, 3, 1), Close(1), Close(0)]
            case ConnectionClosed(connection=1):
                return [Open(2, ("S", "D")), self._send(2, 4, 4), self._send(2, 4, 4)]
            case BytesMoved(connection=2):
                return [Close(2, drop_queue=True)]
            case ConnectionClosed(connection=2):
                held = (dc.Held("D", "S", 0, 4 * PIECE),)
                return [PlanRemaining(3, Progress(event.time_s, held))]
            case RemainingPlanned():
                left = planned_bytes(event.schedule)
                return [Open(3, ("S", "D")), Send(3, "S", 4 * PIECE, left)]
        return []

    def _send(self, connection, first, n):
        return Send(connection, "S", first * PIECE, n * PIECE)


def planned_bytes(schedule):
    """What leaves the hosts where it lies."""
    columns = schedule.columns
    return int(columns.n_bytes[columns.hop == 0].sum())


def without_times(event):
    """What an event says but for its instant; a schedule by what it moves."""
    match event:
        case None:
            return None
        case RemainingPlanned(_, number, schedule):
            return "RemainingPlanned", number, planned_bytes(schedule)
        case WakeMe(_, tag):
            return "WakeMe", tag
        case PlanRemaining(number, progress):
            return "PlanRemaining", number, progress.held
    named = {name: getattr(event, name) for name in event.__slots__ if name != "time_s"}
    return type(event).__name__, *named.values()


def told(transcript):
    """Events and decisions without instants: what is looked at now and then is left out.

    So is what arrives over a connection that is closing, which may be before its end or after, and
    what is told once all is there, which drivers need not tell.
    """
    return [
        (without_times(event), [without_times(decision) for decision in decisions])
        for event, decisions in transcript
        if not (isinstance(event, BytesMoved) and not decisions)
        and not (isinstance(event, RangeArrived) and event.connection in (1, 3))
    ]


def expected():
    """The story as the contract has it: each answer to what was decided, once, and in its order."""
    story = Story()
    arrived = lambda n, first, size: RangeArrived(0, n, "D", "S", first * PIECE, size * PIECE)  # noqa: E731
    rest = dc.direct(PROBLEM.replace(held=(dc.Held("D", "S", 0, 4 * PIECE),)))
    events = [
        ConnectionOpened(0, 0),
        arrived(0, 0, 2),
        arrived(0, 2, 1),
        Timer(0, 7),
        ConnectionOpened(0, 1),
        ConnectionClosed(0, 0),
        ConnectionClosed(0, 1),
        ConnectionOpened(0, 2),
        BytesMoved(0, 2, 1),
        ConnectionClosed(0, 2),
        RemainingPlanned(0, 3, rest),
        ConnectionOpened(0, 3),
    ]
    return told([(None, story.start()), *((event, story.handle(event)) for event in events)])


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
def test_each_driver_tells_the_same_story(driver):
    transcript = carried_out(driver, Story())
    found = [
        (event if event is None or event[0] != "BytesMoved" else event[:2], decisions)
        for event, decisions in told(transcript)
    ]
    wanted = [
        (event if event is None or event[0] != "BytesMoved" else event[:2], decisions)
        for event, decisions in expected()
    ]
    assert found == wanted
    closing = [e for e, _ in transcript if isinstance(e, RangeArrived) and e.connection == 1]
    assert [(one.offset_bytes, one.n_bytes) for one in closing] == [(3 * PIECE, PIECE)]
    instants = [event.time_s for event, _ in transcript if event is not None]
    assert instants == sorted(instants)


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
def test_each_driver_tells_a_watching_controller_what_has_arrived(driver):
    """Never less than before, and no more than was sent."""
    seen = {}
    for event, _ in carried_out(driver, Story()):
        if isinstance(event, BytesMoved):
            assert seen.get(event.connection, 0) <= event.n_bytes
            seen[event.connection] = event.n_bytes
    assert 0 < seen[0] <= 3 * PIECE
    assert seen.keys() >= {0, 3}


OPTIONS = {"piece_bytes": PIECE, "recovery": Recovery(), "connections": 1}
CONTROLLERS = {
    "chained": lambda: ChainedController(PROBLEM, dc.direct(PROBLEM), **OPTIONS),
    "learning": lambda: LearningController(PROBLEM, dc.direct(PROBLEM), [], **OPTIONS),
    "adaptive": lambda: AdaptiveController(
        PROBLEM, 1, relays="chains", piece_bytes=PIECE, recovery=Recovery()
    ),
}


def moves(transcript):
    """What was opened, sent and closed, in order."""
    kinds = (Open, Send, Close)
    return [one for _, decisions in transcript for one in decisions if isinstance(one, kinds)]


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS[1:])
@pytest.mark.parametrize("name", CONTROLLERS)
def test_each_driver_has_a_controller_decide_the_same(driver, name):
    """Over one connection, two pieces on their way: the next is sent when one has come."""
    begin = partial(CONTROLLERS[name])
    reference = moves(carried_out("fluid", begin()))
    pieces = [one.offset_bytes // PIECE for one in reference if isinstance(one, Send)]
    assert pieces == list(range(PIECES))
    # Whether a controller hears of the last piece, and closes, is the driver's affair.
    found = [one for one in moves(carried_out(driver, begin())) if not isinstance(one, Close)]
    assert found == [one for one in reference if not isinstance(one, Close)]
