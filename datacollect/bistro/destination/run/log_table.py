"""All entries of a log with their times, read at once: one by one they would take hours."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.bistro.auditor.custody_audit import logged
from datacollect.bistro.auditor.log_reading import head_of, read_log
from datacollect.bistro.auditor.tables import NEVER_S
from datacollect.bistro.formats.log.entry import ENTRY_BYTES
from datacollect.bistro.formats.receipt.counted_time import checkpoint_time
from datacollect.errors import ProblemError, TransferError
from datacollect.files.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.bistro.auditor.log_reading import Asks
    from datacollect.bistro.formats.event.event import Event, Service
    from datacollect.net.http_asking import Answer

_ENTRY = "S32"
# How long a log may take, and each million entries of it: they come in 23 s where nothing is slow.
READ_WITHIN_S, MILLION_WITHIN_S = 30.0, 100.0
MOST_PAUSE_S = 10.0


class Bounded:
    """Asks a service for so long in all: one that puts off for ever holds nobody.

    Parameters
    ----------
    asker : Asks
    within_s : float
        0: who is asked too often is not asked again.
    """

    def __init__(self, asker: Asks, within_s: float) -> None:
        self._asker, self._until_s = asker, time.monotonic() + within_s

    def get(self, path: str, most_bytes: int) -> Answer:
        """Return the answer to a path; raise `TransferError` where there is none in time."""
        while True:
            answer = self._asker.get(path, most_bytes)
            pause_s = min(answer.retry_after_s or 1.0, MOST_PAUSE_S)
            if answer.status != 429:
                pause_s = 0.0
            if time.monotonic() + pause_s > self._until_s and (pause_s or path != "/checkpoint"):
                raise TransferError("the service delays readers of its log for too long")
            if not pause_s:
                return answer
            time.sleep(pause_s)


@dataclass(frozen=True)
class LogTable:
    """The entries of a log whose times a quorum has signed.

    Attributes
    ----------
    entries : numpy.ndarray
        32 bytes each, rising, each once.
    times_s : numpy.ndarray
        By when each stood in the log, seconds since 1970.
    """

    entries: np.ndarray
    times_s: np.ndarray

    def time_of(self, entry: bytes) -> int | None:
        """Return by when an entry stood in the log; None: it does not, or nobody has signed."""
        wanted = np.array(entry, _ENTRY)
        at = int(np.searchsorted(self.entries, wanted))
        if at == len(self.entries) or self.entries[at] != wanted:
            return None
        return int(self.times_s[at])

    def in_time(self, latest_s: int) -> LogTable:
        """Return what stood there by an instant."""
        is_in_time = self.times_s <= latest_s
        return LogTable(self.entries[is_in_time], self.times_s[is_in_time])

    def rows(self, places: np.ndarray) -> list[tuple[int, bytes]]:
        """Return the times and the entries at some places."""
        data = self.entries[places].tobytes()
        entries = (data[i : i + ENTRY_BYTES] for i in range(0, len(data), ENTRY_BYTES))
        return [*zip(self.times_s[places].tolist(), entries, strict=True)]

    def until(self, latest_s: int) -> frozenset[bytes]:
        """Return the entries that stood there by an instant."""
        data = self.entries[self.times_s <= latest_s].tobytes()
        return frozenset(data[i : i + 32] for i in range(0, len(data), 32))


def read_table(service: Service, event: Event, asker: Asks) -> LogTable:
    """Read a log whole.

    Raises
    ------
    TransferError, ProblemError
        It does not answer, or not what can be read, or its entries do not make what it has signed.
    """
    nothing = joined(())
    head = head_of(service, Bounded(asker, READ_WITHIN_S))
    if head is None:
        return nothing
    size = head.checkpoint.size
    # A service alone may say that its log is as long as it likes.
    if checkpoint_time(head, event).time_s is None:
        n_entries = counted(size, "entry", "entries")
        raise ProblemError(
            f"no quorum of witnesses has signed this service's log of {n_entries}, so the log is "
            "not read"
        )
    within_s = READ_WITHIN_S + MILLION_WITHIN_S * size / 1e6
    whole = read_log(service, event, Bounded(asker, within_s), head=head)
    if whole is None or whole.log.size == 0:
        return nothing
    if whole.lies:
        raise ProblemError(whole.lies[0].text)
    parts = [*logged(whole, whole.checkpoints, event, 0)]
    entries = np.frombuffer(b"".join(part["entry"].tobytes() for part in parts), _ENTRY)
    times_s = np.concatenate([part["time_s"] for part in parts])
    is_proved = times_s < NEVER_S
    return joined([LogTable(entries[is_proved], times_s[is_proved])])


def joined(tables: Iterable[LogTable]) -> LogTable:
    """Return several logs as one: each entry once, with the least of its times."""
    some = [LogTable(np.zeros(0, _ENTRY), np.zeros(0, np.int64)), *tables]
    entries = np.concatenate([each.entries for each in some])
    times_s = np.concatenate([each.times_s for each in some])
    order = np.lexsort((times_s, entries))
    entries, firsts = np.unique(entries[order], return_index=True)
    return LogTable(entries, times_s[order][firsts])
