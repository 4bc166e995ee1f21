"""Event: what its file says, and what was changed since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.content import CONTENT_FORMATS
from datacollect.bistro.formats.log.entry import MARKED_BYTES
from datacollect.files.clock import Clock, zone_of

if TYPE_CHECKING:
    from datacollect.bistro.formats.log.notes import VerifierKey


@dataclass(frozen=True)
class Service:
    """Service, which keeps a log of the event: where, and the key of the log."""

    url: str
    log: VerifierKey


@dataclass(frozen=True)
class Witness:
    """Witness, which signs by when a log had reached its size: where, and its key."""

    url: str
    vkey: VerifierKey


@dataclass(frozen=True)
class Bistro:
    """An upload server; `fingerprint` or `ca` says whose certificate is its."""

    name: str
    url: str
    key: str
    fingerprint: str | None = None
    ca: str | None = None


@dataclass(frozen=True)
class Authority:
    """An outside clock: where, and the certificates that its answers lead to, PEM."""

    url: str
    certificate: str


@dataclass(frozen=True)
class EndedLog:
    """A log of verdicts that an amendment has ended by naming another.

    Attributes
    ----------
    log : VerifierKey
    ended_s : int or None
        By when that amendment stood in a log of the event, seconds since 1970; None: not known
        here.
    """

    log: VerifierKey
    ended_s: int | None


@dataclass(frozen=True)
class Event:
    """An event, amendments included where it was `amended`.

    Attributes
    ----------
    id : bytes
        SHA-256 of the file's bytes.
    name, timezone : str
    opens_s, deadline_s, collect_until_s, keep_until_s : int
        Seconds since 1970.
    lag_s : int
    organiser : str
        Public key.
    recipients : tuple of str
    admission, counts : str
    quorum : int
        How many witnesses make a time.
    most_bytes : int or None
    commitments_per_ticket : int
    services, witnesses, bistros, authorities : tuples
    verdicts : VerifierKey or None
        The log of verdicts that is written now.
    verdicts_url : str or None
        Where the log of verdicts is read; None: people cannot ask it.
    revoked : frozenset of bytes
        Hashes of tickets that no longer count.
    revoked_since : frozenset of (bytes, int)
        Such a hash, and by when a log has published that.
    version : int
        Of its format: 1 is only read, nothing is handed in any more.
    never_came : str
        Where the draft that would count never came: ``"another"`` of the person's counts, or
        ``"none"``.
    content : str
        One of ``CONTENT_FORMATS`` of ``formats.log.content``: how files are committed to.
    most_files : int
        How many files one draft may have.
    alone : bool
        Whether who keeps the event is its only witness.
    ended_verdicts : tuple of EndedLog
        Logs of verdicts before it, the oldest first: what they had proved by then stands.
    cancelled : str or None
        Why it has ended for good: nothing more is taken, nor collected.
    """

    id: bytes
    name: str
    timezone: str
    opens_s: int
    deadline_s: int
    lag_s: int
    collect_until_s: int
    keep_until_s: int
    organiser: str
    recipients: tuple[str, ...]
    admission: str
    counts: str
    quorum: int
    most_bytes: int | None
    commitments_per_ticket: int
    services: tuple[Service, ...]
    witnesses: tuple[Witness, ...]
    verdicts: VerifierKey | None
    bistros: tuple[Bistro, ...]
    authorities: tuple[Authority, ...]
    revoked: frozenset[bytes] = frozenset()
    revoked_since: frozenset[tuple[bytes, int]] = frozenset()
    verdicts_url: str | None = None
    version: int = 2
    never_came: str = "another"
    content: str = CONTENT_FORMATS[0]
    most_files: int = 1
    alone: bool = False
    ended_verdicts: tuple[EndedLog, ...] = ()
    cancelled: str | None = None

    @property
    def is_signed_for(self) -> bool:
        """Return whether who hands in signs for it.

        In events of version 1 tickets were words alone.
        """
        return self.version > 1

    @property
    def has_marks(self) -> bool:
        """Return whether entries say to their destination of which ticket they are.

        An event whose files nobody collects has nobody to whom they could.
        """
        return self.is_signed_for and self.admission == "tickets" and self.verdicts is not None

    @property
    def has_proofs(self) -> bool:
        """Return whether who hands in gets what shows, by itself, which file it was."""
        return self.content != CONTENT_FORMATS[0]

    @property
    def marks_log(self) -> VerifierKey | None:
        """The log of verdicts by whose key entries are marked: the first, whatever succeeds it."""
        return self.ended_verdicts[0].log if self.ended_verdicts else self.verdicts

    def mark_in(self, entry: bytes) -> bytes | None:
        """Return what of an entry is its mark; None where those of the event have none."""
        return entry[MARKED_BYTES:] if self.has_marks else None

    @property
    def latest_s(self) -> int:
        """The last second in time, by witnesses' clocks: the deadline and the lag."""
        return self.deadline_s + self.lag_s

    @property
    def cancelled_text(self) -> str | None:
        """Say that it was cancelled, and why; None: it was not."""
        return None if self.cancelled is None else f"the event was cancelled: {self.cancelled}"

    def revoked_s(self, token_sha256: bytes) -> int | None:
        """Return by when a log had published that a ticket is revoked; None: none has."""
        times_s = [time_s for which, time_s in self.revoked_since if which == token_sha256]
        return min(times_s, default=None)

    def clock_text(self, time_s: float) -> str:
        """Write an instant as the event's own clocks show it."""
        return Clock(datetime(1970, 1, 1, tzinfo=UTC), zone_of(self.timezone)).text(time_s)

    def log_of(self, origin: str) -> VerifierKey | None:
        """Return the key of the event's log of that origin, if it has one."""
        return next((each.log for each in self.services if each.log.name == origin), None)

    @property
    def log_keys(self) -> tuple[VerifierKey, ...]:
        """The keys of all logs, that of verdicts too: witnesses sign for these."""
        verdicts = () if self.verdicts is None else (self.verdicts,)
        return (*(each.log for each in self.services), *verdicts)

    @property
    def witness_keys(self) -> tuple[VerifierKey, ...]:
        """The keys of all witnesses."""
        return tuple(each.vkey for each in self.witnesses)
