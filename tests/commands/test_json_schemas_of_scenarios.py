"""The JSON Schema of scenarios and their reader: what one refuses the other does not accept."""

from __future__ import annotations

import json
import re
import tomllib

import jsonschema
import pytest
from conftest import REPOSITORY
from hypothesis import assume, given
from hypothesis import strategies as st
from instances.broken_scenarios import ALONE
from instances.broken_trees import places, values, with_value
from instances.random_scenarios import scenarios
from instances.small_scenarios import PAPER, changed

import datacollect as dc
from datacollect.commands.json_schemas import scenario_schema
from datacollect.examples import example_files, scenario_names
from datacollect.scenario.fields import SCENARIO

SCHEMA = scenario_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
# Without the rule on which tables there are: each value by itself.
FIELDS = jsonschema.Draft202012Validator(
    {key: value for key, value in SCHEMA.items() if key not in ("if", "then", "else")}
)


def shipped():
    """Every scenario that we ship or print."""
    for name in scenario_names():
        yield name, example_files(name)[f"{name}.toml"]
    yield "base", (REPOSITORY / "experiments/base.toml").read_text()
    for page in sorted((REPOSITORY / "docs").rglob("*.md")):
        blocks = page.read_text().split("\n```")[1::2]
        for number, block in enumerate(blocks):
            first, _, text = block.partition("\n")
            if "toml" in first and ("[topology]" in text or "\nproblem = " in text):
                yield f"{page.stem} {number}", re.sub(r"^:caption: .*\n", "", text)


SHIPPED = dict(shipped())


def test_the_docs_scenarios_are_found():
    assert {"base", "scenario_small"} < SHIPPED.keys()
    pages = {name.split()[0] for name in SHIPPED}
    assert {"simulation", "formats"} <= pages


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_are_accepted_by_both(name):
    tree = tomllib.loads(SHIPPED[name])
    VALIDATOR.validate(tree)
    VALIDATOR.validate(dc.Scenario.from_dict(tree).to_dict())


@pytest.mark.parametrize(("place", "value", "message"), ALONE)
def test_broken_scenarios_are_refused_by_both(place, value, message):
    tree = changed(place, value)
    assert not VALIDATOR.is_valid(tree)
    with pytest.raises(dc.ProblemError):
        dc.Scenario.from_dict(tree)


@given(scenarios)
def test_random_scenarios_are_accepted_by_both(tree):
    scenario = dc.Scenario.from_dict(tree)
    VALIDATOR.validate(tree)
    # With every default written out, and through JSON.
    again = json.loads(json.dumps(scenario.to_dict()))
    VALIDATOR.validate(again)
    assert dc.Scenario.from_dict(again).to_dict() == scenario.to_dict()


def is_exact(value):
    """Whether JSON has the value, and every float is near it."""
    if isinstance(value, dict | list):
        return all(is_exact(v) for v in (value.values() if isinstance(value, dict) else value))
    if isinstance(value, int | float):
        return -1e300 < value < 1e300
    return True


def is_read(tree):
    try:
        SCENARIO.read(tree, "")
    except dc.ProblemError:
        return False
    return True


@given(st.data())
def test_schema_and_reader_agree_on_each_value(data):
    """Any value anywhere in the paper's scenario, or in a random one."""
    tree = data.draw(st.just(PAPER) | scenarios)
    place, value = data.draw(st.sampled_from(list(places(tree)))), data.draw(values)
    assume(is_exact(value))
    tree = with_value(tree, place, value)
    assert FIELDS.is_valid(tree) == is_read(tree)


def test_messages_speak_of_the_kind_that_is_named():
    tree = changed("topology", {"kind": "star", "n_hosts": 0, "rate_bytes_per_s": 1e6})
    (error,) = VALIDATOR.iter_errors(tree)
    assert list(error.absolute_path) == ["topology", "n_hosts"]
    assert "0 is less than the minimum of 1" in error.message


def test_defaults_and_kinds_are_told():
    tables = SCHEMA["$defs"]
    names = ["direct", "best-path", "coordinated", "adaptive"]
    assert tables["method"]["properties"]["name"]["enum"] == names
    assert tables["line_topology"]["properties"]["delay_s"]["default"] == 0.005
    assert tables["peering_wires"]["properties"]["rate_bytes_per_s"]["default"] == 625_000
    assert tables["estimates"]["properties"]["repeats"]["exclusiveMaximum"] == 1001
    assert SCHEMA["properties"]["scale"]["exclusiveMinimum"] == 0
