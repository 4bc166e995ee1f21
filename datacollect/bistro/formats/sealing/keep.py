r"""Keep of a person, ``NAME.keep``: the ciphertext and all that proves whose it is.

It is written, and on the disk, before anything is committed. Who loses the ciphertext alone can
seal the file anew: the secrets that stand behind it bind the content. The ciphertext comes first,
then what is known of it, then its length::

    ciphertext | JSON | SHA-256 of the JSON | u32 length of the JSON | "datacollect-keep/2\n"

so that it is written in one pass, and an incomplete file is recognised by its end. Older ones, of
events of version 1, have no owner: they are read to verify, and nothing is handed in with them.
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
SUFFIX = ".keep"
MODE = 0o600
_LENGTH_BYTES = 4
_HASH_BYTES = 32
_END_BYTES = _HASH_BYTES + _LENGTH_BYTES + len(MAGIC)
_MOST_JSON_BYTES = 2**20
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
    version : FileVersion
        The file when it was sealed.
    is_whole : bool
        Whether the ciphertext is as it was sealed; if not, the file itself can be sealed anew.
    """

    event: bytes
    salt: bytes
    inner: Inner
    sealed: Sealed
    version: FileVersion
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
    with _read(path) as file:
        version = FileVersion.of(file)
        _require_room(target, version.n_bytes, name)
        reader = _Naming(file, name)
        with _new_file(target) as out:
            sealed = seal(reader, out, inner, recipients)
            if FileVersion.of(file) != version:
                raise ProblemError(
                    f"{name}: changed while it was sealed; hand it in once no program writes to it"
                )
            kept = Kept(
                event=event,
                salt=salt,
                inner=inner,
                owner=owner,
                ticket=ticket,
                sealed=sealed,
                version=version,
            )
            told = json.dumps(_tree(kept), separators=(",", ":")).encode()
            out.write(told + _end_of(told))
    return kept


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
        kept = _kept(told, name) if magic == MAGIC else _older(told, name)
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
    is_one = magic in (MAGIC, OLDER_MAGIC)
    if not is_one or length > min(_MOST_JSON_BYTES, n_bytes - _END_BYTES):
        raise ProblemError(what)
    file.seek(n_bytes - _END_BYTES - length)
    told = file.read(length)
    if end != _end_of(told, magic):
        raise _damaged(name)
    return told, magic


def _end_of(told: bytes, magic: bytes = MAGIC) -> bytes:
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
        "file": {"bytes": kept.version.n_bytes, "mtime_ns": kept.version.mtime_ns},
    }


def _kept(told: bytes, name: str) -> Kept:
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
    if kept is None or json.dumps(_tree(kept), separators=(",", ":")).encode() != told:
        raise _damaged(name)
    return kept


def _older(told: bytes, name: str) -> KeptSeal:
    try:
        return KeptSeal(**_seal(peer_json(told), None))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _damaged(name) from None


def _seal(tree: Any, ticket_signature: bytes | None) -> dict[str, Any]:
    """Return what both kinds say, as `KeptSeal` has it."""
    file = tree["file"]
    return {
        "event": bytes.fromhex(tree["event"]),
        "salt": bytes.fromhex(tree["salt"]),
        "inner": Inner(tree["header"].encode(), bytes.fromhex(tree["secret"]), ticket_signature),
        "sealed": Sealed(
            int(tree["size"]),
            bytes.fromhex(tree["ciphertext_sha256"]),
            bytes.fromhex(tree["content_p"]),
        ),
        "version": FileVersion(int(file["bytes"]), int(file["mtime_ns"])),
    }


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
