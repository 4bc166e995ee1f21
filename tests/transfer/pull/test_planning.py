"""Controllers of rounds: adaptive on known links, learning on unknown ones, in steady worlds."""

import itertools
from datetime import datetime

import pytest
from transfer.pull.fake_sources import PlanningWorld, World

from datacollect.methods.planning_options import PlanningOptions
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.pull.core.core import CollectorCore
from datacollect.transfer.pull.core.todo import SourceWork
from datacollect.transfer.pull.planning import planned, problem_of

MB = 2**20
AGENT = {"url": "https://127.0.0.1:1", "ca": "ca.pem"}


def core_of(rates, n_pieces, *, known, method="adaptive", connections=4):
    """Sources of pieces of 1 MiB; links as the chains' rates say, known or not."""
    links = sorted({pair for hosts in rates for pair in itertools.pairwise(hosts)})
    best = {
        pair: max(rate for hosts, rate in rates.items() if pair in itertools.pairwise(hosts))
        for pair in links
    }
    names = {name for hosts in rates for name in hosts} - {"D"}
    tree = {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "key",
        "agents": dict.fromkeys(sorted(names), AGENT),
    }
    if known:
        tree["links"] = [
            {"from": a, "to": b, "bandwidth_bytes_per_s": best[a, b]} for a, b in links
        ]
    work = {
        name: SourceWork(tuple(range(0, n * MB, MB)), (MB,) * n, frozenset(range(n)))
        for name, n in n_pieces.items()
    }
    problem = problem_of(Collection.from_dict(tree), work, links, {})
    found = planned(
        problem, PlanningOptions(method), connections=connections, piece_bytes=MB, is_known=known
    )
    return CollectorCore(work, found.controller), found


def of_one_source(**changes):
    """S has 10 MB for D, over a link of 10 MB/s."""
    tree = {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "key",
        "agents": {"S": AGENT},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 1e7}],
    }
    work = {"S": SourceWork((0,), (10_000_000,), frozenset([0]))}
    now = datetime.fromisoformat("2026-11-27T22:59:30+00:00")
    return problem_of(Collection.from_dict(tree | changes), work, (), {}, now=now)


@pytest.mark.parametrize("method", ["coordinated", "adaptive", "best-path", "direct"])
def test_limits_of_hosts_change_at_the_hours_of_the_files_zone(method):
    """In Zurich Saturday begins in 30 s: 3 MB until then at 0.1 MB/s, 7 MB at 1 MB/s, 7 s."""
    uplink = "Mo-Fr 100 kB/s, Sa Su 1 MB/s"
    problem = of_one_source(timezone="Europe/Zurich", hosts={"S": {"uplink_bytes_per_s": uplink}})
    found = planned(problem, PlanningOptions(method), connections=4, piece_bytes=MB, is_known=True)
    assert found.predicted_s == pytest.approx(37.0, rel=1e-3)


def test_limits_that_do_not_change_make_the_problem_of_before():
    """A zone that nothing is said in, too."""
    constant = of_one_source(hosts={"S": {"uplink_bytes_per_s": "1 MB/s"}})
    assert constant.clock is None
    zoned = of_one_source(timezone="Asia/Tokyo", hosts={"S": {"uplink_bytes_per_s": 1e6}})
    assert zoned.sha256 == constant.sha256
    assert zoned.clock is None


def test_what_may_come_in_all_narrows_the_plan():
    """10 MB at 2 MB/s, whatever the link and the downlink promise; where hours say so, by now's."""
    for more in (
        {"limits": {"rate": 2e6}},
        {"limits": {"rate": 2e6}, "hosts": {"D": {"downlink_bytes_per_s": 3e6}}},
        {"limits": {"rate": "00:00 2 MB/s, 12:00 2 MB/s"}, "timezone": "UTC"},
    ):
        found = planned(
            of_one_source(**more),
            PlanningOptions("coordinated"),
            connections=4,
            piece_bytes=MB,
            is_known=True,
        )
        assert found.predicted_s == pytest.approx(5.0, rel=1e-3)


def test_caps_and_hours_are_not_for_planners():
    """What is closed is left out by whoever asks for a plan, shared wires of it too."""
    link = {"from": "S", "to": "D", "bandwidth_bytes_per_s": 1e7}
    plain = of_one_source()
    said = of_one_source(
        timezone="UTC",
        links=[link | {"cap": True, "open": "20:00-06:00"}],
        hosts={"S": {"open": "08:00-09:00"}},
    )
    assert said.sha256 == plain.sha256
    tree = {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "key",
        "agents": {"S": AGENT, "T": AGENT},
        "links": [link, link | {"from": "T"}],
        "shared": [
            {"name": "both", "links": [["S", "D"], ["T", "D"]], "bandwidth_bytes_per_s": 1e6},
            {"name": "one", "links": [["T", "D"]], "bandwidth_bytes_per_s": 1e6},
        ],
    }
    work = {"S": SourceWork((0,), (10_000_000,), frozenset([0]))}
    collection = Collection.from_dict(tree)
    problem = problem_of(collection, work, (), {}, file_links=collection.network["links"][:1])
    assert [(each.name, list(each.links)) for each in problem.shared] == [("both", [("S", "D")])]
    assert len(problem.link_from) == 1


def came(world, source):
    return sorted(piece for name, piece, *_ in world.came if name == source)


def by_route(world):
    routes = {}
    for _, _, hosts, _ in world.came:
        routes[hosts] = routes.get(hosts, 0) + 1
    return routes


def test_adaptive_collects_over_chains():
    rates = {("S", "D"): 2.0 * MB, ("S", "R", "D"): 6.0 * MB}
    core, _ = core_of(rates, {"S": 120}, known=True)
    world = World(rates)
    world.run(core)
    assert came(world, "S") == list(range(120))


def test_adaptive_goes_round_a_lost_relay_and_uses_it_again():
    rates = {("S", "R", "D"): 6.0 * MB}
    core, _ = core_of(rates, {"S": 120}, known=True)
    world = World(rates, down={"R": [(3.0, 9.0)]})
    took_s = world.run(core)
    assert came(world, "S") == list(range(120))
    assert took_s < 60


def test_what_is_unknown_is_learned_and_the_fast_relay_used():
    """Straight 1 MiB/s, over the relay 10: 2000 MiB would take 1000 s on two straight chains."""
    rates = {("S", "D"): 1.0 * MB, ("S", "R", "D"): 10.0 * MB}
    core, found = core_of(rates, {"S": 2000}, known=False)
    world = PlanningWorld(rates)
    world.plan_remaining = found.plan_remaining
    took_s = world.run(core)
    assert came(world, "S") == list(range(2000))
    assert by_route(world)["S", "R", "D"] > 1500
    assert world.plans >= 1
    assert took_s < 300


def test_what_takes_seconds_is_not_worth_a_trial():
    rates = {("S", "D"): 10.0 * MB, ("S", "R", "D"): 20.0 * MB}
    core, found = core_of(rates, {"S": 50}, known=False)
    world = PlanningWorld(rates)
    world.plan_remaining = found.plan_remaining
    world.run(core)
    assert by_route(world) == {("S", "D"): 50}


def test_a_relay_that_is_no_use_is_tried_and_left():
    rates = {("S", "D"): 10.0 * MB, ("S", "R", "D"): 0.5 * MB}
    core, found = core_of(rates, {"S": 2000}, known=False)
    world = PlanningWorld(rates)
    world.plan_remaining = found.plan_remaining
    took_s = world.run(core)
    assert came(world, "S") == list(range(2000))
    assert took_s == pytest.approx(2000 / 40, rel=0.35)  # four straight chains


@pytest.mark.parametrize("method", ["coordinated", "best-path", "direct"])
def test_other_methods_carry_out_their_plans(method):
    rates = {("S", "D"): 2.0 * MB, ("S", "R", "D"): 6.0 * MB}
    core, _ = core_of(rates, {"S": 100}, known=True, method=method)
    world = World(rates)
    world.run(core)
    assert came(world, "S") == list(range(100))
    assert (
        by_route(world).keys()
        == {"coordinated": set(rates), "best-path": {("S", "R", "D")}, "direct": {("S", "D")}}[
            method
        ]
    )
