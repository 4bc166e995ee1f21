"""Processor time that results took."""

from __future__ import annotations

import pandas as pd

from datacollect.study.cpu_cost import processor_time


def test_a_measurement_counts_once_whoever_shares_it():
    """Seed 1: 10 s for two settings and two methods, 4 s for a third setting; seed 2: 10 s."""
    rows = [
        {"seed": 1, "setting": "right", "cpu_s": 1.0, "probes_cpu_s": 10.0},
        {"seed": 1, "setting": "right", "cpu_s": 2.0, "probes_cpu_s": 10.0},
        {"seed": 1, "setting": "wrong", "cpu_s": 3.0, "probes_cpu_s": 10.0},
        {"seed": 1, "setting": "other load", "cpu_s": 4.0, "probes_cpu_s": 4.0},
        {"seed": 2, "setting": "right", "cpu_s": 5.0, "probes_cpu_s": 10.0},
        {"seed": 2, "setting": "blind", "cpu_s": 6.0, "probes_cpu_s": 0.0},
    ]
    cpu_cost = processor_time(pd.DataFrame(rows))
    assert (cpu_cost.runs_s, cpu_cost.measurements_s) == (21.0, 24.0)
