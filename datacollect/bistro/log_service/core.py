"""State machine of a log service (sans I/O): events in, actions out.

An entry is collected, kept on the disk with others of the same moment, and only then acknowledged.
Once a second, while anything changes, a checkpoint over all that is kept is kept itself, with its
tiles, before a witness sees it; once a quorum has signed, it is published, and again with each
cosignature that comes later. A service that starts asks what witnesses have signed before it takes
anything: where that is more than its folder holds, it was restored from an old copy, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.amendments import amended, check_amendment, read_amendment
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.checkpoints import Checkpoint, SignedCheckpoint, sign_checkpoint
from datacollect.bistro.formats.log.commit import MOST_ENTRIES
from datacollect.bistro.formats.log.entry import ENTRY_BYTES
from datacollect.bistro.formats.log.tiles import TILE_WIDTH, Edge, Tile, bundle_of
from datacollect.bistro.formats.log.tree import leaf_hash
from datacollect.bistro.log_service import messages, requests
from datacollect.bistro.log_service.admission import Admission, TooManyError
from datacollect.bistro.log_service.messages import (
    Acknowledge,
    Action,
    Refuse,
    Row,
    Store,
    StoreHead,
)
from datacollect.bistro.log_service.witnessing import Witnessing
from datacollect.errors import ProblemError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.acknowledgement import Acknowledgement
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.bistro.log_service.messages import Kept, LogReader
    from datacollect.bistro.now import Now
    from datacollect.net.keys import PrivateKey

# Entries of so long go to the disk together; a checkpoint comes so often while anything changes.
GROUP_S = 0.02
CHECKPOINT_S = 1.0

# Entries that are not on the disk yet: beyond, people are told to come again.
MOST_COLLECTED = 100_000
# The latest acknowledgements are kept: asking again costs nothing of a quota.
MOST_WORDS = 50_000


@dataclass
class _Waiting:
    """A request whose entries are on their way to the disk."""

    request: int
    entries: tuple[bytes, ...]
    indices: tuple[int, ...]


@dataclass
class _Collected:
    """Entries that are not on the disk yet, in the order of their indices."""

    rows: list[Row] = field(default_factory=list)
    index_of: dict[bytes, int] = field(default_factory=dict)
    by_ticket: dict[str, int] = field(default_factory=dict)

    def add(self, entry: bytes, ticket: str | None, index: int) -> None:
        self.rows.append(Row(entry, ticket))
        self.index_of[entry] = index
        if ticket is not None:
            self.by_ticket[ticket] = self.by_ticket.get(ticket, 0) + 1

    def drop(self, rows: tuple[Row, ...]) -> None:
        """Forget the first entries: they are on the disk."""
        del self.rows[: len(rows)]
        for row in rows:
            del self.index_of[row.entry]
            if row.ticket is not None:
                self.by_ticket[row.ticket] -= 1
                if not self.by_ticket[row.ticket]:
                    del self.by_ticket[row.ticket]


class ServiceCore:
    """State machine of a service: what it holds and has promised, and what it does next.

    Parameters
    ----------
    event : Event
        As its file says.
    key : PrivateKey
        Of one of the event's logs.
    kept : Kept
        What the log's folder holds.
    reader : LogReader

    Raises
    ------
    ProblemError
        The key is of none of the event's logs, or what is kept is not of this log.

    Attributes
    ----------
    wake_s : float or None
        When to tell `Ticked` at the latest, by the monotonic clock; None: not before something
        else happens.
    """

    def __init__(self, event: Event, key: PrivateKey, kept: Kept, reader: LogReader) -> None:
        self.log = log_of(event, key)
        self._is_verdicts = self.log == event.verdicts
        self._key = key
        self._reader = reader
        notes = [] if self._is_verdicts else reader.amendments()
        amendments = [read_amendment(note, event) for _, note in notes]
        self._admission = Admission(amended(event, amendments), self.log.key)
        self._n_amendments = len(amendments)
        self._original = event
        self._n_stored = kept.n_entries
        self._collected = _Collected()
        self._storing: Store | None = None
        self._waiting: list[_Waiting] = []
        self._words: dict[int, Acknowledgement] = {}
        self._witnessing = Witnessing(event, reader)
        self._witnessing.published_size = kept.published_size
        self._head_under_way: SignedCheckpoint | None = None
        self._edge, self._bundle = Edge(), list[bytes]()
        if kept.head is not None:
            self._go_on(kept.head)
        self._grouped_s = self._headed_s = float("-inf")
        self.wake_s: float | None = 0.0

    @property
    def event(self) -> Event:
        """The event as amendments have left it."""
        return self._admission.event

    @property
    def is_ready(self) -> bool:
        """Say whether witnesses have told enough for this log to go on, and it misses nothing."""
        return not self.missing and self._witnessing.has_heard

    @property
    def missing(self) -> str:
        """Return what the folder lacks of what witnesses have signed, in words.

        Empty: nothing known.
        """
        return self._witnessing.missing

    @property
    def published_size(self) -> int:
        """Entries of the largest published checkpoint; -1: there is none."""
        return self._witnessing.published_size

    def handle(self, event: messages.Event) -> list[Action]:
        """Return what is to be done now that this has happened, in this order."""
        handlers: dict[type, Callable[[Any], list[Action]]] = {
            requests.CommitAsked: self._commit_asked,
            requests.AmendAsked: self._amend_asked,
            messages.RecordAsked: self._record_asked,
            messages.Stored: self._stored,
            messages.HeadStored: self._head_stored,
            messages.WitnessAnswered: self._witnessing.answered,
            messages.Published: self._published,
            messages.Ticked: lambda _: [],
        }
        actions = handlers[type(event)](event)
        actions += self._store(event.now) + self._make_head(event.now)
        actions += self._witnessing.ask(event.now)
        self.wake_s = self._next_wake_s(event.now.monotonic_s)
        return actions

    # Entries ---------------------------------------------------------------------------------

    def _commit_asked(self, asked: requests.CommitAsked) -> list[Action]:
        try:
            self._require_public()
            self._require_ready()
            unlike = len({*asked.entries}) < len(asked.entries)
            wrong = any(len(entry) != ENTRY_BYTES for entry in asked.entries)
            if not 1 <= len(asked.entries) <= MOST_ENTRIES or wrong or unlike:
                what = (
                    f"a request must have 1 to {MOST_ENTRIES} different entries of {ENTRY_BYTES} "
                    "bytes"
                )
                raise RefusedError(what, 400, is_final=True)
            now = asked.now
            ticket = self._admission.admit(
                asked.ticket, asked.entries, asked.address, now.monotonic_s, now.unix_s
            )
            indices = self._indices(asked.entries, ticket)
        except RefusedError as error:
            return [refusal(asked.request, error)]
        return self._wait_or_answer(asked.request, asked.entries, indices, now)

    def _amend_asked(self, asked: requests.AmendAsked) -> list[Action]:
        try:
            self._require_public()
            self._require_ready()
            self._admission.count_address(asked.address, asked.now.monotonic_s)
            amendment = read_amendment(asked.note, self._original)
            if self._index_of(asked.note) is None:
                if amendment.number != self._n_amendments + 1:
                    raise ProblemError(
                        f"number must be {self._n_amendments + 1}, got {amendment.number}; "
                        "publish the earlier amendments first"
                    )
                check_amendment(self.event, amendment)
                self._admission.amended(amended(self.event, [amendment]))
                self._n_amendments += 1
            indices = self._indices((asked.note,), None)
        except (RefusedError, ProblemError) as error:
            return [refusal(asked.request, error)]
        return self._wait_or_answer(asked.request, (asked.note,), indices, asked.now)

    def _record_asked(self, asked: messages.RecordAsked) -> list[Action]:
        """Take what the log's owner says: entries of its own, whatever they say, as one knows."""
        try:
            self._require_ready()
            indices = self._indices(asked.entries, None)
        except RefusedError as error:
            return [refusal(asked.request, error)]
        return self._wait_or_answer(asked.request, asked.entries, indices, asked.now)

    def _require_public(self) -> None:
        if self._is_verdicts:
            raise RefusedError("only the destination writes into this log", 403, is_final=True)

    def _require_ready(self) -> None:
        if self.missing:
            raise RefusedError(f"this log accepts nothing: {self.missing}", 503)
        if not self.is_ready:
            raise RefusedError("the service is starting; try again", 503)
        if len(self._collected.rows) > MOST_COLLECTED:
            raise RefusedError("the service's disk is too slow for the load; try again", 503)

    def _indices(self, entries: tuple[bytes, ...], ticket: str | None) -> tuple[int, ...]:
        """Return where entries stand or will; those that are new are collected, all or none."""
        found = [self._index_of(entry) for entry in entries]
        n_new = found.count(None)
        if ticket is not None and n_new:
            n_used = self._reader.used(ticket) + self._collected.by_ticket.get(ticket, 0)
            self._admission.check_quota(n_used, n_new)
        indices = []
        for entry, index in zip(entries, found, strict=True):
            if index is None:
                index = self._n_stored + len(self._collected.rows)
                self._collected.add(entry, ticket, index)
            indices.append(index)
        return tuple(indices)

    def _index_of(self, entry: bytes) -> int | None:
        collected = self._collected.index_of.get(entry)
        return self._reader.index_of(entry) if collected is None else collected

    def _wait_or_answer(
        self, request: int, entries: tuple[bytes, ...], indices: tuple[int, ...], now: Now
    ) -> list[Action]:
        waiting = _Waiting(request, entries, indices)
        if max(indices) < self._n_stored:
            return [self._answer(waiting, now)]
        self._waiting.append(waiting)
        return []

    def _answer(self, waiting: _Waiting, now: Now) -> Acknowledge:
        words = (
            self._word(entry, index, now)
            for entry, index in zip(waiting.entries, waiting.indices, strict=True)
        )
        return Acknowledge(waiting.request, tuple(words))

    def _word(self, entry: bytes, index: int, now: Now) -> Acknowledgement:
        """Return the log's word for an entry; who comes again gets the same without a signature."""
        word = self._words.get(index)
        if word is None:
            if len(self._words) >= MOST_WORDS:
                del self._words[next(iter(self._words))]
            word = acknowledge(self.log.name, entry, index, int(now.unix_s), self._key)
            self._words[index] = word
        return word

    def _store(self, now: Now) -> list[Action]:
        """Have what was collected kept, unless that is under way, or was so a moment ago."""
        due = now.monotonic_s >= self._grouped_s + GROUP_S
        if self._storing or not self._collected.rows or not due:
            return []
        self._grouped_s = now.monotonic_s
        self._storing = Store(self._n_stored, tuple(self._collected.rows))
        return [self._storing]

    def _stored(self, event: messages.Stored) -> list[Action]:
        if self._storing is None or event.stop != self._storing.first + len(self._storing.rows):
            return []
        self._collected.drop(self._storing.rows)
        self._n_stored, self._storing = event.stop, None
        done = [each for each in self._waiting if max(each.indices) < self._n_stored]
        self._waiting = [each for each in self._waiting if max(each.indices) >= self._n_stored]
        return [self._answer(each, event.now) for each in done]

    # Checkpoints -----------------------------------------------------------------------------

    def _make_head(self, now: Now) -> list[Action]:
        """Have a checkpoint over all that is kept be kept itself, if it is time for one."""
        if not self._may_make_head or now.monotonic_s < self._headed_s + CHECKPOINT_S:
            return []
        latest = self._witnessing.latest
        self._headed_s = now.monotonic_s
        stop = self._n_stored if latest else 0
        tiles = self._grow(self._reader.entries(self._edge.size, stop))
        checkpoint = Checkpoint(self.log.name, stop, self._edge.root())
        self._head_under_way = SignedCheckpoint(checkpoint, sign_checkpoint(checkpoint, self._key))
        return [StoreHead(stop, self._head_under_way.note.data, tuple(tiles))]

    @property
    def _may_make_head(self) -> bool:
        """Say whether there is something for a checkpoint, and nothing to be waited for before."""
        latest = self._witnessing.latest
        if self._head_under_way or self._witnessing.is_waiting:
            return False
        # The first one, of a new log, asks witnesses what they know; later ones wait for that.
        return latest is None or (self.is_ready and latest.size < self._n_stored)

    def _grow(self, entries: list[bytes]) -> list[tuple[Tile, bytes]]:
        """Add entries to the tree; return the tiles that are new by it."""
        tiles = []
        for entry in entries:
            self._bundle.append(entry)
            full = self._edge.append(leaf_hash(entry))
            if full:
                tiles.append((Tile(-1, full[0][0].index), bundle_of(self._bundle)))
                self._bundle.clear()
            tiles += full
        if self._bundle:
            index = self._edge.size // TILE_WIDTH
            tiles.append((Tile(-1, index, len(self._bundle)), bundle_of(self._bundle)))
        return tiles + self._edge.partial_tiles()

    def _head_stored(self, event: messages.HeadStored) -> list[Action]:
        head = self._head_under_way
        if head is None or head.checkpoint.size != event.size:
            return []
        self._head_under_way = None
        self._witnessing.add(head)
        return []

    def _published(self, event: messages.Published) -> list[Action]:
        self._witnessing.published(event.size)
        return []

    def _go_on(self, head: bytes) -> None:
        """Take up the log where its folder has left it."""
        signed = SignedCheckpoint.parse(head, "the checkpoint in the log's folder")
        size = signed.checkpoint.size
        self._edge = Edge.read(size, self._reader.tile)
        self._bundle = self._reader.entries(size - size % TILE_WIDTH, size)
        if not signed.is_of(self.log) or self._edge.root() != signed.checkpoint.root:
            raise ProblemError(
                f"the log's folder holds another log than {self.log.name}, or is damaged: its "
                "checkpoint and its tiles contradict each other; restore the newest copy"
            )
        self._witnessing.add(signed)

    def _next_wake_s(self, now_s: float) -> float | None:
        times = [self._witnessing.retry_at_s(now_s)]
        if self._collected.rows and not self._storing:
            times.append(self._grouped_s + GROUP_S)
        if self._may_make_head:
            times.append(self._headed_s + CHECKPOINT_S)
        known = [time_s for time_s in times if time_s is not None]
        return min(known, default=None)


def log_of(event: Event, key: PrivateKey) -> VerifierKey:
    """Return the log of an event that a key keeps; raise `ProblemError` where it is of none."""
    logs = [service.log for service in event.services]
    for log in (*logs, event.verdicts):
        if log is not None and log.key == key.public:
            return log
    raise ProblemError(
        "key must be the private key of one of the event's services, or of its log of verdicts, "
        f"got the one of {key.public}; the event's file lists their public keys"
    )


def refusal(request: int, error: RefusedError | ProblemError) -> Refuse:
    """Return how a request is refused for an error."""
    if isinstance(error, ProblemError):
        return Refuse(request, 400, str(error))
    retry_after_s = error.retry_after_s if isinstance(error, TooManyError) else None
    return Refuse(request, error.status, str(error), 1.0 if error.status == 503 else retry_after_s)
