"""Probes of a simulated network: what they cost, and what they depend on."""

from __future__ import annotations

from pathlib import Path

import pytest
from instances.small_scenarios import line_of

import datacollect as dc
from datacollect.scenario.probes import measure, program_sha256
from datacollect.scenario.setting import build
from datacollect.simulation import ns3


def test_a_measurement_says_what_it_cost():
    """Two probes of 0.1 × 5 MB at 1 MB/s, one after the other."""
    setting = build(line_of(scale=0.1))
    cost = measure(setting, "fluid").cost
    assert cost["probes"] == 2
    assert cost["bytes"] == 1_000_000
    assert cost["simulated_s"] == pytest.approx(1.0)


def test_probes_have_a_scale_of_their_own_where_they_are_given_one():
    """A tenth of the data, probes of 5 MB; without probe_scale they are a tenth, too."""
    samples = measure(build(line_of(scale=0.1, probe_scale=1.0)), "fluid").samples
    assert set(samples["bytes"]) == {5_000_000}
    assert set(measure(build(line_of(scale=0.1)), "fluid").samples["bytes"]) == {500_000}


@pytest.mark.parametrize(
    "values",
    [
        {"run.seed": 2},
        {"probe_scale": 2.0},
        {"transport.sack": False},
        {"transport.preset": "ns-2"},
        {"estimates.repeats": 4},
        {"transport.variant": "Cubic"},
        {"background.pairs": [{"from": "N0", "to": "N1"}]},
        {"run.warm_up_s": 1.0},
    ],
)
def test_whatever_shapes_the_samples_is_measured_anew(values, fake_ns3):
    measure(build(line_of()), "ns3")
    measure(build(line_of().with_values(values)), "ns3")
    assert len(fake_ns3) == 2


@pytest.mark.parametrize(
    ("engine", "n_hosts", "message"),
    [
        ("fluid", 317, "317 hosts need 100172 pairs × 1 probes, more than 100000 for fluid"),
        ("ns3", 83, "83 hosts need 6806 pairs × 3 probes, more than 20000 for ns3"),
    ],
)
def test_more_pairs_than_can_be_measured_are_refused(engine, n_hosts, message):
    """n (n - 1) pairs; one host less would do."""
    tree = line_of().to_dict()
    tree["hosts"]["relays"] = [{"count": n_hosts - 2, "at": "N0"}]
    setting = build(dc.Scenario.from_dict(tree))
    with pytest.raises(dc.ProblemError, match=f"{message}; give estimates.file") as refused:
        measure(setting, engine)
    # What is exact is probed as a fluid: there it would help nobody.
    assert ('use kind = "exact"' in str(refused.value)) == (engine == "ns3")


# The program that ns-3 runs ------------------------------------------------------------------


def test_every_header_below_the_engine_s_folder_counts_with_its_name(tmp_path):
    """Content, names and folders: whatever of them changes, it is another program."""
    folder = tmp_path / "ns3"
    (folder / "collect").mkdir(parents=True)
    (folder / "collect.h").write_text("int a;")
    (folder / "collect/moving.h").write_text("int b;")
    (folder / "worker.py").write_text("no header")
    hashes = [program_sha256(folder)]
    (folder / "worker.py").write_text("another")
    assert program_sha256(folder) == hashes[0]
    (folder / "collect/moving.h").write_text("int c;")
    hashes.append(program_sha256(folder))
    (folder / "collect/moving.h").rename(folder / "collect/routing.h")
    hashes.append(program_sha256(folder))
    (folder / "collect/routing.h").rename(folder / "routing.h")
    hashes.append(program_sha256(folder))
    # The same bytes, parted otherwise.
    (folder / "collect.h").write_text("int ")
    (folder / "routing.h").write_text("a;int c;")
    hashes.append(program_sha256(folder))
    assert len(set(hashes)) == len(hashes)


def test_what_ns3_runs_is_part_of_what_shapes_the_samples(fake_ns3, tmp_path, monkeypatch):
    (tmp_path / "collect.h").write_text("int a;")
    monkeypatch.setattr(ns3, "__path__", [str(tmp_path)])
    measure(build(line_of()), "ns3")
    measure(build(line_of()), "ns3")
    assert len(fake_ns3) == 1
    (tmp_path / "more.h").write_text("int b;")
    measure(build(line_of()), "ns3")
    assert len(fake_ns3) == 2


def test_the_engine_s_folder_has_headers():
    (folder,) = ns3.__path__
    assert program_sha256(Path(folder)) != program_sha256(Path(folder) / "nowhere")
