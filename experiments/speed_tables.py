"""The tables of docs/speed.md, from the results of planning_speed.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import measuring
from measuring import in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

MEDIANS = ("median_s", "reference_median_s")


def tables(rows: Sequence[dict[str, str]]) -> str:
    """Lay out the tables of docs/speed.md."""
    parts = (("planning", "bound"), flow_table), (("shared", "slotted"), solver_table)
    parts += ((("construction", "start_up"), other_table),)
    texts = []
    for sections, table in parts:
        chosen = [row for row in rows if row["section"] in sections]
        if chosen:
            texts.append(table(chosen))
    return "\n\n".join(texts)


def flow_table(rows: Sequence[dict[str, str]]) -> str:
    """Pipelined plans, in maximum flows."""
    header = "pipelined", "hosts", "links", "median", "one max-flow", "ratio", "× lower bound"
    cells = [
        [
            *(row["what"], row["hosts"], row["arcs"]),
            *(*medians(row), ratio(row), bound_ratio(row), *last_cells(row)),
        ]
        for row in rows
    ]
    return measuring.markdown([*header, "peak memory", "target"], cells)


def solver_table(rows: Sequence[dict[str, str]]) -> str:
    """The same optimum by public solvers, in how many times as long they take."""
    header = "what", "reference", "hosts", "slots", "arcs", "median", "reference takes", "times"
    cells = [
        [
            *(row["what"], row["reference"], row["hosts"], row["slots"], row["arcs"]),
            *(*medians(row), times(row), *last_cells(row)),
        ]
        for row in rows
    ]
    return measuring.markdown([*header, "peak memory", "target"], cells, n_left=2)


def other_table(rows: Sequence[dict[str, str]]) -> str:
    """All else."""
    header = "what", "reference", "hosts", "median", "reference takes", "ratio"
    cells = [
        [row["what"], row["reference"], row["hosts"], *medians(row), ratio(row), *last_cells(row)]
        for row in rows
    ]
    return measuring.markdown([*header, "peak memory", "target"], cells, n_left=2)


def medians(row: dict[str, str]) -> list[str]:
    return [in_words(float(row[key])) if row[key] else "" for key in MEDIANS]


def ratio(row: dict[str, str]) -> str:
    return f"{float(row['ratio']):.2f}" if row["ratio"] else ""


def times(row: dict[str, str]) -> str:
    """How many times as long the reference takes, at least where it was stopped."""
    if not row["ratio"]:
        return ""
    return ("≥ " if row["reference_stopped"] else "") + f"{1 / float(row['ratio']):.3g}"


def bound_ratio(row: dict[str, str]) -> str:
    return f"{float(row['over_lower_bound']):.4f}" if row["over_lower_bound"] else ""


def last_cells(row: dict[str, str]) -> list[str]:
    memory = row["peak_memory_mb"]
    return [f"{float(memory):.0f} MB" if memory else "", row["target"]]
