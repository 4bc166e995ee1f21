"""Collects witnesses' signatures: whom to ask for which checkpoint, and how to judge answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event import strength
from datacollect.bistro.formats.log.checkpoints import (
    SIZE_STOP,
    SignedCheckpoint,
    cosigned_times,
    time_of,
    whole,
)
from datacollect.bistro.formats.log.notes import Note, parse_signatures
from datacollect.bistro.formats.log.tiles import TileReader
from datacollect.bistro.formats.log.tree import consistency_proof
from datacollect.bistro.formats.log.witnessing import ADD_CHECKPOINT, AddCheckpoint
from datacollect.bistro.formats.receipt.counted_time import kth_smallest
from datacollect.bistro.log_service.messages import Action, AskWitness, Publish, Warn
from datacollect.errors import ProblemError
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.notes import NoteSignature
    from datacollect.bistro.log_service.messages import LogReader, WitnessAnswered
    from datacollect.bistro.now import Now

# Cosignatures further ahead of the service's clock wait until they are not: one that post-dates
# would make all late. Where more are ahead than may post-date, it is the clock here that is behind.
AHEAD_S = 5.0
# So far ahead may be whom a checkpoint waits for; else others are made meanwhile.
WAITS_S = 120.0
# How long a witness that refuses, or does not answer, is left in peace: doubled each time.
RETRY_S, LONGEST_RETRY_S = 0.5, 8.0


@dataclass
class Asked:
    """A witness: what it is known to have signed, and what it was asked for."""

    known_size: int = 0
    has_told: bool = False
    is_corrected: bool = False
    under_way: int | None = None
    signed_size: int = -1
    retry_at_s: float = 0.0
    pause_s: float = RETRY_S


@dataclass
class Head:
    """A checkpoint that witnesses are asked for, and those who have signed it."""

    signed: SignedCheckpoint
    lines: dict[int, NoteSignature] = field(default_factory=dict)
    # Those that are ahead, with their times; they do not count yet.
    early: dict[int, tuple[int, NoteSignature]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Entries."""
        return self.signed.checkpoint.size

    @property
    def note(self) -> Note:
        """The checkpoint with the cosignatures that it has."""
        return self.signed.note.with_more(*(self.lines[i] for i in sorted(self.lines)))


class Witnessing:
    """The witnesses of a log, and its checkpoints that are on their way to being published.

    Parameters
    ----------
    event : Event
    reader : LogReader
    """

    def __init__(self, event: Event, reader: LogReader) -> None:
        self._event = event
        self._reader = reader
        self._asked = [Asked() for _ in event.witnesses]
        self._heads: dict[int, Head] = {}
        self.latest: Head | None = None
        self.published_size = -1
        # What witnesses have signed that this log does not hold: it was restored from an old copy,
        # or runs twice.
        self.missing = ""
        self._claims: dict[int, int] = {}
        # By witness: how far it was ahead when it last signed.
        self._ahead_s: dict[int, float] = {}
        self._said_s = 0.0
        self._now_s = 0.0

    @property
    def has_heard(self) -> bool:
        """Return whether enough witnesses have told since the start what they had signed.

        A checkpoint that was published is known to k of n. Of 2 (n - k) + 1 that tell, n - k may
        not know it; the others are more than may fail.
        """
        k, n = self._event.quorum, len(self._asked)
        return sum(asked.has_told for asked in self._asked) >= min(k, 2 * (n - k) + 1)

    def retry_at_s(self, now_s: float) -> float | None:
        """Return when the next witness is to be asked; None: not before something else happens."""
        waiting = [asked.retry_at_s for asked in self._asked if self._wants(asked) is not None]
        return max(min(waiting), now_s) if waiting else None

    def add(self, signed: SignedCheckpoint) -> None:
        """Take a checkpoint that is on the disk: it is what witnesses are asked for from now on.

        Cosignatures that it has already are kept.
        """
        own: list[NoteSignature] = []
        others: list[NoteSignature] = []
        names = [each.vkey for each in self._event.witnesses]
        for line in signed.note.signatures:
            (others if any(line.is_of(vkey) for vkey in names) else own).append(line)
        head = Head(replace(signed, note=Note(signed.note.text, tuple(own))))
        for i, vkey in enumerate(names):
            for line in others:
                if line.is_of(vkey):
                    head.lines.setdefault(i, line)
                    self._asked[i].signed_size = head.size
        self.latest = self._heads[head.size] = head
        self._forget()

    def ask(self, now: Now) -> list[Action]:
        """Return whom to ask now; each witness has one request at a time.

        And what to publish, where cosignatures count by now that were ahead. One that is ahead is
        asked again: its clock may have been set, and it is looked here whether it counts.
        """
        self._now_s = now.unix_s
        actions: list[Action] = []
        for each in self._heads.values():
            actions += self._counted(each)
        for i, asked in enumerate(self._asked):
            head = self._wants(asked)
            if head is None or now.monotonic_s < asked.retry_at_s:
                continue
            asked.under_way = head.size
            reader = TileReader(head.size, self._reader.tile)
            proof = consistency_proof(asked.known_size, head.size, reader.node)
            body = AddCheckpoint(asked.known_size, tuple(proof), head.signed).data
            actions.append(AskWitness(i, self._event.witnesses[i].url + ADD_CHECKPOINT, body))
        return actions

    def _wants(self, asked: Asked) -> Head | None:
        """Return the checkpoint that a witness is to be asked for, if any."""
        head = self.latest
        if head is None or asked.under_way is not None or self.missing:
            return None
        # Before others come: what it has signed it must tell, whether or not it signs this one.
        return head if asked.signed_size < head.size or not asked.has_told else None

    def answered(self, event: WitnessAnswered) -> list[Action]:
        """Take a witness's answer; return what to publish and to say."""
        asked = self._asked[event.witness]
        size, asked.under_way = asked.under_way, None
        if size is None:
            return []
        if event.status == 200:
            return self._cosigned(event, asked, size)
        if event.status == 409:
            return self._other_size(event, asked)
        if event.status == 422:
            # What it has signed is no beginning of this log.
            return self._claimed(event, asked.known_size)
        self._pause(asked, event.now)
        why = f"answers {event.status}" if event.status else "does not answer"
        return [Warn(f"{self._name(event.witness)} {why}{_told(event.body)}")]

    def _cosigned(self, event: WitnessAnswered, asked: Asked, size: int) -> list[Action]:
        head = self._heads[size]
        found = self._line_of(event, head)
        if isinstance(found, str):
            self._pause(asked, event.now)
            return [Warn(f"{self._name(event.witness)} {found}")]
        time_s, line = found
        asked.known_size, asked.has_told, asked.is_corrected = size, True, False
        self._claims.pop(event.witness, None)
        self._now_s = event.now.unix_s
        ahead_s = self._ahead_s[event.witness] = time_s - self._now_s
        known = head.early.get(event.witness)
        # The first counts: it is the earliest.
        if event.witness not in head.lines and (known is None or time_s < known[0]):
            head.early[event.witness] = time_s, line
        actions = [*self._differing(), *self._counted(head)]
        if event.witness in head.lines:
            asked.pause_s = RETRY_S
            return actions
        self._pause(asked, event.now)
        text = f"is {ahead_s:.0f} s ahead of the clock here; what it signs counts once that is due"
        return [*actions, Warn(f"{self._name(event.witness)} {text}")]

    @property
    def _behind_s(self) -> float:
        """Say how far the clock is behind at least, as more witnesses say than may post-date."""
        ahead_s = sorted(self._ahead_s.values(), reverse=True)
        n_believed = len(self._asked) - self._event.quorum + 1
        behind_s = ahead_s[n_believed - 1] if len(ahead_s) >= n_believed else 0.0
        return behind_s if behind_s > AHEAD_S else 0.0

    def _differing(self) -> list[Action]:
        """Return what to say of the clock here, where that is new."""
        behind_s = self._behind_s
        if abs(behind_s - self._said_s) <= AHEAD_S:
            return []
        self._said_s = behind_s
        if not behind_s:
            return [Warn("the clock here agrees with those of witnesses again")]
        return [Warn(f"the clock here is {behind_s:.0f} s behind those of witnesses; set it")]

    def _counted(self, head: Head) -> list[Action]:
        """Have early cosignatures count that are due; return what to publish then."""
        due_s = self._now_s + self._behind_s + AHEAD_S
        due = [i for i, (time_s, _) in head.early.items() if time_s <= due_s]
        for i in due:
            head.lines.setdefault(i, head.early.pop(i)[1])
            self._asked[i].signed_size = max(self._asked[i].signed_size, head.size)
        if not due:
            return []
        note = head.note
        time_s = kth_smallest(
            cosigned_times(note, self._event.witness_keys).values(), self._event.quorum
        )
        return [] if time_s is None else [Publish(head.size, note.data, time_s)]

    def _line_of(self, event: WitnessAnswered, head: Head) -> tuple[int, NoteSignature] | str:
        """Return the witness's cosignature in its answer, and its time; or why there is none."""
        vkey = self._event.witnesses[event.witness].vkey
        try:
            lines = parse_signatures(event.body.decode(), "its answer")
        except (ProblemError, UnicodeDecodeError):
            return "answers something that is no signature"
        for line in lines:
            time_s = time_of(line, head.signed.note.text, vkey)
            if time_s is not None:
                return time_s, line
        return "has not signed what it was asked for"

    def _other_size(self, event: WitnessAnswered, asked: Asked) -> list[Action]:
        """Take a witness's word that it has signed another size than it was believed to."""
        name = self._name(event.witness)
        try:
            told = whole(event.body.decode().removesuffix("\n"), "its size", SIZE_STOP)
        except (ProblemError, UnicodeDecodeError):
            self._pause(asked, event.now)
            return [Warn(f"{name} answers 409 without a size")]
        asked.has_told = True
        is_more = self.latest is not None and told > self.latest.size
        # Where the size is right, the root is not.
        if is_more or told == asked.known_size:
            return self._claimed(event, told)
        if asked.is_corrected:
            self._pause(asked, event.now)
        asked.known_size, asked.is_corrected = told, True
        return []

    def _claimed(self, event: WitnessAnswered, told: int) -> list[Action]:
        """Take a witness's claim that this log has lost entries, or that it has signed another.

        One liar must not stop a service where that can be told apart (`n_believed`).
        """
        self._claims[event.witness] = told
        self._pause(self._asked[event.witness], event.now)
        name, held = self._name(event.witness), self.latest.size if self.latest else 0
        if told > held:
            said = f"{name} has signed {told} entries of this log, and its folder holds {held}"
        else:
            said = f"{name} has signed another log of {told} entries in this one's name"
        n_believed = strength.n_believed(self._event)
        if len(self._claims) < n_believed:
            return [Warn(f"{said}; one witness alone is not believed")]
        least = sorted(self._claims.values())[-n_believed]
        if least > held:
            why = f"entries {held} to {least - 1} are missing. It was restored from an old copy"
        else:
            why = "it is not the one that was published. Two copies of it run, or have run"
        self.missing = f"{said}: {why}; restore the newest one, and start again"
        return [Warn(self.missing)]

    def published(self, size: int) -> None:
        """Take note that a checkpoint can be read by all."""
        self.published_size = max(self.published_size, size)

    @property
    def is_waiting(self) -> bool:
        """Return whether the latest checkpoint is not published, and a quorum may still sign it.

        A later one made now would part witnesses that are slow: none of the two would have enough.
        """
        head = self.latest
        if head is None or head.size <= self.published_size:
            return False
        may_come = {i for i, asked in enumerate(self._asked) if asked.under_way == head.size}
        until_s = self._now_s + WAITS_S
        may_come |= {i for i, (time_s, _) in head.early.items() if time_s <= until_s}
        return len(head.lines.keys() | may_come) >= self._event.quorum

    def _forget(self) -> None:
        """Forget earlier checkpoints for which no answer is awaited."""
        awaited = {asked.under_way for asked in self._asked}
        for size in [size for size in self._heads if size not in awaited]:
            if self._heads[size] is not self.latest:
                del self._heads[size]

    def _pause(self, asked: Asked, now: Now) -> None:
        asked.retry_at_s = now.monotonic_s + asked.pause_s
        asked.pause_s = min(2 * asked.pause_s, LONGEST_RETRY_S)

    def _name(self, witness: int) -> str:
        return f"witness {self._event.witnesses[witness].vkey.name}"


def _told(body: bytes) -> str:
    text = safe_text(body.decode(errors="replace").strip())
    return f": {text}" if text else ""
