"""Admission of an upload: it opens an entry that a log of the event has held in time."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.kinds import Hex
from datacollect.bistro.formats.event.tickets import ID_BYTES, admitted
from datacollect.bistro.formats.log.entry import SIZE_STOP, Commitment
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.counted_time import ProvedTime, checkpoint_time
from datacollect.errors import ProblemError, RefusedError, TicketError
from datacollect.files.documents import peer_json
from datacollect.files.kinds import Whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.bistro.formats.event.event import Event

# Uploads of one second share a checkpoint, whose signatures are verified once.
MOST_CHECKPOINTS = 1024


@dataclass(frozen=True)
class Wish:
    """An upload that may begin.

    Attributes
    ----------
    commitment : Commitment
    size : int
        In bytes, of what is to be pushed.
    sealed_anew : bool
        Whether that is another ciphertext than the one committed to.
    ticket : bytes
        Number of the ticket; zeros at an open event.
    """

    commitment: Commitment
    size: int
    sealed_anew: bool = False
    ticket: bytes = bytes(ID_BYTES)


class LateError(RefusedError):
    """A proof is of after the deadline, as far as that is known here."""


class Admission:
    """Judges uploads by what they bring along.

    Parameters
    ----------
    event : Event
    most_bytes : int
        That an upload may have where the event does not say.
    """

    def __init__(self, event: Event, most_bytes: int) -> None:
        self._event = event
        self._most_bytes = most_bytes if event.most_bytes is None else event.most_bytes
        self._checkpoints: dict[bytes, ProvedTime] = {}

    def wish_of(self, metadata: str, size: int, now_s: float) -> Wish:
        """Return what may begin.

        Parameters
        ----------
        metadata : str
            The header ``Upload-Metadata``: ``commitment``, ``proof``, ``ticket``, ``sealed_anew``.
        size : int
            The header ``Upload-Length``.
        now_s : float
            Seconds since 1970.

        Raises
        ------
        LateError
            It was not in time, and nothing else is wrong with its proof.
        RefusedError
            It may not; the status says why.
        """
        event = self._event
        if not event.opens_s <= now_s < event.collect_until_s:
            raise RefusedError("nothing is taken now: the event is over, or not open yet", 410)
        try:
            values = metadata_of(metadata)
            commitment = commitment_of(values.get("commitment", b""), event.id)
            proof = LogProof.parse(values.get("proof", b""))
        except ProblemError as error:
            raise RefusedError(str(error), 400) from None
        sealed_anew = values.get("sealed_anew") == b"1"
        if size != commitment.size and not sealed_anew:
            raise RefusedError(
                f"Upload-Length must be {commitment.size}, as committed to, got {size}", 400
            )
        if size > self._most_bytes:
            raise RefusedError(f"an upload has {self._most_bytes} bytes at most, got {size}", 413)
        self._require_in_time(proof, commitment.entry)
        return Wish(commitment, size, sealed_anew, self._ticket(values, now_s))

    def _require_in_time(self, proof: LogProof, entry: bytes) -> None:
        found = self._time(proof)
        if found.time_s is None:
            raise RefusedError(f"the proof does not count: {found.why_not}", 403)
        if not proof.includes(entry):
            raise RefusedError("the proof is that of another entry", 403)
        if found.time_s > self._event.latest_s:
            raise LateError("the proof's time is after the deadline; it is not collected", 403)

    def _time(self, proof: LogProof) -> ProvedTime:
        note = proof.signed.note.data
        found = self._checkpoints.get(note)
        if found is None:
            found = checkpoint_time(proof.signed, self._event)
            if len(self._checkpoints) >= MOST_CHECKPOINTS:
                self._checkpoints.clear()
            self._checkpoints[note] = found
        return found

    def _ticket(self, values: Mapping[str, bytes], now_s: float) -> bytes:
        if self._event.admission != "tickets":
            return bytes(ID_BYTES)
        try:
            token = values.get("ticket", b"").decode(errors="replace")
            return bytes.fromhex(admitted(token, self._event, now_s).id)
        except TicketError as error:
            raise RefusedError(str(error), 403) from None


def metadata_of(text: str) -> dict[str, bytes]:
    """Return what a header ``Upload-Metadata`` says.

    >>> metadata_of("a YWI=,b")
    {'a': b'ab', 'b': b''}
    """
    found: dict[str, bytes] = {}
    for part in text.split(",") if text else ():
        name, _, value = part.strip().partition(" ")
        try:
            raw = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise ProblemError("Upload-Metadata must be names and Base64") from None
        if not name or name in found:
            raise ProblemError("Upload-Metadata must give each name once")
        found[name] = raw
    return found


def metadata_text(values: Mapping[str, bytes]) -> str:
    """Return the header that says that.

    >>> metadata_text({"a": b"ab"})
    'a YWI='
    """
    return ",".join(f"{k} {base64.b64encode(v).decode()}" for k, v in values.items())


def commitment_json(commitment: Commitment) -> bytes:
    """Return a commitment as a bistro is told of it."""
    tree = {
        "salt": commitment.salt.hex(),
        "size": commitment.size,
        "sha256": commitment.ciphertext_sha256.hex(),
        "content_p": commitment.content.hex(),
    }
    return json.dumps(tree, separators=(",", ":")).encode()


def commitment_of(data: bytes, event: bytes) -> Commitment:
    """Return the commitment of `commitment_json`; raise `ProblemError` where it is none."""
    place = "Upload-Metadata: commitment"
    tree = peer_json(data)
    if not isinstance(tree, dict) or tree.keys() != {"salt", "size", "sha256", "content_p"}:
        raise ProblemError(f"{place} must be JSON with salt, size, sha256 and content_p")
    return Commitment(
        event,
        Hex().read(tree["salt"], f"{place}: salt"),
        Whole("bytes", stop=SIZE_STOP).read(tree["size"], f"{place}: size"),
        Hex().read(tree["sha256"], f"{place}: sha256"),
        Hex().read(tree["content_p"], f"{place}: content_p"),
    )
