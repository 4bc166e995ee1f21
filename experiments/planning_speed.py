"""How long planning takes, as a ratio to one maximum flow on the same links.

    python experiments/planning_speed.py [--hosts 100 300 1000 3000] [--repeats 5] [-o FILE.csv]

Every row is measured in a process of its own, so that its peak memory is its own, and after a
warm-up, so that imports do not count. Each repetition plans a fresh problem (the fluid optimum is
remembered per problem) and then runs the reference: building and solving one static maximum flow
with OR-Tools, by its bulk calls, on the same links with capacity bandwidth × lower bound. The
ratio is the median over repetitions of one over the other, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

# Heavy modules are imported by the measured processes only: a process starts with the peak
# memory of its parent.
if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    import datacollect as dc

RESULTS = Path(__file__).resolve().parent / "results/planning_speed.csv"

HOSTS = (100, 300, 1000, 3000)
SEED = 1

# What to expect on two cores of 2023: orientation, nothing asserts it.
TARGETS_S = {100: 0.015, 300: 0.04, 1000: 0.6, 3000: 8.0}

COLUMNS = (
    "what",
    "hosts",
    "links",
    "repeats",
    "median_ratio",
    "median_s",
    "reference",
    "reference_median_s",
    "over_lower_bound",
    "hops",
    "routes",
    "peak_memory_mb",
    "target",
)


# Problems -----------------------------------------------------------------------------------


def mesh(n_hosts: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Draw a full mesh: lognormal(0, 1) MB/s; a quarter of the hosts hold 1 to 10 GB."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    bandwidth = rng.lognormal(0.0, 1.0, (n_hosts, n_hosts)) * 1e6
    sources = rng.choice(np.arange(1, n_hosts), n_hosts // 4, replace=False)
    backlog = np.zeros(n_hosts, dtype=np.int64)
    backlog[sources] = rng.integers(10**9, 10**10, len(sources))
    return [f"h{i}" for i in range(n_hosts)], bandwidth, backlog


def mesh_problem(n_hosts: int) -> dc.Problem:
    """Build a full mesh; host 0 collects."""
    import datacollect as dc

    return dc.Problem.from_matrix(*mesh(n_hosts), "h0")


def one_big_holder(n_hosts: int) -> dc.Problem:
    """Give one source nine tenths of all data: its own links bind, or nearly so."""
    problem = mesh_problem(n_hosts)
    backlog = problem.backlog_bytes.copy()
    largest = int(backlog.argmax())
    backlog[largest] = 9 * (backlog.sum() - backlog[largest])
    return problem.replace(backlog_bytes=backlog)


def limited_mesh(n_hosts: int) -> dc.Problem:
    """Limit what hosts send and receive to a half of what their links carry, 0.5 to 1.5 times."""
    import numpy as np

    problem = mesh_problem(n_hosts)
    rng = np.random.default_rng(SEED)
    typical = problem.bandwidth_bytes_per_s.mean() * n_hosts / 2
    return problem.replace(
        uplink_bytes_per_s=typical * rng.uniform(0.5, 1.5, n_hosts),
        downlink_bytes_per_s=typical * rng.uniform(0.5, 1.5, n_hosts),
    )


def sparse_overlay(n_hosts: int) -> dc.Problem:
    """Join every host to eight others at random, in one direction each."""
    import numpy as np

    import datacollect as dc

    rng = np.random.default_rng(SEED)
    names, _, backlog = (*mesh(4)[:2], np.zeros(n_hosts, dtype=np.int64))
    names = [f"h{i}" for i in range(n_hosts)]
    sources = rng.choice(np.arange(1, n_hosts), n_hosts // 4, replace=False)
    backlog[sources] = rng.integers(10**9, 10**10, len(sources))
    tail = np.repeat(np.arange(n_hosts), 8)
    key = np.unique(tail * n_hosts + rng.integers(0, n_hosts, len(tail)))
    key = key[key // n_hosts != key % n_hosts]
    unlimited = np.full(n_hosts, np.inf)
    return dc.Problem(
        names=tuple(names),
        destination="h0",
        backlog_bytes=backlog,
        release_s=np.zeros(n_hosts),
        storage_bytes=unlimited,
        uplink_bytes_per_s=unlimited,
        downlink_bytes_per_s=unlimited,
        link_from=(key // n_hosts).astype(np.int32),
        link_to=(key % n_hosts).astype(np.int32),
        bandwidth_bytes_per_s=rng.lognormal(0.0, 1.0, (1, len(key))) * 1e6,
    )
