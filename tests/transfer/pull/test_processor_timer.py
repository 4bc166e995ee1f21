"""What a pull took of processors, beside the profile of its host."""

from __future__ import annotations

import pytest
from instances.host_profiles import COSTS, profile

from datacollect.machine.identity import machine_mark, machine_name
from datacollect.machine.parts import GIB
from datacollect.transfer.pull import processor_timer
from datacollect.transfer.pull.answer import Pulled, RouteUse
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.pull.processor_timer import ProcessorTimer, is_of_another, own_s_per_gib


def answer(n_bytes):
    use = RouteUse("S", ("S", "D"), n_bytes, 1)
    return Pulled(True, n_bytes, 1, None, 1.0, "direct", (use,), {}, ())


def collection(folder, hosts):
    tree = {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "key",
        "agents": {"S": {"url": "https://127.0.0.1:7443", "ca": "ca.pem"}},
        "hosts": hosts,
    }
    return Collection.from_dict(tree, folder)


def of(folder, written):
    (folder / "D.toml").write_text(written.to_toml(), encoding="utf-8")
    told = []
    timer = ProcessorTimer.of(collection(folder, {"D": {"profile": "D.toml"}}), told.append)
    return timer, told


def test_it_is_told_beside_what_the_profile_says(tmp_path, monkeypatch):
    """TLS 2.5 and disk 1.0 of the process's own; half a GiB in 1.5 s is 3 s per GiB."""
    clock = iter([10.0, 11.5])
    monkeypatch.setattr(processor_timer.time, "process_time", lambda: next(clock))
    timer, _ = of(tmp_path, profile())
    use = timer.beside(answer(GIB // 2)).processor
    assert use.own_s_per_gib == pytest.approx(3.0)
    assert use.profile_s_per_gib == pytest.approx(3.5)
    assert use.text == "3 s of this program's own per GiB; the profile says 3.5"


def test_nothing_is_told_of_little_or_without_a_profile_or_its_numbers(tmp_path):
    timer, _ = of(tmp_path, profile())
    assert timer.beside(answer(1000)).processor is None
    none = ProcessorTimer.of(collection(tmp_path, {}), print)
    assert none.beside(answer(GIB)).processor is None
    assert own_s_per_gib(profile(costs=COSTS[:2])) is None


def test_a_profile_of_another_machine_is_told_once(tmp_path):
    _, told = of(tmp_path, profile(machine="f00"))
    (line,) = told
    assert "hosts.D.profile D.toml was measured on D, and this is" in line


def test_a_profile_of_this_machine_is_not(tmp_path):
    own = profile(machine=machine_mark())
    own = own if machine_mark() else type(own)(machine_name(), own.parts, own.measured_at)
    assert of(tmp_path, own)[1] == []
    assert not is_of_another(own)


def test_a_machine_without_a_number_is_known_by_its_name(monkeypatch):
    monkeypatch.setattr(processor_timer, "machine_mark", lambda: None)
    assert is_of_another(profile(machine="f00"))
