"""Invariants of every controller."""

import pickle

import pytest
from instances.hand_made_plans import line_in_pieces, line_problem
from instances.planned_anew import over_k, triangle

from datacollect.control.planned.direct import DirectController
from datacollect.control.planned.replanning import ReplanningController
from datacollect.control.planned.scheduled import AsapController, PlannedController

CONTROLLERS = [
    PlannedController(line_in_pieces(2)),
    AsapController(line_in_pieces(2)),
    DirectController(line_problem()),
    ReplanningController(triangle(), over_k(), replan_s=10.0),
]


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda c: type(c).__name__)
def test_it_can_be_sent_to_another_process(controller):
    there, here = (pickle.loads(pickle.dumps(controller)) for _ in range(2))
    assert there.start() == here.start()


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda c: type(c).__name__)
def test_the_collection_ends_it_not_itself(controller):
    assert controller.finished is False
