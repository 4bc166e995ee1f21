"""Rules for the values of a scenario file together."""

from __future__ import annotations

import pytest
from instances.broken_scenarios import TOGETHER, WITHOUT_ESTIMATES
from instances.small_scenarios import changed

import datacollect as dc


@pytest.mark.parametrize(("place", "value", "message"), TOGETHER)
def test_values_that_contradict_each_other_are_named_with_place_and_rule(place, value, message):
    with pytest.raises(dc.ProblemError) as caught:
        dc.Scenario.from_dict(changed(place, value))
    assert message in str(caught.value)


@pytest.mark.parametrize(("method", "message"), WITHOUT_ESTIMATES)
def test_without_estimates_only_what_needs_none_is_carried_out(method, message):
    tree = {**changed("estimates.kind", "unknown"), "method": method}
    if message is None:
        assert dc.Scenario.from_dict(tree).section("estimates")["kind"] == "unknown"
        return
    with pytest.raises(dc.ProblemError) as caught:
        dc.Scenario.from_dict(tree)
    assert message in str(caught.value)
