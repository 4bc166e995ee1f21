"""All solvers of linear programs: derived answers, dual values by finite differences, HiGHS."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judges.linear_proofs import INF, assert_optimal, dense, highs, program_of
from scipy.optimize import linprog

from datacollect.errors import InfeasibleError, SolverError, TimeLimitError
from datacollect.solvers.programs import LinearProgram, LinearSolution

# A diet: at least 8 units of protein and 10 of starch from beans (2 protein, 1 starch, price 3)
# and rice (1 protein, 3 starch, price 4). Both rows bind: 2 b + r = 8, b + 3 r = 10: b = 14/5,
# r = 12/5, price 18. Prices p, q of the rows: 2 p + q = 3, p + 3 q = 4: p = q = 1.
DIET = program_of([3, 4], [0, 0], [INF, INF], [8, 10], [INF, INF], [[2, 1], [1, 3]])


def test_diet(linear_solver):
    solution = linear_solver.solve(DIET)
    assert solution.x == pytest.approx([2.8, 2.4])
    assert solution.row_dual == pytest.approx([1.0, 1.0])
    assert solution.objective == pytest.approx(18.0)
    assert_optimal(DIET, solution)


def test_dual_values_are_slopes_of_the_objective(linear_solver):
    """Each kind of row, its right-hand side moved a little: the objective moves by the dual.

    Minimise -x - 2 y + z; x + y <= 10 (binds: a unit more lets y grow), y - x <= 4 (binds),
    z - x >= -9 and 1 <= x + z <= 90 (slack), z = 2 by an equation.
    """
    program = program_of(
        [-1, -2, 1],
        [0, 0, 0],
        [INF, INF, INF],
        [-INF, -INF, -9, 1, 2],
        [10, 4, INF, 90, 2],
        [[1, 1, 0], [-1, 1, 0], [-1, 0, 1], [1, 0, 1], [0, 0, 1]],
    )
    solution = linear_solver.solve(program)
    assert solution.x == pytest.approx([3, 7, 2])
    step = 1e-3
    for row in range(5):
        objectives = []
        for change in (-step, step):
            lower, upper = program.row_lower.copy(), program.row_upper.copy()
            lower[row] += change
            upper[row] += change
            moved = replace(program, row_lower=lower, row_upper=upper)
            objectives.append(linear_solver.solve(moved).objective)
        slope = (objectives[1] - objectives[0]) / (2 * step)
        assert solution.row_dual[row] == pytest.approx(slope, abs=1e-6)
    # By hand: x + y grows by 1, half of it y (-2), half x (-1): -1.5; y - x: -0.5; z = 2: +1.
    assert solution.row_dual == pytest.approx([-1.5, -0.5, 0, 0, 1])


def test_bounds_of_every_kind(linear_solver):
    """Each column runs to the end that its cost names: fixed, negative, one-sided, free."""
    program = program_of(
        [1, -1, 1, -1, 1, 0],
        [3, -7, -5, -INF, -INF, 0],
        [3, -2, INF, -4, INF, INF],
        [-6.5],
        [INF],
        [[0, 0, 0, 0, 1, 0]],
    )
    solution = linear_solver.solve(program)
    assert solution.x[:5] == pytest.approx([3, -2, -5, -4, -6.5])
    assert solution.row_dual == pytest.approx([1.0])


def test_both_sides_of_a_range(linear_solver):
    """-3.5 <= x + y <= 7: minimising x + y meets the left side, maximising the right."""
    for sign, end in ((1.0, -3.5), (-1.0, 7.0)):
        program = program_of([sign, sign], [-9, -9], [9, 9], [-3.5], [7], [[1, 1]])
        solution = linear_solver.solve(program)
        assert solution.objective == pytest.approx(sign * end)
        assert solution.row_dual == pytest.approx([sign])


@pytest.mark.parametrize(
    ("program", "x", "dual"),
    [
        (program_of([1, -2], [-3, -5], [INF, 4], [], [], []), [-3, 4], []),
        (program_of([1], [1], [2], [-1, 0.5], [1, INF], [[0], [1]]), [1], [0, 0]),
        (program_of([-1], [0], [9], [-INF, -INF], [INF, 5], [[1], [1]]), [5], [0, -1]),
        (program_of([0, 0], [2, 3], [2, 3], [5], [5], [[1, 1]]), [2, 3], None),
    ],
    ids=["no rows", "empty row", "row without bounds", "no costs"],
)
def test_programs_with_little_in_them(linear_solver, program, x, dual):
    solution = linear_solver.solve(program)
    assert solution.x == pytest.approx(x)
    assert solution.row_dual.shape == (program.n_rows,)
    if dual is not None:
        assert solution.row_dual == pytest.approx(dual)


def test_no_columns(linear_solver):
    solution = linear_solver.solve(program_of([], [], [], [-1], [1], []))
    assert solution.objective == 0
    assert solution.x.shape == (0,)


@pytest.mark.parametrize("magnitude", [1e-3, 1e6, 1e11, 1e15, 1e18])
def test_amounts_of_any_size(linear_solver, magnitude):
    """The diet for `magnitude` times as much: amounts scale, prices stay.

    CBC takes bounds of 1e15 for infinite, which must not show.
    """
    big = replace(
        DIET, row_lower=DIET.row_lower * magnitude, upper=np.array([INF, 100 * magnitude])
    )
    solution = linear_solver.solve(big)
    assert solution.x == pytest.approx([2.8 * magnitude, 2.4 * magnitude], rel=1e-9)
    assert solution.row_dual == pytest.approx([1.0, 1.0])
    assert solution.objective == pytest.approx(18 * magnitude, rel=1e-9)


@pytest.mark.parametrize("magnitude", [1e9, 1e13, 1e16, 1e20])
def test_larger_amounts_cost_proportionally_more(linear_solver, magnitude):
    """A program that presolve does not settle, every bound times `magnitude`.

    Unscaled, CBC called it infeasible at 1e16 and was 25 % off at 1e20.
    """
    program = transport(12)
    sides = ("lower", "upper", "row_lower", "row_upper")
    larger = replace(program, **{side: getattr(program, side) * magnitude for side in sides})
    expected = linprog(
        program.cost,
        A_eq=dense(program),
        b_eq=program.row_lower,
        bounds=np.column_stack([program.lower, program.upper]),
        method="highs",
    )
    objective = linear_solver.solve(larger).objective
    assert objective == pytest.approx(expected.fun * magnitude, rel=1e-9)


def test_all_digits_survive(linear_solver):
    """x + y = 1/3 + 1e6 with y = 1e6 fixed; then bounds 1/3 and 2/3: to the last digits.

    PuLP writes 13 digits and CBC prints 8: both would show.
    """
    total = 1 / 3 + 1e6
    program = program_of([1, 0], [0, 1e6], [INF, 1e6], [total], [total], [[1, 1]])
    assert linear_solver.solve(program).x[0] == pytest.approx(1 / 3, abs=1e-9)
    third = program_of([1, -1], [1 / 3, 0], [INF, 2 / 3], [-INF], [5], [[1, 1]])
    assert linear_solver.solve(third).x.tolist() == [1 / 3, 2 / 3]


@pytest.mark.parametrize(
    "program",
    [
        program_of([1, 1], [0, 0], [INF, INF], [5, -INF], [INF, 4], [[1, 1], [1, 1]]),
        program_of([0], [0], [1], [2], [INF], [[1]]),
        program_of([1], [0], [1], [1], [INF], [[0]]),
        program_of([1], [2], [1], [-INF], [INF], [[1]]),
        program_of([1], [0], [9], [2], [1], [[1]]),
    ],
    ids=["rows contradict", "row against bound", "empty row", "crossed bounds", "crossed row"],
)
def test_contradictions_are_infeasible(linear_solver, program):
    with pytest.raises(InfeasibleError):
        linear_solver.solve(program)


@pytest.mark.parametrize(
    "program",
    [
        program_of([-1, 0], [0, 0], [INF, INF], [0], [INF], [[1, -1]]),
        program_of([0, -1], [-1, 0], [INF, INF], [0], [INF], [[3, 0]]),
    ],
    ids=["along a row", "beside the rows"],
)
def test_unbounded_is_a_solver_error(linear_solver, program):
    """One column grows for ever. CBC calls the second program infeasible, GLOP both."""
    with pytest.raises(SolverError, match="unbounded; bound its variables"):
        linear_solver.solve(program)


def test_infeasible_even_where_costs_would_be_unbounded(linear_solver):
    """0 >= 1 in a row without entries, and min -x without a bound: CBC gives up on it."""
    program = program_of([-1], [0], [INF], [0, 1], [INF, INF], [[0], [0]])
    with pytest.raises(InfeasibleError):
        linear_solver.solve(program)


def transport(n_hosts):
    """A transport problem between `n_hosts` suppliers and as many customers; slow enough."""
    random = np.random.default_rng(3)
    cost = random.uniform(1, 9, n_hosts**2)
    supplier, customer = np.divmod(np.arange(n_hosts**2), n_hosts)
    amounts = np.full(2 * n_hosts, 5.0)
    return LinearProgram(
        cost=cost,
        lower=np.zeros(len(cost)),
        upper=random.uniform(0.5, 3, len(cost)),
        row_lower=amounts,
        row_upper=amounts,
        rows=np.concatenate([supplier, n_hosts + customer]),
        columns=np.tile(np.arange(n_hosts**2), 2),
        values=np.ones(2 * n_hosts**2),
    )


@pytest.mark.parametrize(
    ("time_limit_s", "message"),
    [
        (0.0, r"^(glop|cbc): the time limit passed before it started$"),
        # On a busy machine it may pass while the program is handed over.
        (
            0.005,
            r"^(glop|cbc): the time limit passed( before it started| \(14400 columns, 240 rows\))$",
        ),
    ],
)
def test_a_passed_time_limit_is_a_time_limit_error(linear_solver, time_limit_s, message):
    with pytest.raises(TimeLimitError, match=message):
        linear_solver.solve(transport(120), time_limit_s=time_limit_s)


def test_too_many_steps_are_an_error_that_counts_them(linear_solver, monkeypatch):
    monkeypatch.setattr(LinearProgram, "most_steps", 3)
    with pytest.raises(SolverError, match=r"found no optimum within 3 steps"):
        linear_solver.solve(transport(12))


def test_steps_are_no_matter_of_time(linear_solver, monkeypatch):
    """As many as it takes at most are enough, and change nothing."""
    found = linear_solver.solve(transport(12))
    monkeypatch.setattr(LinearProgram, "most_steps", 10**6)
    assert (linear_solver.solve(transport(12)).x == found.x).all()


def test_a_generous_time_limit_changes_nothing(linear_solver):
    program = transport(10)
    limited = linear_solver.solve(program, time_limit_s=60.0)
    assert limited.objective == pytest.approx(linear_solver.solve(program).objective)


@pytest.mark.slow
@given(data=st.data())
def test_random_programs_match_highs(linear_solver, data):
    """Up to 4 columns and rows with small integers: the same verdict and objective as HiGHS."""
    n_columns, n_rows = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 4))
    small = st.integers(-3, 3)

    def integers(length, values=small):
        return np.array(data.draw(st.lists(values, min_size=length, max_size=length)), dtype=float)

    matrix = integers(n_rows * n_columns).reshape(n_rows, n_columns)
    lower, row_lower = integers(n_columns), integers(n_rows)
    widths = st.one_of(st.integers(0, 5), st.just(INF))
    upper = lower + integers(n_columns, widths)
    row_upper = row_lower + integers(n_rows, widths)
    program = program_of(integers(n_columns), lower, upper, row_lower, row_upper, matrix)

    verdict, objective = highs(program)
    if verdict == "optimal":
        solution = linear_solver.solve(program)
        assert solution.objective == pytest.approx(objective, abs=1e-6)
        assert_optimal(program, solution)
        return
    with pytest.raises((InfeasibleError, SolverError)) as failure:
        linear_solver.solve(program)
    assert failure.type is (InfeasibleError if verdict == "infeasible" else SolverError)


def test_threads_get_the_answers_that_one_thread_gets(linear_solver):
    programs = [replace(DIET, row_lower=np.array([8.0, 10.0 + i])) for i in range(8)]
    expected = [linear_solver.solve(program).objective for program in programs]
    with ThreadPoolExecutor(4) as threads:
        solutions = list(threads.map(linear_solver.solve, programs))
    assert [solution.objective for solution in solutions] == expected
    # One more unit of starch costs 1, see DIET.
    assert np.diff(expected) == pytest.approx(np.ones(7))


def test_no_file_stays_behind(linear_solver, tmp_path, monkeypatch, capfd):
    """Neither in the working directory nor in the temporary one, whose name has a space."""
    work, scratch = tmp_path / "work", tmp_path / "for a while"
    work.mkdir()
    scratch.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    linear_solver.solve(DIET)
    with pytest.raises(InfeasibleError):
        linear_solver.solve(replace(DIET, upper=np.zeros(2)))
    with pytest.raises(TimeLimitError):
        linear_solver.solve(transport(60), time_limit_s=0.0)
    assert list(work.iterdir()) == list(scratch.iterdir()) == []
    assert capfd.readouterr() == ("", "")


class TestCbcAlone:
    def test_wrong_dual_values_are_refused(self, monkeypatch):
        """CBC 3.0 (development) turns rows of one entry into bounds and gives them price 0."""
        from datacollect.solvers import pulp

        monkeypatch.setattr(pulp, "run_cbc", lambda *_, **__: (np.array([2.8, 2.4]), np.zeros(2)))
        with pytest.raises(SolverError, match="dual values do not belong"):
            pulp.PulpCbc().solve(DIET)

    def test_an_infeasible_answer_is_refused(self, monkeypatch):
        """2 b + r = 5 where 8 are asked for."""
        from datacollect.solvers import pulp

        monkeypatch.setattr(pulp, "run_cbc", lambda *_, **__: (np.array([1.0, 3.0]), np.ones(2)))
        with pytest.raises(SolverError, match="violates the constraints"):
            pulp.PulpCbc().solve(DIET)

    def test_bounds_that_scaling_would_drown_are_refused(self):
        """A row of 1000 beside a bound of 1e18, which says "unlimited" with a number."""
        from datacollect.solvers.pulp import PulpCbc

        program = program_of([1, 1], [0, 0], [1e18, INF], [1000], [INF], [[1, 1]])
        with pytest.raises(SolverError, match=r"from 1e\+03 to 1e\+18 are too far apart.*infinite"):
            PulpCbc().solve(program)
        solution = PulpCbc().solve(replace(program, upper=np.array([INF, INF])))
        assert solution.objective == pytest.approx(1000)

    def test_right_dual_values_are_not_refused(self, monkeypatch):
        from datacollect.solvers import pulp

        monkeypatch.setattr(pulp, "run_cbc", lambda *_, **__: (np.array([2.8, 2.4]), np.ones(2)))
        assert isinstance(pulp.PulpCbc().solve(DIET), LinearSolution)

    def test_a_missing_cbc_names_the_command_that_installs_it(self, monkeypatch):
        """As after installing PuLP 4, which brings no cbc along."""
        from datacollect.solvers import cbc

        monkeypatch.setattr(cbc.shutil, "which", lambda _: None)
        with pytest.raises(SolverError, match=r"pip install 'PuLP<4,>=2\.9'"):
            cbc.run_cbc(DIET, None)

    def test_a_cbc_that_breaks_off_is_quoted(self, monkeypatch):
        from datacollect.solvers import cbc

        monkeypatch.setattr(cbc, "_cbc_path", lambda: "/bin/echo")
        with pytest.raises(SolverError, match=r"exit code 0.*Its output: model.mps"):
            cbc.run_cbc(DIET, None)
