"""Proofs of contents, ``NAME.proof``: beside a receipt they show which file it is of.

They are made to be shown, and kept for ever; nothing can be sent with them. Who sees one can test
guesses of the file, and learns neither its name nor whose it is. Of several files that were handed
in together each has its own, which tells nothing of the others but how many there are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.kinds import Hex, SecretHex
from datacollect.bistro.formats.log.content import file_openings, opening_of
from datacollect.bistro.formats.log.file_list import FEWEST_FILES, MOST_FILES
from datacollect.bistro.formats.log.one_meaning import json_file
from datacollect.bistro.formats.log.opening import Among, Opening
from datacollect.bistro.formats.receipt.receipt import Number
from datacollect.errors import ProblemError, naming
from datacollect.files.fields import Document, Field
from datacollect.files.kinds import ListOf, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacollect.bistro.formats.log.file_list import FramedFile
    from datacollect.bistro.formats.sealing.keep import KeptFile
    from datacollect.bistro.formats.sealing.sealed import Inner

# The second is of one of several files.
PROOF_FORMATS = ("datacollect-proof/1", "datacollect-proof/2")
MOST_BYTES = 4096
_MOST_HASHES = (MOST_FILES - 1).bit_length()

_FIELDS = (
    Field("format", Text(PROOF_FORMATS), "Format and version.", required=True),
    Field(
        "entry",
        Hex(),
        "Entry in the log of the receipt to which this proof belongs.",
        required=True,
    ),
    Field(
        "key",
        SecretHex(),
        "Secret key of the keyed hashes: whoever has it can test guesses of the content.",
        required=True,
    ),
    Field("name", Hex(), "Keyed hash of the file's name.", required=True),
    Field("ticket", Hex(), "Keyed hash of the ticket's number.", required=True),
)
_AGAIN = "copy it again"
_OF_SEVERAL = (
    Field(
        "index",
        Number(stop=MOST_FILES, remedy=_AGAIN),
        "Number of this file among those handed in together, from 0.",
        required=True,
    ),
    Field(
        "count",
        Number(minimum=FEWEST_FILES, stop=MOST_FILES + 1, remedy=_AGAIN),
        "How many files were handed in together.",
        required=True,
    ),
    Field(
        "path",
        ListOf(Hex(), 1, _MOST_HASHES, f"must be a list of 1 to {_MOST_HASHES} hashes"),
        "Hashes that lead from this file's hash to the hash of all files together.",
        required=True,
    ),
)
_ABOUT = "Shows, beside a receipt, which file the receipt is of; does not tell whose it is."
_REMEDY = "`datacollect upload` has written one beside the receipt"
PROOF = Document("the proof", _ABOUT, _FIELDS, remedy=_REMEDY)
PROOF_OF_SEVERAL = Document("the proof", _ABOUT, (*_FIELDS, *_OF_SEVERAL), remedy=_REMEDY)


@dataclass(frozen=True)
class ContentProof:
    """Proof of which file was handed in.

    Attributes
    ----------
    entry : bytes
        What stands in the logs.
    key : bytes
        Of the file's code.
    name, ticket : bytes
        Codes of the file's name and of the ticket's number.
    among : Among or None
        Where the file stands among those that were handed in with it; None: it was alone.
    path : tuple of bytes
        Hashes from its code to what stands for all of them.
    """

    entry: bytes
    key: bytes = field(repr=False)
    name: bytes
    ticket: bytes
    among: Among | None = None
    path: tuple[bytes, ...] = ()

    @property
    def data(self) -> bytes:
        """The proof as a file holds it."""
        tree: dict[str, object] = {
            "format": PROOF_FORMATS[self.among is not None],
            "entry": self.entry.hex(),
            "key": self.key.hex(),
            "name": self.name.hex(),
            "ticket": self.ticket.hex(),
        }
        if self.among is not None:
            tree |= {
                "index": self.among.index,
                "count": self.among.count,
                "path": [each.hex() for each in self.path],
            }
        return (json.dumps(tree, separators=(",", ":")) + "\n").encode()

    @classmethod
    def of(cls, entry: bytes, opening: Opening) -> ContentProof:
        """Return the proof that an opening makes beside a receipt's entry."""
        found = opening
        return cls(entry, found.key, found.name, found.ticket, found.among, found.path)

    def opening(self, event: bytes) -> Opening:
        """Return what it opens of an event, whose id it does not say."""
        return Opening(event, self.key, self.name, self.ticket, self.among, self.path)


def proof_of_content(entry: bytes, inner: Inner) -> ContentProof | None:
    """Return the proof of a file that was sealed; None: its name and ticket would be shown with it.

    Parameters
    ----------
    entry : bytes
        What was committed to.
    inner : Inner
        What was sealed beside the file.
    """
    opening = opening_of(inner.secret, inner.header)
    return None if opening is None else ContentProof.of(entry, opening)


def proofs_of_files(
    entry: bytes, inner: Inner, files: Sequence[FramedFile | KeptFile]
) -> Iterator[ContentProof]:
    """Yield the proof of each of several files.

    Parameters
    ----------
    entry : bytes
        What was committed to.
    inner : Inner
        What was sealed beside the files.
    files : sequence of FramedFile or KeptFile
        All of them, as sealing has returned them, or as they are kept.
    """
    names, codes = [each.name for each in files], [each.code for each in files]
    for opening in file_openings(inner.secret, inner.header, names, codes):
        yield ContentProof.of(entry, opening)


def read_content_proof(data: bytes, name: str = "the proof") -> ContentProof:
    """Return the proof that the bytes of a file are; raise `ProblemError` where they are none."""
    if len(data) > MOST_BYTES:
        raise ProblemError(f"{name}: must have at most {MOST_BYTES} bytes, got {len(data)}")
    tree = json_file(data, name)
    is_of_several = isinstance(tree, dict) and tree.get("format") == PROOF_FORMATS[1]
    with naming(name):
        values = (PROOF_OF_SEVERAL if is_of_several else PROOF).read(tree)
        del values["format"]
        among = None
        if is_of_several:
            among = Among(values.pop("index"), values.pop("count"))
            values["path"] = tuple(values["path"])
            if among.index >= among.count:
                raise ProblemError(
                    f"index must be below count, {among.count}, got {among.index}; copy it again"
                )
    return ContentProof(**values, among=among)
