"""Rates that floats hold in their own unit, and not in bytes per second, are refused in words."""

from __future__ import annotations

import pandas as pd
import pytest

import datacollect as dc
from datacollect.measurement import iperf3_results, perfsonar


def test_a_sample_beyond_all_numbers_is_refused_by_its_line(tmp_path):
    file = tmp_path / "samples.csv"
    file.write_text("from,to,time_s,bandwidth_mbit_per_s\na,b,0,1\na,b,1,1e308\n")
    rule = r"line 3: bandwidth_mbit_per_s must be at most 1e\+18 bytes per second, got '1e308'"
    with pytest.raises(dc.ProblemError, match=rule):
        dc.read_samples(file)


def test_a_table_with_such_a_rate_is_refused():
    links = pd.DataFrame({"from": ["a"], "to": ["b"], "bandwidth_mbit_per_s": [1e308]})
    with pytest.raises(dc.ProblemError, match="must be >= 0 and finite, got inf"):
        dc.Problem.from_dataframe(links, {"a": 1}, destination="b")


@pytest.mark.parametrize("value", [10**400, -1, float("inf"), float("nan")])
def test_a_number_beyond_all_floats_is_refused_in_words(value):
    """JSON has whole numbers of any length; comparing them with floats once failed within."""
    with pytest.raises(dc.ProblemError, match="must be >= 0 and finite, got"):
        perfsonar._require_number(value, "a.json: throughput")
    with pytest.raises(dc.ProblemError, match="must be >= 0 and finite, got"):
        iperf3_results._number({"bytes": value}, "bytes", "a.json")
