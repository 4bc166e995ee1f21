"""``datacollect host predict``: one screen, and one object."""

from __future__ import annotations

import json

import pytest
from instances.host_profiles import COSTS, RATES, profile, rate

from datacollect.commands.main import run

SCREEN = """\
receives over TLS to disk: 3.4 Gbit/s
binds       processor: 5 s of all cores per GiB, there are 2, without waiting
next        disk, at 4.3 Gbit/s
would help  4 cores: 4.3 Gbit/s; without TLS: 4.3 Gbit/s
for a file  [hosts.D] downlink_bytes_per_s = 429_000_000

sends over TLS: 8.6 Gbit/s
binds       processor: 2 s of all cores per GiB, there are 2, without waiting
next        memory, at 34 Gbit/s
would help  4 cores: 17 Gbit/s; without TLS: 34 Gbit/s
for a file  [hosts.D] uplink_bytes_per_s = 1_070_000_000
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(profile().to_toml(), encoding="utf-8")
    return str(path)


def test_the_screen_answers_what_binds_and_what_next(path, capsys):
    assert run(["host", "predict", path, "--tls", "--to-disk"]) == 0
    assert capsys.readouterr() == (SCREEN, "")


def test_json_is_one_object_with_all_limits(path, capsys):
    assert run(["host", "predict", path, "--relay", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    assert [each["does"].split()[0] for each in found] == ["receives", "sends", "relays"]
    assert [each["binds"] for each in found] == ["processor"] * 3
    assert found[2]["at_least"]
    parts = {limit["part"] for limit in found[0]["limits"]}
    assert parts == {"processor", "memory"}


def test_options_carry_their_units(path, capsys):
    options = ("--nic", "10 Gbit/s", "--window", "64 KiB", "--rtt", "122 ms", "--connections", "2")
    assert run(["host", "predict", path, *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"][0]
    assert found["binds"] == "window"
    assert found["bytes_per_s"] == pytest.approx(2 * 65_536 / 0.122)


def test_a_packet_is_a_number_of_bytes(path, capsys):
    assert run(["host", "predict", path, "--packet-bytes", "1472", "--json"]) == 0
    assert "datagrams of 1.472 kB" in json.loads(capsys.readouterr().out)["predictions"][0]["does"]


def test_what_others_spoiled_is_said(tmp_path, capsys):
    path = tmp_path / "p.toml"
    forced = [{**row, "load": 0.42, "forced": True} for row in profile().to_dict()["costs"]]
    tree = {**profile().to_dict(), "costs": forced}
    path.write_text(json.dumps(tree))
    assert run(["host", "predict", str(path)]) == 0
    assert "other programs kept 42% of its processors busy" in capsys.readouterr().err


def test_where_nothing_else_is_known_it_is_said_what_to_give(tmp_path, capsys):
    path = tmp_path / "p.toml"
    path.write_text(profile(costs=COSTS[:2], rates=()).to_toml())
    assert run(["host", "predict", str(path)]) == 0
    assert "nothing known: give --nic" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--cores", "64"), "must be at most 2, as many as there are, got 64"),
        (("--nic", "10"), 'give the unit, such as "10 Gbit/s"'),
        (("--packet-bytes", "70000"), "must be at most 65507"),
        (("--window", "64 KiB"), "belong together"),
    ],
)
def test_bad_input_is_named_and_exits_2(path, words, says, capsys):
    assert run(["host", "predict", path, *words]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert says in errors


def test_the_group_lists_what_a_wing_brings(capsys):
    assert run(["host", "--help"]) == 0
    out = capsys.readouterr().out
    assert "predict " in out
    assert "calibrate " in out


def test_rates_of_several_repeats_show_their_interval(tmp_path, capsys):
    wide = rate("disk", 0.25)
    tree = profile(rates=(wide, *RATES[1:])).to_dict()
    tree["rates"][0] |= {"low_bytes_per_s": 1e8, "high_bytes_per_s": 3e8}
    (tmp_path / "p.toml").write_text(json.dumps(tree))
    assert run(["host", "predict", str(tmp_path / "p.toml"), "--to-disk"]) == 0
    assert "2.1 Gbit/s (800 Mbit/s to 2.4 Gbit/s)" in capsys.readouterr().out
