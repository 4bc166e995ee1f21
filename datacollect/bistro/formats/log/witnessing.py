"""Request of a log to a witness (c2sp.org/tlog-witness, 2025): POST /add-checkpoint."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from datacollect.bistro.formats.log.checkpoints import SIZE_STOP, SignedCheckpoint, whole
from datacollect.bistro.formats.log.proofs import parse_hashes
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown

ADD_CHECKPOINT = "/add-checkpoint"
SIZE_TYPE = "text/x.tlog.size"
MOST_REQUEST_BYTES = 32_768


@dataclass(frozen=True)
class AddCheckpoint:
    """A checkpoint, and the proof that the log has only grown since the witness signed it last.

    Attributes
    ----------
    old_size : int
        What the witness has signed last, 0: nothing.
    proof : tuple of bytes
        Consistency proof from that size.
    signed : SignedCheckpoint
    """

    old_size: int
    proof: tuple[bytes, ...]
    signed: SignedCheckpoint

    @property
    def data(self) -> bytes:
        """The body of the request."""
        hashes = [base64.b64encode(each).decode() for each in self.proof]
        lines = [f"old {self.old_size}", *hashes, "", ""]
        return "\n".join(lines).encode() + self.signed.note.data

    @classmethod
    def parse(cls, data: bytes) -> AddCheckpoint:
        """Return what a body says; raise `ProblemError` where it is none."""
        if len(data) > MOST_REQUEST_BYTES:
            raise ProblemError(f"the request must have at most {MOST_REQUEST_BYTES} bytes")
        head, gap, note = data.partition(b"\n\n")
        try:
            lines = head.decode("ascii").split("\n")
        except UnicodeDecodeError:
            raise ProblemError("the request must begin with ASCII") from None
        if not gap or not lines[0].startswith("old "):
            raise ProblemError(f"the request must begin with 'old SIZE', got {shown(lines[0])}")
        old_size = whole(lines[0].removeprefix("old "), "the old size", SIZE_STOP)
        proof = parse_hashes(lines[1:], "the consistency proof")
        return cls(old_size, proof, SignedCheckpoint.parse(note))
