"""All entries of a log with their times, read at once: one by one they would take hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.bistro.audit.custody_audit import logged
from datacollect.bistro.audit.log_reading import read_log
from datacollect.bistro.audit.tables import NEVER_S
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.bistro.audit.log_reading import Asks
    from datacollect.bistro.event.event import Event, Service

_ENTRY = "S32"


@dataclass(frozen=True)
class LogTable:
    """The entries of a log whose times a quorum has signed.

    Attributes
    ----------
    entries : numpy.ndarray
        32 bytes each, rising.
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
    whole = read_log(service, event, asker)
    if whole is None:
        return LogTable(np.zeros(0, _ENTRY), np.zeros(0, np.int64))
    if whole.lies:
        raise ProblemError(whole.lies[0].text)
    parts = [*logged(whole, whole.checkpoints, event, 0)]
    entries = np.frombuffer(b"".join(part["entry"].tobytes() for part in parts), _ENTRY)
    times_s = np.concatenate([part["time_s"] for part in parts])
    is_proved = times_s < NEVER_S
    entries, times_s = entries[is_proved], times_s[is_proved]
    # Of an entry that stands there twice the first time is the least.
    order = np.lexsort((times_s, entries))
    return LogTable(entries[order], times_s[order])
