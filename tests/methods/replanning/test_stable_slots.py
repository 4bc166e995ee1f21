"""Planning again in slots: as few as can be, and as little as can be over new links."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from instances.how_many import many
from instances.replanned import bytes_over, mesh, new_bytes, plan_over_k, relay_problem, shared_mesh
from instances.small_problems import MB
from judges import oracle
from judges.slotted_oracle import least_slotted_cost

import datacollect as dc
from datacollect.errors import TimeLimitError
from datacollect.flow.network.preference import COST_RANGE, Costs
from datacollect.methods.replanning import stable_slots
from datacollect.methods.replanning.replan import old_use
from datacollect.methods.slotted.graph import TimeExpansion
from datacollect.methods.slotted.pricing import Discount, cheapest, priced
from datacollect.methods.slotted.search import PartialGraph
from datacollect.methods.timing.slots import slots_within
from datacollect.solvers.budget import Budget


def slots_of(plan: dc.Schedule) -> int:
    return round(plan.makespan_s / plan.slot_s)


# Against other programs -----------------------------------------------------------------------


@cache
def small_case(seed: int) -> tuple[dc.Problem, dc.Schedule, dc.Progress]:
    """A mesh of five or six hosts with any constraints, its plan, and how far it got by itself."""
    rng = np.random.default_rng(seed)
    n_hosts, kind = int(rng.integers(5, 7)), seed % 4
    if kind == 3:
        problem = shared_mesh(n_hosts, seed, limits=True)
    else:
        problem = mesh(n_hosts, seed, limits=kind == 1)
    if kind == 2:
        factor = rng.uniform(0.3, 2, (2, problem.n_links))
        problem = problem.replace(
            periods_s=np.array([0.0, 300.0]),
            bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * factor,
            storage_bytes=np.where(rng.random(n_hosts) < 0.4, 1e9, np.inf),
        )
    slot_s = dc.lower_bound(problem)[0] / 5.7  # not exactly so many: nobody rounds alike
    plan = dc.coordinated(problem, slot_s=slot_s)
    progress = dc.Progress.from_schedule(problem, plan, slot_s * (2 + (seed % 5) / 4))
    if seed % 3 == 0:
        relays = [
            name for name, n in zip(problem.names, problem.backlog_bytes, strict=True) if not n
        ]
        lost = [name for name in relays if name != problem.destination][:1]
        progress = dc.Progress(progress.at_s, progress.held, lost_hosts=lost)
    part = [0.02, 0.1, 0.5][seed % 3]
    factor = rng.uniform(1 - part, 1 + part, problem.bandwidth_bytes_per_s.shape)
    changed = problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * factor)
    return changed, plan, progress


@cache
def assert_fewest_slots_and_least_new_bytes(seed: int, stability: float) -> int:
    """Compare with programs on all links; return new bytes."""
    problem, plan, progress = small_case(seed)
    remaining = dc.remaining_problem(problem, progress)
    rest = dc.replan(problem, plan, progress, stability=stability)
    rest.check(remaining)
    assert rest.status == "optimal"
    fewest = oracle.slotted_makespan_slots(remaining, plan.slot_s, most=30)
    latest = slots_within(fewest * plan.slot_s * (1 + stability), plan.slot_s)
    assert fewest <= slots_of(rest) <= latest
    price = np.full(remaining.n_links, 1e9)  # 1 per byte
    price[old_use(remaining, plan, 0.0).links] = 0.0
    least = 0.0
    if price.any():
        dear = remaining.replace(price_per_gb=price)
        least = least_slotted_cost(dear, plan.slot_s, latest, "money")
    found = new_bytes(remaining, plan, rest)
    assert found == pytest.approx(least, abs=1e-6 * remaining.total_bytes)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(many(120)))
def test_as_few_slots_and_new_bytes_as_can_be(seed):
    for stability in (0.0, 0.4):
        assert_fewest_slots_and_least_new_bytes(seed, stability)


def test_the_cases_are_of_both_kinds():
    """Some need new links, some do not."""
    found = [assert_fewest_slots_and_least_new_bytes(seed, 0.0) > 0 for seed in range(12)]
    assert 0 < sum(found) < len(found)


# By hand ------------------------------------------------------------------------------------


@cache
def in_slots_over_k() -> dc.Schedule:
    """The plan for `relay_problem` before J was there, in slots of 0.5 s: 8 MB in 9 slots.

    0.5 MB directly in each slot, as much over K but not in the first.
    """
    plan = dc.replan(relay_problem(), plan_over_k(), dc.Progress(0.0), slot_s=0.5, stability=1.0)
    assert slots_of(plan) == 9
    assert set(bytes_over(plan)) == {("S", "D"), ("S", "K"), ("K", "D")}
    return plan


def test_old_links_are_given_as_many_slots_as_they_need_within_the_leeway():
    """With J as well 8 MB take 6 slots: 0.5 MB in the first, then 1.5 MB each, but one more over.

    Old links need 9, half as many again. So much leeway they get, and no slot more.
    """
    problem, plan = relay_problem(), in_slots_over_k()
    rest = dc.replan(problem, plan, dc.Progress(0.0), stability=0.0)
    assert slots_of(rest) == 6
    assert ("J", "D") in bytes_over(rest)
    for stability in (0.5, 3.0):
        rest = dc.replan(problem, plan, dc.Progress(0.0), stability=stability)
        assert slots_of(rest) == 9
        assert ("J", "D") not in bytes_over(rest)


def test_leeway_that_is_too_short_for_old_links_spares_new_ones_some_bytes():
    """In 6 slots S -> D and K -> D carry 3 + 2.5 MB, J the other 2.5; in 7 slots 3.5 + 3 + 1.5."""
    problem, plan = relay_problem(), in_slots_over_k()
    for stability, over_j in ((0.0, 2.5), (0.2, 1.5), (0.4, 0.5)):
        rest = dc.replan(problem, plan, dc.Progress(0.0), stability=stability)
        assert bytes_over(rest)["J", "D"] == over_j * MB
        assert slots_of(rest) == 6 + round(stability * 5)


def test_slots_are_not_spent_where_they_spare_no_new_link():
    """K is lost and S's own link, too: all has to take J, sooner or later."""
    problem, plan = relay_problem(), in_slots_over_k()
    link = problem.link_indices([0], [3])
    bandwidth = problem.bandwidth_bytes_per_s.copy()
    bandwidth[0, link] = 0.0
    without = problem.replace(bandwidth_bytes_per_s=bandwidth)
    rest = dc.replan(without, plan, dc.Progress(0.0, lost_hosts=("K",)), stability=1.0)
    assert set(bytes_over(rest)) == {("S", "J"), ("J", "D")}
    assert slots_of(rest) == 17  # 16 times 0.5 MB, a slot later


@pytest.mark.parametrize("n_slots", [0, 3, 8])
def test_without_news_every_link_carries_in_every_slot_what_it_would_have(n_slots):
    problem = mesh(12, 3, limits=True)
    slot_s = dc.lower_bound(problem)[0] / 12
    plan = dc.coordinated(problem, slot_s=slot_s)
    at_s = n_slots * slot_s
    rest = dc.replan(problem, plan, dc.Progress.from_schedule(problem, plan, at_s))
    before, after = per_slot(plan, at_s), per_slot(rest, 0.0)
    assert after == {key: n for key, n in before.items() if key[0] >= 0}


def per_slot(plan: dc.Schedule, at_s: float) -> dict[tuple[int, str, str], int]:
    """Bytes by slot, counted from an instant on the grid, and link."""
    found: dict[tuple[int, str, str], int] = {}
    table = plan.transfers
    for row in table.itertuples():
        first, end = (round((s - at_s) / plan.slot_s) for s in (row.start_s, row.finish_s))
        for slot in range(first, end):
            key = slot, table.at[row.Index, "from"], row.to
            found[key] = found.get(key, 0) + row.bytes // (end - first)
    return found


def test_data_at_relays_start_there_in_slots():
    problem, plan = relay_problem(), in_slots_over_k()
    progress = dc.Progress.from_schedule(problem, plan, 1.5)
    at_k = sum(h.n_bytes for h in progress.held if h.host == "K")
    assert at_k > 0
    rest = dc.replan(problem, plan, progress)
    assert {route.hosts[0] for route in rest.routes} == {"S", "K"}
    from_k = rest.transfers.query("`from` == 'K' and hop == 0")["bytes"].sum()
    assert from_k == at_k


def test_a_pipelined_plan_goes_on_in_slots():
    """What it would still send counts per slot, as far as slots go."""
    problem, plan = relay_problem(), plan_over_k()
    progress = dc.Progress.from_schedule(problem, plan, 2.0)
    rest = dc.replan(problem, plan, progress, slot_s=0.5, stability=0.3)
    rest.check(dc.remaining_problem(problem, progress))
    assert ("J", "D") not in bytes_over(rest)
    assert slots_of(rest) == 5  # 4 MB: 0.5 in the first, 1 in each later one; with J 4 slots


def test_when_time_is_up_a_complete_plan_is_returned(monkeypatch):
    def too_late(*_):
        raise TimeLimitError("the time limit passed")

    problem, plan = relay_problem(), in_slots_over_k()
    monkeypatch.setattr(stable_slots, "cheapest", too_late)
    rest = dc.replan(problem, plan, dc.Progress(0.0), stability=0.0)
    rest.check(dc.remaining_problem(problem, dc.Progress(0.0)))
    assert (rest.status, slots_of(rest)) == ("time_limit", 6)


def test_data_that_return_to_their_owner_need_room_and_the_status_says_so():
    """As in test_slotted_scale: 2 slots would do, the graph needs 3 and says so."""
    for storage_bytes, expected in ((1, (3, "heuristic")), (2, (2, "optimal"))):
        problem = dc.Problem.from_hosts(
            [dc.Host("K", 1, storage_bytes=storage_bytes), dc.Host("H", 1), dc.Host("D")],
            [dc.Link("H", "K", 2.0), dc.Link("K", "D", 2.0)],
            "D",
            held=[dc.Held("H", "K", 0, 1)],
        )
        plan = dc.coordinated(problem, slot_s=1.0)
        rest = dc.replan(problem, plan, dc.Progress(0.0, problem.held))
        assert (slots_of(rest), rest.status) == expected


# Costs --------------------------------------------------------------------------------------


def test_some_bytes_on_an_arc_may_cost_less():
    """S -> D carries 3 a slot; in slot 1 the first 2 cost 1 instead of 5. S sends 4 in two slots.

    The cheapest sends 3 in one slot and 1 in the other, or 2 and 2: slot 1 takes 2 at a cost of 1,
    and where the third of slot 1 goes does not matter: 2 * 1 + 2 * 5.
    """
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 3.0], [0, 0]], [4, 0], "D")
    part = PartialGraph.in_all_slots(TimeExpansion(problem, 1.0, 2), np.arange(1))
    zero = np.zeros(2, dtype=np.int64)
    costs, discount = Costs(np.array([5]), zero, zero), Discount(np.array([1]), np.array([2]), 4)
    graph, cost, copies = priced(part, costs, discount)
    assert (graph.link[copies].tolist(), graph.slot[copies].tolist()) == ([0], [1])
    assert cost[-1] == 1
    assert graph.capacity_bytes[[0, 1, -1]].tolist() == [3, 1, 2]
    _, flow = cheapest(part, costs, Budget(), discount)
    assert flow[:2].sum() == 4
    assert 2 <= flow[1] <= 3


@pytest.mark.parametrize(("n_nodes", "stored"), [(1000, 1), (10**7, 0)])
def test_storage_does_not_count_where_solvers_could_not_bear_it(n_nodes, stored):
    costs, less = stable_slots._costs(np.array([True, False]), n_slots=10**4, n_nodes=n_nodes)
    assert costs.stored.tolist() == [stored] * 10**4
    new, old = costs.link.tolist()
    assert less == stable_slots.MORE
    assert old - less == 1 - stored  # a hop, or a slot at the relay behind it
    # One byte over a new link is worth a way of 15 hops beyond the old use, and all its waiting.
    assert new >= 15 * old + stored * 10**4
    assert new * 15 <= COST_RANGE // n_nodes**2
