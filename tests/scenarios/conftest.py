"""Settings that several tests look at."""

from __future__ import annotations

import pytest
from small_scenarios import PAPER

import datacollect as dc
from datacollect.setting import build


@pytest.fixture(scope="session")
def paper():
    return dc.Scenario.from_dict(PAPER)


@pytest.fixture(scope="session")
def paper_setting(paper):
    return build(paper)
