"""Calibration with probes of ours: what is refused, what is marked, what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from instances.host_profiles import cost, rate

from datacollect.errors import ProblemError, TransferError
from datacollect.machine.parts import PullUse
from datacollect.measuring.hosts import calibrating
from datacollect.measuring.hosts.calibrating import Probes, calibrated


def probes(*loads, **changed):
    """Return probes beside others who are as busy as `loads` say, one after the other."""
    left = list(loads)
    made = {
        "others": lambda: left.pop(0) if len(left) > 1 else left[0],
        "watch": lambda: lambda: 0.0,
        "memory": lambda _, look: [rate("memory", 5.0, load=look())],
        "blake3": lambda load: cost("blake3", "both", 0.25, load=load),
        "datagrams": lambda _: ([cost("udp", "sends", 0.1)], {}),
        "connections": lambda _: (
            [cost("tcp", "receives", 0.5), cost("tls", "receives", 3.0)],
            [rate("tcp", 2.0)],
            {},
        ),
        "disk": lambda *_: ([cost("disk", "receives", 2.0)], [rate("disk", 0.5)], {"fio": "x"}),
        "pulls": lambda *_: [PullUse(1, 0.4, 0.3, 0.5), PullUse(16, 0.8, 0.7, 0.9)],
    }
    return Probes(**{**made, **changed})


def kept(profile):
    return {each.work for each in profile.parts.costs}


ALWAYS = {"udp", "blake3"}


def test_an_idle_machine_tells_all():
    profile = calibrated("/", 60, probes=probes(0.03))
    assert kept(profile) == {*ALWAYS, "tcp", "tls", "disk"}
    assert profile.refused == {}
    assert profile.parts.load == 0.03
    assert not any(each.forced for each in profile.parts.costs)
    assert [use.share for use in profile.parts.pulls] == [0.4, 0.8]
    assert profile.seen["fio"] == "x"


def test_a_busy_machine_is_refused_what_it_would_spoil_each_by_name():
    profile = calibrated("/", 60, probes=probes(0.34))
    assert kept(profile) == ALWAYS
    assert [each.of for each in profile.parts.rates] == ["memory"]
    assert profile.parts.pulls == ()
    assert profile.refused.keys() == {"tcp", "tls", "disk", "pull"}
    assert "others keep 34% of the processors busy, and at most 10%" in profile.refused["tls"]


def test_anyway_it_is_measured_and_marked_and_predictions_carry_the_mark():
    profile = calibrated("/", 60, anyway=True, probes=probes(0.34))
    assert kept(profile) == {*ALWAYS, "tcp", "tls", "disk"}
    assert {each.work for each in profile.parts.costs if each.forced} == {"tcp", "tls", "disk"}
    assert all(use.forced and use.load == 0.34 for use in profile.parts.pulls)
    found = profile.receives(tls=True, to_disk=True)
    assert found.was_busy
    assert found.load == 0.34


def test_who_comes_in_the_middle_spoils_it_as_well():
    """Idle when TCP begins, busy when it has ended."""
    profile = calibrated("/", 60, probes=probes(0.0, 0.0, 0.0, 0.0, 0.5))
    assert profile.refused.keys() == {"tcp", "tls", "disk", "pull"}


def test_what_ends_within_a_moment_spoils_nothing():
    """Busy at four looks after TCP and idle at the fifth: then our own traces are gone."""
    profile = calibrated("/", 60, probes=probes(0.0, 0.0, 0.0, 0.0, *4 * [0.9], 0.02))
    assert profile.refused == {}
    assert profile.parts.load == 0.02


def test_a_burst_of_others_while_it_is_measured_spoils_that_alone():
    """Idle at each look, before and after; a quarter busy while the disk was measured."""
    bursts = iter([0.01, 0.25, 0.02])
    meanwhile = {"watch": lambda: lambda: next(bursts)}
    profile = calibrated("/", 60, probes=probes(0.0, **meanwhile))
    assert profile.refused.keys() == {"disk"}
    assert "others keep 25% of the processors busy" in profile.refused["disk"]
    bursts = iter([0.01, 0.25, 0.02])
    marked = calibrated("/", 60, anyway=True, probes=probes(0.0, **meanwhile)).parts
    loads = {each.work: (each.load, each.forced) for each in marked.costs}
    assert loads["tls"] == (0.01, False)
    assert loads["disk"] == (0.25, True)
    assert all(use.load == 0.02 and not use.forced for use in marked.pulls)


@pytest.mark.parametrize(("gib_per_s", "s_per_gib"), [(0.41, 2.0), (0.39, None)])
def test_pulls_write_to_a_disk_only_if_it_takes_what_processors_allow(
    monkeypatch, gib_per_s, s_per_gib
):
    """3 s to receive a GiB and 2 to write it: two processors allow 0.4 GiB/s."""
    monkeypatch.setattr(calibrating.seen, "usable_processors", lambda: 2.0)
    places = []
    calibrated(
        "/",
        60,
        probes=probes(
            0.0,
            disk=lambda *_: ([cost("disk", "receives", 2.0)], [rate("disk", gib_per_s)], {}),
            pulls=lambda _, *place: places.append(place) or [PullUse(1, 0.4, 0.3, 0.5)],
        ),
    )
    assert places == [(Path("/"), s_per_gib)]


def test_a_tenth_is_idle_enough():
    assert calibrated("/", 60, probes=probes(0.1)).refused == {}


def raising(error):
    def fail(*_):
        raise error

    return fail


def test_a_probe_that_fails_is_refused_with_its_reason():
    broken = probes(
        0.0,
        datagrams=raising(TransferError("udp: no socket")),
        connections=raising(TransferError("connections: no agent")),
    )
    profile = calibrated("/", 60, probes=broken)
    assert kept(profile) == {"blake3", "disk"}
    assert profile.refused == {
        "udp": "udp: no socket",
        **dict.fromkeys(("tcp", "tls"), "connections: no agent"),
    }


def test_where_nobody_tells_how_busy_it_is_what_needs_that_is_refused_even_anyway():
    blind = probes(0.0, others=raising(ProblemError("/proc/stat does not say")))
    profile = calibrated("/", 60, anyway=True, probes=blind)
    assert kept(profile) == ALWAYS
    assert set(profile.refused.values()) == {"/proc/stat does not say"}


def test_an_interruption_is_one(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        calibrated(tmp_path, 60, probes=probes(0.0, disk=raising(KeyboardInterrupt())))
