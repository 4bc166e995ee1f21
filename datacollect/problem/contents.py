"""What a problem says, as plain data: what files, graphs and tables are read into.

Readers and writers know these columns only. `datacollect.problem.problem.Problem` has the same
attributes, checks them and answers questions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datacollect.arrays import FloatArray, IndexArray, IntArray
    from datacollect.problem.hosts import Held, SharedBottleneck


@dataclass(frozen=True, eq=False)
class ProblemContents:
    """The attributes of a `datacollect.problem.problem.Problem`, not checked yet."""

    names: tuple[str, ...]
    destination: str
    backlog_bytes: IntArray
    release_s: FloatArray
    storage_bytes: FloatArray
    uplink_bytes_per_s: FloatArray
    downlink_bytes_per_s: FloatArray
    link_from: IndexArray
    link_to: IndexArray
    bandwidth_bytes_per_s: FloatArray
    periods_s: FloatArray = field(default_factory=lambda: np.zeros(1))
    price_per_gb: FloatArray | None = None
    shared: tuple[SharedBottleneck, ...] = ()
    held: tuple[Held, ...] = ()
    most_connections: FloatArray | None = None
    per_connection_bytes_per_s: FloatArray | None = None
    capacity_bytes_per_s: FloatArray | None = None
    competitors: FloatArray | None = None
