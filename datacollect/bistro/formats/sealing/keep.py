r"""Keep of a person, ``NAME.keep``: the ciphertext and all that proves whose it is.

It is written, and on the disk, before anything is committed. Who loses the ciphertext alone can
seal the file anew: the secrets that stand behind it bind the content. The ciphertext comes first,
then what is known of it, then its length::

    ciphertext | JSON | SHA-256 of the JSON | u32 length of the JSON | "datacollect-keep/2\n"

so that it is written in one pass, and an incomplete file is recognised by its end. One of several
files ends with "datacollect-keep/3\n", and has a list of them. Older ones, of events of version 1,
have no owner: they are read to verify, and nothing is handed in with them.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from datacollect.bistro.formats.event.tickets import Ticket
from datacollect.bistro.formats.log.file_list import frame
from datacollect.bistro.formats.log.file_names import FileNames
from datacollect.bistro.formats.log.one_meaning import peer_json
from datacollect.bistro.formats.sealing.sealed import Inner, Sealed, seal
from datacollect.errors import NotWrittenError, ProblemError
from datacollect.files.documents import document_name, not_written
from datacollect.files.durability import name_durably
from datacollect.files.units import format_bytes
from datacollect.net.keys import PrivateKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

MAGIC, OLDER_MAGIC = b"datacollect-keep/2\n", b"datacollect-keep/1\n"
SEVERAL_MAGIC = b"datacollect-keep/3\n"
SUFFIX = ".keep"
MODE = 0o600
_MAGICS = (MAGIC, OLDER_MAGIC, SEVERAL_MAGIC)
_LENGTH_BYTES = 4
_HASH_BYTES = 32
_END_BYTES = _HASH_BYTES + _LENGTH_BYTES + len(MAGIC)
_MOST_JSON_BYTES = 2**20
# Ten thousand names, each letter of them escaped.
_MOST_SEVERAL_BYTES = 2**26
_BLOCK_BYTES = 2**20
# What age adds to a file: a head for each recipient, 16 bytes for each 64 KiB.
_HEAD_BYTES, _CHUNK_BYTES, _TAG_BYTES = 1024, 65_536, 16


class FileVersion(NamedTuple):
    """Identity of one version of a file: its bytes, and when they were written."""

    n_bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, file: BinaryIO) -> FileVersion:
        """Return that of an open file."""
        now = os.fstat(file.fileno())
        return cls(now.st_size, now.st_mtime_ns)


class Source(NamedTuple):
    """A file that is handed in with others: what it is called there, and where it lies."""

    name: str
    path: Path


class KeptFile(NamedTuple):
    """One of several files that were sealed: its name, its version then, its code."""

    name: str
    version: FileVersion
    code: bytes


@dataclass(frozen=True, kw_only=True)
class KeptSeal:
    """Content of a ``.keep`` of either kind: enough to show what was sealed.

    Attributes
    ----------
    event : bytes
        The event's id, 32 bytes.
    salt : bytes
        32 random bytes, which bistros see.
    inner : Inner
        Header and secrets, which lie inside the seal, too.
    sealed : Sealed
        The ciphertext's bytes and hash, and the code of the content.
    version : FileVersion or None
        The file when it was sealed; None: there are several.
    files : tuple of KeptFile
        All of several files; one alone is not in it.
    is_whole : bool
        Whether the ciphertext is as it was sealed; if not, the file itself can be sealed anew.
    """

    event: bytes
    salt: bytes
    inner: Inner
    sealed: Sealed
    version: FileVersion | None
    files: tuple[KeptFile, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, kw_only=True)
class Kept(KeptSeal):
    """Content of a ``.keep``, by which the file is handed in.

    Attributes
    ----------
    owner : PrivateKey
        Whose public half the entry commits to: without it nothing can be pushed.
    ticket : Ticket or None
        With its key, by which is signed what services and bistros are to take.
    """

    owner: PrivateKey = field(repr=False)
    ticket: Ticket | None = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Sealing:
    """What is sealed beside files, and for whom: as `Kept` has it.

    Attributes
    ----------
    event, salt : bytes
    inner : Inner
    owner : PrivateKey
    ticket : Ticket or None
    recipients : sequence of str
    """

    event: bytes
    salt: bytes
    inner: Inner
    owner: PrivateKey = field(repr=False)
    ticket: Ticket | None = field(repr=False)
    recipients: Sequence[str]

    def kept(
        self, sealed: Sealed, version: FileVersion | None, files: tuple[KeptFile, ...] = ()
    ) -> Kept:
        """Return what is kept once it is sealed."""
        return Kept(
            event=self.event,
            salt=self.salt,
            inner=self.inner,
            owner=self.owner,
            ticket=self.ticket,
            sealed=sealed,
            version=version,
            files=files,
        )


def keep(
    path: str | PathLike[str],
    into: str | PathLike[str],
    *,
    event: bytes,
    salt: bytes,
    inner: Inner,
    owner: PrivateKey,
    ticket: Ticket | None,
    recipients: Sequence[str],
) -> Kept:
    """Seal a file into a new ``.keep``, which is on the disk when this returns.

    Raises
    ------
    ProblemError
        The file cannot be read, or changed while it was sealed, or a recipient is none.
    NotWrittenError
        The ``.keep`` cannot be written, there is no room for it, or it is there already.
    """
    name, target = document_name(path), Path(into)
    sealing = Sealing(
        event=event, salt=salt, inner=inner, owner=owner, ticket=ticket, recipients=recipients
    )
    with _read(path) as file:
        version = FileVersion.of(file)
        _require_room(target, version.n_bytes, name)
        reader = _Naming(file, name)
        with _new_file(target) as out:
            sealed = seal(reader, out, sealing.inner, sealing.recipients)
            if FileVersion.of(file) != version:
                raise _changed(name)
            kept = sealing.kept(sealed, version)
            _write_end(out, kept)
    return kept


def keep_files(sources: Sequence[Source], into: str | PathLike[str], sealing: Sealing) -> Kept:
    """Seal several files into a new ``.keep``, which is on the disk when this returns.

    Parameters
    ----------
    sources : sequence of Source
        In the order of the body; the header is of as many.
    into : path-like
    sealing : Sealing

    Raises
    ------
    ProblemError, NotWrittenError
        As for `keep`.
    """
    target, body = Path(into), _Body(sources)
    _require_room(target, sum(map(_length, sources)), f"{len(sources)} files")
    with _new_file(target) as out:
        sealed = seal(body, out, sealing.inner, sealing.recipients)
        rows = zip(sealed.files, body.versions, strict=True)
        files = tuple(KeptFile(each.name, version, each.code) for each, version in rows)
        kept = sealing.kept(sealed._replace(files=()), None, files)
        _write_end(out, kept)
    return kept


def _length(source: Source) -> int:
    with _read(source.path) as file:
        return len(frame(source.name, 0)) + FileVersion.of(file).n_bytes


def _write_end(out: BinaryIO, kept: Kept) -> None:
    told = _told(kept)
    out.write(told + _end_of(told, SEVERAL_MAGIC if kept.files else MAGIC))


def _told(kept: Kept) -> bytes:
    return json.dumps(_tree(kept), separators=(",", ":")).encode()


class _Body:
    """The body of several files, read one after the other; what each was then stays known."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.versions: list[FileVersion] = []
        self._pieces = self._all(sources)
        self._left = b""

    def read(self, n: int = -1, /) -> bytes:
        """Return some bytes, at most `n`; none at the end."""
        if not self._left:
            self._left = next(self._pieces, b"")
        if n < 0:
            n = len(self._left)
        data, self._left = self._left[:n], self._left[n:]
        return data

    def _all(self, sources: Sequence[Source]) -> Iterator[bytes]:
        for source in sources:
            name = document_name(source.path)
            with _read(source.path) as file:
                version = FileVersion.of(file)
                self.versions.append(version)
                yield frame(source.name, version.n_bytes)
                reader, n_left = _Naming(file, name), version.n_bytes
                while n_left and (block := reader.read(min(_BLOCK_BYTES, n_left))):
                    n_left -= len(block)
                    yield block
                # Some systems have files whose length says nothing of what they hold.
                if n_left or reader.read(1) or FileVersion.of(file) != version:
                    raise _changed(name)


def _changed(name: str) -> ProblemError:
    return ProblemError(
        f"{name}: changed while it was sealed; hand it in once no program writes to it"
    )


def read_keep(path: str | PathLike[str]) -> Kept:
    """Read what a ``.keep`` says, and see whether its ciphertext is whole and unaltered.

    Raises
    ------
    ProblemError
        It cannot be read, is incomplete, of an older kind, or what it says of its ciphertext is
        damaged.
    """
    kept = read_kept_seal(path)
    if not isinstance(kept, Kept):
        raise ProblemError(
            f"{document_name(path)}: was made by an older version of datacollect, and can no "
            "longer be used to hand in; `datacollect verify` reads it, and to hand the file in, "
            "name another folder with -o"
        )
    return kept


def read_kept_seal(path: str | PathLike[str]) -> KeptSeal:
    """Read a ``.keep`` as `read_keep` does, or what an older one says of its seal."""
    name = document_name(path)
    with _read(path) as file:
        n_bytes = FileVersion.of(file).n_bytes
        told, magic = _json_at_end(file, n_bytes, name)
        kept = _older(told, name) if magic == OLDER_MAGIC else _kept(told, name, magic)
        digest = hashlib.sha256()
        for block in _blocks(file, kept.sealed.n_bytes):
            digest.update(block)
    return replace(kept, is_whole=digest.digest() == kept.sealed.sha256)


@contextmanager
def ciphertext_of(path: str | PathLike[str], kept: KeptSeal) -> Iterator[Iterator[bytes]]:
    """Yield the ciphertext of a ``.keep``, in blocks."""
    with _read(path) as file:
        yield _blocks(file, kept.sealed.n_bytes)


def _blocks(file: BinaryIO, n_bytes: int) -> Iterator[bytes]:
    file.seek(0)
    while n_bytes and (block := file.read(min(_BLOCK_BYTES, n_bytes))):
        n_bytes -= len(block)
        yield block


def _json_at_end(file: BinaryIO, n_bytes: int, name: str) -> tuple[bytes, bytes]:
    """Return what a ``.keep`` says, and the words at its end, which say of which kind it is."""
    what = f"{name}: is not a .keep of datacollect, or not a complete one"
    if n_bytes < _END_BYTES:
        raise ProblemError(what)
    file.seek(n_bytes - _END_BYTES)
    end = file.read(_END_BYTES)
    magic = end[-len(MAGIC) :]
    length = int.from_bytes(end[_HASH_BYTES : _HASH_BYTES + _LENGTH_BYTES], "big")
    most = _MOST_SEVERAL_BYTES if magic == SEVERAL_MAGIC else _MOST_JSON_BYTES
    if magic not in _MAGICS or length > min(most, n_bytes - _END_BYTES):
        raise ProblemError(what)
    file.seek(n_bytes - _END_BYTES - length)
    told = file.read(length)
    if end != _end_of(told, magic):
        raise _damaged(name)
    return told, magic


def is_keep(path: str | PathLike[str]) -> bool:
    """Whether a file ends as a ``.keep`` of any kind does."""
    with _read(path) as file:
        file.seek(max(0, FileVersion.of(file).n_bytes - len(MAGIC)))
        return file.read() in _MAGICS


def _end_of(told: bytes, magic: bytes) -> bytes:
    return hashlib.sha256(told).digest() + len(told).to_bytes(_LENGTH_BYTES, "big") + magic


def _tree(kept: Kept) -> dict[str, Any]:
    signature, ticket = kept.inner.ticket_signature, kept.ticket
    return {
        "event": kept.event.hex(),
        "salt": kept.salt.hex(),
        "header": kept.inner.header.decode(),
        "secret": kept.inner.secret.hex(),
        "ticket_signature": None if signature is None else signature.hex(),
        "owner_seed": kept.owner.seed.hex(),
        "ticket": None if ticket is None else ticket.token,
        "ticket_seed": None if ticket is None else ticket.seed.hex(),
        "size": kept.sealed.n_bytes,
        "ciphertext_sha256": kept.sealed.sha256.hex(),
        "content_p": kept.sealed.content_p.hex(),
        **_files_tree(kept),
    }


def _files_tree(kept: Kept) -> dict[str, Any]:
    if kept.version is not None:
        return {"file": _version_tree(kept.version)}
    rows = [
        {"name": each.name, **_version_tree(each.version), "code": each.code.hex()}
        for each in kept.files
    ]
    return {"files": rows}


def _version_tree(version: FileVersion) -> dict[str, int]:
    return {"bytes": version.n_bytes, "mtime_ns": version.mtime_ns}


def _kept(told: bytes, name: str, magic: bytes) -> Kept:
    try:
        tree = peer_json(told)
        token = tree["ticket"]
        event, signature = bytes.fromhex(tree["event"]), tree["ticket_signature"]
        kept = Kept(
            **_seal(tree, None if signature is None else bytes.fromhex(signature)),
            owner=PrivateKey(bytes.fromhex(tree["owner_seed"])),
            ticket=None
            if token is None
            else Ticket(event, token, bytes.fromhex(tree["ticket_seed"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError, ProblemError):
        kept = None
    is_several = magic == SEVERAL_MAGIC
    if kept is None or bool(kept.files) != is_several or _told(kept) != told:
        raise _damaged(name)
    # Files are read and proofs written by these names, whoever has made it.
    names = FileNames()
    if any(names.fault(each.name) for each in kept.files):
        raise _damaged(name)
    return kept


def _older(told: bytes, name: str) -> KeptSeal:
    try:
        return KeptSeal(**_seal(peer_json(told), None))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _damaged(name) from None


def _seal(tree: Any, ticket_signature: bytes | None) -> dict[str, Any]:
    """Return what all kinds say, as `KeptSeal` has it."""
    files = tree.get("files", ())
    return {
        "event": bytes.fromhex(tree["event"]),
        "salt": bytes.fromhex(tree["salt"]),
        "inner": Inner(tree["header"].encode(), bytes.fromhex(tree["secret"]), ticket_signature),
        "sealed": Sealed(
            int(tree["size"]),
            bytes.fromhex(tree["ciphertext_sha256"]),
            bytes.fromhex(tree["content_p"]),
        ),
        "version": None if "files" in tree else _version(tree["file"]),
        "files": tuple(
            KeptFile(str(each["name"]), _version(each), bytes.fromhex(each["code"]))
            for each in files
        ),
    }


def _version(tree: Any) -> FileVersion:
    return FileVersion(int(tree["bytes"]), int(tree["mtime_ns"]))


def _damaged(name: str) -> ProblemError:
    return ProblemError(f"{name}: what it says of its ciphertext is damaged")


def sealed_bytes(n_bytes: int) -> int:
    """Return how many bytes a sealed file takes at most.

    >>> sealed_bytes(0), sealed_bytes(10**9)
    (1040, 1000245168)
    """
    return n_bytes + _HEAD_BYTES + (n_bytes // _CHUNK_BYTES + 1) * _TAG_BYTES


def _require_room(target: Path, n_bytes: int, name: str) -> None:
    wanted = sealed_bytes(n_bytes)
    try:
        free = shutil.disk_usage(target.parent).free
    except OSError as error:
        raise not_written(target, error) from None
    if free < wanted:
        raise NotWrittenError(
            f"{target}: there is no room for the ciphertext of {name}: it takes "
            f"{format_bytes(wanted)}, {format_bytes(free)} are free; name another folder with -o",
            None,
        )


@contextmanager
def _new_file(target: Path) -> Iterator[BinaryIO]:
    """Yield a file for its owner alone, which gets its name once it is complete and on the disk."""
    # A name that nobody guesses, and no file or link that is there: others may write here, too.
    beside = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        if target.exists():
            raise FileExistsError(17, "it is there already")
        number = os.open(beside, flags, MODE)
        with os.fdopen(number, "wb") as out:
            yield out
            out.flush()
            name_durably(beside, target, fd=out.fileno(), is_new=True)
    except OSError as error:
        raise not_written(target, error) from None
    finally:
        with suppress(OSError):  # the file has its name by now, or there is a better error
            beside.unlink(missing_ok=True)


@contextmanager
def _read(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open("rb"))
        except OSError as error:
            raise _not_read(document_name(path), error) from None
        yield file


class _Naming:
    """A file whose errors name it: what is written at the same time has errors, too."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name

    def read(self, n: int = -1) -> bytes:
        try:
            return self._file.read(n)
        except OSError as error:
            raise _not_read(self._name, error) from None


def _not_read(name: str, error: OSError) -> ProblemError:
    return ProblemError(f"{name}: cannot be read: {error.strerror}")
