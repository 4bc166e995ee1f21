"""The reference of a run: true wires, and who else is on them, by hand."""

import math

import pytest

from datacollect.scenario.reference import reference_s, true_problem
from datacollect.scenario.scenario import Scenario
from datacollect.scenario.setting import build

WIRES = [
    {"a": "N", "b": "M", "rate_bytes_per_s": 1e6, "delay_s": 0.01},
    {"a": "P", "b": "M", "rate_bytes_per_s": 3e6, "delay_s": 0.01},
    {"a": "Q", "b": "N", "rate_bytes_per_s": 9e6, "delay_s": 0.01},
]


def setting(pairs=()):
    hosts = {
        "access": {"rate_bytes_per_s": 1e9},
        "destination": {"at": "M"},
        "sources": [
            {"at": "N", "backlog_bytes": 1_000_000},
            {"at": "P", "backlog_bytes": 1_000_000},
        ],
    }
    tree = {
        "topology": {"kind": "explicit", "wires": WIRES},
        "hosts": hosts,
        "transport": {"header_bytes": 0, "buffer_bytes": 10_000_000},
        "background": {"pairs": list(pairs)},
    }
    return build(Scenario.from_dict(tree))


def test_idle_wires_are_as_fast_as_they_are():
    assert reference_s(setting(), 2) == pytest.approx(1.0)


def test_others_on_a_wire_take_their_part():
    """Two of others on the first wire: of 1 MB/s one of ours gets 1/3, two 1/2, three 3/5.

    In T s the idle wire takes 1/(3 T) of a connection. With two in all the first wire has
    1/3 + (1 - 1/(3 T))/6 = 1/T, T = 19/9; with three 1/2 + (1 - 1/(3 T))/10 = 1/T, T = 31/18.
    """
    pairs = [{"from": "Q", "to": "M"}] * 2
    assert reference_s(setting(pairs), 2) == pytest.approx(19 / 9)
    assert reference_s(setting(pairs), 3) == pytest.approx(31 / 18)
    problem = true_problem(setting(pairs))
    assert sorted(w.competitors for w in problem.shared if w.competitors) == [2.0]


def test_a_problem_has_no_wires_to_know(tmp_path):
    (tmp_path / "p.toml").write_text(
        'destination = "D"\n[hosts.D]\n[hosts.S]\nbacklog_bytes = 10\n[[links]]\nfrom = "S"\n'
        'to = "D"\nbandwidth_bytes_per_s = 5.0\n'
    )
    (tmp_path / "s.toml").write_text('problem = "p.toml"\n')
    assert math.isnan(reference_s(build(Scenario.from_file(tmp_path / "s.toml")), 1))
