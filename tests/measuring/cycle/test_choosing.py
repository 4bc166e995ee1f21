"""Which pairs a cycle tests: all of few hosts, of many those that matter; as the budget allows."""

from __future__ import annotations

import pandas as pd
import pytest
from instances.measuring import OPERATOR

from datacollect.errors import ProblemError
from datacollect.measurement.sample_store import COLUMNS
from datacollect.measuring.cycle.choosing import ALL, MATTER, candidate_pairs, choose
from datacollect.measuring.cycle.planning import plan_cycle_of
from datacollect.measuring.plan.budget import Cost
from datacollect.measuring.plan.hosts_file import HostsFile
from datacollect.measuring.plan.rounds import full_mesh
from datacollect.net.keys import write_private_key

NOTHING = pd.DataFrame(columns=list(COLUMNS))


def hosts_of(names, **more):
    hosts = {
        name: {"url": f"https://127.0.0.1:{i + 1}", "fingerprint": f"sha256:{i:064}"}
        for i, name in enumerate(names)
    }
    tree = {"format": "datacollect-hosts/1", "destination": names[0], "key": "operator.key"}
    return HostsFile.from_dict({**tree, "hosts": hosts, **more})


def samples_with(rates):
    rows = [
        {"from": tail, "to": head, "time_s": 0.0, "tool": "tcp", "ended": "done"}
        | {"bandwidth_bytes_per_s": rate, "streams": 4}
        for (tail, head), rate in rates.items()
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def test_pairs_into_the_destination_come_first_then_those_that_a_plan_uses():
    """S has 1 MB/s to D, and 9 by K: a plan sends by K, and no other pair carries anything."""
    table = samples_with({("S", "D"): 1e6, ("K", "D"): 9e6, ("S", "K"): 9e6, ("K", "S"): 9e6})
    pairs, rates = candidate_pairs(hosts_of("DSK"), table, MATTER)
    assert set(pairs[:2]) == {("S", "D"), ("K", "D")}
    assert pairs[2:] == [("S", "K")]
    assert rates["S", "K"] == 9e6
    pairs, _ = candidate_pairs(hosts_of("DSK"), table, ALL)
    assert pairs[:3] == [*pairs[:2], ("S", "K")]
    assert sorted(pairs) == sorted(full_mesh("DSK"))


@pytest.mark.parametrize(("n", "expected"), [(30, 30 * 29), (31, 30)])
def test_of_many_hosts_only_those_that_matter_are_tested(n, expected):
    pairs, rates = candidate_pairs(hosts_of([f"h{i}" for i in range(n)]), NOTHING, None)
    assert (len(pairs), rates) == (expected, {})


def test_hosts_that_are_cut_off_do_not_end_it():
    """Nothing is known into D: there is no plan, and what is known counts all the same."""
    pairs, _ = candidate_pairs(hosts_of("DSK"), samples_with({("S", "K"): 1e6}), MATTER)
    assert set(pairs) == {("S", "D"), ("K", "D")}


def test_costs_follow_what_is_expected_of_each_pair():
    """10 s of 1 MB/s are 10 MB, and twice that is allowed; 100 MB where nothing is known."""
    pairs = [("S", "D"), ("K", "D")]
    chosen = choose(pairs, ["tcp"], {("S", "D"): 1e6}, [], Cost(1e9, 1e9), 0)
    assert chosen.settings["S", "D"]["tcp"].cost.n_bytes == pytest.approx(2e7)
    assert chosen.cost.n_bytes == pytest.approx(1.2e8)
    assert chosen.cost.seconds == 2 * (10.0 + 3.0)
    chosen = choose(pairs, ["tcp"], {("S", "D"): 1e6}, [], Cost(5e7, 1e9), 0)
    assert (chosen.pairs, chosen.unpaid) == ([("S", "D")], (("K", "D"),))


def test_known_wires_are_in_one_test_at_a_time():
    pairs = [("A", "B"), ("C", "D")]
    wire = {"name": "sea", "bandwidth_bytes_per_s": 1e6, "links": [list(pair) for pair in pairs]}
    hosts = hosts_of("ABCD", shared=[wire])
    free, bound = (
        choose(pairs, ["tcp"], {}, wires, Cost(1e9, 1e9), 0) for wires in ([], hosts.wires)
    )
    assert (len(free.cycle.rounds), len(bound.cycle.rounds)) == (1, 2)


def test_a_cycle_needs_two_agents(tmp_path):
    hosts = {"A": {"iperf3": "a.example:5201"}, "B": {"iperf3": "b.example:5201"}}
    tree = {"format": "datacollect-hosts/1", "destination": "A", "hosts": hosts}
    with pytest.raises(ProblemError, match="two hosts with agents, or iperf3 servers"):
        plan_cycle_of(HostsFile.from_dict(tree), tmp_path)


def test_the_flood_is_paid_for_before_pairs_are(tmp_path):
    """Two sources: 2 x 100 MB at once, so of 350 MB one test of 100 MB is left for pairs."""
    write_private_key(tmp_path / "operator.key", OPERATOR)
    hosts = hosts_of("DSK", budget={"bytes": 350_000_000})
    planned = plan_cycle_of(hosts, tmp_path, ["tcp", "flood"], MATTER)
    assert set(planned.flood.pairs) == {("S", "D"), ("K", "D")}
    assert (len(planned.chosen.pairs), planned.cost.n_bytes) == (1, 3e8)
    assert planned.lines()[-1].startswith("left out, as the budget is too small: ")
