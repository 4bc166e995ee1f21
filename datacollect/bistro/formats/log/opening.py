"""Openings: what is shown beside a file, so that it is known as the one committed to.

`datacollect.bistro.formats.log.content` and `datacollect.bistro.formats.log.file_list` have the
formulas.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.tree import leaf_hash, path_root
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable

CODE_BYTES = 32
OPENED_LABEL = b"datacollect-content/2\n"
LIST_LABEL, FILE_LABEL = b"datacollect-content/3\n", b"datacollect-file/3\n"


@dataclass(frozen=True)
class Among:
    """Which file it is of those that were handed in together, from 0, and of how many."""

    index: int
    count: int

    @property
    def text(self) -> str:
        """As people count.

        >>> Among(0, 3).text
        'file 1 of 3'
        """
        return f"file {self.index + 1} of {self.count}"


@dataclass(frozen=True)
class Opening:
    """Opening of a commitment to a content: made to be shown, beside the file itself.

    It tells neither the file's name nor the ticket's number, and nothing by which two of one person
    could be known as such; of several files nothing of the others but how many there are.

    Attributes
    ----------
    event : bytes
        The event's id, 32 bytes.
    key : bytes
        32 bytes: who has it can test guesses of the file.
    name, ticket : bytes
        The codes of the file's name and of the ticket's number, 32 bytes each.
    among : Among or None
        Which of several files it is; None: it was alone.
    path : tuple of bytes
        Of several: hashes of their tree, from the file's sibling up.
    """

    event: bytes
    key: bytes = field(repr=False)
    name: bytes
    ticket: bytes
    among: Among | None = None
    path: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        for what in ("event", "key", "name", "ticket"):
            if len(getattr(self, what)) != CODE_BYTES:
                raise ProblemError(f"{what} of an opening must have {CODE_BYTES} bytes")

    def code(self) -> hmac.HMAC:
        """Begin the code of the file: it is to be updated with its bytes."""
        if self.among is not None:
            return file_code(self.key, self.name)
        return hmac.new(self.key, OPENED_LABEL + self.event + self.name + self.ticket, "sha256")

    def code_of(self, file: Iterable[bytes]) -> bytes:
        """Return the code of a file, if it is this one; read once, in pieces."""
        code = self.code()
        for piece in file:
            code.update(piece)
        return code.digest()

    def digest(self, file: Iterable[bytes]) -> bytes:
        """Return what an entry says of the content, if this is the file; read once, in pieces.

        Where no list of so many files has such a path, that is nothing.
        """
        code = self.code_of(file)
        if self.among is None:
            return code
        index, count = self.among.index, self.among.count
        root = path_root(leaf_hash(code), index, count, self.path)
        return b"" if root is None else list_digest(self.event, self.ticket, count, root)


def file_code(key: bytes, name: bytes) -> hmac.HMAC:
    """Begin the code of a file, by its key and its name's code."""
    return hmac.new(key, FILE_LABEL + name, "sha256")


def list_digest(event: bytes, ticket: bytes, count: int, root: bytes) -> bytes:
    """Return what an entry says of several files, by the root over their codes."""
    said = LIST_LABEL + event + ticket + struct.pack(">I", count) + root
    return hashlib.sha256(said).digest()
