"""Sweeps that nothing disturbs: what others, disturbed, are compared with."""

from __future__ import annotations

import pytest
from instances.small_experiments import experiment_of, many_seeds

import datacollect as dc


@pytest.fixture(scope="session")
def serial(tmp_path_factory):
    """The table of an undisturbed sweep in one process."""
    return dc.sweep(experiment_of(), tmp_path_factory.mktemp("serial"), workers=0)


@pytest.fixture(scope="session")
def many(tmp_path_factory):
    """The same of a longer sweep."""
    return dc.sweep(many_seeds(), tmp_path_factory.mktemp("many"), workers=0)
