"""Bistros and destinations: those that keep their word, and each kind of liar among them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import numpy as np
from instances.custody import BISTROS, commitment_of, custody_event
from instances.events import key_of, owners_signature

from datacollect.bistro.formats.custody.batches import FIRST, ROW, Batch, row_of, sign_batch
from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    LATE,
    OTHER_TICKET,
    REFUSED,
    SUPERSEDED,
    Verdict,
)
from datacollect.bistro.formats.event.statements import push_statement
from datacollect.bistro.formats.log.entry import Commitment

EVENT = custody_event()


@dataclass(frozen=True)
class Upload:
    """What somebody pushes: sealed bytes, whose ticket is inside the seal, and whose pushes it."""

    commitment: Commitment
    data: bytes
    sealed_for: int
    ticket: int
    at_s: float
    is_anew: bool = False

    @property
    def entry(self) -> bytes:
        return self.commitment.entry


def pushed_row(bistro: str, commitment: Commitment, size: int, digest: bytes) -> tuple:
    """Return a row of a bistro to which the owner has pushed such bytes."""
    signature = _owners(bistro, commitment.entry, digest, size, commitment.owner)
    number = int.from_bytes(hashlib.sha256(commitment.entry + digest).digest()[:7], "big")
    return row_of(commitment, size, digest, bytes(16), 0, signature, upload=number)


def handed_in(batch: Batch) -> Iterator[bytes]:
    """Yield the entries of the rows for which their owners have signed, whatever else there is."""
    for row in batch.rows:
        entry, digest, owner = (bytes(row[name]) for name in ("entry", "sha256", "owner"))
        signature = _owners(batch.bistro, entry, digest, int(row["size"]), owner)
        if bytes(row["signature"]) == signature != bytes(64):
            yield entry


def _owners(bistro: str, entry: bytes, digest: bytes, size: int, owner: bytes | None) -> bytes:
    key = next(each.key for each in EVENT.bistros if each.name == bistro)
    return owners_signature(push_statement(EVENT.id, key, entry, digest, size, bytes(16)), owner)


class Bistro:
    """Holds what it has signed for, and reports it in batches."""

    is_honest = True

    def __init__(self, random: Random, name: str, victims: set[int]) -> None:
        self.random, self.name, self.victims = random, name, victims
        self.held: dict[bytes, Upload] = {}
        self.batches: list[Batch] = []
        self._rows: list[tuple] = []

    def take(self, upload: Upload) -> str:
        """Keep an upload; return the receipt."""
        self.held[upload.entry] = upload
        digest = hashlib.sha256(upload.data).digest()
        self.report(pushed_row(self.name, upload.commitment, len(upload.data), digest))
        token = self.receipt(upload, digest)
        if self.random.random() < 0.5:
            self.close()
        return token

    def hear(self, commitment: Commitment) -> None:
        """Take note of what somebody's receipt shows."""

    def receipt(self, upload: Upload, digest: bytes) -> str:
        receipt = BistroReceipt(
            *(EVENT.id, self.name, upload.entry, len(upload.data), digest, upload.is_anew),
            *(len(self.batches), 0),
        )
        return receipt.signed(key_of(self.name))

    def report(self, row: tuple) -> None:
        self._rows.append(row)

    def close(self) -> None:
        previous = self.batches[-1].digest if self.batches else FIRST
        self.batches.append(self.signed(len(self.batches), previous, self._rows))
        self._rows = []

    def signed(self, number: int, previous: bytes, rows: list[tuple], time_s: int = 0) -> Batch:
        key = key_of(self.name)
        return sign_batch(EVENT, self.name, number, previous, time_s, np.array(rows, ROW), key)

    def shown(self) -> list[Batch]:
        return self.batches

    def serve(self, entry: bytes) -> Upload | None:
        return self.held.get(entry)


class LyingBistro(Bistro):
    """`has_lied` once what it has signed, and auditors see, does not fit together."""

    is_honest = False
    has_lied = False


class Losing(LyingBistro):
    """Loses what it has acknowledged."""

    def serve(self, entry: bytes) -> Upload | None:
        upload = super().serve(entry)
        return None if upload is None or upload.ticket in self.victims else upload


class Altering(LyingBistro):
    """Serves other bytes than it has signed for."""

    def serve(self, entry: bytes) -> Upload | None:
        upload = super().serve(entry)
        if upload is None or upload.ticket not in self.victims:
            return upload
        return Upload(upload.commitment, b"x", -1, upload.ticket, upload.at_s, upload.is_anew)


class Inventing(LyingBistro):
    """Reports uploads that nobody has committed to."""

    def close(self) -> None:
        commitment = commitment_of(EVENT, f"{self.random.random()}")
        row = pushed_row(self.name, commitment, 1, bytes(32))
        self.report((self.random.randbytes(32), *row[1:]))
        self.has_lied = True
        super().close()


class Stuffing(LyingBistro):
    """Reports uploads that it has committed to itself, and that no log has."""

    def close(self) -> None:
        commitment = commitment_of(EVENT, f"{self.random.random()}")
        self.report(pushed_row(self.name, commitment, 1, bytes(32)))
        super().close()


class Attributing(LyingBistro):
    """Reports junk as if somebody had sealed it anew, of whom it has a receipt, and no key."""

    def __init__(self, random: Random, name: str, victims: set[int]) -> None:
        super().__init__(random, name, victims)
        self._heard: list[Commitment] = []

    def hear(self, commitment: Commitment) -> None:
        self._heard.append(commitment)

    def close(self) -> None:
        if self._heard:
            commitment, digest = self.random.choice(self._heard), self.random.randbytes(32)
            stolen = pushed_row(BISTROS[1], commitment, 4, digest)[10]
            forged = self.random.choice([bytes(64), key_of(self.name).sign(digest), stolen])
            self.report(row_of(commitment, 4, digest, bytes(16), 0, forged))
            self.has_lied = True
        super().close()


class Hiding(LyingBistro):
    """Never shows one of its batches."""

    def shown(self) -> list[Batch]:
        return [each for each in self.batches if each.number != 1]


class Forking(LyingBistro):
    """Shows two batches of one number."""

    def shown(self) -> list[Batch]:
        if not self.batches:
            return []
        one = self.batches[-1]
        self.has_lied = True
        return [*self.batches, self.signed(one.number, one.previous, [], time_s=1)]


class Unchaining(LyingBistro):
    """Puts another first batch into its chain afterwards."""

    def shown(self) -> list[Batch]:
        if len(self.batches) < 2:
            return self.batches
        self.has_lied = True
        return [self.signed(0, FIRST, [], time_s=1), *self.batches[1:]]


class Skipping(LyingBistro):
    """Signs receipts, and reports nothing of it."""

    def report(self, row: tuple) -> None:
        if self.held[row[0]].ticket not in self.victims:
            super().report(row)


class HoldingOther(LyingBistro):
    """Signs that it holds other bytes than were committed to."""

    def receipt(self, upload: Upload, digest: bytes) -> str:
        return super().receipt(upload, bytes(32) if upload.ticket in self.victims else digest)


LYING_BISTROS = (
    *(Losing, Altering, Inventing, Stuffing, Hiding, Forking, Unchaining, Skipping),
    *(HoldingOther, Attributing),
)


class Destination:
    """Opens what was logged in time and is served; says so once it is collected.

    Parameters
    ----------
    random : Random
    bistros : list of Bistro
    is_in_time : function
        Whether an entry is, by the logs.
    victims : set of int
        Tickets that a liar treats in another way.
    """

    is_honest = True
    name = "destination"

    def __init__(
        self,
        random: Random,
        bistros: list[Bistro],
        is_in_time: Callable[[bytes], bool],
        victims: set[int],
    ) -> None:
        self.random, self.bistros, self.victims = random, bistros, victims
        self._is_in_time = is_in_time
        self.log: list[bytes] = []
        self.state: dict[bytes, str] = {}
        self._of_ticket: dict[int, list[Upload]] = {}

    def say(self, entry: bytes, word: str, why: str = "") -> None:
        self.log.append(Verdict(EVENT.id, entry, word, why).data)
        self.state[entry] = word

    def look(self) -> None:
        """Take what bistros report and serve by now."""
        reported = [
            entry
            for bistro in self.bistros
            for batch in bistro.shown()
            for entry in handed_in(batch)
        ]
        for entry in dict.fromkeys(reported):
            if self.state.get(entry, REFUSED) == REFUSED and self._is_in_time(entry):
                self._take(entry)

    def _take(self, entry: bytes) -> None:
        served = [each for bistro in self.bistros if (each := bistro.serve(entry)) is not None]
        opened = [each for each in served if each.sealed_for >= 0]
        if not served:
            return
        if opened and opened[0].ticket == opened[0].sealed_for:
            self.collected(opened[0])
        elif self.state.get(entry) != REFUSED:
            self.say(entry, REFUSED, OTHER_TICKET if opened else DOES_NOT_OPEN)

    def collected(self, upload: Upload) -> None:
        """The last draft of a ticket counts."""
        self.say(upload.entry, COLLECTED)
        drafts = self._of_ticket.setdefault(upload.ticket, [])
        drafts.append(upload)
        last = max(drafts, key=lambda each: each.at_s)
        for each in drafts:
            if each is not last and self.state[each.entry] == COLLECTED:
                self.say(each.entry, SUPERSEDED, last.entry.hex())


class LyingDestination(Destination):
    """`has_lied` once its log of verdicts does not fit together."""

    is_honest = False
    has_lied = False

    def collected(self, upload: Upload) -> None:
        if upload.ticket in self.victims:
            self.lie(upload)
        else:
            super().collected(upload)

    def lie(self, upload: Upload) -> None:
        """Do something else with a victim's upload."""


class Ignoring(LyingDestination):
    """Says nothing of what it has been given."""


class Denying(LyingDestination):
    """Says that it does not open."""

    def lie(self, upload: Upload) -> None:
        if self.state.get(upload.entry) is None:
            self.say(upload.entry, REFUSED, DOES_NOT_OPEN)


class SayingLate(LyingDestination):
    """Says that it came too late."""

    def lie(self, upload: Upload) -> None:
        if self.state.get(upload.entry) is None:
            self.say(upload.entry, REFUSED, LATE)


class Contradicting(LyingDestination):
    """Takes back what it has collected."""

    def lie(self, upload: Upload) -> None:
        if self.state.get(upload.entry) is None:
            self.say(upload.entry, COLLECTED)
            self.say(upload.entry, REFUSED, DOES_NOT_OPEN)
            self.has_lied = True


class Displacing(LyingDestination):
    """Says that something counts instead that it has not collected."""

    def lie(self, upload: Upload) -> None:
        if self.state.get(upload.entry) is None:
            other = self.random.choice([upload.entry, bytes(32)])
            self.say(upload.entry, SUPERSEDED, other.hex())
            self.has_lied = True


class Rambling(LyingDestination):
    """Writes what is no verdict."""

    def lie(self, upload: Upload) -> None:
        self.log.append(b"whatever")
        self.has_lied = True


LYING_DESTINATIONS = (Ignoring, Denying, SayingLate, Contradicting, Displacing, Rambling)
