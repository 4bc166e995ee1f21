"""Axes: which labels go together, and parts of them."""

from __future__ import annotations

import pytest
from instances.small_experiments import METHOD, RATE, experiment_of

import datacollect as dc


def test_settings_are_the_product_of_unpaired_axes_and_ways_of_paired_ones():
    flows = {"name": "flows", "key": "background.flows", "values": [0, 1]}
    experiment = experiment_of(axes=[flows, METHOD, RATE])
    assert experiment.settings() == [
        ("0", "500000"), ("0", "1e+06"), ("1", "500000"), ("1", "1e+06"),
    ]  # fmt: skip
    assert experiment.treatments() == [("direct",), ("coordinated",)]
    assert experiment.labels(("0", "1e+06"), ("direct",)) == {
        "flows": "0",
        "method": "direct",
        "rate": "1e+06",
    }


def test_a_value_is_combined_only_with_the_labels_that_it_names():
    """Direct knows no estimates: one run of it serves both errors."""
    error = {
        "name": "error",
        "paired": True,
        "values": [{"label": "0 %"}, {"label": "+70 %", "set": {"estimates.how": "last"}}],
    }
    direct = {"label": "direct", "set": {"method.name": "direct"}, "only": {"error": ["0 %"]}}
    method = {"name": "method", "paired": True, "values": [direct, {"label": "coordinated"}]}
    assert experiment_of(axes=[method, error]).treatments() == [
        ("direct", "0 %"),
        ("coordinated", "0 %"),
        ("coordinated", "+70 %"),
    ]


def test_a_part_has_the_labels_that_are_named():
    part = experiment_of().only({"rate": ["500000"], "method": ["direct"]})
    assert (part.settings(), part.treatments()) == ([("500000",)], [("direct",)])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"ratte": ["1"]}, "only: no axis is called 'ratte'; did you mean 'rate'"),
        ({"rate": ["50000"]}, "only must be a label of the axis 'rate', got '50000'"),
        ({"rate": []}, "only: no label of 'rate' is left"),
    ],
)
def test_a_part_that_is_not_there_is_refused(labels, message):
    with pytest.raises(dc.ProblemError, match=message):
        experiment_of().only(labels)
