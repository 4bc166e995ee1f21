"""`Schedule.check` against a judge that somebody else wrote from the contract alone."""

from __future__ import annotations

import pytest
from instances.how_many import many
from instances.mutated_schedules import mutated
from judges.contract_check import judge

from datacollect import Problem, Schedule, coordinated
from datacollect.errors import DatacollectError

SHOWN = 40

# In blocks, for several processors.
MANY_SEEDS = [range(first, first + 1000) for first in range(0, 10_000, 1000)]


def library(problem, schedule):
    """None where the library finds the schedule valid, else what it says."""
    try:
        Schedule.from_dict(schedule).check(Problem.from_dict(problem))
    except DatacollectError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - anything else is no verdict
        return f"CRASH: {error!r}"
    return None


def disagreement(seed):
    """One text per case: `mutated(seed)` gives it back."""
    case = mutated(seed)
    ours, theirs = judge(case.problem, case.schedule), library(case.problem, case.schedule)
    if (ours is None) == (theirs is None) and not str(theirs).startswith("CRASH"):
        return None
    verdicts = (f"  contract: {ours or 'valid'}", f"  library:  {theirs or 'valid'}")
    return "\n".join((f"mutated({seed}): {case.what}", *verdicts))


def agree(seeds):
    """Each disagreement tells how to repeat it."""
    apart = [text for seed in seeds if (text := disagreement(seed))]
    if apart:
        shown = "\n".join(apart[:SHOWN])
        pytest.fail(f"{len(apart)} of {len(seeds)} judged differently:\n{shown}", pytrace=False)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", MANY_SEEDS, ids=lambda seeds: f"{seeds.start}-{seeds.stop}")
def test_the_library_and_the_contract_agree_on_mutated_schedules(seeds):
    agree(seeds[: many(len(seeds))])


def test_a_byte_too_many_may_end_long_before_the_bound():
    """2 bytes/s for a second, then 1: 4 bytes take 3 s, but 3 and one of rounding 2 s."""
    link = {"from": "S", "to": "D", "bandwidth_bytes_per_s": [2.0, 1.0]}
    tree = {"format": "datacollect-problem/1", "destination": "D", "periods_s": [0.0, 1.0]}
    tree |= {"hosts": {"S": {"backlog_bytes": 4}, "D": {}}, "links": [link]}
    problem = Problem.from_dict(tree)
    plan = coordinated(problem, chunk_s=0.0)
    assert plan.lower_bound_s == 3.0
    rows = [(0, 2, 0.0, 1.0), (2, 2, 0.0, 2.0)]
    names = ("offset_bytes", "bytes", "start_s", "finish_s")
    moves = [
        {"source": "S", "route": ["S", "D"], "hop": 0, **dict(zip(names, row, strict=True))}
        for row in rows
    ]
    sooner = plan.to_dict() | {"makespan_s": 2.0, "transfers": moves}
    assert judge(problem.to_dict(), sooner) is None
    assert library(problem.to_dict(), sooner) is None


@pytest.mark.slow
def test_mutated_schedules_are_the_same_every_time_and_neither_all_valid_nor_all_not():
    cases = [mutated(seed) for seed in range(80)]
    valid = sum(judge(case.problem, case.schedule) is None for case in cases)
    assert 20 < valid < 60
    assert [mutated(seed).what for seed in range(80)] == [case.what for case in cases]


# The second judge by hand: S has 100 bytes, and 100 bytes/s to K and on to D. --------------------

LINE = {
    "destination": "D",
    "hosts": {"S": {"backlog_bytes": 100}, "K": {}, "D": {}},
    "links": [
        {"from": a, "to": b, "bandwidth_bytes_per_s": 100.0} for a, b in [("S", "K"), ("K", "D")]
    ],
}


def line(*rows, slot_s=None, chunk_s=None):
    """Rows of hop, offset, bytes, start and finish; the makespan is right."""
    if slot_s is None and chunk_s is None:
        chunk_s = 0.0
    names = ("hop", "offset_bytes", "bytes", "start_s", "finish_s")
    return {
        "destination": "D",
        "makespan_s": max(row[4] for row in rows if row[0] == 1),
        "lower_bound_s": 0.0,
        "slot_s": slot_s,
        "chunk_s": chunk_s,
        "transfers": [
            {"source": "S", "route": ["S", "K", "D"], **dict(zip(names, row, strict=True))}
            for row in rows
        ],
    }


def with_room(n_bytes):
    return LINE | {"hosts": LINE["hosts"] | {"K": {"storage_bytes": n_bytes}}}


THROUGH = line((0, 0, 100, 0.0, 1.0), (1, 0, 100, 0.0, 1.0))
LAGGING = line((0, 0, 100, 0.0, 1.0), (1, 0, 100, 0.01, 1.01), chunk_s=0.01)
SLOTTED = line((0, 0, 100, 0.0, 1.0), (1, 0, 100, 1.0, 2.0), slot_s=0.5)


# The last double before 2. Two such steps before an instant no decimal of that instant is rounded.
BELOW_2 = 2 - 2**-52
HALF_WAY = BELOW_2 / 2


@pytest.mark.parametrize(
    ("rule", "said", "schedule"),
    [
        (
            "grid",
            "off the grid",
            line((0, 0, 100, 0.0, 1.0), (1, 0, 100, 1.0, 2 - 2**-51), slot_s=0.5),
        ),
        (
            "causality",
            "too early",
            line(
                (0, 0, 100, 0.0, BELOW_2),
                (1, 0, 50, 0.0, HALF_WAY),
                (1, 50, 50, HALF_WAY - 2**-51, BELOW_2),
            ),
        ),
    ],
)
def test_both_refuse_what_is_off_by_one_digit_more_than_rounding(rule, said, schedule):
    assert rule in judge(LINE, schedule)
    problem = {"format": "datacollect-problem/1"} | LINE
    head = {"format": "datacollect-schedule/1", "method": "coordinated", "solver": "none"}
    of = {"problem_sha256": Problem.from_dict(problem).sha256}
    assert said in library(problem, head | of | schedule)


@pytest.mark.parametrize(
    ("problem", "schedule"),
    [
        (with_room(0), THROUGH),  # cut-through: nothing is ever there
        (with_room(0), LAGGING),  # one byte at 100 bytes/s, and a chunk of 0.01 s may be there
        (with_room(100), SLOTTED),  # all of it at the boundary at 1 s
        # One byte too many in the first half: 51 where 50 fit.
        (LINE, line((0, 0, 51, 0.0, 0.5), (0, 51, 49, 0.5, 1.0), (1, 0, 100, 0.5, 1.5))),
    ],
)
def test_the_contract_allows(problem, schedule):
    assert judge(problem, schedule) is None


@pytest.mark.parametrize(
    ("rule", "problem", "schedule"),
    [
        # All of it between two doubles that follow each other.
        ("rate by itself", LINE, line((0, 0, 100, 0.0, 1.0), (1, 0, 100, 1.0, 1.0 + 2**-52))),
        # Ten bytes, one in each millisecond: by itself each would be rounding.
        (
            "rates",
            LINE,
            line(
                (0, 0, 100, 0.0, 1.0),
                *((1, i, 1, 1 + i / 1000, 1 + (i + 1) / 1000) for i in range(10)),
                (1, 10, 90, 1.5, 2.5),
            ),
        ),
        # 52 where 50 fit.
        (
            "rate by itself",
            LINE,
            line((0, 0, 52, 0.0, 0.5), (0, 52, 48, 0.5, 1.0), (1, 0, 100, 0.5, 1.5)),
        ),
        # Twice a hundredth of the makespan: two bytes that count as stored.
        (
            "storage",
            with_room(0),
            line((0, 0, 100, 0.0, 1.0), (1, 0, 100, 0.02, 1.02), chunk_s=0.02),
        ),
        ("storage", with_room(99), SLOTTED),
        # The last byte, while there is no capacity.
        (
            "rates",
            LINE
            | {
                "periods_s": [0.0, 1.0],
                "links": [link | {"bandwidth_bytes_per_s": [100.0, 0.0]} for link in LINE["links"]],
            },
            line((0, 0, 100, 0.0, 1.0), (1, 0, 99, 0.0, 1.0), (1, 99, 1, 1.0, 2.0)),
        ),
        # The last byte leaves at 0.995 s, and is there at 1 s.
        ("causality", LINE, line((0, 0, 100, 0.0, 1.0), (1, 0, 100, 0.0, 0.995))),
        ("causality", LINE, THROUGH | {"slot_s": 0.25, "chunk_s": None}),  # no cut-through in slots
        ("makespan", LINE, THROUGH | {"makespan_s": 1.0 + 2**-52}),
        ("grid", LINE, SLOTTED | {"slot_s": 0.75}),
        ("bytes", LINE, line((0, 0, 100, 0.0, 1.0), (1, 0, 99, 0.0, 1.0))),
    ],
)
def test_the_contract_forbids(rule, problem, schedule):
    assert str(judge(problem, schedule)).startswith(rule)
