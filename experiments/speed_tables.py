"""The tables that docs/speed.md includes, from the results of planning_speed.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import timed_calls
from timed_calls import in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

# The network that own data wait in as others' data do.
TEXTBOOK = "one node per host and boundary"

# Columns of medians, and of how often was measured.
MEDIANS = {"median_s": "repeats", "reference_median_s": "reference_repeats"}


def tables(rows: Sequence[dict[str, str]]) -> dict[str, str]:
    """Lay out the tables, by the names of their files."""
    return {
        name: layout([row for row in rows if row["section"] in sections])
        for name, layout, sections in (
            ("speed_pipelined", flow_table, ("planning", "bound")),
            ("speed_solvers", solver_table, ("shared", "slotted")),
            ("speed_whole_networks", whole_networks, ("slotted",)),
            ("speed_start_up", other_table, ("construction", "start_up")),
        )
    }


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
    return timed_calls.markdown([*header, "peak memory", "target"], cells)


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
    return timed_calls.markdown([*header, "peak memory", "target"], cells, n_left=2)


def whole_networks(rows: Sequence[dict[str, str]]) -> str:
    """Say how many times as long cheapest flows take through our whole network and another.

    Nothing is said of plans that were compared with one network only.
    """
    by_plan: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        plan = row["what"], row["hosts"], row["slots"]
        by_plan.setdefault(plan, {})[row["reference"]] = times(row)
    ours, other = "OR-Tools min-cost flow", f"OR-Tools min-cost flow, {TEXTBOOK}"
    return "\n".join(
        f"- {what}, {hosts} hosts, {slots} slots: {found[other]} times with {TEXTBOOK}, "
        f"{found[ours]} times with own data in nodes of their own."
        for (what, hosts, slots), found in by_plan.items()
        if found.keys() >= {ours, other}
    )


def other_table(rows: Sequence[dict[str, str]]) -> str:
    """All else."""
    header = "what", "reference", "hosts", "median", "reference takes", "ratio"
    cells = [
        [row["what"], row["reference"], row["hosts"], *medians(row), ratio(row), *last_cells(row)]
        for row in rows
    ]
    return timed_calls.markdown([*header, "peak memory", "target"], cells, n_left=2)


def medians(row: dict[str, str]) -> list[str]:
    """Write both medians, and which of them are a single measurement."""
    return [
        in_words(float(row[key])) + (" (once)" if row[repeats] == "1" else "") if row[key] else ""
        for key, repeats in MEDIANS.items()
    ]


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
