"""Advice on how to collect: numbers, what it takes for granted, the order of its reasons."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.connection_problems import crowded
from instances.strategies import problems
from judges.imports import REPOSITORY

import datacollect as dc
from datacollect.explanation import advise as module
from datacollect.explanation.advise import WORTH

MB = 1_000_000
# Links of 1 MB/s are busy for 5 s, with a quarter more bytes.
HOW = "--streams 4 --seconds 5 --bytes 6250001"
TAKEN = {"nothing", "direct", "connections", "relays", "measure"}


def by_name(found):
    return {way.name: way for way in found.ways}


def triangle(n_bytes=4 * MB, direct=1e6, relayed=1e6, **hosts):
    """S, with all data, the relay K, and D."""
    rates = [[0, relayed, direct], [0, 0, relayed], [0, 0, 0]]
    return dc.Problem.from_matrix(["S", "K", "D"], rates, [n_bytes, 0, 0], "D", **hosts)


def test_where_there_is_no_relay_send_directly():
    """10 bytes at 5 bytes/s."""
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    found = dc.advise(problem)
    assert found.take == "direct"
    assert "The links into the destination 'D' bind" in found.text or "'S' -> 'D'" in found.text
    ways = by_name(found)
    assert (ways["direct"].makespan_s, ways["direct"].gain) == (2.0, 1.0)
    assert (ways["relays"].makespan_s, ways["relays"].gain) == (2.0, 1.0)


def test_relays_that_need_what_nobody_has_shown_are_measured_first():
    """Over both ways 4 MB take 2 s; with one line of 1 MB/s at S, or at D, 4 s, as direct does."""
    found = dc.advise(triangle())
    assert found.take == "measure"
    ways = by_name(found)
    assert ways["relays"].makespan_s == pytest.approx(2.0, rel=2e-3)
    assert ways["relays"].gain == pytest.approx(2.0, rel=2e-3)
    assert ways["relays, no more than shown"].makespan_s == pytest.approx(4.0, rel=2e-3)
    assert found.measure[:2] == (
        f"datacollect measure flood hosts.toml --from S --to D --to K {HOW}",
        f"datacollect measure flood hosts.toml --to D --from K --from S {HOW}",
    )


def test_relays_that_need_nothing_new_are_taken():
    """S and D were seen to do 2 MB/s: 4 MB take 2 s for certain."""
    seen = triangle().replace(
        shown_uplink_bytes_per_s=[2e6, 1e6, 1e6], shown_downlink_bytes_per_s=[1e6, 1e6, 2e6]
    )
    found = dc.advise(seen)
    assert found.take == "relays"
    assert "2.00 × faster than direct." in found.text
    assert "relays, no more than shown" not in by_name(found)
    assert not any("flood" in command for command in found.measure)
    # What several connections get nobody has tested.
    assert "Try more connections first" in found.text
    assert found.measure == ("datacollect measure curve hosts.toml --to D",)


def test_relays_that_gain_in_any_case_say_by_how_much():
    """S's links carry 1, 3 and 3: direct takes 12 s, both ways 3 s, one line of 3 MB/s 4 s."""
    found = dc.advise(triangle(12 * MB, 1e6, 3e6))
    ways = by_name(found)
    assert ways["direct"].makespan_s == pytest.approx(12)
    assert ways["relays"].makespan_s == pytest.approx(3, rel=2e-3)
    assert ways["relays, no more than shown"].makespan_s == pytest.approx(4, rel=2e-3)
    assert found.take == "relays"
    assert "in any case" in found.text
    assert ways["relays, no more than shown"].gain == pytest.approx(3, rel=2e-3)


def test_more_connections_come_before_relays():
    """One of ours beside three of others gets 4 of 16 bytes/s: 60 bytes take 15 s.

    Relays double that with three connections. Three directly get 16 · 3/6 = 8 bytes/s: as much.
    """
    links = [dc.Link(a, b, 4.0, capacity_bytes_per_s=16.0) for a, b in ("SD", "SK", "KD")]
    hosts = [dc.Host("S", 60), dc.Host("K"), dc.Host("D")]
    found = dc.advise(dc.Problem.from_hosts(hosts, links, "D"))
    ways = by_name(found)
    assert ways["direct"].makespan_s == 15.0
    more = ways["direct, 3 connections each"]
    assert more.makespan_s == pytest.approx(60 / 8)
    assert more.gain == pytest.approx(2.0)
    assert found.take == "connections"
    assert "3 connections each end in 7.5 s, 2.00 × faster than one" in found.text
    assert ways["adaptive"].makespan_s <= more.makespan_s * (1 + 1e-9)
    assert found.is_measured


def test_a_source_without_a_link_needs_relays():
    found = dc.advise(triangle(direct=0.0))
    assert found.take == "relays"
    assert "no usable" in found.text or "S" in found.text
    assert by_name(found)["direct"].makespan_s is None
    assert by_name(found)["direct"].gain is None


def test_nothing_to_move():
    found = dc.advise(triangle(0))
    assert (found.take, found.measure[:1]) == (
        "nothing",
        ("datacollect measure cycle hosts.toml",),
    )


def test_hosts_with_odd_names_stand_in_commands_as_a_shell_reads_them():
    rates = [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]]
    problem = dc.Problem.from_matrix(["a b", "K", "it's"], rates, [4 * MB, 0, 0], "it's")
    flood = "datacollect measure flood hosts.toml --from 'a b' --to K --to 'it'\"'\"'s'"
    assert f"{flood} {HOW}" in dc.advise(problem).measure


def test_what_the_study_had_is_what_its_table_has():
    numbers = json.loads((REPOSITORY / "docs/tables/numbers.json").read_text())
    assert (
        f"{module.ADAPTIVE_OVER_COORDINATED:.3f}"
        == (numbers["adaptive"]["under_load_over_coordinated"])
    )
    as_many = [numbers["as_many"][key].split()[0] for key in ("equal_load", "two_to_one")]
    assert [f"{part:.2f}" for part in module.AS_MANY_OVER_COORDINATED] == as_many


def consistent(problem):
    """Advise, and hold all that it says against the comparison."""
    try:
        compared = dc.compare(problem)
    except dc.InfeasibleError:
        with pytest.raises(dc.InfeasibleError):
            dc.advise(problem)
        return
    found = dc.advise(problem)
    assert found.take in TAKEN
    assert found.lower_bound_s == compared.lower_bound_s
    direct, more, relays, *rest = found.ways
    made = compared.schedules
    direct_s = made["direct"].makespan_s if "direct" in made else None
    assert direct.makespan_s == direct_s
    assert relays.makespan_s == made["coordinated"].makespan_s
    for way in found.ways:
        if way.makespan_s and direct_s is not None:
            assert way.gain == pytest.approx(direct_s / way.makespan_s)
    if found.take in ("relays", "measure") and direct_s is not None:
        assert relays.gain >= WORTH
    if found.take == "measure":
        assert found.measure
        assert found.assumptions.matter
    if found.take == "connections":
        assert more.gain >= WORTH
    assert len(rest) == 1 + bool(found.assumptions and found.assumptions.matter)
    json.dumps(found.to_dict(), allow_nan=False)


@given(problems())
def test_numbers_are_those_of_the_comparison(problem):
    consistent(problem)


@given(st.integers(0, 2**16))
def test_numbers_are_those_of_the_comparison_where_connections_count(seed):
    consistent(crowded(seed)[0])
