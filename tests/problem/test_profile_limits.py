"""Hosts with profiles: limits where none are given, the smaller where both are, and what binds."""

from __future__ import annotations

import pytest
from instances.host_profiles import COSTS, profile
from instances.words import flat

import datacollect as dc
from datacollect.commands.main import run
from datacollect.errors import ProblemError
from datacollect.machine.parts import GIB

# The profile of `instances`: over TLS it sends 2 / 2 GiB/s, and takes 2 / 5 GiB/s to its disk.
SENDS, TAKES = 1.0 * GIB, 0.4 * GIB
PROBLEM = """\
destination = "D"
[hosts.S]
backlog_bytes = "4 GiB"
[hosts.D]
profile = "D.toml"
{}
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = "40 Gbit/s"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "D.toml").write_text(profile().to_toml(), encoding="utf-8")
    return tmp_path


def read(folder, more=""):
    path = folder / "p.toml"
    path.write_text(PROBLEM.format(more), encoding="utf-8")
    return dc.Problem.from_file(path)


def limits(problem):
    return problem.uplink_bytes_per_s[0, 1], problem.downlink_bytes_per_s[0, 1]


def test_a_profile_gives_limits_where_none_are_given(folder):
    problem = read(folder)
    assert limits(problem) == (pytest.approx(SENDS), pytest.approx(TAKES))
    assert dc.coordinated(problem).makespan_s == pytest.approx(4 / 0.4, rel=0.01)


@pytest.mark.parametrize(
    ("said", "uplink", "downlink"),
    [
        ("downlink_bytes_per_s = 5e6", SENDS, 5e6),
        ("downlink_bytes_per_s = 5e12", SENDS, TAKES),
        ('downlink_bytes_per_s = "none"', SENDS, TAKES),
        ("uplink_bytes_per_s = 5e6\ndownlink_bytes_per_s = 6e6", 5e6, 6e6),
    ],
)
def test_where_both_are_there_the_smaller_counts(folder, said, uplink, downlink):
    assert limits(read(folder, said)) == (pytest.approx(uplink), pytest.approx(downlink))


def test_limits_by_hours_are_cut_off_where_the_machine_takes_no_more(folder):
    said = 'downlink_bytes_per_s = "08:00 1 Mbit/s, 20:00 100 Gbit/s"'
    text = PROBLEM.format(said)
    text = f"start = 2026-11-30T00:00:00Z\n{text}"
    (folder / "p.toml").write_text(text, encoding="utf-8")
    rates = dc.Problem.from_file(folder / "p.toml").downlink_bytes_per_s[:, 1]
    assert sorted(set(rates.tolist())) == pytest.approx([125_000.0, TAKES])


def test_explain_names_the_part_of_the_machine_that_binds(folder, capsys):
    problem = read(folder)
    found = dc.explain(problem)
    assert found.bottleneck.text.startswith("The processor of the destination 'D' binds (3.436 G")
    assert run(["explain", str(folder / "p.toml")]) == 0
    said = flat(capsys.readouterr().out)
    assert "processor of 'D'" in said
    assert "downlink" not in said


def test_a_limit_that_is_no_profile_s_keeps_its_name(folder):
    assert dc.explain(read(folder, "downlink_bytes_per_s = 5e6")).bottleneck.text.startswith(
        "The downlink of the destination 'D' binds"
    )
    changed = read(folder).replace(downlink_bytes_per_s=[float("inf"), 5e6])
    assert changed.limit_causes is None


def test_plans_are_those_of_the_limits_alone(folder):
    problem = read(folder)
    plain = dc.Problem.from_dict(problem.to_dict())
    assert plain == problem
    assert limits(plain) == limits(problem)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, r"hosts.D.profile: .*D.toml: no such file"),
        ("format = 5", r"hosts.D.profile: .*D.toml: format must be text"),
        (profile(costs=COSTS[:4]).to_toml(), r"hosts.D.profile: .*D.toml: no cost of disk"),
    ],
)
def test_a_profile_that_is_none_is_named_with_its_host(folder, text, says):
    path = folder / "D.toml"
    path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    with pytest.raises(ProblemError, match=says):
        read(folder)
