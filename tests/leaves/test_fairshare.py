"""Max-min fair shares, against hand-derived rates, the certificate and a filling in fractions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.errors import ProblemError
from datacollect.numbers import fairshare
from datacollect.numbers.fairshare import FairShare, max_min_fair_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

INF = math.inf

# Rounding errors, magnified where heavy flows leave little to light ones (weights up to 10^4:1).
RELATIVE = 1e-9
OVER_CAPACITY = Fraction(1, 10**12)


@dataclass(frozen=True)
class Sharing:
    """Use of resources: ``uses[f]`` lists those of flow f, some perhaps several times."""

    capacity: Sequence[float]
    uses: Sequence[Sequence[int]]
    weight: Sequence[float]
    limit: Sequence[float]

    def entries(self):
        flow = np.array([f for f, used in enumerate(self.uses) for _ in used], dtype=np.int64)
        resource = np.array([r for used in self.uses for r in used], dtype=np.int64)
        return flow, resource

    def rates(self):
        flow, resource = self.entries()
        shares = FairShare(flow, resource, len(self.uses), len(self.capacity), weight=self.weight)
        return shares.rates(self.capacity, rate_limit=self.limit)


def share(capacity, uses, weight=None, limit=None):
    return Sharing(capacity, uses, weight or [1.0] * len(uses), limit or [INF] * len(uses))


def filled_in_fractions(sharing: Sharing) -> list[Fraction | float]:
    """Progressive filling as in Bertsekas and Gallager, one bottleneck at a time, exactly."""
    left = {r: Fraction(c) for r, c in enumerate(sharing.capacity) if c < INF}
    weight = [Fraction(w) for w in sharing.weight]
    rate: dict[int, Fraction | float] = {}
    while len(rate) < len(sharing.uses):
        waiting = [f for f in range(len(sharing.uses)) if f not in rate]
        levels = [Fraction(sharing.limit[f]) / weight[f] for f in waiting if sharing.limit[f] < INF]
        load = {r: sum(sharing.uses[f].count(r) * weight[f] for f in waiting) for r in left}
        levels += [left[r] / load[r] for r in load if load[r]]
        if not levels:
            rate |= dict.fromkeys(waiting, INF)
            break
        level = min(levels)
        full = {r for r in left if left[r] == level * load[r]}
        for f in waiting:
            if sharing.limit[f] == level * weight[f] or full & set(sharing.uses[f]):
                rate[f] = level * weight[f]
                for r in left.keys() & set(sharing.uses[f]):
                    left[r] -= level * weight[f] * sharing.uses[f].count(r)
    return [rate[f] for f in range(len(sharing.uses))]


def loads(sharing: Sharing, rates) -> dict[int, Fraction]:
    """What crosses each resource of finite capacity, summed exactly."""
    users = list(zip(rates, sharing.uses, strict=True))
    return {
        r: sum((Fraction(x) * used.count(r) for x, used in users if r in used), Fraction(0))
        for r, capacity in enumerate(sharing.capacity)
        if capacity < INF
    }


def fits(sharing: Sharing, rates) -> bool:
    return all(
        load <= Fraction(sharing.capacity[r]) * (1 + OVER_CAPACITY)
        for r, load in loads(sharing, rates).items()
    )


def flows_without_bottleneck(sharing: Sharing, rates) -> list[int]:
    """Flows that are neither at their limit nor of highest level on a full resource."""
    level = [x / w for x, w in zip(rates, sharing.weight, strict=True)]
    at_limit = [x >= y * (1 - 1e-15) for x, y in zip(rates, sharing.limit, strict=True)]
    bound = set(np.flatnonzero(at_limit))
    for r, load in loads(sharing, rates).items():
        users = [f for f, used in enumerate(sharing.uses) if r in used]
        if users and load >= sharing.capacity[r] * (1 - 1e-11):
            highest = max(level[f] for f in users)
            bound |= {f for f in users if level[f] >= highest * (1 - RELATIVE)}
    return [f for f in range(len(rates)) if f not in bound]


def test_line_network():
    """One long flow and a short one on each link.

    Links of 1: all get 1/2 (2 in all; nothing for the long flow would move 3: fair is not most).
    Links of 6, 10, 20: the long flow gets half of the 6; the short ones 3, 10 - 3 and 20 - 3.
    """
    uses = [(0, 1, 2), (0,), (1,), (2,)]
    assert share([1, 1, 1], uses).rates().tolist() == [0.5, 0.5, 0.5, 0.5]
    assert share([6, 10, 20], uses).rates().tolist() == [3, 3, 7, 17]


def test_bottlenecks_on_three_levels_and_a_resource_crossed_twice():
    """Each bottleneck sets what is left for the next.

    Resource 0 (3): flows 0, 1, 2 at 1 each. Resource 1 (8) carries flow 2 (1) and flows 3, 4, at
    most (8 - 1) / 2 = 3.5. Resource 2 (10) carries flow 4 (3.5) and flow 5: 6.5.

    A resource that a flow crosses twice counts twice: 2 x + x = 9.
    """
    assert share([9], [(0, 0), (0,)]).rates().tolist() == [3, 3]
    levels = share([3, 8, 10], [(0,), (0,), (0, 1), (1,), (1, 2), (2,)])
    assert levels.rates().tolist() == [1, 1, 1, 3.5, 3.5, 6.5]


def test_weights_divide_a_resource_in_proportion_and_decide_which_binds():
    """12 among weights 1, 2 and 3. Then flow 0 over both resources, of 10 and 8.

    Unweighted, resource 1 binds at 8 / 2: rates 4, 10 - 4, 4. With weight 4 for flow 1 resource 0
    binds at level 10 / 5 = 2, below 8 / 2: flow 0 has 2, flow 1 has 8, flow 2 has 8 - 2.
    """
    assert share([12], [(0,)] * 3, weight=[1, 2, 3]).rates().tolist() == [2, 4, 6]
    uses = [(0, 1), (0,), (1,)]
    assert share([10, 8], uses).rates().tolist() == [4, 6, 4]
    assert share([10, 8], uses, weight=[1, 4, 1]).rates().tolist() == [2, 8, 6]


def test_a_flow_at_its_own_limit_leaves_the_rest_to_others():
    """12 among three, one of which can do 2 only, or nothing: half of the rest for each other.

    With weights 3 and 1 the shares would be 9 and 3; the heavy flow can do 6 only. Limits above
    the shares change nothing.
    """
    three = [(0,)] * 3
    assert share([12], three, limit=[INF, 2, INF]).rates().tolist() == [5, 2, 5]
    assert share([12], three, limit=[INF, 0, INF]).rates().tolist() == [6, 0, 6]
    assert share([12], three, limit=[4, 4.5, INF]).rates().tolist() == [4, 4, 4]
    assert share([12], [(0,)] * 2, weight=[3, 1], limit=[6, INF]).rates().tolist() == [6, 6]


def test_limits_hold_to_the_last_bit():
    """In floats x / w * w may be more than x, as it is for some of these."""
    limits = np.random.default_rng(1).uniform(0, 1, 200)
    weights = np.random.default_rng(2).uniform(0.1, 10, 200)
    assert (limits / weights * weights > limits).any()
    rates = share([], [()] * 200, weight=weights.tolist(), limit=limits.tolist()).rates()
    np.testing.assert_allclose(rates, limits, rtol=1e-15)
    assert (rates <= limits).all()


def test_more_capacity_can_lower_a_rate_and_the_sum():
    """Flow 0 crosses links 0, 1, 2; flows 1 and 2 have links 1 and 2 of 10 besides.

    Link 0 at 2: flow 0 gets 2, the others 8, together 18. Link 0 at 10: all get 5, together 15.
    """
    uses = [(0, 1, 2), (1,), (2,)]
    assert share([2, 10, 10], uses).rates().tolist() == [2, 8, 8]
    assert share([10, 10, 10], uses).rates().tolist() == [5, 5, 5]


def test_capacities_and_limits_of_zero_and_infinity():
    """Flow 0 needs the dead resource 0; flow 1 then has resource 1 to itself.

    Flow 0 has an infinite resource only; flow 1 shares 3 with flow 2; flow 3 takes 8 - 1.5; flow
    4 has a limit.
    Without any resource at all only limits hold back.
    """
    assert share([0, 10], [(0, 1), (1,), (0,)]).rates().tolist() == [0, 10, 0]
    free = share([INF, 3, 8], [(0,), (1, 2), (1,), (2,), (0,)], limit=[INF] * 4 + [7])
    assert free.rates().tolist() == [INF, 1.5, 1.5, 6.5, 7]
    assert share([10], [(), (), (0,)], limit=[INF, 3, INF]).rates().tolist() == [INF, 3, 10]
    assert max_min_fair_rates([5.0], [], [], 2).tolist() == [INF, INF]
    assert max_min_fair_rates([], [], [], 0).tolist() == []


def test_who_does_not_take_part_uses_nothing():
    """Line network: without the long flow the short ones have their links to themselves."""
    shares = FairShare([0, 0, 1, 2], [0, 1, 0, 1], 3, 2)
    assert shares.rates([6.0, 10.0], active=np.array([False, True, True])).tolist() == [0, 6, 10]
    assert shares.rates([6.0, 10.0], active=np.zeros(3, dtype=bool)).tolist() == [0, 0, 0]
    assert shares.rates([INF, INF], active=np.array([True, True, False])).tolist() == [INF, INF, 0]


def test_calls_leave_no_trace():
    """Weights, capacities and limits of earlier calls stay as they were given."""
    capacity, limit, weight = np.array([12.0]), np.array([INF, 2.0, INF]), np.array([1.0, 2, 2])
    shares = FairShare([0, 1, 2], [0, 0, 0], 3, 1, weight=weight)
    weight[:] = 1  # his own array
    assert shares.rates(capacity).tolist() == [2.4, 4.8, 4.8]
    limited = shares.rates(capacity, rate_limit=limit)
    np.testing.assert_allclose(limited, [10 / 3, 2, 20 / 3], rtol=1e-15)
    assert shares.rates(capacity).tolist() == [2.4, 4.8, 4.8]
    assert (capacity.tolist(), limit.tolist()) == ([12], [INF, 2, INF])


def test_resources_without_users_are_not_looked_at():
    """One used resource among a million, the others not even numbers; NaN in use is refused."""
    capacity = np.full(10**6, np.nan)
    capacity[777_777] = 8.0
    assert max_min_fair_rates(capacity, [0, 1], [777_777, 777_777], 2).tolist() == [4, 4]
    with pytest.raises(ProblemError, match=r"capacity\[5\] must be >= 0.* got nan"):
        max_min_fair_rates(capacity, [0, 1], [777_777, 5], 2)


@pytest.fixture
def rounds(monkeypatch):
    """Counts the rounds of the filling: ``rounds.call_count``."""
    monkeypatch.setattr(fairshare, "_one_round", Mock(wraps=fairshare._one_round))
    return fairshare._one_round


def test_independent_links_take_one_round(rounds):
    """3000 links of different capacities, each with two flows."""
    capacity = np.geomspace(1, 1e9, 3000)
    link = np.tile(np.arange(3000), 2)
    rates = max_min_fair_rates(capacity, np.arange(6000), link, 6000)
    assert rates.tolist() == (np.tile(capacity, 2) / 2).tolist()
    assert rounds.call_count == 1


def test_a_chain_of_bottlenecks_takes_one_round_each(rounds):
    """Links of 2, 3, 4, ...; link i carries flows i and i + 1 and has to wait for link i - 1.

    Flows 0 and 1 get 1 of link 0, flow 2 gets 3 - 1 = 2, flow 3 gets 4 - 2 = 2, flow 4 gets
    5 - 2 = 3, then 3, 4, 4, ...: flow f gets 1 + f // 2. At most one round per link.
    """
    n_links = 20
    chain = share(range(2, n_links + 2), [(0,), *((i, i + 1) for i in range(n_links - 1)), (19,)])
    assert chain.rates().tolist() == [1 + f // 2 for f in range(n_links + 1)]
    assert rounds.call_count <= n_links


def test_rounding_errors_do_not_split_ties(rounds):
    """Fair shares of 0.1 everywhere, which floats cannot hold: one round, not one per error.

    Resource r of 50 has (r + 1) / 10 for r + 1 flows; the last has a tenth for each flow of all.
    """
    members = [(r, 50) for r in range(50) for _ in range(r + 1)]
    tied = share([*(0.1 * (r + 1) for r in range(50)), 0.1 * len(members)], members)
    assert len({c / (r + 1) for r, c in enumerate(tied.capacity[:50])}) > 1, "no errors, no test"
    rates = tied.rates()
    np.testing.assert_allclose(rates, 0.1, rtol=1e-12)
    assert fits(tied, rates)
    assert rounds.call_count == 1


CAPACITIES = st.one_of(
    st.integers(0, 12).map(float),  # ties
    st.floats(0, 9).map(lambda power: 10**power),
    st.sampled_from([0.0, 0.1, 0.3, 1 / 3, INF]),
)
WEIGHTS = st.one_of(st.sampled_from([1.0, 2.0, 3.0]), st.floats(0.01, 100))
LIMITS = st.one_of(st.just(INF), CAPACITIES)


@st.composite
def sharings(draw):
    n_flows, n_resources = draw(st.integers(1, 9)), draw(st.integers(1, 7))
    used = st.lists(st.integers(0, n_resources - 1), max_size=5)
    return Sharing(
        tuple(draw(st.lists(CAPACITIES, min_size=n_resources, max_size=n_resources))),
        tuple(tuple(draw(used)) for _ in range(n_flows)),
        tuple(draw(st.lists(WEIGHTS, min_size=n_flows, max_size=n_flows))),
        tuple(draw(st.lists(LIMITS, min_size=n_flows, max_size=n_flows))),
    )


@pytest.mark.parametrize("capacity", np.random.default_rng(4).uniform(1, 2, 20))
def test_rounding_errors_leave_nobody_a_negative_rate(capacity):
    """A heavy flow takes all, or a bit more by rounding, while a stopped one lets another wait."""
    heavy = share([capacity], [(0,)] * 3, weight=[1e9, 1e-9, 1e-9], limit=[capacity, 0, INF])
    assert min(heavy.rates()) == 0
    np.testing.assert_allclose(heavy.rates(), [capacity, 0, 0], atol=1e-15)


@given(sharings())
def test_rates_fit_and_every_flow_has_its_bottleneck(sharing):
    """The certificate: it holds for the weighted max-min fair rates and for no others."""
    rates = sharing.rates().tolist()
    assert all(0 <= x <= limit for x, limit in zip(rates, sharing.limit, strict=True))
    assert fits(sharing, rates)
    assert flows_without_bottleneck(sharing, rates) == []


@given(sharings())
def test_rates_agree_with_progressive_filling_in_fractions(sharing):
    exact = [float(x) for x in filled_in_fractions(sharing)]
    np.testing.assert_allclose(sharing.rates(), exact, rtol=RELATIVE)


@given(sharings(), st.integers(-30, 60))
def test_units_scale_rates(sharing, power):
    """Powers of two change no digit, so that the rates scale exactly."""
    unit = 2.0**power
    capacity, limit = ([x * unit for x in xs] for xs in (sharing.capacity, sharing.limit))
    scaled = replace(sharing, capacity=capacity, limit=limit)
    assert scaled.rates().tolist() == (sharing.rates() * unit).tolist()


@given(sharings(), st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter(sharing, random):
    """Number flows and resources again and shuffle the entries: each flow keeps its rate."""
    n_flows, n_resources = len(sharing.uses), len(sharing.capacity)
    new_flow = np.array(random.sample(range(n_flows), n_flows))
    new_resource = np.array(random.sample(range(n_resources), n_resources))
    flow, resource = sharing.entries()
    order = random.sample(range(len(flow)), len(flow))
    old_flow, old_resource = np.argsort(new_flow), np.argsort(new_resource)
    renamed = max_min_fair_rates(
        np.array(sharing.capacity)[old_resource],
        new_flow[flow][order],
        new_resource[resource][order],
        n_flows,
        weight=np.array(sharing.weight)[old_flow],
        rate_limit=np.array(sharing.limit)[old_flow],
    )
    np.testing.assert_allclose(renamed[new_flow], sharing.rates(), rtol=RELATIVE)


@given(sharings(), st.lists(st.booleans(), min_size=9, max_size=9))
def test_inactive_flows_might_as_well_not_be_there(sharing, drawn):
    n_flows = len(sharing.uses)
    active = np.array(drawn[:n_flows])
    flow, resource = sharing.entries()
    shares = FairShare(flow, resource, n_flows, len(sharing.capacity), weight=sharing.weight)
    rates = shares.rates(sharing.capacity, active=active, rate_limit=sharing.limit)
    assert (rates[~active] == 0).all()
    kept = np.flatnonzero(active)
    others = Sharing(
        sharing.capacity,
        tuple(sharing.uses[f] for f in kept),
        tuple(sharing.weight[f] for f in kept),
        tuple(sharing.limit[f] for f in kept),
    )
    assert rates[kept].tolist() == others.rates().tolist()


def test_a_large_instance_over_nine_orders_fits_and_is_fair():
    """5000 weighted flows over 3 of 1000 resources from 1 B/s to 1 GB/s: sums and certificate."""
    random = np.random.default_rng(0)
    n_flows, n_resources = 5000, 1000
    resource = random.integers(0, n_resources, (n_flows, 3))
    flow = np.repeat(np.arange(n_flows), 3)
    capacity = 10 ** random.uniform(0, 9, n_resources)
    weight = random.uniform(0.5, 2, n_flows)
    rates = max_min_fair_rates(capacity, flow, resource.ravel(), n_flows, weight=weight)
    load = np.bincount(resource.ravel(), np.repeat(rates, 3), n_resources)
    assert (load <= capacity * (1 + 1e-12)).all()
    highest = np.zeros(n_resources)
    np.maximum.at(highest, resource.ravel(), np.repeat(rates / weight, 3))
    full = load >= capacity * (1 - 1e-11)
    at_bottleneck = full[resource] & ((rates / weight)[:, None] >= highest[resource] * (1 - 1e-9))
    assert at_bottleneck.any(axis=1).all()


def test_many_flows_on_one_resource_stay_within_it():
    """Rates over nine orders of magnitude: 1 beside 10^9 - 1, and 20 000 summed exactly."""
    rates = share([1e9], [(0,), (0,)], weight=[1e9 - 1, 1]).rates()
    np.testing.assert_allclose(rates, [1e9 - 1, 1], rtol=1e-12)
    weight = 10 ** np.random.default_rng(3).uniform(-4, 5, 20_000)
    rates = share([0.3], [(0,)] * 20_000, weight=weight.tolist()).rates()
    assert math.fsum(rates) == pytest.approx(0.3, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capacity": [1.0, -2.0]}, r"capacity\[1\] must be >= 0.* got -2\.0"),
        ({"capacity": [1.0, -0.5]}, r"capacity\[1\] must be >= 0.* got -0\.5"),
        ({"capacity": [1e300, 2.0]}, r"capacity\[0\] .* got 1e\+300; use inf"),
        ({"capacity": [[1.0, 2.0]]}, r"capacity must have shape \(2,\), got \(1, 2\)"),
        ({"flow": [0, 2]}, r"flow must hold indices from 0 to 1, got 2"),
        ({"flow": [0.0, 1.0]}, r"flow must hold integers in one dimension, got float64"),
        ({"flow": [0]}, r"flow and resource must be of one length, got 1 and 2"),
        ({"resource": [-1, 0]}, r"resource must hold indices from 0 to 1, got -1"),
        ({"weight": [1.0, 0.0]}, r"weight\[1\] must lie between 1e-09 and 1e\+09, got 0\.0"),
        ({"rate_limit": [1.0, -1.0]}, r"rate_limit\[1\] must be >= 0.* got -1\.0"),
        ({"rate_limit": 5.0}, r"rate_limit must have shape \(2,\), got \(\)"),
        ({"active": np.array([0, 1])}, r"active must hold booleans in shape \(2,\), got int64"),
    ],
)
def test_bad_input_is_named(changes, message):
    arguments = {"capacity": [1.0, 2.0], "flow": [0, 1], "resource": [0, 1], "n_flows": 2}
    with pytest.raises(ProblemError, match=message):
        max_min_fair_rates(**(arguments | changes))
