"""Pull lists: what each host has to request, from whom, which range, when and at what rate.

Receivers pull: an upload server that follows its list needs to know nothing else of the schedule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from datacollect.problem.manifest import Files
    from datacollect.schedule.data.contents import ScheduleContents


def pull_list(
    schedule: ScheduleContents,
    host: str | None = None,
    *,
    hosts: Iterable[str] = (),
    manifest: Mapping[str, Files] | None = None,
) -> pd.DataFrame:
    """Return what a host, or every host, has to request.

    Parameters
    ----------
    schedule : Schedule
    host : str, optional
        The receiver; all receivers if left out.
    hosts : iterable of str, optional
        Names of further hosts that may be asked for: schedules of old files, and those made by
        hand, name only those that take part.
    manifest : mapping of str to Files, optional
        The files of each source, whose backlogs hold all that is moved.

    Returns
    -------
    DataFrame
        A row per transfer, sorted by host and start: host (the receiver), request_from, source,
        offset_bytes, bytes, start_s, finish_s, rate_bytes_per_s, streams, slot and n_slots (the
        first slot and how many; missing where the schedule has no slots), forward_to (the next
        host; None at the destination), route (tuple of names). With a manifest also files: the
        parts of files that the range is, as `Files.within` lists them.

    Raises
    ------
    ProblemError
        The host is unknown.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> pulls = pull_list(dc.direct(problem), "D")
    >>> pulls[["host", "request_from", "offset_bytes", "bytes", "rate_bytes_per_s"]]
      host request_from  offset_bytes  bytes  rate_bytes_per_s
    0    D            S             0     10               5.0
    """
    import pandas as pd

    if host is not None:
        _require_known(schedule, host, hosts)
    columns = schedule.columns
    first_slot, end_slot = (_slots(schedule, t) for t in (columns.start_s, columns.finish_s))
    route, hop = columns.route.tolist(), columns.hop.tolist()
    paths = [schedule.routes[i].hosts for i in route]
    table = pd.DataFrame(
        {
            "host": [path[k + 1] for path, k in zip(paths, hop, strict=True)],
            "request_from": [path[k] for path, k in zip(paths, hop, strict=True)],
            "source": [schedule.routes[i].source for i in route],
            "offset_bytes": columns.offset_bytes,
            "bytes": columns.n_bytes,
            "start_s": columns.start_s,
            "finish_s": columns.finish_s,
            "rate_bytes_per_s": columns.n_bytes / (columns.finish_s - columns.start_s),
            "streams": columns.streams,
            "slot": first_slot,
            "n_slots": end_slot - first_slot,
            "forward_to": pd.Series(
                [
                    path[k + 2] if k + 2 < len(path) else None
                    for path, k in zip(paths, hop, strict=True)
                ],
                dtype=object,
            ),
            "route": pd.Series(paths, dtype=object),
        }
    )
    if manifest is not None:
        ranges = zip(table["source"], table["offset_bytes"], table["bytes"], strict=True)
        parts = [manifest[source].within(begin, n) for source, begin, n in ranges]
        table["files"] = pd.Series(parts, dtype=object)
    if host is not None:
        table = table[table["host"] == host]
    return table.sort_values(
        ["host", "start_s", "request_from", "source", "offset_bytes"], ignore_index=True
    )


def _require_known(schedule: ScheduleContents, host: str, others: Iterable[str]) -> None:
    known = {name for route in schedule.routes for name in (route.source, *route.hosts)}
    known |= {schedule.destination, *schedule.hosts, *others}
    if host not in known:
        raise ProblemError(
            f"host must be one of the schedule's {len(known)} hosts, got {host!r}"
            + nearest_hint(str(host), sorted(known))
        )


def _slots(schedule: ScheduleContents, instant_s: npt.NDArray[np.float64]) -> pd.Series:
    """Slots that begin at the instants; missing values where there are no slots."""
    import pandas as pd

    if schedule.slot_s is None:
        return pd.Series(pd.NA, index=range(len(instant_s)), dtype="Int64")
    return pd.Series(np.rint(instant_s / schedule.slot_s).astype(np.int64), dtype="Int64")
