"""The entries in time of all logs, read once the deadline is over; what was read stays known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from datacollect.bistro.destination.kept_logs import LOGGED, KeptLog
from datacollect.bistro.destination.run.log_table import LogTable, joined, read_table
from datacollect.errors import DatacollectError
from datacollect.net.fan_out import fan_out
from datacollect.net.http_asking import Asker

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from datacollect.bistro.formats.event.event import Event, Service

# Logs are whole so long after the last moment in time; a log that does not answer is tried again.
LOGGED_WITHIN_S, AGAIN_S = 60, 600.0


class Kept(Protocol):
    """Store that outlives the process: `datacollect.bistro.destination.kept_logs.KeptLogs`."""

    def by_log(self) -> Mapping[str, KeptLog]:
        """Return what was read, by the logs' origins."""

    def keep(self, log: str, known: KeptLog) -> None:
        """Keep what is known of a log."""


@dataclass
class LoggedEntries:
    """The entries in time of all logs, as far as they are known.

    What a log has shown once stays known, whatever it shows later, and whoever starts again: else a
    service that is silent after a restart would change what counts.

    Attributes
    ----------
    read : function
        Reads the log of a service whole; raises `DatacollectError` where it cannot.
    report : function
        Takes lines that somebody would want to know at once.
    kept : Kept or None
        None: what was read ends with this process. May be replaced by another way to the same.
    """

    read: Callable[[Service, Event], LogTable]
    report: Callable[[str], None]
    kept: Kept | None = None
    _of_log: dict[str, LogTable] = field(default_factory=dict, init=False)
    _until_s: dict[str, int] = field(default_factory=dict, init=False)
    _asked_until_s: dict[str, int] = field(default_factory=dict, init=False)
    _is_begun: bool = field(default=False, init=False)
    _latest_s: int = field(default=-1, init=False)
    _asked_s: float = field(default=-AGAIN_S, init=False)
    _joined: LogTable = field(default_factory=lambda: joined(()), init=False)

    def known(self, event: Event, now_s: float) -> frozenset[bytes]:
        """Return them, as far as they are known; before the deadline nothing is.

        Parameters as of `table`.
        """
        return self.table(event, now_s).until(event.latest_s)

    def table(self, event: Event, now_s: float) -> LogTable:
        """Return them with their times; the same object as long as nothing more is known.

        Parameters
        ----------
        event : Event
            With the amendments that are known: a later deadline lets more be in time.
        now_s : float
            Seconds since 1970.
        """
        self._begin()
        is_new = event.latest_s != self._latest_s
        if is_new:
            self._latest_s, self._asked_s = event.latest_s, -AGAIN_S
        # What an earlier process has read is known, and read once more: there may be more by now.
        left = _before(event, self._asked_until_s)
        is_due = abs(now_s - self._asked_s) >= AGAIN_S
        if left and now_s > event.latest_s + LOGGED_WITHIN_S and is_due:
            self._asked_s = now_s
            is_new |= self._take(event, left)
        if is_new:
            self._joined = joined(each.in_time(event.latest_s) for each in self._of_log.values())
        return self._joined

    def unread(self, event: Event) -> tuple[str, ...]:
        """Return the services whose logs were not read to their ends as far as is known."""
        self._begin()
        return tuple(each.url for each in _before(event, self._until_s))

    def _begin(self) -> None:
        """Take what an earlier process has read."""
        if self.kept is not None and not self._is_begun:
            for log, known in self.kept.by_log().items():
                self._of_log[log] = _table_of(known)
                self._until_s[log] = known.until_s
        self._is_begun = True

    def _take(self, event: Event, services: list[Service]) -> bool:
        """Read logs, all at once; return whether something came."""
        by_url = {each.url: each for each in services}
        is_new = False
        for url, outcome in fan_out([*by_url], lambda url: self.read(by_url[url], event)).items():
            if outcome.error is None:
                self._know(by_url[url].log.name, outcome.result(), event.latest_s)
                is_new = True
            elif isinstance(outcome.error, DatacollectError):
                self.report(f"{url}: {outcome.error}")
            else:
                raise outcome.error
        return is_new

    def _know(self, log: str, table: LogTable, until_s: int) -> None:
        """Add what was read to what is known; it is kept before anybody goes by it."""
        before = [self._of_log[log]] if log in self._of_log else []
        if self.kept is not None and (stored := self.kept.by_log().get(log)) is not None:
            # Another machine may have read it, too.
            before.append(_table_of(stored))
        known = joined([*before, table])
        if self.kept is not None:
            rows = np.zeros(len(known.entries), LOGGED)
            rows["entry"], rows["time_s"] = known.entries, known.times_s
            self.kept.keep(log, KeptLog(until_s, rows))
        self._of_log[log] = known
        self._until_s[log] = self._asked_until_s[log] = until_s


def _table_of(known: KeptLog) -> LogTable:
    return LogTable(known.rows["entry"], known.rows["time_s"])


def _before(event: Event, until_s: Mapping[str, int]) -> list[Service]:
    """Return the services whose logs were not read since the last moment in time."""
    return [each for each in event.services if until_s.get(each.log.name, -1) < event.latest_s]


def read_over_http(service: Service, event: Event, tls: ssl.SSLContext) -> LogTable:
    """Read the log of a service whole; raises as `read_table`."""
    with Asker(service.url, tls) as asker:
        return read_table(service, event, asker)
