"""Cached probes: no measurement is made twice."""

from __future__ import annotations

import pandas as pd
import pytest
from instances.small_scenarios import line_of

import datacollect as dc
from datacollect.scenario import probe_cache
from datacollect.scenario.probe_cache import Measurement, cache_folder, measured_once
from datacollect.scenario.probes import measure
from datacollect.scenario.setting import build


@pytest.fixture
def another_process(monkeypatch):
    """Forget what this process has measured."""
    return lambda: monkeypatch.setattr(probe_cache, "_KNOWN", {})


def test_one_measurement_serves_all_methods_and_is_kept(fake_ns3, tmp_path, another_process):
    scenario = line_of()
    for method in ("direct", "best-path", "coordinated"):
        setting = build(scenario.with_values({"method.name": method}))
        found = measure(setting, "ns3", tmp_path)
    assert len(fake_ns3) == 1
    assert len(found.samples) == 2 * 3
    assert not found.cost["from_cache"]
    another_process()
    again = measure(build(scenario), "ns3", tmp_path)
    assert again.cost["from_cache"]
    pd.testing.assert_frame_equal(again.samples, found.samples)
    assert len(fake_ns3) == 1


def test_a_damaged_cache_is_measured_anew(fake_ns3, tmp_path, another_process):
    measure(build(line_of()), "ns3", tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text()[:-20])
    another_process()
    assert not measure(build(line_of()), "ns3", tmp_path).cost["from_cache"]
    assert len(fake_ns3) == 2


def test_a_process_knows_the_last_measurements_only(another_process, monkeypatch):
    another_process()
    monkeypatch.setattr(probe_cache, "MOST_KNOWN", 2)
    made = []

    def measured(sha256):
        return measured_once(sha256, None, lambda: made.append(sha256) or Measurement(None))

    for sha256 in ("a", "b", "a", "c", "a"):
        measured(sha256)
    assert made == ["a", "b", "c", "a"]


def test_the_command_line_keeps_measurements_in_the_user_s_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "datacollect"


def test_a_folder_that_cannot_be_made_is_named(fake_ns3, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(dc.ProblemError, match="the folder for measurements cannot be made"):
        measure(build(line_of()), "ns3", tmp_path / "file" / "cache")
