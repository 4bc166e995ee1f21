"""Nothing leaves a source before it is made there: judged from the transfers alone."""

import pytest

import datacollect as dc


def problem_of(**more):
    return dc.Problem.from_matrix(
        ["S", "D"], [[0, 1000.0], [0, 0]], [1000, 0], "D", produces_bytes_per_s=100.0, **more
    )


def schedule_of(problem, rows, slot_s=None):
    """Transfers from S to D: offset, bytes, start and end."""
    tree = {
        "format": "datacollect-schedule/1",
        "method": "by hand",
        "destination": "D",
        "makespan_s": max(row[3] for row in rows),
        "lower_bound_s": 0.0,
        "slot_s": slot_s,
        "chunk_s": None if slot_s else 0.0,
        "solver": "none",
        "problem_sha256": problem.sha256,
        "transfers": [
            {
                "source": "S",
                "route": ["S", "D"],
                "hop": 0,
                "offset_bytes": offset,
                "bytes": size,
                "start_s": start,
                "finish_s": finish,
            }
            for offset, size, start, finish in rows
        ],
    }
    return dc.Schedule.from_dict(tree)


def test_bytes_may_leave_as_they_are_made():
    problem = problem_of()
    schedule_of(problem, [(0, 1000, 0.0, 10.0)]).check(problem)
    schedule_of(problem, [(0, 500, 4.5, 5.0), (500, 500, 9.5, 10.0)]).check(problem)


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 1000, 0.0, 9.9)],  # ends before all is made
        [(0, 500, 4.0, 4.9), (500, 500, 9.5, 10.0)],
        [(500, 500, 0.0, 5.0), (0, 500, 5.0, 10.0)],  # as much as is made, but not what is made
    ],
)
def test_what_leaves_before_it_is_made_is_refused(rows):
    problem = problem_of()
    with pytest.raises(dc.ScheduleError, match=r"'S' has made .* bytes too early"):
        schedule_of(problem, rows).check(problem)


def test_what_is_there_may_leave_at_once_and_nothing_before_the_release():
    problem = problem_of(made_bytes=[500, 0])
    schedule_of(problem, [(0, 500, 0.0, 0.5), (500, 500, 4.5, 5.0)]).check(problem)
    late = problem_of(release_s=[1.0, 0.0])
    with pytest.raises(dc.ScheduleError, match="too early"):
        schedule_of(late, [(0, 1000, 1.0, 10.5)]).check(late)


def test_in_slots_what_leaves_in_one_is_made_before_it_begins():
    problem = problem_of()
    schedule_of(problem, [(0, 1000, 1.0, 11.0)], slot_s=1.0).check(problem)
    with pytest.raises(dc.ScheduleError, match="too early"):
        schedule_of(problem, [(0, 1000, 0.0, 10.0)], slot_s=1.0).check(problem)
