"""The tables of docs/methods_exactness.md, "What goes together": every cell is tried and judged.

The tables are read from the page, so that what it says is what is tested. A problem that fits in
the head has each pair of features; each is planned in both shapes, by each preference, with and
without a deadline, and compared with linear programs of their own.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest
from instances.small_problems import MB
from judges.oracle import fluid_makespan_s, least_cost, most_arrived_bytes, slotted_makespan_slots
from judges.plan_values import arrived_bytes, cost_of
from judges.slotted_oracle import least_slotted_cost

import datacollect as dc
from datacollect.flow.network.layered import breakpoints_s
from datacollect.flow.network.preference import PREFERENCES
from datacollect.flow.shared.arrivals import grid_s
from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem

METHODS = Path(__file__).resolve().parents[1] / "docs" / "methods_exactness.md"
SLOT_S = 0.5
FEATURES = ("host limits", "shared", "forecast", "release", "storage", "held")
SHAPES = ("pipelined", "in slots")
PAIRS = tuple(combinations_with_replacement(FEATURES, 2))

# Plans are in whole bytes; linear programs are solved to 1e-9 or so.
PART = 1e-6


@cache
def problem_with(*features: str) -> Problem:
    """A and B hold 6 and 4 MB; directly 1 and 2 MB/s lead to D, over K 1 and over L 2 MB/s.

    With a forecast K's link to D carries more than leads into K from 1.2 s on.
    """
    has = set(features)

    def rates(first: float, then: float) -> float | list[float]:
        return [first, then] if "forecast" in has else first

    return Problem.from_hosts(
        [
            Host("A", 6 * MB, uplink_bytes_per_s=2.5e6 if "host limits" in has else np.inf),
            Host("B", 4 * MB, release_s=0.7 if "release" in has else 0.0),
            Host("K", storage_bytes=MB // 4 if "storage" in has else np.inf),
            Host("L", downlink_bytes_per_s=1e6 if "host limits" in has else np.inf),
            Host("D"),
        ],
        [
            Link("A", "D", rates(1e6, 0.5e6), price_per_gb=3.0),
            Link("B", "D", rates(2e6, 1e6), price_per_gb=1.0),
            Link("A", "K", rates(2e6, 1e6), price_per_gb=0.5),
            Link("B", "K", 1e6, price_per_gb=0.25),
            Link("A", "L", 2e6, price_per_gb=1.5),
            Link("B", "L", 2e6, price_per_gb=0.5),
            Link("K", "D", rates(1e6, 3e6), price_per_gb=0.5),
            Link("L", "D", 2e6, price_per_gb=1.0),
        ],
        "D",
        periods_s=[0.0, 1.2] if "forecast" in has else [0.0],
        shared=[SharedBottleneck("wire", 2e6, [("A", "D"), ("B", "D"), ("L", "D")])]
        if "shared" in has
        else [],
        held=[Held("K", "A", 0, MB // 4)] if "held" in has else [],
    )


# The page ---------------------------------------------------------------------------------------


def table(heading: str) -> dict[tuple[str, str], str]:
    """Read a table of the page by the first cell of its heading: (row, column) -> cell."""
    lines = METHODS.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    _, *columns = cells(lines[first])
    found = {}
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        row, *values = cells(line)
        found |= {(row, column): value for column, value in zip(columns, values, strict=True)}
    return found


def cells(line: str) -> list[str]:
    return [cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|")]


def kinds() -> dict[tuple[str, str], str]:
    return table("together")


def claims() -> dict[tuple[str, str], str]:
    return table("asked for")


def test_the_page_has_every_pair_and_everything_that_can_be_asked_for():
    pairs = set(PAIRS)
    assert {pair for pair, cell in kinds().items() if cell} == pairs
    wishes = {f"{shape}, {wish}" for shape, wish in product(SHAPES, PREFERENCES)}
    assert {row for row, _ in claims()} == wishes
    assert {column for _, column in claims()} == {"flow", "linear program"}


# Every cell -------------------------------------------------------------------------------------

# All wishes of a pair have the same problem, and the same earliest ends by other programs.
earliest_s_of = cache(fluid_makespan_s)
fewest_slots_of = cache(lambda problem: slotted_makespan_slots(problem, SLOT_S, 30))


@pytest.mark.slow
@pytest.mark.parametrize("with_deadline", [False, True], ids=["fastest", "deadline"])
@pytest.mark.parametrize("wish", PREFERENCES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_what_the_page_says_of_a_combination_is_true(pair, shape, wish, with_deadline):
    problem = problem_with(*pair)
    claim = claims()[f"{shape}, {wish}", kinds()[pair]]
    judge = {
        ("exact on a grid", "pipelined"): judge_grid,
        ("exact", "pipelined"): judge_pipelined,
        ("exact per period", "pipelined"): judge_pipelined,
        ("exact", "in slots"): judge_slotted,
        ("exact in sum", "in slots"): judge_slotted,
    }[claim, shape]
    judge(problem, wish, with_deadline)
    if (claim, wish, shape) == ("exact", "earliest-arrival", "in slots"):
        judge_every_boundary(problem, with_deadline)


@pytest.mark.parametrize("feature", FEATURES)
def test_every_feature_of_the_problem_matters(feature):
    """No cell is tried without effect: the earliest end changes, or what the best plan costs.

    Storage at K counts only where K has a reason to wait.
    """
    beside = ("forecast",) if feature == "storage" else ()
    values = []
    for problem in (problem_with(*beside), problem_with(*beside, feature)):
        plan = dc.coordinated(problem, chunk_s=0.0)
        values.append((plan.lower_bound_s, cost_of(problem, plan, "relay-bytes")))
    assert values[0] != pytest.approx(values[1], rel=1e-3)


def judge_grid(problem: Problem, wish: str, with_deadline: bool) -> None:
    """By the first instants of the grid as much as can be, each given those before."""
    assert wish == "earliest-arrival"
    earliest_s = earliest_s_of(problem)
    assert earliest_s is not None
    deadline_s = 1.3 * earliest_s if with_deadline else None
    plan = dc.coordinated(problem, prefer=wish, deadline_s=deadline_s, chunk_s=0.0)
    plan.check(problem)
    assert plan.status == "optimal"
    assert plan.makespan_s <= (deadline_s or earliest_s) * (1 + PART)
    late_bytes: dict[float, float] = {}
    for time_s in grid_s(breakpoints_s(problem), earliest_s)[1:4].tolist():
        end_s = deadline_s or earliest_s * (1 + 1e-9)
        least = least_cost(problem, f"arrived by {time_s!r}", end_s, late_bytes)
        late = problem.total_bytes - arrived_bytes(plan, time_s)
        assert late == pytest.approx(least, abs=PART * problem.total_bytes)
        assert least is not None
        late_bytes[time_s] = least * (1 + 1e-9)


def judge_pipelined(problem: Problem, wish: str, with_deadline: bool) -> None:
    earliest_s = earliest_s_of(problem)
    assert earliest_s is not None
    deadline_s = 1.3 * earliest_s if with_deadline else None
    plan = dc.coordinated(problem, prefer=wish, deadline_s=deadline_s, chunk_s=0.0)
    plan.check(problem)
    waits = len(breakpoints_s(problem)) > 1 or any(p.host != p.source for p in problem.parcels)
    assert plan.status == ("heuristic" if wish == "storage" and waits else "optimal")
    assert plan.lower_bound_s == pytest.approx(earliest_s, rel=PART)
    assert plan.makespan_s <= (deadline_s or earliest_s) * (1 + PART)
    if wish == "earliest-arrival":
        for part in (0.2, 0.4, 0.6, 0.8, 1.0):
            most = most_arrived_bytes(problem, part * earliest_s)
            arrived = arrived_bytes(plan, part * earliest_s)
            assert arrived == pytest.approx(most, abs=PART * problem.total_bytes)
        return
    least = least_cost(problem, wish, deadline_s or earliest_s * (1 + 1e-9))
    # A byte more on each link, for as long as the plan takes.
    noise = PART * problem.total_bytes * {"money": 1e-9, "storage": plan.makespan_s}.get(wish, 1.0)
    # Data that lie at relays leave sooner where sources finish early: stored for less than that.
    together = plan
    if wish == "storage":
        assert cost_of(problem, plan, wish) <= least * (1 + PART) + noise
        together = dc.coordinated(
            problem, prefer=wish, deadline_s=deadline_s, chunk_s=0.0, finish="together"
        )
    assert cost_of(problem, together, wish) == pytest.approx(least, rel=PART, abs=noise)


def judge_slotted(problem: Problem, wish: str, with_deadline: bool) -> None:
    plan, n_slots = slotted(problem, wish, with_deadline)
    plan.check(problem)
    assert plan.status == "optimal"
    assert plan.makespan_s <= n_slots * SLOT_S * (1 + PART)
    least = least_slotted_cost(problem, SLOT_S, n_slots, wish)
    noise = PART * problem.total_bytes * {"money": 1e-9}.get(wish, 1.0)
    assert slotted_cost(problem, plan, wish) == pytest.approx(least, rel=PART, abs=noise)


def judge_every_boundary(problem: Problem, with_deadline: bool) -> None:
    plan, n_slots = slotted(problem, "earliest-arrival", with_deadline)
    for slot in range(n_slots):
        late = least_slotted_cost(problem, SLOT_S, n_slots, f"late {slot}")
        arrived = arrived_bytes(plan, (slot + 1) * SLOT_S)
        assert problem.total_bytes - arrived == pytest.approx(late, abs=PART * problem.total_bytes)


def slotted(problem: Problem, wish: str, with_deadline: bool) -> tuple[dc.Schedule, int]:
    fewest = fewest_slots_of(problem)
    assert fewest is not None
    n_slots = fewest + 2 * with_deadline
    deadline_s = n_slots * SLOT_S if with_deadline else None
    return dc.coordinated(problem, slot_s=SLOT_S, prefer=wish, deadline_s=deadline_s), n_slots


def slotted_cost(problem: Problem, plan: dc.Schedule, wish: str) -> float:
    """What a plan in slots costs, as `least_slotted_cost` counts; read from its transfers."""
    if wish in ("relay-bytes", "money"):
        return cost_of(problem, plan, wish)
    transfers = plan.transfers
    # Each slot of a transfer moves the same bytes: its middle slot stands for all.
    slot = (transfers["start_s"] + transfers["finish_s"]) / (2 * SLOT_S) - 0.5
    byte_slots = transfers["bytes"] * slot
    if wish == "earliest-arrival":
        return float(byte_slots[transfers["to"] == problem.destination].sum())
    leaves_relay = transfers["from"] != transfers["source"]
    enters_relay = transfers["to"] != problem.destination
    return float(byte_slots[leaves_relay].sum() - byte_slots[enters_relay].sum())
