"""Unsealing: segments put together, opened, checked, written; or refused, and why."""

from __future__ import annotations

import hashlib
import os
import shutil
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.bistro.destination.file_sets import (
    LIST,
    given_name,
    name_folder,
    remove_left,
    safe_name,
    take_apart,
)
from datacollect.bistro.destination.holdings import LOST
from datacollect.bistro.formats.custody.segments import segment_name
from datacollect.bistro.formats.custody.verdicts import (
    DOES_NOT_OPEN,
    OTHER_CONTENT,
    OTHER_FILES,
    OTHER_MARK,
    OTHER_TICKET,
)
from datacollect.bistro.formats.event.statements import hand_in_statement
from datacollect.bistro.formats.log.content import n_files
from datacollect.bistro.formats.log.file_list import FileListError
from datacollect.bistro.formats.log.one_meaning import peer_json
from datacollect.bistro.formats.sealing.sealed import open_sealed
from datacollect.errors import (
    IdentityError,
    ProblemError,
    StoreError,
    TransferError,
)
from datacollect.files.documents import not_written
from datacollect.files.durability import name_durably
from datacollect.net.keys import is_signed
from datacollect.orphans import end_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path
    from typing import BinaryIO, Self

    import numpy as np

    from datacollect.bistro.destination.holdings import Opening, Upload
    from datacollect.bistro.destination.marking import MarkKeys
    from datacollect.bistro.formats.log.entry import Commitment
    from datacollect.bistro.formats.sealing.sealed import Opened, Writable

_BLOCK_BYTES = 2**20
# So many uploads wait for each process.
_AHEAD = 8


class Result(NamedTuple):
    """Result of opening an upload: as `Register.opened` takes it."""

    upload: Upload
    why: str = ""
    ticket: str | None = None
    file: str | None = None
    n_bytes: int | None = None
    sha256: bytes | None = None
    name: str = ""


@dataclass(frozen=True)
class Opener:
    """Opens uploads of an event; a process takes it once.

    Attributes
    ----------
    identities : tuple of str
        Each opens alone.
    ticket_keys : mapping of str to str or None
        Public keys by the tickets' numbers; None: the event admits everybody.
    segments : Path
        Folder with a folder for each bistro, as its segments were fetched.
    into : Path
        Folder that the files are written to.
    revoked_s : mapping of str to int
        By the numbers of tickets that were revoked: by when a log had published it.
    marks : MarkKeys or None
        None: entries of the event have no marks.
    most_files : int
        How many files one draft may have.
    """

    identities: tuple[str, ...]
    ticket_keys: Mapping[str, str] | None
    segments: Path
    into: Path
    revoked_s: Mapping[str, int] = field(default_factory=dict)
    marks: MarkKeys | None = None
    most_files: int = 1

    def prepare(self) -> None:
        """Make the folder; remove what killed processes have left there, which is nobody's to find.

        Raises
        ------
        NotWrittenError
        """
        try:
            self.into.mkdir(parents=True, exist_ok=True)
            for left in self.into.glob(".*.tmp"):
                remove_left(left)
        except OSError as error:
            raise not_written(self.into, error) from None

    def open(self, opening: Opening) -> Result:
        """Open an upload; its files are on the disk, under their names, when this returns.

        Raises
        ------
        NotWrittenError
            A file cannot be written.
        StoreError
            A segment is not there any more.
        """
        upload, parts = opening.upload, opening.parts
        entry = upload.commitment.entry.hex()
        beside = self.into / f".{entry}.{os.getpid()}.tmp"
        try:
            with beside.open("wb+") as out, _Joined(self.segments / upload.bistro, parts) as whole:
                written = _Written(out)
                opened = _unsealed(whole, written, self.identities, upload.sha256)
                ticket, header = self._checked(opened, opening)
                name = safe_name(header.get("name"))
                out.flush()
                count = self._n_files(opened)
                if count > 1:
                    kept = self._taken_apart(out, count, entry)
                    return Result(upload, "", ticket, *kept)
                path = self.into / entry / name
                path.parent.mkdir(exist_ok=True)
                name_durably(beside, path, fd=out.fileno(), folders=(path.parent, self.into))
        except _RefusedError as refused:
            return Result(upload, refused.why)
        except OSError as error:
            raise not_written(self.into / entry, error) from None
        finally:
            beside.unlink(missing_ok=True)
        of_file = f"{entry}/{name}", written.n_bytes, written.digest.digest()
        given = given_name(header.get("name"))
        return Result(upload, "", ticket, *of_file, "" if given == name else given)

    def _n_files(self, opened: Opened) -> int:
        count = n_files(opened.inner.header)
        if count > self.most_files:
            raise _RefusedError(OTHER_FILES)
        return count

    def _taken_apart(self, body: BinaryIO, count: int, entry: str) -> tuple[str, int, bytes]:
        """Write the files of a body; return where the list of them lies, its bytes, its hash."""
        folder = self.into / f".{entry}.{os.getpid()}.files.tmp"
        body.seek(0)
        try:
            data = take_apart(body, count, folder)
            name_folder(folder, self.into / entry)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return f"{entry}/{LIST}", len(data), hashlib.sha256(data).digest()

    def _checked(self, opened: Opened, opening: Opening) -> tuple[str | None, Mapping[str, Any]]:
        """Return the number of the ticket inside the seal, and the header there."""
        commitment = opening.upload.commitment
        if opened.content_p != commitment.content:
            raise _RefusedError(OTHER_CONTENT)
        header = _header(opened.inner.header)
        if header.get("event") != commitment.event.hex():
            raise _RefusedError(OTHER_CONTENT)
        if self.ticket_keys is None:
            return None, header
        ticket, owner = header.get("ticket"), commitment.owner
        # The owner has signed which ticket pushes: nobody else can have put another one inside.
        if ticket != opening.upload.ticket or not isinstance(ticket, str) or owner is None:
            raise _RefusedError(OTHER_TICKET)
        key = self.ticket_keys.get(ticket)
        if key is None:
            raise _RefusedError(OTHER_TICKET)
        # Who commits to a copy of somebody's sealed file has another owner key, or another salt.
        said = hand_in_statement(commitment.event, commitment.salt, owner)
        if not is_signed(said, opened.inner.ticket_signature or b"", key):
            raise _RefusedError(OTHER_TICKET)
        # What was committed to before a ticket was revoked still counts.
        revoked_s = self.revoked_s.get(ticket)
        if revoked_s is not None and (opening.time_s is None or opening.time_s > revoked_s):
            raise _RefusedError(OTHER_TICKET)
        self._require_mark(commitment, key)
        return ticket, header

    def _require_mark(self, commitment: Commitment, ticket_key: str) -> None:
        """Refuse what nobody would find in a log who looks for what the ticket's owner committed.

        Its ticket could have any number of such entries.
        """
        if self.marks is not None:
            key = self.marks.of(ticket_key)
            if key is None or not key.has_marked(commitment.entry):
                raise _RefusedError(OTHER_MARK)


class _Written:
    """A file that is written, and what was written of it: how much, and its hash."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self.n_bytes, self.digest = out, 0, hashlib.sha256()

    def write(self, data: bytes, /) -> int:
        self.n_bytes += len(data)
        self.digest.update(data)
        return self._out.write(data)

    def flush(self) -> None:
        self._out.flush()


class _RefusedError(Exception):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _unsealed(whole: _Joined, out: Writable, identities: Sequence[str], sha256: bytes) -> Opened:
    """Write what is inside; what the bistro holds is read to its end, whether it opens or not."""
    opened, why = None, DOES_NOT_OPEN
    # Who judges the ciphertext before its hash would blame the person for what a bistro has done.
    try:
        opened = open_sealed(whole, out, identities)
    except FileListError:
        why = OTHER_FILES
    except (ProblemError, IdentityError):
        pass
    while whole.read(_BLOCK_BYTES):
        pass
    if whole.digest.digest() != sha256:
        raise _RefusedError(LOST)
    if opened is None:
        raise _RefusedError(why)
    return opened


class _Joined:
    """The pieces of an upload, read one after the other; what a segment lacks is left out."""

    def __init__(self, folder: Path, parts: np.ndarray) -> None:
        self._folder, self._parts, self._n_begun = folder, parts, 0
        self._file: BinaryIO | None = None
        self._n_left = 0
        self.digest = hashlib.sha256()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def read(self, n: int = -1, /) -> bytes:
        """Return some bytes, at most `n`; none at the end."""
        while self._n_left or self._n_begun < len(self._parts):
            if not self._n_left:
                self._next()
            assert self._file is not None
            most = _BLOCK_BYTES if n < 0 else min(n, _BLOCK_BYTES)
            data = self._file.read(min(most, self._n_left))
            # A segment that was cut ends here.
            self._n_left = self._n_left - len(data) if data else 0
            if data or not most:
                self.digest.update(data)
                return data
        return b""

    def _next(self) -> None:
        segment, segment_offset, _, n_bytes = (int(each) for each in self._parts[self._n_begun])
        self._n_begun += 1
        self.__exit__()
        path = self._folder / segment_name(segment)
        try:
            self._file = path.open("rb")
            self._file.seek(segment_offset)
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}; fetch it again") from None
        self._n_left = n_bytes


def _header(data: bytes) -> dict[str, Any]:
    found = peer_json(data)
    if not isinstance(found, dict):
        raise _RefusedError(OTHER_CONTENT)
    return found


# Processes ------------------------------------------------------------------------------------

# In a process of a pool: the one that it was given.
_openers: list[Opener] = []


def _begin(opener: Opener) -> None:
    # It has the identities in its memory: who ends the parent means this one, too.
    end_with_parent()
    _openers.append(opener)


def _open_one(opening: Opening) -> Result:
    return _openers[0].open(opening)


class OpeningPool:
    """Processes that open uploads, for many rounds: ``with OpeningPool(2) as pool``.

    They begin where there is something to open, and anew where they are given another `Opener`.

    Parameters
    ----------
    n_workers : int
    """

    def __init__(self, n_workers: int) -> None:
        self._n_workers = n_workers
        self._opener: Opener | None = None
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> OpeningPool:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def open_all(self, opener: Opener, openings: Iterable[Opening]) -> Iterator[Result]:
        """Open uploads; yield what that has shown, as it comes.

        Parameters
        ----------
        opener : Opener
        openings : iterable of Opening
            Read some way ahead.

        Raises
        ------
        NotWrittenError, StoreError
            As `Opener.open`; what was opened before counts.
        TransferError
            A process has ended by itself.
        """
        waiting: set[Future[Result]] = set()
        pool = self._begun(opener)
        try:
            for opening in openings:
                waiting.add(pool.submit(_open_one, opening))
                if len(waiting) >= _AHEAD * self._n_workers:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (each.result() for each in done)
            for each in as_completed(waiting):
                yield each.result()
        except BrokenProcessPool:
            self._end()
            why = "a process that opens uploads stopped unexpectedly: is there too little memory?"
            raise TransferError(f"{why} Start again, with fewer workers") from None
        finally:
            # Whoever wants no more of it leaves nothing at work.
            wait(each for each in waiting if not each.cancel())

    def _begun(self, opener: Opener) -> ProcessPoolExecutor:
        if self._pool is None or self._opener != opener:
            self._end()
            opener.prepare()
            self._opener, context = opener, get_context("spawn")
            self._pool = ProcessPoolExecutor(self._n_workers, context, _begin, (opener,))
        return self._pool

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
