"""Rates of links, from connections while a collection is under way."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from datacollect.schedule.data.new_links import NewLinks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.control.connections import Lane
    from datacollect.control.planned.connection_window import ConnectionWindow
    from datacollect.problem.problem import Problem


class ObservedRates:
    """Bytes moved over each link since the last planning."""

    def __init__(self) -> None:
        self._since_s = 0.0
        self._moved_bytes: Counter[tuple[str, str]] = Counter()

    def begin(self, time_s: float, windows: Iterable[ConnectionWindow]) -> None:
        """Begin again."""
        self._since_s = time_s
        self._moved_bytes.clear()
        for window in windows:
            window.was_busy = bool(window.in_flight)

    def moved(self, lane: Lane, n_bytes: int) -> None:
        """Note what has arrived over a connection."""
        self._moved_bytes[lane.from_host, lane.to_host] += n_bytes

    def new_links(
        self, problem: Problem, time_s: float, windows: Iterable[ConnectionWindow]
    ) -> NewLinks | None:
        """Return the rates of the links over which a connection was busy all the time.

        A link's rate is that of all its connections together; it holds until the forecast's next
        period. None where no link was busy.
        """
        busy = {
            (window.lane.from_host, window.lane.to_host) for window in windows if window.was_busy
        }
        length_s = time_s - self._since_s
        if not busy or length_s <= 0:
            return None
        pairs, index = sorted(busy), problem.host_index
        tail = np.array([index[a] for a, _ in pairs], dtype=np.int64)
        head = np.array([index[b] for _, b in pairs], dtype=np.int64)
        later = problem.periods_s > time_s
        forecast = problem.bandwidth_bytes_per_s[later][:, problem.link_indices(tail, head)]
        observed = np.array([self._moved_bytes[pair] / length_s for pair in pairs])
        return NewLinks(
            link_from=tail,
            link_to=head,
            bandwidth_bytes_per_s=np.vstack([observed, forecast]),
            price_per_gb=np.full(len(pairs), np.nan),
            periods_s=np.append(0.0, problem.periods_s[later] - time_s),
        )
