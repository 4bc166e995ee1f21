"""Reports of a receiver, ten times a second, and whether they can be so."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

EACH_S = 0.1
_STOP = 2**62


@dataclass(frozen=True)
class ReceiverReport:
    """Sums since a connection was opened.

    Attributes
    ----------
    number : int
        Of the report, from 1 on.
    n_packets : int
        One above the newest number of a packet that has arrived.
    n_lost, n_events : int
        Packets below that have not, and runs of them.
    n_host : int
        How often this host had no room for what came.
    n_received : int
        Messages that are written, or are to be.
    n_twice, n_late, n_foreign : int
        Packets that came twice, too late for their place, or are none of the feed's.
    """

    number: int
    n_packets: int
    n_lost: int
    n_events: int
    n_host: int
    n_received: int
    n_twice: int
    n_late: int
    n_foreign: int

    def to_dict(self) -> dict[str, int]:
        """Return a plain tree."""
        return asdict(self)

    @classmethod
    def from_dict(cls, tree: Any) -> ReceiverReport | None:
        """Return what a receiver has told; None where that is no report.

        >>> ReceiverReport.from_dict({"number": -1}) is None
        True
        """
        names = {each.name for each in fields(cls)}
        if not isinstance(tree, dict) or tree.keys() != names:
            return None
        if not all(type(value) is int and 0 <= value < _STOP for value in tree.values()):
            return None
        return cls(**tree)

    def can_follow(self, before: ReceiverReport | None, n_sent: int) -> bool:
        """Return whether it is newer than another, and what both say is possible.

        Of reordered packets some are missing for a while, so that losses may become fewer.
        """
        if not (
            self.n_events <= self.n_lost <= self.n_packets <= n_sent
            and self.n_received <= self.n_packets - self.n_lost
        ):
            return False
        return before is None or (
            self.number > before.number
            and self.n_packets >= before.n_packets
            and self.n_host >= before.n_host
            and self.n_received >= before.n_received
        )
