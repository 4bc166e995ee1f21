"""The demonstration at twelve sites: from samples to files that rclone has really moved."""

from __future__ import annotations

import importlib.util
import json

import pandas as pd
import pytest
from conftest import REPOSITORY

import datacollect as dc
from datacollect.commands.main import run


@pytest.fixture
def demo(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location(
        "sites_demo", REPOSITORY / "experiments" / "sites_demo.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return module


def test_the_samples_give_the_rates_by_night_that_the_example_has(demo):
    """Period 0 of the problem is its first night, from 20:00 on."""
    assert run(["example", "sites"]) == 0
    by_night = dc.Problem.from_file("sites.toml")
    samples = dc.read_samples("sites_samples.csv")
    found = dc.estimate(samples, "median").set_index(["from", "to"])["bandwidth_bytes_per_s"]
    names = by_night.names
    pairs = [
        (names[a], names[b]) for a, b in zip(by_night.link_from, by_night.link_to, strict=True)
    ]
    expected = pd.Series(by_night.bandwidth_bytes_per_s[0], index=pd.MultiIndex.from_tuples(pairs))
    assert found.sort_index().tolist() == pytest.approx(expected.sort_index().tolist())
    assert found.sort_index().index.tolist() == expected.sort_index().index.tolist()


@pytest.mark.slow
def test_without_rclone_the_script_is_shown_and_keeps_the_deadline(demo, capsys, monkeypatch):
    """06:00 is 10 h after the start; then a relay's window closes, until 20:00.

    `make demo` moves small files by it.
    """
    monkeypatch.setattr(demo.shutil, "which", lambda _: None)
    monkeypatch.setattr("sys.argv", ["sites_demo.py", "here"])
    demo.main()
    out = capsys.readouterr().out
    assert "Nothing is moved: rclone is missing (apt install rclone, or brew)." in out
    assert '#!/bin/sh\n# What "geneva" fetches: 40 TB' in out
    assert "{ get 0 " in out
    assert max(map(len, out.splitlines())) <= 80
    asked = ["--as", "rclone", *demo.ADDRESSES, "-o", "scripts", "--json"]
    assert run(["pulls", "here/sites.toml", "here/sites.json", *asked]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["deadline_s"] == 36_000.0
    assert tree["makespan_s"] <= 36_000.0 * (1 + 1e-9)
