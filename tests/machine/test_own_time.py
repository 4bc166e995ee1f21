"""What a pull took of processors, beside the profile of its host."""

from __future__ import annotations

import pytest
from instances.host_profiles import COSTS, profile

from datacollect.machine import own_time
from datacollect.machine.identity import machine_mark, machine_name
from datacollect.machine.own_time import OwnTime, is_of_another, own_s_per_gib
from datacollect.machine.parts import GIB
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.pull.run import profile_of_destination


def read(folder, written):
    """Return the profile that a collection names of its destination, and what is told of it."""
    (folder / "D.toml").write_text(written.to_toml(), encoding="utf-8")
    tree = {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "key",
        "agents": {"S": {"url": "https://127.0.0.1:7443", "ca": "ca.pem"}},
        "hosts": {"D": {"profile": "D.toml"}},
    }
    told = []
    return profile_of_destination(Collection.from_dict(tree, folder), told.append), told


def test_it_is_told_beside_what_the_profile_says(monkeypatch):
    """TLS 2.5 and disk 1.0 of the process's own; 2 GiB in 6 s are 3 s per GiB."""
    clock = iter([10.0, 16.0])
    monkeypatch.setattr(own_time.time, "process_time", lambda: next(clock))
    use = OwnTime(profile()).use(2 * GIB)
    assert use.own_s_per_gib == pytest.approx(3.0)
    assert use.profile_s_per_gib == pytest.approx(3.5)
    assert use.text == "3 s of this program's own per GiB; the profile says 3.5"


def test_nothing_is_told_of_little_or_without_a_profile_or_its_numbers():
    assert OwnTime(profile()).use(GIB - 1) is None
    assert OwnTime(None).use(GIB) is None
    assert own_s_per_gib(profile(costs=COSTS[:2])) is None


def test_a_profile_of_another_machine_is_told_once(tmp_path):
    found, (line,) = read(tmp_path, profile(machine="f00"))
    assert found.machine == "f00"
    assert "hosts.D.profile: D.toml was measured on another machine, D" in line


def test_a_profile_of_this_machine_is_not(tmp_path):
    own = profile(machine=machine_mark())
    own = own if machine_mark() else type(own)(machine_name(), own.parts, own.measured_at)
    assert read(tmp_path, own)[1] == []
    assert not is_of_another(own)


def test_a_machine_without_a_number_is_known_by_its_name(monkeypatch):
    monkeypatch.setattr(own_time, "machine_mark", lambda: None)
    assert is_of_another(profile(machine="f00"))
