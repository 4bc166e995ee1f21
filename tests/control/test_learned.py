"""Learned numbers name their source, and are what ranges are: low, middle, high."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from datacollect.control import learned

REPOSITORY = Path(__file__).resolve().parents[2]
PARTS = json.loads(Path(learned.__file__).with_suffix(".json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("part", PARTS)
def test_every_part_says_which_runs_it_comes_from(part):
    words = PARTS[part]["from"]
    (file,) = re.findall(r"experiments/[\w.]+", words)
    assert (REPOSITORY / file).is_file()
    assert re.search(r"\bseeds 1 to \d+\b", words)
    assert "from" not in learned.learned(part)


@pytest.mark.parametrize("part", [part for part in PARTS if part.startswith("predictions")])
def test_factors_rise(part):
    for by_wires in learned.learned(part).values():
        assert len(by_wires) == 2
        for factors in by_wires:
            assert len(factors) == 3
            assert factors == sorted(factors)


def test_forecasts_have_a_range_for_each_part():
    found = learned.learned("forecasts")
    assert found["parts"] == sorted(found["parts"])
    assert {len(numbers) for numbers in found.values()} == {len(found["parts"])}
    for low, high in (("low", "high"), ("expected_low", "expected_high")):
        pairs = zip(found[low], found[high], strict=True)
        assert all(0 < a < 1 < b for a, b in pairs)
