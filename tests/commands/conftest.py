"""A plan of the example."""

from __future__ import annotations

import pytest


@pytest.fixture
def planned(here, call):
    """`figure1.toml` with its pipelined plan in `plan.json`."""
    assert call("plan", "figure1.toml", "--chunk", "0.01", "-o", "plan.json")[0] == 0
    return here
