"""Verdicts of the destination on entries: plain entries of its own log, and notes to bistros.

An entry may be refused and, sealed anew, be collected later: the last verdict counts. No log has an
entry twice: of one that was superseded and counts again, its new verdict says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.kinds import Hex
from datacollect.bistro.formats.log.checkpoints import SIZE_STOP, TIME_STOP, whole
from datacollect.bistro.formats.log.notes import Note, is_by, parse_note, signed
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from collections.abc import Collection

    from datacollect.bistro.formats.event.event import Event
    from datacollect.net.keys import PrivateKey

FORMAT = "datacollect-verdict/1"
COVERED_FORMAT = "datacollect-covered/2"
PURPOSE = "covered"
COVERED_PATH = "/covered"
COLLECTED, REFUSED, SUPERSEDED = "collected", "refused", "superseded"

# Why something is refused. "Does not open" entitles the person to push it sealed anew.
DOES_NOT_OPEN = "does not open"
OTHER_CONTENT = "is not what was committed to"
OTHER_TICKET = "lacks the ticket's signature"
LATE = "is late"
OTHER_MARK = "lacks the ticket's mark"
# A log proves it in time, and no bistro had it when nothing was collected any more.
NEVER_CAME = "never came"
# Of several files in one body: what its header says and what follows are no such list.
OTHER_FILES = "has no valid list of files"
REASONS = (
    *(DOES_NOT_OPEN, OTHER_CONTENT, OTHER_TICKET, LATE, OTHER_MARK, NEVER_CAME),
    OTHER_FILES,
)
# Of events of version 1, in the same order: their tickets had a secret and no key.
SECRET_REASONS = (DOES_NOT_OPEN, OTHER_CONTENT, "lacks the ticket's secret", LATE)


def reasons_of(event: Event) -> tuple[str, ...]:
    """Return for which reasons the destination of an event refuses."""
    return REASONS if event.is_signed_for else SECRET_REASONS


@dataclass(frozen=True)
class Verdict:
    r"""What became of an entry.

    Attributes
    ----------
    event, entry : bytes
    word : str
        `COLLECTED`, `REFUSED` or `SUPERSEDED`.
    why : str
        One of `REASONS`; of a superseded one the entry, in hexadecimal digits, that counts instead;
        of a collected one nothing, or, where it counts again, the entry that had superseded it.

    Examples
    --------
    >>> Verdict(bytes(32), bytes(32), COLLECTED).data[-11:]
    b'\ncollected\n'
    """

    event: bytes
    entry: bytes
    word: str
    why: str = ""

    @property
    def text(self) -> str:
        """What became of it, in the words of the log."""
        return f"{self.word}: {self.why}" if self.why else self.word

    @property
    def data(self) -> bytes:
        """The entry of the log of verdicts."""
        return beginning_of(self.event, self.entry) + f"{self.text}\n".encode()


def beginning_of(event: bytes, entry: bytes) -> bytes:
    """Return with what every verdict on an entry begins."""
    return f"{FORMAT}\n{event.hex()}\n{entry.hex()}\n".encode()


def read_verdict(data: bytes, event: bytes, place: str = "the verdict") -> Verdict:
    """Return the verdict that an entry is; raise `ProblemError` where it is none, or of others."""
    lines = data.decode(errors="replace").split("\n")
    if len(lines) != 5 or lines[0] != FORMAT or lines[4]:
        raise ProblemError(f"{place} must begin with {FORMAT}, got {shown(lines[0])}")
    if Hex().read(lines[1], f"{place}: event") != event:
        raise ProblemError(f"{place} is of another event, {lines[1][:16]}…")
    word, _, why = lines[3].partition(": ")
    found = Verdict(event, Hex().read(lines[2], f"{place}: entry"), word, why)
    is_entry = re.fullmatch("[0-9a-f]{64}", why) is not None
    is_one = {
        COLLECTED: why == "" or is_entry,
        REFUSED: why in REASONS,
        SUPERSEDED: is_entry,
    }
    if not is_one.get(word) or found.data != data:
        raise ProblemError(f"{place} must say what became of an entry, got {shown(lines[3])}")
    return found


@dataclass(frozen=True)
class Covered:
    """The destination's word to a bistro: of what its batches name nothing else lies there.

    Verdicts on all of that are in its log. Of what no batch names the destination knows nothing:
    the bistro keeps that as long as it needs it itself.

    Attributes
    ----------
    event : bytes
    bistro : str
    log_size : int
        Of the log of verdicts, with a checkpoint that a quorum of witnesses has signed.
    n_batches : int
        So many batches of the bistro were taken, from the first on: of later ones it says nothing.
    segments : tuple of range
        Numbers of segments whose data may go, as ranges in rising order.
    time_s : int
        The destination's clock, whole seconds since 1970.
    """

    event: bytes
    bistro: str
    log_size: int
    n_batches: int
    segments: tuple[range, ...]
    time_s: int

    def signed(self, event: Event, key: PrivateKey) -> Note:
        """Return the note that says so, by the key of the log of verdicts."""
        assert event.verdicts is not None
        ranges = ",".join(f"{each.start}-{each.stop - 1}" for each in self.segments)
        lines = [COVERED_FORMAT, self.event.hex(), self.bistro, str(self.log_size)]
        name = event.verdicts.for_purpose(PURPOSE).name
        text = "\n".join([*lines, str(self.n_batches), ranges, str(self.time_s), ""])
        return signed(text, name, key)

    def __contains__(self, number: int) -> bool:
        """Whether a segment's data may go."""
        return any(number in each for each in self.segments)


def ranges_of(numbers: Collection[int]) -> tuple[range, ...]:
    """Return whole numbers as ranges in rising order.

    >>> ranges_of({3, 1, 2, 7})
    (range(1, 4), range(7, 8))
    """
    found: list[range] = []
    for number in sorted(set(numbers)):
        if found and found[-1].stop == number:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return tuple(found)


def read_covered(data: bytes, event: Event, place: str = "the note") -> Covered:
    """Return what the destination has signed; raise `ProblemError` where it has not."""
    note = parse_note(data, place)
    lines = note.text.split("\n")
    if len(lines) != 8 or lines[0] != COVERED_FORMAT:
        raise ProblemError(f"{place} must begin with {COVERED_FORMAT}, got {shown(lines[0])}")
    if event.verdicts is None or not is_by(note, event.verdicts.for_purpose(PURPOSE)):
        raise ProblemError(f"{place} must be signed by the key of the event's log of verdicts")
    if Hex().read(lines[1], f"{place}: event") != event.id:
        raise ProblemError(f"{place} is of another event, {lines[1][:16]}…")
    return Covered(
        event.id,
        lines[2],
        whole(lines[3], f"{place}: size of the log", SIZE_STOP),
        whole(lines[4], f"{place}: batches", SIZE_STOP),
        _ranges(lines[5], place),
        whole(lines[6], f"{place}: time", TIME_STOP),
    )


def _ranges(text: str, place: str) -> tuple[range, ...]:
    found: list[range] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        start = whole(first, f"{place}: segments", SIZE_STOP)
        stop = whole(last, f"{place}: segments", SIZE_STOP) + 1
        if stop <= start or (found and start <= found[-1].stop):
            raise ProblemError(f"{place}: its ranges of segments must rise, got {shown(text)}")
        found.append(range(start, stop))
    return tuple(found)
