"""Contents of a problem as plain data: what files, graphs and tables are read into.

Readers and writers know these columns only. `datacollect.problem.problem.Problem` has the same
attributes, checks them and answers questions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from datacollect.files.clock import Clock
    from datacollect.numbers.arrays import FloatArray, IndexArray, IntArray, InUnitsLike
    from datacollect.problem.bandwidth_intervals import BandwidthIntervals
    from datacollect.problem.hosts import DailyPeriods, Held, SharedBottleneck
    from datacollect.problem.manifest import Files


# Plans may take longer by this part so that files need not be split.
FILE_TOLERANCE = 0.01


@dataclass(frozen=True, eq=False)
class ProblemContents:
    """The attributes of a `datacollect.problem.problem.Problem`, not checked yet.

    Limits of hosts may have one number per host here, or a row of these for each period.
    """

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
    shown_uplink_bytes_per_s: FloatArray | None = None
    shown_downlink_bytes_per_s: FloatArray | None = None
    most_connections: FloatArray | None = None
    produces_bytes_per_s: FloatArray | None = None
    made_bytes: IntArray | None = None
    latitude: FloatArray | None = None
    longitude: FloatArray | None = None
    per_connection_bytes_per_s: FloatArray | None = None
    capacity_bytes_per_s: FloatArray | None = None
    competitors: FloatArray | None = None
    clock: Clock | None = None
    daily: DailyPeriods | None = None
    manifest: Mapping[str, Files] | None = None
    file_tolerance: float = FILE_TOLERANCE
    measured_s: float | None = None
    bandwidth_intervals: BandwidthIntervals | None = None
    limit_causes: Mapping[tuple[str, str], str] | None = None


class ProblemChanges(TypedDict, total=False):
    """Arguments of `Problem.replace`: any of the attributes, arrays as whatever becomes one."""

    names: Sequence[str]
    destination: str
    backlog_bytes: InUnitsLike
    release_s: InUnitsLike
    storage_bytes: InUnitsLike
    uplink_bytes_per_s: InUnitsLike
    downlink_bytes_per_s: InUnitsLike
    link_from: npt.ArrayLike
    link_to: npt.ArrayLike
    bandwidth_bytes_per_s: InUnitsLike
    periods_s: InUnitsLike
    price_per_gb: InUnitsLike | None
    shared: Sequence[SharedBottleneck]
    held: Sequence[Held]
    shown_uplink_bytes_per_s: InUnitsLike | None
    shown_downlink_bytes_per_s: InUnitsLike | None
    most_connections: npt.ArrayLike | None
    produces_bytes_per_s: InUnitsLike | None
    made_bytes: InUnitsLike | None
    per_connection_bytes_per_s: InUnitsLike | None
    capacity_bytes_per_s: InUnitsLike | None
    competitors: npt.ArrayLike | None
    clock: Clock | None
    daily: DailyPeriods | None
    manifest: Mapping[str, Files] | None
    file_tolerance: float
    measured_s: float | None
    bandwidth_intervals: BandwidthIntervals | None
    limit_causes: Mapping[tuple[str, str], str] | None
