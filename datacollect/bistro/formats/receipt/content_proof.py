"""Proofs of contents, ``NAME.proof``: beside a receipt they show which file it is of.

They are made to be shown, and kept for ever; nothing can be sent with them. Who sees one can test
guesses of the file, and learns neither its name nor whose it is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.kinds import Hex, SecretHex
from datacollect.bistro.formats.log.content import Opening, opening_of
from datacollect.bistro.formats.log.one_meaning import json_file
from datacollect.errors import ProblemError, naming
from datacollect.files.fields import Document, Field
from datacollect.files.kinds import Text

if TYPE_CHECKING:
    from datacollect.bistro.formats.sealing.sealed import Inner

PROOF_FORMAT = "datacollect-proof/1"
PROOF_SUFFIX = ".proof"
MOST_BYTES = 4096

PROOF = Document(
    "the proof",
    "Shows, beside a receipt, which file the receipt is of; does not tell whose it is.",
    (
        Field("format", Text((PROOF_FORMAT,)), "Format and version.", required=True),
        Field("entry", Hex(), "Of the receipt that it goes with.", required=True),
        Field(
            "key", SecretHex(), "Of the content's code: by it guesses can be tested.", required=True
        ),
        Field("name", Hex(), "Code of the file's name.", required=True),
        Field("ticket", Hex(), "Code of the ticket's number.", required=True),
    ),
    remedy="`datacollect upload` has written one beside the receipt",
)


@dataclass(frozen=True)
class ContentProof:
    """Proof of which file was handed in.

    Attributes
    ----------
    entry : bytes
        What stands in the logs.
    key : bytes
        Of the content's code.
    name, ticket : bytes
        Codes of the file's name and of the ticket's number.
    """

    entry: bytes
    key: bytes = field(repr=False)
    name: bytes
    ticket: bytes

    @property
    def data(self) -> bytes:
        """The proof as a file holds it."""
        tree = {
            "format": PROOF_FORMAT,
            "entry": self.entry.hex(),
            "key": self.key.hex(),
            "name": self.name.hex(),
            "ticket": self.ticket.hex(),
        }
        return (json.dumps(tree, separators=(",", ":")) + "\n").encode()

    def opening(self, event: bytes) -> Opening:
        """Return what it opens of an event, whose id it does not say."""
        return Opening(event, self.key, self.name, self.ticket)


def proof_of_content(entry: bytes, inner: Inner) -> ContentProof | None:
    """Return the proof of what was sealed; None: its name and ticket would be shown with it.

    Parameters
    ----------
    entry : bytes
        What was committed to.
    inner : Inner
        What was sealed beside the file.
    """
    opening = opening_of(inner.secret, inner.header)
    if opening is None:
        return None
    return ContentProof(entry, opening.key, opening.name, opening.ticket)


def read_content_proof(data: bytes, name: str = "the proof") -> ContentProof:
    """Return the proof that the bytes of a file are; raise `ProblemError` where they are none."""
    if len(data) > MOST_BYTES:
        raise ProblemError(f"{name}: must have at most {MOST_BYTES} bytes, got {len(data)}")
    tree = json_file(data, name)
    with naming(name):
        values = PROOF.read(tree)
    del values["format"]
    return ContentProof(**values)
