"""Checkpoints of a log, and witnesses' signatures of them, which carry a time.

Formats: c2sp.org/tlog-checkpoint and c2sp.org/tlog-cosignature (cosignature/v1), 2025. Lines that
extend a checkpoint are refused: nobody could audit them. The time of a cosignature is in whole
seconds since 1970; the signature covers it, but not the witness's name: keys tell witnesses apart.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.notes import (
    OF_NOTE,
    OF_WITNESS,
    Note,
    NoteSignature,
    VerifierKey,
    decoded,
    is_by,
    parse_note,
    signed,
)
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown
from datacollect.net.key_forms import KeyForm
from datacollect.net.keys import SIGNATURE_BYTES, is_signed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.net.keys import PrivateKey

HASH_BYTES = 32
TIME_BYTES = 8
SIZE_STOP = 2**63
# The year 2514: what is later is no time, and calendars of some systems end at 3000.
TIME_STOP = 2**34
MOST_CHECKPOINT_BYTES = 16_384

WHOLE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True)
class Checkpoint:
    """Statement of a log: so many entries, and the root of their tree.

    Attributes
    ----------
    origin : str
        Which log; the name of its key, too.
    size : int
        Entries.
    root : bytes
        Root of the tree, RFC 6962, 32 bytes.
    """

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"

    @classmethod
    def parse(cls, text: str, place: str = "the checkpoint") -> Checkpoint:
        """Return the checkpoint that the text of a note is; raise `ProblemError` for others."""
        lines = text.split("\n")
        root = decoded(lines[2]) if len(lines) == 4 else None
        if root is None or len(root) != HASH_BYTES or lines[3] or not lines[0]:
            raise ProblemError(
                f"{place} must be three lines: origin, size, root of 32 bytes in Base64; got "
                f"{shown(text)}"
            )
        return cls(lines[0], whole(lines[1], f"{place}: its size", SIZE_STOP), root)


@dataclass(frozen=True)
class SignedCheckpoint:
    """A checkpoint and the note that it stands in, not yet verified."""

    checkpoint: Checkpoint
    note: Note

    @classmethod
    def parse(cls, data: bytes, place: str = "the checkpoint") -> SignedCheckpoint:
        """Return the checkpoint that bytes are; raise `ProblemError` where they are none."""
        note = parse_note(data, place, MOST_CHECKPOINT_BYTES)
        return cls(Checkpoint.parse(note.text, place), note)

    def is_of(self, log: VerifierKey) -> bool:
        """Return whether that log has signed it, in its own name."""
        return self.checkpoint.origin == log.name and is_by(self.note, log)


def sign_checkpoint(checkpoint: Checkpoint, key: PrivateKey) -> Note:
    """Return the note in which a log says its checkpoint.

    >>> from datacollect.net.keys import PrivateKey
    >>> note = sign_checkpoint(Checkpoint("log.example/7", 1, bytes(32)), PrivateKey(bytes(32)))
    >>> SignedCheckpoint.parse(note.data).checkpoint.size
    1
    """
    return signed(checkpoint.text, checkpoint.origin, key)


def log_key(origin: str, key: str) -> VerifierKey:
    """Return the verifier key of a log."""
    return VerifierKey(origin, key, OF_NOTE)


def witness_key(name: str, key: str) -> VerifierKey:
    """Return the verifier key of a witness."""
    return VerifierKey(name, key, OF_WITNESS)


WITNESS_KEY_FORM = KeyForm("witness", "vkey", lambda name, key: witness_key(name, key).text)


def cosign(text: str, time_s: int, name: str, key: PrivateKey) -> NoteSignature:
    r"""Return a witness's signature of a checkpoint's text.

    Parameters
    ----------
    text : str
        Of the note, as `Checkpoint.text`.
    time_s : int
        The witness's clock, whole seconds since 1970.
    name : str
        Of the witness.
    key : PrivateKey

    Examples
    --------
    >>> from datacollect.net.keys import PrivateKey
    >>> key = PrivateKey(bytes(32))
    >>> line = cosign("log\n1\nAAAA\n", 1679315147, "w.example", key)
    >>> time_of(line, "log\n1\nAAAA\n", witness_key("w.example", key.public))
    1679315147
    """
    witness = witness_key(name, key.public)
    signature = key.sign(_cosigned(text, time_s))
    return NoteSignature(name, witness.key_id, time_s.to_bytes(TIME_BYTES, "big") + signature)


def time_of(line: NoteSignature, text: str, witness: VerifierKey) -> int | None:
    """Return when a witness signed a text by this line, in seconds; None where it did not.

    A time at `TIME_STOP` or later is none.
    """
    if not line.is_of(witness) or len(line.signature) != TIME_BYTES + SIGNATURE_BYTES:
        return None
    time_s = int.from_bytes(line.signature[:TIME_BYTES], "big")
    if time_s >= TIME_STOP:
        return None
    signature = line.signature[TIME_BYTES:]
    return time_s if is_signed(_cosigned(text, time_s), signature, witness.key) else None


def cosigned_times(note: Note, witnesses: Iterable[VerifierKey]) -> dict[str, int]:
    """Return by key when each witness has signed a note, its earliest time where it did twice.

    Lines of others, and forged ones, are left out. Two names of one key are one witness.
    """
    times: dict[str, int] = {}
    for witness in witnesses:
        for line in note.signatures:
            time_s = time_of(line, note.text, witness)
            if time_s is not None:
                times[witness.key] = min(time_s, times.get(witness.key, time_s))
    return times


def whole(text: str, place: str, stop: int) -> int:
    """Return the whole number that decimal digits say, with no zero before them."""
    if not WHOLE.fullmatch(text) or int(text) >= stop:
        raise ProblemError(f"{place} must be a whole number below {stop}, got {shown(text)}")
    return int(text)


def _cosigned(text: str, time_s: int) -> bytes:
    return f"cosignature/v1\ntime {time_s}\n{text}".encode()
