"""Each option of each method, in each place: it works, or is refused for the reason it states."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import get_args

import pytest
from instances.small_scenarios import line_of

import datacollect as dc
from datacollect.files.kinds import Choice, Flag, Instant, ListOf, Number, Share, Whole
from datacollect.methods.choice import METHODS, own_methods
from datacollect.methods.options.option import Place, flag
from datacollect.methods.places import options_in, refused_in, require_fit
from datacollect.methods.planning_options import PlanningOptions
from datacollect.scenario.options import execution_options
from datacollect.transfer.pull.config.file import Collection

EVERY = [
    (spec.name, option, place)
    for spec in own_methods()
    for option in spec.takes
    for place in get_args(Place)
]
# Two places know the word already: most connections at a time of a collection that is carried out.
HAS_ANOTHER_MEANING = ("connections", "scenario")

COLLECTION = {
    "format": "datacollect-collection/1",
    "destination": "D",
    "key": "key",
    "agents": {"S": {"url": "https://127.0.0.1:7443", "ca": "ca.pem"}},
}


def sample(about, hosts=("telescope",)):
    """Return a value of an option's kind."""
    match about.kind:
        case Choice(words):
            return words[0]
        case Whole():
            return 9
        case Share():
            return 0.5
        case Number() | Instant():
            return 9000.0
        case ListOf():
            return list(hosts)
        case Flag():
            return False
    raise AssertionError(about.kind)


def given(method, option, hosts=("telescope",)):
    """Return the option with a value, and what it needs."""
    takes = METHODS.get(method).takes
    names = [option, *(takes[option].needs or ())[:1]]
    return {name: sample(takes[name], hosts) for name in names}


def written(values):
    """Return options as the command line has them."""
    words = {name: ",".join(v) if isinstance(v, list) else str(v) for name, v in values.items()}
    # A flag has no value.
    return [w for name, text in words.items() for w in (flag(name), text) if w != "False"]


@pytest.fixture
def connections(here, call):
    assert call("example", "connections")[0] == 0


@pytest.mark.parametrize(("method", "option"), [(m, o) for m, o, place in EVERY if place == "plan"])
def test_on_the_command_line_of_plan(method, option, connections, call):
    reason = METHODS.get(method).takes[option].not_in.get("plan")
    if method == "adaptive":
        method = METHODS.get(method).plans_as
    values = {} if reason else given(method, option)
    asked = [flag(option)] if reason else written(values)
    code, _, err = call("plan", "connections.toml", "--method", method, *asked)
    assert (code, reason in err) == (2, True) if reason else (code == 0), err


@pytest.mark.parametrize(
    ("method", "option"), [(m, o) for m, o, place in EVERY if place == "compare"]
)
def test_on_the_command_line_of_compare(method, option, connections, call):
    reason = METHODS.get(method).takes[option].not_in.get("compare")
    asked = [flag(option)] if reason else written(given(method, option))
    code, _, err = call("compare", "connections.toml", *asked)
    assert (code, reason in err) == (2, True) if reason else (code == 0), err


def test_compare_takes_by_name_what_its_command_takes():
    parameters = inspect.signature(dc.compare).parameters.values()
    assert {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} == options_in("compare").keys()


@pytest.mark.parametrize(
    ("method", "option"), [(m, o) for m, o, place in EVERY if place == "scenario"]
)
def test_in_scenarios(method, option):
    about = METHODS.get(method).takes[option]
    planner = METHODS.get(METHODS.get(method).plans_as or method)
    values = given(method, option, ["S"])
    reason = about.not_in.get("scenario")
    if reason and (option, "scenario") != HAS_ANOTHER_MEANING:
        with pytest.raises(dc.ProblemError) as refused:
            line_of(method={"name": method, **values})
        assert str(refused.value) == f"method.{option}: {reason}; leave it out"
        return
    how = execution_options(line_of(method={"name": method, **values}))
    expected = {"settle_ties": False} if reason else {**values, "settle_ties": False}
    assert how.planning() == planner.asked(expected)


@pytest.mark.parametrize(("method", "option"), [(m, o) for m, o, place in EVERY if place == "pull"])
def test_in_collections(method, option):
    spec = METHODS.get(method)
    values, reason = given(method, option, ["S"]), spec.takes[option].not_in.get("pull")
    if option in refused_in("pull"):
        with pytest.raises(dc.ProblemError) as refused:
            Collection.from_dict({**COLLECTION, "planning": {option: values[option]}})
        assert (
            str(refused.value) == f"planning.{option}: {refused_in('pull')[option]}; leave it out"
        )
        return
    planning = Collection.from_dict({**COLLECTION, "planning": values}).planning
    if reason:
        with pytest.raises(dc.ProblemError) as refused:
            require_fit(spec, planning, "pull", "planning.{}".format)
        assert str(refused.value) == f"planning.{option}: {reason}; leave it out"
        return
    assert require_fit(spec, planning, "pull", "planning.{}".format) == []
    planner = METHODS.get(spec.plans_as or method)
    expected = planner.asked({**values, "settle_ties": False})
    assert PlanningOptions(method, planning).planning() == expected


def test_an_option_of_another_method_is_refused_before_a_pull_begins(tmp_path):
    collection = {**COLLECTION, "planning": {"first": "relay"}}
    with pytest.raises(dc.ProblemError, match=r"planning\.first is for --method best-path"):
        dc.pull(collection, tmp_path / "into", "coordinated")
    assert not (tmp_path / "into").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pull", "c.toml", "--into", "d", "--prefer", "money"], "as planning.prefer"),
        (["simulate", "s.toml", "--first", "relay"], "as method.first"),
        (["pull", "c.toml", "--into", "d", "--chunk", "1"], "wait for no chunks"),
    ],
)
def test_who_asks_a_command_hears_which_file_says_it(arguments, said, call):
    code, _, err = call(*arguments)
    assert code == 2
    assert said in err


def test_places_that_an_option_is_not_in_are_places():
    for spec in own_methods():
        for about in spec.takes.values():
            assert about.not_in.keys() <= set(get_args(Place))


@pytest.mark.parametrize("spec", own_methods(), ids=lambda spec: spec.name)
def test_options_say_what_stands_in_braces_by_names_of_options(spec):
    for each in fields(spec.options):
        text = each.metadata["option"].described(lambda name: {n: n for n in spec.takes}[name])
        assert "{" not in text
