"""The command ``datacollect front``."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import emit_json, emit_table, emit_text, note, working
from datacollect.commands.inputs import require_kept
from datacollect.commands.options import Force, Json, ProblemFile, SolverName, require_new
from datacollect.commands.reading import read_problem
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")

# Parts of the picture's width and height that a label at a point takes.
LABEL_WIDTH, LABEL_HEIGHT = 0.12, 0.06
# Plans whose ends and prices differ by a smaller part are one point.
SAME = 1e-6


def front(
    problem_file: ProblemFile,
    solver: SolverName = "auto",
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write a picture (.png, .svg, .pdf) or a table (.csv).",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show how much cheaper a later end is.

    The price of the cheapest plan for each of several deadlines.
    """
    from datacollect.files.units import format_bytes
    from datacollect.methods.finishing.recurring import planned_to_the_end
    from datacollect.methods.money_front import front as find_front

    require_kept(output, problem_file)
    if output is not None and not output.lower().endswith((*PICTURES, ".csv")):
        endings = ", ".join((*PICTURES, ".csv"))
        raise ProblemError(f"-o must name a file that ends in {endings}, got {output!r}")
    require_new(output, force=force)
    problem = read_problem(problem_file)
    with working("planning for each deadline"):
        _, table = planned_to_the_end(
            problem, lambda given: find_front(given, solver=solver), _latest_s
        )
    if output is not None:
        title = f"{format_bytes(problem.total_bytes)} to {problem.destination}: what waiting saves"
        _save(table, Path(output), title)
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
    from datacollect.files.units import format_duration

    shown = table[_differ(table)]
    rows = [
        (
            "any" if slack == table.index[-1] else f"{slack:.0%}",
            format_duration(makespan_s),
            f"{money:.4g}",
            f"{slower:.2%}",
            f"{cheaper:.1%}",
        )
        for slack, makespan_s, money, slower, cheaper in shown.itertuples()
    ]
    headings = ("at most slower", "makespan", "money", "slower", "cheaper")
    emit_table(headings, rows, ">>>>>")
    emit_text(_summary(table))
    if shown.index[-1] != table.index[-1]:
        emit_text("Later deadlines change neither the end nor the price.")


def _summary(table: pd.DataFrame) -> str:
    """Name the first row that saves half of what can be saved."""
    most = float(table["cheaper"].max())
    if most <= 0:
        return "Waiting saves nothing: the fastest plan is as cheap as any."
    row = table[table["cheaper"] >= most / 2].iloc[0]
    return f"An end {row['slower']:.1%} later saves {row['cheaper']:.1%} of the money."


def _save(table: pd.DataFrame, path: Path, title: str) -> None:
    from datacollect.files.documents import write_atomically

    if path.suffix.lower() == ".csv":
        write_atomically(str(path), table.to_csv(lineterminator="\n").encode())
        return
    picture = io.BytesIO()
    _figure(table, title).savefig(picture, format=path.suffix[1:].lower())
    write_atomically(str(path), picture.getvalue())


def _differ(table: pd.DataFrame) -> list[bool]:
    """Mark rows that differ from the last that is marked: later deadlines may be of no use."""
    found: list[bool] = []
    last: tuple[float, float] | None = None
    for row in zip(table["makespan_s"].tolist(), table["money"].tolist(), strict=True):
        near = last is not None and all(
            math.isclose(a, b, rel_tol=SAME) for a, b in zip(row, last, strict=True)
        )
        found.append(not near)
        last = last if near else row
    return found


def _figure(table: pd.DataFrame, title: str) -> Figure:
    """Draw money by makespan; a line marks the price of the cheapest at any time."""
    from matplotlib.figure import Figure

    from datacollect.files.units import format_duration
    from datacollect.pictures.axis import time_unit

    most_s = float(table["makespan_s"].max())
    is_hours = 3600.0 <= most_s < 5 * 86_400.0
    unit_s, unit = (3600.0, "h") if is_hours else time_unit(most_s)
    figure = Figure(figsize=(7.0, 4.5), dpi=100, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    points = table[_differ(table)]
    when = points["makespan_s"] / unit_s
    cheapest = points.iloc[-1]
    axes.plot(when, points["money"], color="#0072B2", lw=1.2, zorder=1)
    axes.scatter(when, points["money"], s=42, color="#0072B2", edgecolor="white", zorder=2)
    axes.axhline(cheapest["money"], color="#5A5A5A", lw=1.0, ls="--", zorder=0.9)
    # Above and below in turn: texts of points that lie close to each other would lie on each other.
    sides: list[dict[str, Any]] = [
        {"xytext": (5, 6), "ha": "left"},
        {"xytext": (-5, -14), "ha": "right"},
    ]
    labels = [
        "fastest" if slack == 0 else "cheapest" if slack == table.index[-1] else f"+{slack:.0%}"
        for slack in points.index
    ]
    latest: list[tuple[float, float]] = [(-math.inf, math.inf)] * 2
    for i, (label, x, money) in enumerate(zip(labels, when, points["money"], strict=True)):
        before_x, before_money = latest[i % 2]
        is_free = x - before_x > LABEL_WIDTH * (when.max() - when.min())
        is_free |= before_money - money > LABEL_HEIGHT * (points["money"].max() - cheapest["money"])
        if is_free:
            look = sides[i % 2]
            axes.annotate(label, (x, money), textcoords="offset points", fontsize=9, **look)
            latest[i % 2] = (x, money)
    axes.set_title(title, fontsize=11, loc="left")
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
