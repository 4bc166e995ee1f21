"""Common parts of collections from cloud regions: bandwidths, problems, plans, rows of results.

Bandwidths between cloud regions, one machine each, measured by the Skyplane project (Jain et al.,
"Skyplane: Optimizing Transfer Cost and Throughput Using Cloud-Aware Overlays", NSDI 2023;
Apache-2.0). The measurements are not part of this repository.
"""

from __future__ import annotations

import csv
import math
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

import datacollect as dc
from datacollect.files.units import BYTES_PER_GB, bytes_per_s_from_bit_per_s

if TYPE_CHECKING:
    from collections.abc import Sequence

AnyRow = TypeVar("AnyRow")

REPOSITORY = Path(__file__).resolve().parents[1]
FIGURES = REPOSITORY / "docs/figures"

DESTINATION = "gcp:us-central1-a"

# What one machine sends and receives at most, as Skyplane's planner assumes.
UPLINK_GBIT_PER_S = {"aws": 5.0, "gcp": 7.0, "azure": 16.0}
DOWNLINK_GBIT_PER_S = {"aws": 10.0, "gcp": 16.0, "azure": 16.0}

AWS, ALL = "16 AWS regions, 100 GB each", "70 regions, 10 GB each"
WORKLOADS = (AWS, ALL)

# Name of the limits, whether machines have them, and what part of each link is left.
LIMITS = {
    "none": (False, 1.0),
    "per machine": (True, 1.0),
    "per machine, links at a quarter": (True, 0.25),
}

# Okabe and Ito, Color Universal Design, 2002
COLOURS = {"direct": "#E69F00", "best-path": "#CC79A7", "coordinated": "#0072B2"}


def read_grid(path: Path) -> pd.DataFrame:
    """Read received bytes per second: row = from, column = to, 0 on the diagonal."""
    measured = pd.read_csv(path)
    grid = measured[measured["src"] != measured["dst"]].pivot_table(
        index="src", columns="dst", values="received_bps", aggfunc="mean"
    )
    names = sorted(set(grid.index) | set(grid.columns))
    return bytes_per_s_from_bit_per_s(grid.reindex(index=names, columns=names).fillna(0.0))


def problem_of(grid: pd.DataFrame, workload: str, limits: str) -> dc.Problem:
    """Build one case."""
    names = list(grid.index)
    limited, part = LIMITS[limits]
    return dc.Problem.from_matrix(
        names,
        grid.to_numpy() * part,
        _backlogs(names, workload),
        DESTINATION,
        uplink_bytes_per_s=per_host(names, UPLINK_GBIT_PER_S) if limited else math.inf,
        downlink_bytes_per_s=per_host(names, DOWNLINK_GBIT_PER_S) if limited else math.inf,
    )


def _backlogs(names: list[str], workload: str) -> list[int]:
    if workload == AWS:
        sources = sorted(name for name in names if name.startswith("aws:"))[:16]
        return [100 * BYTES_PER_GB if name in sources else 0 for name in names]
    return [0 if name == DESTINATION else 10 * BYTES_PER_GB for name in names]


def per_host(names: list[str], gbit_per_s: dict[str, float]) -> np.ndarray:
    """Return bytes per second of each host, by its provider."""
    providers = [name.partition(":")[0] for name in names]
    return np.array([bytes_per_s_from_bit_per_s(gbit_per_s[p] * 1e9) for p in providers])


def plans_of(problem: dc.Problem) -> list[dc.Schedule]:
    """Plan by every method, each on a problem of its own, and check what comes out."""
    plans = []
    # What was published comes out again: of flows that cost the same the solver's first.
    coordinated = partial(dc.coordinated, settle_ties=False)
    for method in (dc.direct, dc.best_path, coordinated):
        fresh = problem.replace()  # the fluid optimum is remembered per problem
        plan = method(fresh)
        plan.check(fresh)  # raises at the first byte out of place
        plans.append(plan)
    return plans


def write_rows(rows: Sequence[AnyRow], path: Path) -> None:
    """Write the results, a dataclass each; six digits of every float."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(rows[0])], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in asdict(row).items()}
            )


def read_rows(kind: type[AnyRow], path: Path) -> list[AnyRow]:
    """Read what `write_rows` wrote: rows of a dataclass, of text and numbers."""
    kinds = {"str": str, "float": float, "int": int}
    with path.open(newline="", encoding="utf-8") as file:
        return [
            kind(**{f.name: kinds[str(f.type)](line[f.name]) for f in fields(kind)})
            for line in csv.DictReader(file)
        ]
