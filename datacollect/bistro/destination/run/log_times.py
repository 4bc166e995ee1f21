"""Times by which entries stood in the logs of an event, as its services prove them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Protocol

from datacollect.bistro.destination.run.log_table import read_table
from datacollect.bistro.formats.log.proofs import MOST_PROOF_BYTES, LogProof
from datacollect.bistro.formats.receipt.counted_time import proved_time
from datacollect.errors import ProblemError, TransferError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from datacollect.bistro.destination.run.log_table import LogTable
    from datacollect.bistro.formats.event.event import Event
    from datacollect.net.http_asking import Answer

# So many are remembered at most: while a service is away for long, order by what others prove.
MOST_LEFT = 100_000
# Of more entries logs are read whole: services answer some hundred questions a second.
MOST_ASKED = 2_000
# To read a log takes as long as it is; for each second of that, so many pass before the next time.
READ_PART = 10.0
# Where a quorum needed a witness that post-dates, a later checkpoint may prove less: services take
# cosignatures of at most 5 s ahead, and make a checkpoint each second. After so long that is over.
SETTLED_S = 30


class _Reading:
    """Limit on when logs may be read whole again."""

    def __init__(self) -> None:
        self._again_s = -float("inf")

    def is_due(self) -> bool:
        return time.monotonic() >= self._again_s

    def took(self, taken_s: float) -> None:
        self._again_s = time.monotonic() + READ_PART * taken_s


class Service(Protocol):
    """Service that is asked, as `datacollect.net.http_asking.Asker` is one."""

    def get(self, path: str, most_bytes: int) -> Answer:
        """Return the answer to a GET of a path below its URL."""


@dataclass
class LogTimes:
    """Asks services for the proofs of entries.

    Attributes
    ----------
    event : Event
        As amendments have left it.
    services : mapping of str to Service
        By URL.
    report : function
        Takes lines that somebody would want to know at once.
    most_asked : int
        Where times of so many entries are asked for, logs are read whole.
    left : dict
        Entries in time whose least time is not sure: which services are to be asked still.
    """

    event: Event
    services: Mapping[str, Service]
    report: Callable[[str], None]
    most_asked: int = MOST_ASKED
    left: dict[bytes, frozenset[str]] = field(default_factory=dict, init=False)
    _reading: _Reading = field(default_factory=_Reading, init=False)
    _settled_for_s: int = field(default=-1, init=False)

    @property
    def are_settled(self) -> bool:
        """Say whether all at stake was asked once more after the event's end (`settle`)."""
        return self._settled_for_s == self.event.latest_s

    def may_settle(self, now_s: int) -> bool:
        """Return whether times in time have fallen as far as they may, or nobody waits for that."""
        latest_s = self.event.latest_s
        return now_s > max(latest_s, min(latest_s + SETTLED_S, self.event.collect_until_s))

    def settle(self, entries: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
        """Yield times of entries that have one, asked once more: they may have fallen since.

        To be called once `may_settle`, until they `are_settled`: where they are many, that may
        take more than one call. What was asked before this process began counts no more.
        """
        put_off = iter(entries)
        yield from self(put_off)
        if next(put_off, None) is None:
            self._settled_for_s = self.event.latest_s

    def __call__(self, entries: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
        """Yield the entries whose time is proved, each with the least time of those found.

        A service that does not answer is not asked again this time. All are asked: which draft is
        the last one depends on the least time. Where one proves a time that is in time, those that
        do not answer are asked next time, and what they prove is told, too. A late one counts only
        where all have answered.
        """
        answering = set(self.services)
        tables: Mapping[str, LogTable] = {}
        more = iter(entries)
        some = [*islice(more, self.most_asked)]
        if len(some) == self.most_asked and self._reading.is_due():
            tables = self._read(answering)
        else:
            # Others wait until logs are read whole.
            more = iter(())
        for entry, urls in [*self.left.items()]:
            times_s, silent = self._asked(entry, urls, answering, tables)
            if silent:
                self.left[entry] = silent
            else:
                del self.left[entry]
            if times_s:
                yield entry, min(times_s)
        for entry in chain(some, more):
            times_s, silent = self._asked(entry, frozenset(self.services), answering, tables)
            if times_s and (not silent or min(times_s) <= self.event.latest_s):
                if silent and len(self.left) < MOST_LEFT:
                    self.left[entry] = silent
                yield entry, min(times_s)

    def _read(self, answering: set[str]) -> dict[str, LogTable]:
        """Read the logs of all services whole; whose cannot be read does not answer this time."""
        began_s = time.monotonic()
        tables = {}
        for service in self.event.services:
            if service.url in answering:
                try:
                    tables[service.url] = read_table(
                        service, self.event, self.services[service.url]
                    )
                except (TransferError, ProblemError) as error:
                    self.report(f"{service.url}: {error}")
                    answering.discard(service.url)
        self._reading.took(time.monotonic() - began_s)
        return tables

    def _asked(
        self,
        entry: bytes,
        urls: frozenset[str],
        answering: set[str],
        tables: Mapping[str, LogTable],
    ) -> tuple[list[int], frozenset[str]]:
        """Return the times that services prove, and which do not answer."""
        times_s: list[int] = []
        silent = set(urls - answering)
        for url in sorted(urls & answering):
            try:
                table = tables.get(url)
                time_s = (
                    self._time_by(self.services[url], entry)
                    if table is None
                    else table.time_of(entry)
                )
            except (TransferError, ProblemError) as error:
                self.report(f"{url}: {error}")
                answering.discard(url)
                silent.add(url)
                continue
            if time_s is not None:
                times_s.append(time_s)
        return times_s, frozenset(silent)

    def _time_by(self, service: Service, entry: bytes) -> int | None:
        answer = service.get(f"/proof/{entry.hex()}", MOST_PROOF_BYTES)
        if answer.status == 200:
            return proved_time(LogProof.parse(answer.body), entry, self.event).time_s
        if answer.status in (202, 404):
            return None
        raise TransferError(f"the service answers {answer.status} when asked for a proof")
