"""The adaptive method's tables as Markdown; numbers as they stand in the files of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

UNDER_LOAD = "under load, geometric mean"
# What the method was meant to reach in ns-3: over coordinated, over direct with as many.
TARGETS = {
    "60 flows 1:1": (0.45, 0.62),
    "60 flows 2:1": (0.45, 0.55),
    "60 flows 1:3": (0.60, 0.70),
    "20 flows 1:1": (0.55, 0.70),
    "none": (0.85, 0.85),
    UNDER_LOAD: (0.50, 0.65),
}
# By sweep; with three times as many connections.
REACHES = {
    "reach": TARGETS,
    "reach_5mb": TARGETS,
    "thrice": {"60 flows 1:1": (0.35, 0.62)},
}
# Adaptive is behind where even the lower end of its interval over the best other is above this.
BEHIND = 1.03


def frontier_text(table: pd.DataFrame) -> str:
    """Return the frontier as a table in Markdown; numbers as they stand in the file."""
    head = (
        "setting",
        "method",
        "seeds",
        "connections",
        "makespan, s",
        "part of their rate that others lose",
        "their rate over direct's",
        "others lose, MB (standard deviation)",
    )
    rows = [[*row[:7], f"{row[7]} ({row[8]})"] for row in table.astype(str).itertuples(index=False)]
    return _markdown(head, rows)


def ratios_text(table: pd.DataFrame, targets: Mapping[str, tuple[float, float]] = TARGETS) -> str:
    """Return ratios as a table in Markdown, with what was to be reached and whether it was."""
    head = ["method", "setting", "seeds", "over coordinated", "over direct with as many"]
    rows = []
    for row in table.astype(str).to_dict("records"):
        cells = [row["method"], row["setting"], row["n"]]
        if row["setting"] == UNDER_LOAD:
            cells[2] = f"{row['n']} settings"
        for name, target in zip(
            ("over_coordinated", "over_as_many"),
            targets.get(row["setting"], (None, None)),
            strict=True,
        ):
            text = row[name]
            if row[f"{name}_low"] not in ("", "nan"):
                text += f" [{row[f'{name}_low']}, {row[f'{name}_high']}]"
            if target is not None:
                text += f" {'✓' if float(row[name]) <= target else '✗'} {target:g}"
            cells.append(text)
        rows.append(cells)
    return _markdown(head, rows)


def reference_text(table: pd.DataFrame) -> str:
    """Return how near adaptive comes to its reference as a table in Markdown."""
    head = (
        "method",
        "setting",
        "seeds",
        "over the reference",
        "most",
        "reference over coordinated",
        "reference over direct with as many",
        "packets sent again",
    )
    return _with_interval(head, table)


def coverage_text(table: pd.DataFrame) -> str:
    """Return how many runs end within what was predicted as a table in Markdown."""
    head = ("method", "runs", "within the range", "sooner", "later", "part within, interval")
    rows = [
        [*row[:5], f"[{row[5]}, {row[6]}]"] for row in table.astype(str).itertuples(index=False)
    ]
    return _markdown(head, rows)


def settings_text(table: pd.DataFrame) -> str:
    """Return adaptive over the best other as a table in Markdown; ✗ where it is behind."""
    head = ("method", "family", "setting", "seeds", "best other", "over the best other")
    rows = [
        [*row[:5], f"{row[5]} [{row[6]}, {row[7]}]{' ✗' if float(row[6]) > BEHIND else ''}"]
        for row in table.astype(str).itertuples(index=False)
    ]
    return _markdown(head, rows)


def means_text(table: pd.DataFrame) -> str:
    """Return families as a table in Markdown."""
    head = ("method", "family", "settings", "mean", "least favourable setting", "behind in")
    rows = [
        [*row[:4], f"{row[4]} [{row[5]}, {row[6]}]: {row[7]}", row[8]]
        for row in table.astype(str).itertuples(index=False)
    ]
    return _markdown(head, rows)


def errors_text(table: pd.DataFrame) -> str:
    """Return what wrong estimates cost as a table in Markdown."""
    head = ("estimates over B1–A1", "method", "seeds", "over its time with right estimates")
    return _with_interval(head, table)


def optimum_text(table: pd.DataFrame) -> str:
    """Return what methods take over the optimum as a table in Markdown."""
    head = ("kind", "method", "problems", "over the optimum", "most")
    return _with_interval(head, table)


def begins_text(table: pd.DataFrame) -> str:
    """Return what it costs to begin, or go on, as planned, as a table in Markdown."""
    head = ("setting", "connections", "seeds", "over adaptive", "plans")
    return _with_interval(head, table)


def _with_interval(head: Iterable[str], table: pd.DataFrame) -> str:
    """Return a table whose fourth to sixth columns are a value and the ends of its interval."""
    rows = [
        [*row[:3], f"{row[3]} [{row[4]}, {row[5]}]", *row[6:]]
        for row in table.astype(str).itertuples(index=False)
    ]
    return _markdown(head, rows)


def _markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + " --- |" * len(list(head)), *lines[1:]])
