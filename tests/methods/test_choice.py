"""One table of methods: what it offers is what the public functions take."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import get_args

import pytest
from instances.small_problems import figure_1

import datacollect as dc
from datacollect.explanation.excess import STEPS
from datacollect.files.choices import Method
from datacollect.methods.choice import METHODS, options_like, plan, planners
from datacollect.schedule.data.contents import ScheduleContents
from datacollect.schedule.data.transfers import Turns

FUNCTIONS = {"direct": dc.direct, "best-path": dc.best_path, "coordinated": dc.coordinated}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_options_are_those_of_the_public_function(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    options = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert {each.name: each.default for each in fields(METHODS.get(name).options)} == options


def test_the_command_line_knows_the_same_names_in_the_same_order():
    assert list(get_args(Method)) == [spec.name for spec in planners()] == list(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_plans_are_those_of_the_public_function(name):
    problem = figure_1()
    planned = plan(problem, METHODS.get(name).asked({"solver": "ortools"}))
    assert planned.method == name
    assert planned.transfers.equals(FUNCTIONS[name](problem, solver="ortools").transfers)


@pytest.mark.parametrize(
    "schedule",
    [
        lambda p: dc.direct(p, at_a_time=1),
        lambda p: dc.best_path(p, slot_s=0.5, hysteresis=1.0),
        lambda p: dc.best_path(p, first="relay"),
        lambda p: dc.best_path(p, first="relay", derate=0.5),
        lambda p: dc.coordinated(p, slot_s=0.5),
        lambda p: dc.coordinated(p, deadline_s=9.0, prefer="storage"),
    ],
)
def test_what_a_schedule_records_plans_it_again(schedule):
    problem = figure_1()
    first = schedule(problem)
    again = plan(problem, options_like(first))
    assert again.transfers.equals(first.transfers)


@pytest.mark.parametrize("spec", planners(), ids=lambda spec: spec.name)
def test_schedules_have_what_options_say_that_they_record(spec):
    schedule, turns = (set(of.__dataclass_fields__) for of in (ScheduleContents, Turns))
    recorded = {about.recorded for about in spec.takes.values()} - {""}
    assert recorded <= schedule | {f"turns.{name}" for name in turns}


def test_causes_of_lateness_are_those_that_explanations_know():
    assert {cause for spec in planners() for cause in spec.exceeds} == STEPS.keys()
