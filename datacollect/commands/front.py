"""The command ``datacollect front``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit_json, emit_table, emit_text, note, working
from datacollect.commands.options import (
    Force,
    Json,
    ProblemFile,
    Solver,
    SolverName,
    require_new,
    require_other_file,
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
    """Show what money waiting saves.

    The price of the cheapest plan for each of several deadlines.
    """
    from datacollect.methods.money_front import front as find_front

    require_other_file(output, problem_file)
    if output is not None and not output.lower().endswith((*PICTURES, ".csv")):
        endings = ", ".join((*PICTURES, ".csv"))
        raise ProblemError(f"-o must name a file that ends in {endings}, got {output!r}")
    require_new(output, force=force)
    problem = read_problem(problem_file)
    with working("planning for each deadline"):
        table = find_front(problem, solver=solver.value)
    if output is not None:
        _save(table, Path(output))
        note(f"saved to {output}")
    if as_json:
        emit_json({"front": table.reset_index().to_dict("records")})
    else:
        _show(table)


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
    return f"{row['slower']:.1%} slower saves {row['cheaper']:.1%}."


def _save(table: pd.DataFrame, path: Path) -> None:
    from datacollect.documents import write_atomically

    if path.suffix.lower() == ".csv":
        write_atomically(str(path), table.to_csv(lineterminator="\n").encode())
        return
    picture = io.BytesIO()
    _figure(table).savefig(picture, format=path.suffix[1:].lower())
    write_atomically(str(path), picture.getvalue())


def _figure(table: pd.DataFrame) -> Figure:
    """Draw money by makespan; the cheapest at any time may be far away: a line marks its price."""
    from matplotlib.figure import Figure

    from datacollect.units import format_duration

    near, cheapest = table.iloc[:-1], table.iloc[-1]
    figure = Figure(figsize=(7.0, 4.5), dpi=100, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    axes.plot(near["makespan_s"], near["money"], marker="o", color="#0072B2")
    axes.axhline(cheapest["money"], color="#5A5A5A", lw=1.0, ls="--")
    text = f"cheapest of all: {cheapest['money']:.4g}, in {format_duration(cheapest['makespan_s'])}"
    axes.annotate(
        text,
        (1.0, cheapest["money"]),
        xycoords=("axes fraction", "data"),
        xytext=(-4, -6),
        textcoords="offset points",
        ha="right",
        va="top",
    )
    axes.set_xlabel("makespan (s)")
    axes.set_ylabel("money")
    axes.set_ylim(0, 1.08 * float(table["money"].max()) or 1.0)
    return figure
