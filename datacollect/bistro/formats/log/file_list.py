r"""Contents of several files: one list that an entry commits to, each file by a code of its own.

What is sealed is one body, and an entry commits to all of it, so that a draft is whole or not
there. A person shows one file of it with an `Opening`, which tells nothing of the others but how
many there are, and which of them this is::

    body             = for each file: u32 length of its name | name | u64 its bytes | the file
    name's code i    = HMAC-SHA-256(key("name i"), name)
    file's code i    = HMAC-SHA-256(key("file i"), "datacollect-file/3\n" + name's code i + file)
    root             = of the tree of RFC 6962 whose entries are the files' codes
    content's        = SHA-256("datacollect-content/3\n" + event + ticket's code + u32 count + root)

The keys and the ticket's code are those of `datacollect.bistro.formats.log.content`, i counts from
0. A path alone would fit trees of several sizes: so the count is in the content's code.
"""

from __future__ import annotations

import hmac
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from datacollect.bistro.formats.log.file_names import MOST_NAME_BYTES, FileNames
from datacollect.bistro.formats.log.opening import file_code, list_digest
from datacollect.bistro.formats.log.tree import inclusion_proof, leaf_hash, nodes_of, tree_root
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# One file is a content of its own kind.
FEWEST_FILES, MOST_FILES = 2, 10_000
_LENGTH_BYTES, _SIZE_BYTES = 4, 8
SIZE_STOP = 2**63


class FileListError(ProblemError):
    """What should be several files in one body is not."""


class FramedFile(NamedTuple):
    """A file of a body: its name as it was given, its bytes, its code."""

    name: str
    n_bytes: int
    code: bytes


@dataclass(frozen=True)
class FileList:
    """What an entry commits to of several files.

    Attributes
    ----------
    event : bytes
        The event's id, 32 bytes.
    ticket : bytes
        The code of the ticket's number, 32 bytes.
    codes : tuple of bytes
        Of the files, in their order.
    """

    event: bytes
    ticket: bytes
    codes: tuple[bytes, ...]

    def digest(self) -> bytes:
        """Return what an entry says of all of them."""
        root = tree_root(len(self.codes), nodes_of([*map(leaf_hash, self.codes)]))
        return list_digest(self.event, self.ticket, len(self.codes), root)

    def paths(self) -> Iterator[tuple[bytes, ...]]:
        """Yield the path of each file's code to the root."""
        node, count = nodes_of([*map(leaf_hash, self.codes)]), len(self.codes)
        for index in range(count):
            yield tuple(inclusion_proof(index, count, node))


def frame(name: str, n_bytes: int) -> bytes:
    r"""Return what stands before a file in a body.

    >>> frame("a", 5)
    b'\x00\x00\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x05'
    """
    data = name.encode()
    return struct.pack(">I", len(data)) + data + struct.pack(">Q", n_bytes)


class Frames:
    """Takes a body of several files apart, as it comes, in pieces of any length.

    Parameters
    ----------
    count : int
        How many files there should be.
    begin : callable
        Told of each file's name and bytes, before them.
    take : callable
        Told of the bytes of the file that has begun last, in pieces.
    """

    def __init__(
        self, count: int, begin: Callable[[str, int], object], take: Callable[[bytes], object]
    ) -> None:
        self._count, self._begin, self._take = count, begin, take
        self._names = FileNames()
        self._head = bytearray()
        self._n_left = 0

    def update(self, data: bytes) -> None:
        """Take the next bytes of the body.

        Raises
        ------
        FileListError
            The body is none; nothing more may be given.
        """
        at, stop = 0, len(data)
        while at < stop:
            if self._n_left:
                piece = data[at : at + self._n_left]
                self._n_left -= len(piece)
                self._take(piece)
            else:
                piece = data[at : at + self._frame_bytes() - len(self._head)]
                self._head += piece
                if len(self._head) == self._frame_bytes():
                    self._begin_file()
            at += len(piece)

    def end(self) -> None:
        """Take the end of the body.

        Raises
        ------
        FileListError
            Something is missing.
        """
        if self._head or self._n_left or len(self._names) < self._count:
            raise FileListError(
                f"the body must have {self._count} files, as its header says, but ends after "
                f"{len(self._names)}, or within one"
            )

    def _frame_bytes(self) -> int:
        """Return how long the frame is, as far as that is known."""
        if len(self._names) == self._count:
            raise FileListError(
                f"the body must end after {self._count} files, as its header says, but more follows"
            )
        if len(self._head) < _LENGTH_BYTES:
            return _LENGTH_BYTES
        length = int.from_bytes(self._head[:_LENGTH_BYTES], "big")
        # Before anything of it is kept.
        if length > MOST_NAME_BYTES:
            raise self._wrong_name(f"has more than {MOST_NAME_BYTES} bytes")
        return _LENGTH_BYTES + length + _SIZE_BYTES

    def _begin_file(self) -> None:
        data, size = self._head[_LENGTH_BYTES:-_SIZE_BYTES], self._head[-_SIZE_BYTES:]
        n_bytes = int.from_bytes(size, "big")
        try:
            name = data.decode()
        except UnicodeDecodeError:
            raise self._wrong_name("is not UTF-8") from None
        if why_not := self._names.fault(name):
            raise self._wrong_name(why_not)
        if n_bytes >= SIZE_STOP:
            raise FileListError(f"file {len(self._names)} of the body has too many bytes")
        self._head.clear()
        self._n_left = n_bytes
        self._begin(name, n_bytes)

    def _wrong_name(self, why_not: str) -> FileListError:
        return FileListError(f"the name of file {len(self._names) + 1} of the body {why_not}")


class FilesCode:
    """The code of several files' content: it is to be updated with their body.

    Parameters
    ----------
    key : callable
        Returns the key of a purpose, as ``"file 0"``.
    event, ticket : bytes
        As for `FileList`.
    count : int
        How many files the header names.
    """

    def __init__(
        self, key: Callable[[str], bytes], event: bytes, ticket: bytes, count: int
    ) -> None:
        self._key, self._event, self._ticket = key, event, ticket
        self._frames = Frames(count, self._begin, self._take)
        self._files: list[tuple[str, int, hmac.HMAC]] = []

    def update(self, data: bytes) -> None:
        """Take the next bytes of the body; raise `FileListError` where it is none."""
        self._frames.update(data)

    def digest(self) -> bytes:
        """Return what an entry says of all files; raise `FileListError` where some are missing."""
        codes = tuple(each.code for each in self.files())
        return FileList(self._event, self._ticket, codes).digest()

    def files(self) -> tuple[FramedFile, ...]:
        """Return all files, each with its code; raise `FileListError` where some are missing."""
        self._frames.end()
        return tuple(FramedFile(name, n, code.digest()) for name, n, code in self._files)

    def _begin(self, name: str, n_bytes: int) -> None:
        index = len(self._files)
        code = file_code(self._key(f"file {index}"), name_code(self._key, index, name))
        self._files.append((name, n_bytes, code))

    def _take(self, data: bytes) -> None:
        self._files[-1][2].update(data)


def name_code(key: Callable[[str], bytes], index: int, name: str) -> bytes:
    """Return the code of a file's name."""
    return hmac.digest(key(f"name {index}"), name.encode(), "sha256")
