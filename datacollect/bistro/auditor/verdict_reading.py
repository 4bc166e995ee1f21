"""The destination's log of verdicts, over HTTP or as files."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from datacollect.bistro.auditor.findings import DESTINATION
from datacollect.bistro.auditor.log_reading import head_of, read_tree
from datacollect.bistro.auditor.tables import DISPLACED, SAID
from datacollect.bistro.auditor.tally import COLLECTED_CODE, REFUSED_CODE, SUPERSEDED_CODE
from datacollect.bistro.formats.custody.collected import collected_verdict
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    REFUSED,
    SUPERSEDED,
    Verdict,
    read_verdict,
    reasons_of,
)
from datacollect.bistro.formats.event.event import Service
from datacollect.bistro.formats.log.checkpoints import cosigned_times
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.counted_time import verdict_time
from datacollect.bistro.formats.receipt.evidence import Lie, two_heads
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name
from datacollect.files.units import counted
from datacollect.net.http_asking import Answer, Asker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from datacollect.bistro.auditor.log_reading import Asks
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint
    from datacollect.bistro.formats.receipt.receipt import Receipt

    # Takes the name of a table and rows of it.
    Take = Callable[[str, np.ndarray], None]

# Verdicts that are told at once.
N_TOGETHER = 16_384


@dataclass(frozen=True)
class VerdictsRead:
    """Verdicts read from a log."""

    where: str
    size: int = 0
    n_witnesses: int = 0
    lies: tuple[Lie, ...] = ()


class Folder:
    """Answers for a log from its files: ``checkpoint`` and ``tile/…``, as they are served."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, path: str, most_bytes: int) -> Answer:
        """Return a file as the answer to its path."""
        file = self._folder / path[1:]
        if not file.is_file():
            return Answer(404, b"")
        with file.open("rb") as opened:
            data = opened.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise ProblemError(f"{document_name(file)}: must have at most {most_bytes} bytes")
        return Answer(200, data)


def asking(where: str) -> AbstractContextManager[Asks]:
    """Return who asks a log at an address, or in a folder.

    Raises
    ------
    ProblemError
        There is no such folder.
    """
    if "://" in where:
        return Asker(where)
    folder = Path(where)
    if not folder.is_dir():
        raise ProblemError(
            f"{document_name(folder)}: no such folder; give the address of the log of verdicts, or "
            "a folder with its checkpoint and tiles"
        )
    return nullcontext(Folder(folder))


def read_verdicts(
    where: str, event: Event, held: Iterable[SignedCheckpoint], take: Take, *, is_over: bool
) -> VerdictsRead:
    """Read the log of verdicts of an event, and tell its rows of `SAID` and `DISPLACED`.

    Parameters
    ----------
    where : str
        An address, or a folder.
    event : Event
    held : iterable of SignedCheckpoint
        Of this log, in receipts that people hold.
    take : function
    is_over : bool
        Whether what is absent never comes.

    Raises
    ------
    TransferError, ProblemError
        It does not answer, or not what can be read.
    """
    if event.verdicts is None:
        raise ProblemError("the event names no log of verdicts, so nobody has promised verdicts")
    service = Service(where, event.verdicts)
    with asking(where) as asker:
        head = head_of(service, asker)
        if head is None:
            # An empty log shows none either; but nobody may take another place for one.
            raise ProblemError(
                f"{where} shows no checkpoint: it is not a log of verdicts, or has no verdicts "
                "yet; give the url in the event's [verdicts]"
            )
        n_witnesses = len(cosigned_times(head.note, event.witness_keys))
        if n_witnesses < event.quorum:
            raise ProblemError(
                f"{n_witnesses} witnesses have signed the log of verdicts, and {event.quorum} are "
                "needed; try again later"
            )
        rows = _Rows(event, take)
        log, lies = read_tree(service, head, asker, rows.add, is_over=is_over)
        rows.tell()
    lies += rows.lies + two_heads(log, held, event)
    lies = [replace(lie, who=DESTINATION) if lie.who == log.key.name else lie for lie in lies]
    return VerdictsRead(where, log.size, n_witnesses, tuple(lies))


def proved_by_ended(event: Event, receipts: Iterable[Receipt]) -> np.ndarray:
    """Return rows of `SAID` of what logs that have ended had proved to be collected, by receipts.

    Parameters
    ----------
    event : Event
        With its amendments.
    receipts : iterable of Receipt
    """
    found = []
    for receipt in receipts if event.ended_verdicts else ():
        if receipt.collected is None:
            continue
        with suppress(ProblemError):
            proof = LogProof.parse(receipt.collected.encode())
            said = collected_verdict(receipt.collected, event.id, receipt.entry)
            is_ended = event.verdicts is None or not proof.signed.is_of(event.verdicts)
            if is_ended and verdict_time(proof, said.data, event).time_s is not None:
                found.append((receipt.entry, 0, COLLECTED_CODE, 0))
    return np.array(found, SAID)


class _Rows:
    """Verdicts as rows, told many at a time."""

    def __init__(self, event: Event, take: Take) -> None:
        assert event.verdicts is not None
        self._event, self._take, self._log = event.id, take, event.verdicts.name
        # What logs that have ended had proved was said before all that stands here.
        self._first = 1 if event.ended_verdicts else 0
        self._said: list[tuple[bytes, int, int, int]] = []
        self._displaced: list[tuple[bytes, bytes, int]] = []
        self._n_others, self._first_other = 0, ""
        self._begin, self._ends = _usual(event)

    @property
    def lies(self) -> list[Lie]:
        """Return what the log holds that is no verdict."""
        if not self._n_others:
            return []
        many = counted(self._n_others, "entry", "entries")
        are = "is no verdict" if self._n_others == 1 else "are no verdicts"
        text = f"{many} of its log {are}; the first is entry {self._first_other}."
        return [Lie(DESTINATION, text)]

    def add(self, index: int, data: bytes) -> None:
        """Take an entry of the log."""
        # Nearly all are as these; whatever else there is, is read with care.
        start = len(self._begin)
        digits, codes = data[start : start + 64], self._ends.get(data[start + 64 :])
        if codes is not None and data.startswith(self._begin):
            try:
                entry = bytes.fromhex(digits.decode())
            except ValueError:
                entry = b""
            if entry.hex().encode() == digits and len(entry) == len(self._event):
                self._add(entry, index, *codes)
                return
        self._read(index, data)

    def _read(self, index: int, data: bytes) -> None:
        try:
            verdict = read_verdict(data, self._event)
        except ProblemError as error:
            self._n_others += 1
            self._first_other = self._first_other or f"{index}: {error}"
            return
        if verdict.word == COLLECTED:  # again
            self._add(verdict.entry, index, COLLECTED_CODE, 0)
            return
        assert verdict.word == SUPERSEDED
        self._add(verdict.entry, index, SUPERSEDED_CODE, 0)
        by = bytes.fromhex(verdict.why)
        self._displaced.append((by, verdict.entry, self._first + index))

    def _add(self, entry: bytes, index: int, word: int, why: int) -> None:
        self._said.append((entry, self._first + index, word, why))
        if len(self._said) >= N_TOGETHER:
            self.tell()

    def tell(self) -> None:
        """Tell what is waiting."""
        self._take("said", np.array(self._said, SAID))
        self._take("displaced", np.array(self._displaced, DISPLACED))
        self._said.clear()
        self._displaced.clear()


def _usual(event: Event) -> tuple[bytes, dict[bytes, tuple[int, int]]]:
    """Return how verdicts begin, and by how those end that supersede nothing: their codes."""
    nothing = bytes(32)
    verdicts = [(Verdict(event.id, nothing, COLLECTED), (COLLECTED_CODE, 0))]
    verdicts += [
        (Verdict(event.id, nothing, REFUSED, why), (REFUSED_CODE, i))
        for i, why in enumerate(reasons_of(event), 1)
    ]
    begin, _, _ = verdicts[0][0].data.partition(nothing.hex().encode())
    return begin, {verdict.data[len(begin) + 64 :]: codes for verdict, codes in verdicts}
