"""The command ``datacollect front``."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import emit_json, emit_table, emit_text, note, working
from datacollect.commands.inputs import require_kept
from datacollect.commands.options import (
    Force,
    Json,
    ProblemFile,
    Solver,
    SolverName,
    require_new,
)
from datacollect.commands.reading import read_problem
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")


def front(
    problem_file: ProblemFile,
    solver: SolverName = Solver.auto,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Draw (.png, .svg, .pdf) or .csv."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show how much cheaper a later end is.

    The price of the cheapest plan for each of several deadlines.
    """
    from datacollect.methods.money_front import front as find_front
    from datacollect.methods.recurring import planned_to_the_end

    require_kept(output, problem_file)
    if output is not None and not output.lower().endswith((*PICTURES, ".csv")):
        endings = ", ".join((*PICTURES, ".csv"))
        raise ProblemError(f"-o must name a file that ends in {endings}, got {output!r}")
    require_new(output, force=force)
    problem = read_problem(problem_file)
    with working("planning for each deadline", lines=not as_json):
        _, table = planned_to_the_end(
            problem, lambda given: find_front(given, solver=solver.value), _latest_s
        )
    if output is not None:
        _save(table, Path(output))
        note(f"saved to {output}")
    if as_json:
        emit_json({"front": table.reset_index().to_dict("records")})
    else:
        _show(table)


def _latest_s(table: pd.DataFrame) -> float:
    """Return until when plans might move data: the last deadline, and the end of the cheapest."""
    slack = max(value for value in map(float, table.index) if math.isfinite(value))
    makespan_s = table["makespan_s"].astype(float)
    return max(float(makespan_s.max()), (1 + slack) * float(makespan_s.iloc[0]))


def _show(table: pd.DataFrame) -> None:
    from datacollect.units import format_duration

    rows = [
        (
            "any" if slack == table.index[-1] else f"{slack:.0%}",
            format_duration(makespan_s),
            f"{money:.4g}",
            f"{slower:.2%}",
            f"{cheaper:.1%}",
        )
        for slack, makespan_s, money, slower, cheaper in table.itertuples()
    ]
    headings = ("at most slower", "makespan", "money", "slower", "cheaper")
    emit_table(headings, rows, ">>>>>")
    emit_text(_summary(table))


def _summary(table: pd.DataFrame) -> str:
    """Name the first row that saves half of what can be saved."""
    most = float(table["cheaper"].max())
    if most <= 0:
        return "Waiting saves nothing: the fastest plan is as cheap as any."
    row = table[table["cheaper"] >= most / 2].iloc[0]
    return f"An end {row['slower']:.1%} later saves {row['cheaper']:.1%} of the money."


def _save(table: pd.DataFrame, path: Path) -> None:
    from datacollect.documents import write_atomically

    if path.suffix.lower() == ".csv":
        write_atomically(str(path), table.to_csv(lineterminator="\n").encode())
        return
    picture = io.BytesIO()
    _figure(table).savefig(picture, format=path.suffix[1:].lower())
    write_atomically(str(path), picture.getvalue())


def _figure(table: pd.DataFrame) -> Figure:
    """Draw money by makespan; a line marks the price of the cheapest at any time."""
    from matplotlib.figure import Figure

    from datacollect.pictures.axis import time_unit
    from datacollect.units import format_duration

    most_s = float(table["makespan_s"].max())
    unit_s, unit = (3600.0, "h") if most_s >= 3600.0 else time_unit(most_s)
    figure = Figure(figsize=(7.0, 4.5), dpi=100, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    # Deadlines that are of no further use give the same plan: one point, not several.
    points = table.drop_duplicates(["makespan_s", "money"])
    when = points["makespan_s"] / unit_s
    cheapest = points.iloc[-1]
    axes.plot(when, points["money"], color="#0072B2", lw=1.2, zorder=1)
    axes.scatter(when, points["money"], s=42, color="#0072B2", edgecolor="white", zorder=2)
    axes.axhline(cheapest["money"], color="#5A5A5A", lw=1.0, ls="--", zorder=0)
    # Above and below in turn: texts of points that lie close to each other would lie on each other.
    sides: list[dict[str, Any]] = [
        {"xytext": (5, 6), "ha": "left"},
        {"xytext": (-5, -14), "ha": "right"},
    ]
    latest = [-math.inf, -math.inf]
    for i, (slack, x, money) in enumerate(zip(points.index, when, points["money"], strict=True)):
        if x - latest[i % 2] > 0.03 * (when.max() - when.min()):
            label = "cheapest" if slack == table.index[-1] else f"+{slack:.0%}"
            look = sides[i % 2]
            axes.annotate(label, (x, money), textcoords="offset points", fontsize=9, **look)
            latest[i % 2] = x
    text = f"cheapest of all: {cheapest['money']:.4g}, in {format_duration(cheapest['makespan_s'])}"
    axes.annotate(
        text,
        (0.0, cheapest["money"]),
        xycoords=("axes fraction", "data"),
        xytext=(6, 5),
        textcoords="offset points",
        fontsize=9,
        color="#5A5A5A",
    )
    axes.set_xlabel(f"makespan ({unit}); at each point how much slower than the fastest is allowed")
    axes.set_ylabel("money (currency of price_per_gb)")
    # Around the data: what waiting saves is seen, and the labels say how much it is.
    axes.margins(0.12, 0.12)
    axes.grid(color="#E5E5E5", lw=0.8)
    axes.set_axisbelow(True)
    return figure
