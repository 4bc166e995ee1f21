"""Stamps: checkpoints of a log with tokens of outside authorities, a JSON object per line.

Where one organiser keeps an event, its witness says what he likes. Two authorities that stamp the
log each minute bear the times out: what a stamped checkpoint holds was there by then.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint
from datacollect.bistro.formats.log.notes import decoded
from datacollect.bistro.formats.log.one_meaning import peer_json
from datacollect.bistro.formats.receipt.tokens import outside_time
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event

MOST_STAMPS_BYTES = 256 * 2**20
MOST_TOKENS = 16


@dataclass(frozen=True)
class Stamp:
    """A checkpoint, and tokens over its text.

    Attributes
    ----------
    signed : SignedCheckpoint
    tokens : tuple of bytes
        RFC 3161, DER.
    """

    signed: SignedCheckpoint
    tokens: tuple[bytes, ...]

    @property
    def message(self) -> bytes:
        """Return what the tokens are over."""
        return self.signed.note.text.encode()

    @property
    def line(self) -> bytes:
        """Its line in a file of stamps."""
        tokens = [base64.b64encode(each).decode() for each in self.tokens]
        tree = {"checkpoint": self.signed.note.data.decode(), "tokens": tokens}
        return json.dumps(tree, ensure_ascii=False).encode() + b"\n"

    def time_s(self, event: Event) -> int | None:
        """Return by when two authorities agree that it was there; None: they do not."""
        return outside_time(self.tokens, self.message, event.authorities)[0]


def read_stamps(data: bytes, name: str = "the stamps") -> list[Stamp]:
    """Return the stamps of a file; a last line that is not whole is left out.

    Parameters
    ----------
    data : bytes
    name : str
        Of the file, for messages.

    Raises
    ------
    ProblemError
        A line is none.
    """
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        place = f"{name}, line {number}"
        tree = peer_json(line)
        is_one = isinstance(tree, dict) and isinstance(tree.get("checkpoint"), str)
        texts = tree.get("tokens") if is_one else None
        if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
            raise _none(place)
        tokens = [decoded(each) for each in texts[:MOST_TOKENS]]
        whole = tuple(each for each in tokens if each is not None)
        if len(whole) < len(tokens):
            raise _none(place)
        signed = SignedCheckpoint.parse(tree["checkpoint"].encode(), place)
        found.append(Stamp(signed, whole))
    return found


def _none(place: str) -> ProblemError:
    return ProblemError(
        f"{place}: must be an object with checkpoint and tokens; copy the file again"
    )
