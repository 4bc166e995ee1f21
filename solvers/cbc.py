"""Run `cbc`, the COIN-OR solver that PuLP installs, on a linear program.

PuLP supplies the program; the model is written and the answer read here, because

- PuLP writes 13 and CBC's text output 8 significant digits, while the MPS file below carries 17
  and CBC's binary solution file whole doubles: flows of 10**12 units then come back exact;
- PuLP calls an interrupted run "Optimal", and PuLP 3 and 4 report differently.

All files live in a temporary folder of their own.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pulp

from datacollect.errors import InfeasibleError, SolverError, SolverUnavailableError, TimeLimitError
from datacollect.installation import command_for_package
from datacollect.orphans import run_program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.solvers.programs import LinearProgram

# Its own choice of a simplex code, then another where that takes too many steps.
_FIRST_WAY, _OTHER_WAY = "-initialSolve", "-primalSimplex"
# Its own, 1e-7 once it has scaled, are 1e-6 off in rows whose coefficients are small. With these it
# calls some programs infeasible whose numbers are large.
_TIGHT = ("-primalTolerance", "1e-9", "-dualTolerance", "1e-9")
_FILES = ("-saveSolution", "all.bin", "-solution", "status.txt")
_TOO_MANY_STEPS = "Stopped on iterations"


def run_cbc(
    program: LinearProgram, stop_at_s: float | None, *, tight: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return the optimal x and the dual value of every row.

    Parameters
    ----------
    program : LinearProgram
    stop_at_s : float, optional
        A reading of `time.monotonic`.
    tight : bool
        Ask for more digits than CBC does by itself.
    """
    if stop_at_s is not None and time.monotonic() >= stop_at_s:
        raise TimeLimitError("cbc: the time limit passed before it started")
    if (program.row_lower > program.row_upper).any() or (program.lower > program.upper).any():
        raise InfeasibleError("linear program: a lower bound exceeds its upper bound")
    # A row without bounds is an objective to MPS readers, which drop it.
    bounded = np.isfinite(program.row_lower) | np.isfinite(program.row_upper)
    with tempfile.TemporaryDirectory(prefix="datacollect-cbc-") as folder:
        with Path(folder, "model.mps").open("w", encoding="ascii") as file:
            file.writelines(_mps_lines(program, bounded))
        options = ("-maxIterations", str(program.most_steps), *(_TIGHT if tight else ()))
        status, output = _run(Path(folder), (*options, _FIRST_WAY), program, stop_at_s)
        if status == _TOO_MANY_STEPS:
            status, output = _run(Path(folder), (*options, _OTHER_WAY), program, stop_at_s)
        _check_status(status, output, program)
        numbers = np.fromfile(Path(folder, "all.bin"), dtype=np.float64, offset=8)
    # The objective, then activity and dual of every row, then value and price of every column.
    rows, columns = int(bounded.sum()), program.n_columns
    row_dual = np.zeros(program.n_rows)
    row_dual[bounded] = numbers[1 + rows : 1 + 2 * rows]
    return numbers[1 + 2 * rows : 1 + 2 * rows + columns].copy(), row_dual


def _run(
    folder: Path, options: tuple[str, ...], program: LinearProgram, stop_at_s: float | None
) -> tuple[str, str]:
    """Return CBC's status, empty where it ended without one, and what it said last."""
    remaining_s = None if stop_at_s is None else max(stop_at_s - time.monotonic(), 0.0)
    try:
        done = run_program([_cbc_path(), "model.mps", *options, *_FILES], folder, remaining_s)
    except subprocess.TimeoutExpired:
        raise TimeLimitError(
            f"cbc: the time limit passed ({program.n_columns} columns, {program.n_rows} rows)"
        ) from None
    output = (done.stderr or done.stdout).decode("ascii", errors="replace")
    path, status = folder / "status.txt", ""
    if path.exists():
        with path.open(encoding="ascii", errors="replace") as file:
            status = file.readline().partition(" - ")[0].strip()
    return status or f"exit code {done.returncode}", output


def _check_status(status: str, output: str, program: LinearProgram) -> None:
    """Raise unless CBC says that it found the optimum."""
    if status == "Optimal":
        return
    # CBC 3.0 says "Status unknown" here and the reason in its log only.
    if status == "Infeasible" or (status == "Status unknown" and "nfeasible" in output):
        raise InfeasibleError(
            f"cbc: no point satisfies the {program.n_rows} rows of the linear program"
        )
    if status == "Unbounded":
        raise SolverError("cbc: the linear program is unbounded; bound its variables")
    if status == _TOO_MANY_STEPS:
        raise SolverError(
            f"cbc found no optimum within {program.most_steps} steps, by any of its simplex codes; "
            "choose 'ortools'"
        )
    raise SolverError(
        f"cbc ended with {status}; choose 'ortools'. Its output: {output.strip()[-300:]}"
    )


def _mps_lines(program: LinearProgram, bounded: BoolArray) -> Iterator[str]:
    """Yield the program in free MPS format, numbers in full; column i is Ci, row i Ri.

    >>> from datacollect.solvers.programs import LinearProgram
    >>> program = LinearProgram(
    ...     cost=np.array([1.0]), lower=np.zeros(1), upper=np.array([np.inf]),
    ...     row_lower=np.array([0.1]), row_upper=np.array([0.3]),
    ...     rows=np.array([0]), columns=np.array([0]), values=np.ones(1),
    ... )
    >>> print("".join(_mps_lines(program, np.array([True]))), end="")
    NAME model FREE
    ROWS
     N OBJ
     L R0
    COLUMNS
     C0 OBJ 1.0
     C0 R0 1.0
    RHS
     RHS R0 0.3
    RANGES
     RNG R0 0.19999999999999998
    BOUNDS
     LO BND C0 0.0
    ENDATA
    """
    lower, upper = program.row_lower, program.row_upper
    kind = np.where(lower == upper, "E", np.where(np.isfinite(upper), "L", "G"))
    rows = np.flatnonzero(bounded)
    yield "NAME model FREE\nROWS\n N OBJ\n"
    for row in rows.tolist():
        yield f" {kind[row]} R{row}\n"
    yield "COLUMNS\n"
    yield from _mps_columns(program, bounded)
    yield "RHS\n"
    right = np.where(kind == "G", lower, upper)
    for row in rows[right[rows] != 0].tolist():
        yield f" RHS R{row} {float(right[row])!r}\n"
    yield "RANGES\n"
    ranged = np.isfinite(lower) & np.isfinite(upper) & (lower < upper)
    for row in np.flatnonzero(ranged).tolist():
        yield f" RNG R{row} {float(upper[row] - lower[row])!r}\n"
    yield "BOUNDS\n"
    yield from _mps_bounds(program.lower.tolist(), program.upper.tolist())
    yield "ENDATA\n"


def _mps_columns(program: LinearProgram, bounded: BoolArray) -> Iterator[str]:
    kept = bounded[program.rows]
    rows, columns = program.rows[kept], program.columns[kept]
    order = np.argsort(columns, kind="stable")
    ends = np.searchsorted(columns[order], np.arange(program.n_columns), side="right").tolist()
    row_list, value_list = rows[order].tolist(), program.values[kept][order].tolist()
    begin = 0
    for column, (cost, end) in enumerate(zip(program.cost.tolist(), ends, strict=True)):
        # Always a cost, even 0: a column is known from its first entry.
        yield f" C{column} OBJ {cost!r}\n"
        for entry in range(begin, end):
            yield f" C{column} R{row_list[entry]} {value_list[entry]!r}\n"
        begin = end


def _mps_bounds(lower: list[float], upper: list[float]) -> Iterator[str]:
    for column, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if low == high:
            yield f" FX BND C{column} {low!r}\n"
            continue
        if low == -math.inf:
            yield f" {'FR' if high == math.inf else 'MI'} BND C{column}\n"
        else:
            yield f" LO BND C{column} {low!r}\n"
        if high < math.inf:
            yield f" UP BND C{column} {high!r}\n"


def _cbc_path() -> str:
    """Return the program `cbc`: the one inside PuLP 3, or what PuLP 4 finds."""
    bundled = getattr(pulp, "PULP_CBC_CMD", None)
    candidates = [bundled.pulp_cbc_path] if bundled is not None else []
    candidates.append(pulp.COIN_CMD(msg=False).path)
    for candidate in candidates:
        path = shutil.which(str(candidate))
        if path is not None:
            return path
    raise SolverUnavailableError(
        "solver 'pulp' needs the program cbc, which PuLP 3 brings along and PuLP 4 does not; "
        f"install it with: {command_for_package('pulp')}"
    )
