"""Files of profiles: written and read back, and refused with the key where they make no sense."""

from __future__ import annotations

import tomllib
import warnings

import pytest
from instances.host_profiles import profile

import datacollect as dc
from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.machine.identity import machine_mark
from datacollect.machine.parts import Nic, PullUse
from datacollect.machine.profile import HostProfile, host_profile

COST = {
    "work": "tcp",
    "end": "sends",
    "over": "veth",
    "s_per_gib": 0.5,
    "low_s_per_gib": 0.4,
    "high_s_per_gib": 0.6,
}
PULL = {"connections": 1, "share": 0.5, "low_share": 0.4, "high_share": 0.6}
RATE = {"of": "disk", "bytes_per_s": 5.0, "low_bytes_per_s": 5.0, "high_bytes_per_s": 5.0}


def tree(**more):
    return {
        "format": "datacollect-host-profile/1",
        "measured_at": "2026-11-30T00:00:00Z",
        "name": "D",
        "processors": 2,
        **more,
    }


def test_what_is_written_is_read_back_the_same(tmp_path):
    nics = (Nic("eth0", 1.25e9, 1500, 8, "checksums, TSO"), Nic("eth1"))
    written = profile(
        nics=nics,
        pulls=(PullUse(1, 0.4, 0.3, 0.5), PullUse(16, 0.8, 0.7, 0.9, 2.5, 2.4, 2.6, load=0.02)),
        machine="abc",
        seen={"kernel": "Linux ü"},
        refused={"disk": "other programs are busy"},
    )
    path = tmp_path / "PROFILE.toml"
    path.write_text(written.to_toml(), encoding="utf-8")
    found = dc.host_profile(path)
    assert found.to_dict() == written.to_dict()
    assert found.parts == written.parts
    assert found.place == str(path)
    assert found.receives(tls=True).bytes_per_s == written.receives(tls=True).bytes_per_s


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"format": "datacollect-host-profile/2"}, "format must be"),
        ({"format": "datacollect-problem/1"}, "this is a problem; `datacollect host calibrate"),
        ({"processors": float("nan")}, "processors must be a finite number > 0, got nan"),
        ({"measured_at": "yesterday"}, "measured_at must be a date and time"),
        ({"costs": [{**COST, "s_per_gib": 0}]}, r"costs\[0\].s_per_gib must be .* > 0, got 0"),
        ({"costs": [{**COST, "s_per_gib": -0.5}]}, r"costs\[0\].s_per_gib must be .* > 0"),
        ({"costs": [{**COST, "s_per_gib": "0.5"}]}, "leave out the quotes, or give the unit"),
        ({"costs": [{**COST, "us_per_unit": -1}]}, r"costs\[0\].us_per_unit .* got -1"),
        ({"costs": [{**COST, "low_s_per_gib": 0.55}]}, r"costs\[0\].s_per_gib .* between .* 0.55"),
        ({"costs": [{**COST, "work": "dns"}]}, r"costs\[0\].work must be one of udp, tcp"),
        ({"rates": [{**RATE, "bytes_per_s": 0}]}, r"rates\[0\].bytes_per_s must be .* > 0, got 0"),
        ({"rates": [{**RATE, "bytes_per_s": "5"}]}, r'give the unit, such as "10 Gbit/s"'),
        ({"rates": [{**RATE, "high_bytes_per_s": 4.0}]}, r"rates\[0\].bytes_per_s .* between"),
        ({"pulls": [{**PULL, "share": 0}]}, r"pulls\[0\].share must be > 0 and <= 1, got 0"),
        ({"pulls": [{**PULL, "share": 1.5}]}, r"pulls\[0\].share must be > 0 and <= 1, got 1.5"),
        ({"pulls": [{**PULL, "low_share": 0.55}]}, r"pulls\[0\].share .* between .* 0.55"),
        ({"pulls": [{**PULL, "s_per_gib": 2.0}]}, r"pulls\[0\] must have all of low_s_per_gib, .*"),
        (
            {"pulls": [{**PULL, "s_per_gib": 2, "low_s_per_gib": 3, "high_s_per_gib": 4}]},
            r"pulls\[0\].s_per_gib .* between 3 and 4",
        ),
        ({"pulls": [{**PULL, "connections": 0}]}, r"pulls\[0\].connections .* got 0"),
        ({"nics": [{"name": "eth0", "bytes_per_s": float("inf")}]}, r"nics\[0\].bytes_per_s"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_key(more, says):
    with pytest.raises(ProblemError, match=says):
        HostProfile.from_dict(tree(**more))


@pytest.mark.parametrize(
    ("when", "says"), [("2019-11-30T00:00:00", "days ago"), ("2190-01-01T00:00:00", "the future")]
)
def test_a_profile_of_another_year_is_warned_of(tmp_path, when, says):
    path = tmp_path / "p.toml"
    path.write_text(profile().to_toml().replace(profile().measured_at, when), encoding="utf-8")
    with pytest.warns(DatacollectWarning, match=rf"measured_at is {when}.*{says}.*calibrate"):
        host_profile(path)


def test_a_profile_of_today_is_not(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(profile().to_toml(), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        host_profile(path)
    assert (
        tomllib.loads(path.read_text(encoding="utf-8"))["format"] == profile().to_dict()["format"]
    )


def test_machines_have_marks_that_say_nothing_of_them(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a1b2\n")
    two.write_text("a1b3\n")
    assert machine_mark(one) == machine_mark(one) != machine_mark(two)
    assert "a1b2" not in machine_mark(one)
    assert machine_mark(tmp_path / "none") is None
