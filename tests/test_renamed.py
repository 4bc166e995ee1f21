"""Earlier names of public attributes and arguments: they give what the new ones give, and warn."""

from __future__ import annotations

import copy

import pytest

import datacollect as dc
from datacollect.control.planned.direct import DirectController
from datacollect.renamed import Renamed, renamed_argument
from datacollect.simulation.fluid.engine import simulate_problem

AXIS = {"name": "method", "key": "method.name", "values": ["direct", "coordinated"], "paired": True}


class Plan:
    def __init__(self, end_s):
        self.end_s = end_s

    finish_s = Renamed("end_s")

    @renamed_argument("later_s", "delay_s")
    def put_off(self, delay_s):
        return Plan(self.end_s + delay_s)


def test_an_earlier_attribute_gives_the_new_one_and_names_it():
    rule = r"^Plan\.finish_s is called 'end_s' now"
    with pytest.warns(DeprecationWarning, match=rule) as caught:
        assert Plan(5).finish_s == 5
    assert caught[0].filename == __file__


def test_an_earlier_argument_is_taken_for_the_new_one():
    with pytest.warns(DeprecationWarning, match=r"'later_s' of put_off\(\) is called 'delay_s'"):
        assert Plan(5).put_off(later_s=2).end_s == 7
    assert Plan(5).put_off(delay_s=2).end_s == Plan(5).put_off(2).end_s == 7


def test_nothing_warns_where_no_earlier_name_is_used():
    assert copy.deepcopy(Plan(5)).end_s == 5


def test_both_names_of_an_argument_at_once_are_refused():
    with pytest.raises(TypeError, match=r"put_off\(\) takes 'delay_s', once called 'later_s'"):
        Plan(5).put_off(later_s=2, delay_s=3)


def test_experiments_still_have_ways():
    experiment = dc.Experiment.from_dict(
        {"engine": "fluid", "axes": [AXIS]}, scenario={"problem": "upload.toml"}
    )
    with pytest.warns(DeprecationWarning, match=r"^Experiment\.ways is called 'treatments' now"):
        assert experiment.ways() == experiment.treatments()
    with pytest.warns(DeprecationWarning, match="'way' of labels"):
        assert experiment.labels(setting=(), way=("direct",)) == {"method": "direct"}


def test_simulations_still_take_plan_rest():
    problem = dc.Problem.from_hosts([dc.Host("S", 8), dc.Host("D")], [dc.Link("S", "D", 4.0)], "D")
    controller = DirectController(problem)
    with pytest.warns(DeprecationWarning, match="'plan_rest' of simulate_problem"):
        run = simulate_problem(problem, controller, plan_rest=None)
    assert run.complete
