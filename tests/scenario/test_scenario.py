"""Scenario files: what they may say, and what is said of what they may not."""

from __future__ import annotations

import json

import pytest
from instances.broken_scenarios import ALONE
from instances.small_scenarios import PAPER, changed

import datacollect as dc


@pytest.mark.parametrize(("place", "value", "message"), ALONE)
def test_bad_values_are_named_with_place_rule_and_value(place, value, message):
    with pytest.raises(dc.ProblemError) as caught:
        dc.Scenario.from_dict(changed(place, value))
    assert message in str(caught.value)


def test_every_default_is_written_out_and_read_back(paper):
    tree = paper.to_dict()
    assert tree["transport"]["variant"] == "NewReno"
    assert tree["topology"]["peering"]["rate_bytes_per_s"] == 625_000
    assert dc.Scenario.from_dict(tree).to_dict() == tree
    json.dumps(tree, allow_nan=False)


def test_a_file_is_read_with_its_name(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text('[topology]\nkind = "star"\n')
    with pytest.raises(dc.ProblemError, match=r"small.toml: topology: keys? n_hosts"):
        dc.Scenario.from_file(file)
    file.write_text(json.dumps(PAPER).replace("'", '"'))
    (tmp_path / "small.json").write_text(json.dumps(PAPER))
    assert dc.Scenario.from_file(tmp_path / "small.json").name == "small"


def test_values_are_changed_by_their_places_and_checked(paper):
    changed = paper.with_values({"background.flows": 3, "hosts.destination.among": None})
    assert changed.section("background")["flows"] == 3
    assert changed.section("hosts")["destination"]["among"] is None
    assert paper.section("background")["flows"] == 60
    with pytest.raises(dc.ProblemError, match="unknown key; did you mean 'flows'"):
        paper.with_values({"background.flow": 3})
    with pytest.raises(dc.ProblemError, match="seed is not a table"):
        paper.with_values({"run.seed.x": 3})
