"""Ratios of measured times."""

from __future__ import annotations

import pytest


def row(section, what, seconds):
    return {"section": section, "what": what, "median_s": str(seconds)}


OLD = [row("slots", "a", 1.0), row("slots", "b", 2.0), row("start", "c", 0.5)]


def test_ratios_are_new_over_old_by_kind(scripts):
    new = [row("slots", "a", 1.5), row("slots", "b", 1.0), row("start", "c", 0.25)]
    speed_ratios = scripts("speed_ratios")
    found = speed_ratios.ratios(OLD, new)
    assert found == {"slots": [1.5, 0.5], "start": [0.5]}
    lines = speed_ratios.table(found).splitlines()
    assert lines[2:] == ["| slots | 2 | 1.00 (0.50 … 1.50) |", "| start | 1 | 0.50 |"]


def test_other_rows_are_refused(scripts):
    with pytest.raises(ValueError, match="the same rows"):
        scripts("speed_ratios").ratios(OLD, OLD[:2])
