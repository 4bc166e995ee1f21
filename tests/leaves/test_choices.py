"""Choices of users: the types say what the tables say, and what is unknown is refused."""

from __future__ import annotations

import inspect
import typing

import pandas as pd
import pytest
from instances.three_hosts import small

import datacollect as dc
from datacollect.control.relaying import RELAYING
from datacollect.files import choices
from datacollect.flow.network.preference import PREFERENCES
from datacollect.methods.choice import METHODS, planners
from datacollect.simulation.control import CONTROL
from datacollect.solvers import registry

SAMPLES = pd.DataFrame({"from": "S", "to": "D", "time_s": [0.0], "bandwidth_bytes_per_s": [1e6]})
SCENARIO = {"problem": "nowhere.toml"}


@pytest.mark.parametrize(
    ("kind", "tables"),
    [
        (choices.Method, [[spec.name for spec in planners()]]),
        (choices.RunMethod, [METHODS.own]),
        (choices.Preference, [PREFERENCES]),
        (registry.Solver, [["auto", *registry.FLOW_BACKENDS], ["auto", *registry.MIN_COST_ORDER]]),
        (choices.Control, [CONTROL]),
        (choices.Relays, [RELAYING]),
    ],
)
def test_types_say_what_the_tables_say(kind, tables):
    for table in tables:
        assert set(typing.get_args(kind)) == {str(name) for name in table}


# Parameters of public functions that take one of a few words, and the type of each.
CHOSEN = {
    "prefer": "Preference",
    "finish": "Finish",
    "first": "First",
    "solver": "Solver",
    "how": "Estimator",
    "engine": "Engine",
    "method": "RunMethod",
    "only": "MeasuredPairs",
}


def test_every_choice_of_the_public_functions_has_its_type():
    found = set()
    for name in dc.__all__:
        function = getattr(dc, name)
        if not inspect.isfunction(function):
            continue
        for key, parameter in inspect.signature(function).parameters.items():
            if (key, name) in (("only", "read_samples"), ("only", "sweep")):
                continue  # values by names
            if key in CHOSEN:
                assert str(parameter.annotation).removesuffix(" | None") == CHOSEN[key], name
                found.add(key)
            # Addresses, a name of thousands, and an agent with a service of it.
            elif (key, name) != ("to", "tunnel") and key not in ("dask", "stamps", "timezone"):
                assert str(parameter.annotation).removesuffix(" | None") != "str", f"{name}: {key}"
    assert found == CHOSEN.keys()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dc.coordinated(small(), prefer="mony"), "did you mean 'money'"),
        (lambda: dc.coordinated(small(), finish="erly"), "did you mean 'early'"),
        (lambda: dc.coordinated(small(), solver="ortool"), "did you mean 'ortools'"),
        (lambda: dc.direct(small(), solver="ortool"), "did you mean 'ortools'"),
        (lambda: dc.best_path(small(), first="rely"), "did you mean 'relay'"),
        (lambda: dc.compare(small(), finish="erly"), "did you mean 'early'"),
        (lambda: dc.explain(small(), solver="ortool"), "did you mean 'ortools'"),
        (lambda: dc.lower_bound(small(), solver="ortool"), "did you mean 'ortools'"),
        (lambda: dc.estimate(SAMPLES, "man"), "did you mean 'mean'"),
        (lambda: dc.simulate(SCENARIO, engine="fluit"), "did you mean 'fluid'"),
        (lambda: dc.simulate(SCENARIO, engine="fluid", method="dirct"), "did you mean 'direct'"),
        (lambda: dc.pull({}, "here", "adaptiv"), "did you mean 'adaptive'"),
    ],
)
def test_an_unknown_word_is_refused_with_the_nearest(call, message):
    with pytest.raises(dc.ProblemError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: small().replace(backlog_byte=[1, 2, 3]), "did you mean 'backlog_bytes'"),
        (lambda: dc.direct(small()).replace(makespan=3.0), "did you mean 'makespan_s'"),
    ],
)
def test_an_unknown_attribute_is_refused_with_the_nearest(call, message):
    with pytest.raises(TypeError, match=message):
        call()
