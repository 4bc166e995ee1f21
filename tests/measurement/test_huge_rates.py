"""Rates that floats hold in their own unit, and not in bytes per second, are refused in words."""

from __future__ import annotations

import pandas as pd
import pytest

import datacollect as dc


def test_a_sample_beyond_all_numbers_is_refused_by_its_line(tmp_path):
    file = tmp_path / "samples.csv"
    file.write_text("from,to,time_s,bandwidth_mbit_per_s\na,b,0,1\na,b,1,1e308\n")
    rule = r"line 3: bandwidth_mbit_per_s must be at most 1\.7e308 bytes per second, got '1e308'"
    with pytest.raises(dc.ProblemError, match=rule):
        dc.read_samples(file)


def test_a_table_with_such_a_rate_is_refused():
    links = pd.DataFrame({"from": ["a"], "to": ["b"], "bandwidth_mbit_per_s": [1e308]})
    with pytest.raises(dc.ProblemError, match="must be >= 0 and finite, got inf"):
        dc.Problem.from_dataframe(links, {"a": 1}, destination="b")
