r"""Sealed content: a file with its header and secrets, encrypted for the recipients of an event.

The encryption is that of age (https://age-encryption.org/v1, 2021), so that any program that knows
this format opens it. Inside lies::

    "datacollect-sealed/2\n" | u32 length | JSON: header, secret, ticket_signature | the file

Several files are one body (`datacollect.bistro.formats.log.file_list`), which stands in its place.
The header is JSON, too, as a text: its exact bytes count in the proof of the content. Lengths are
big-endian. Everything is a stream: memory does not grow with the file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from datacollect.bistro.formats.log.content import MOST_HEADER_BYTES, SECRET_BYTES, content_code
from datacollect.bistro.formats.log.file_list import FilesCode, FramedFile
from datacollect.bistro.formats.log.one_meaning import hex_bytes, peer_json
from datacollect.errors import DatacollectError, IdentityError, ProblemError
from datacollect.net.keys import SIGNATURE_BYTES
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.bistro.formats.log.content import Code

MAGIC = b"datacollect-sealed/2\n"
# Heads that are longer are refused unread.
_MOST_INNER_BYTES = 12 * MOST_HEADER_BYTES
_LENGTH_BYTES = 4
_OTHER_HEAD = "what was sealed has another head than a sealed file"


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, n: int = -1, /) -> bytes:
        """Return at most so many bytes, all that are left by default."""


class Writable(Protocol):
    """What bytes are written to."""

    def write(self, data: bytes, /) -> int:
        """Take all of some bytes."""

    def flush(self) -> None:
        """Hand on what was taken."""


@dataclass(frozen=True)
class Inner:
    """What is sealed beside the file.

    Attributes
    ----------
    header : bytes
        JSON without secrets: the name of the file, the event, the ticket.
    secret : bytes
        32 random bytes, without which nobody can test guesses of the content.
    ticket_signature : bytes or None
        Of the person's ticket over `hand_in_statement`, which nobody can deny later; None where the
        event admits everybody.
    """

    header: bytes
    secret: bytes = field(repr=False)
    ticket_signature: bytes | None = field(default=None, repr=False)


class Sealed(NamedTuple):
    """What the ciphertext turned out to be: its bytes, their hash, and the code of the content.

    Of several files also each one's own.
    """

    n_bytes: int
    sha256: bytes
    content_p: bytes
    files: tuple[FramedFile, ...] = ()


class Opened(NamedTuple):
    """What was in a ciphertext: its header and secrets, the file's bytes, the content's code."""

    inner: Inner
    n_bytes: int
    content_p: bytes


def seal(file: Readable, out: BinaryIO, inner: Inner, recipients: Sequence[str]) -> Sealed:
    """Encrypt a file for all recipients.

    Parameters
    ----------
    file, out : binary files
        What is read to its end, the body of several files where the header is of such; and where
        the ciphertext is written.
    inner : Inner
    recipients : sequence of str
        ``age1…``, each of whom opens it alone.

    Raises
    ------
    ProblemError
        A recipient is none.
    OSError
        As reading and writing do.

    Examples
    --------
    >>> import io, pyrage
    >>> identity = pyrage.x25519.Identity.generate()
    >>> sealed, out = io.BytesIO(), io.BytesIO()
    >>> inner, recipients = Inner(b"{}", bytes(32)), [str(identity.to_public())]
    >>> told = seal(io.BytesIO(b"abc"), sealed, inner, recipients)
    >>> opened = open_sealed(io.BytesIO(sealed.getvalue()), out, [str(identity)])
    >>> out.getvalue(), opened.content_p == told.content_p, told.n_bytes == len(sealed.getvalue())
    (b'abc', True, True)
    """
    import pyrage

    head = _head(inner)
    reader = _Reader(file, head, content_code(inner.secret, inner.header))
    writer = _Hashing(out)
    known = _recipients(recipients)
    try:
        pyrage.encrypt_io(reader, writer, known)
    except (pyrage.EncryptError, OSError, DatacollectError) as error:
        raise reader.error or writer.error or error from None
    code = reader.code
    files = code.files() if isinstance(code, FilesCode) else ()
    return Sealed(writer.n_bytes, writer.sha256.digest(), code.digest(), files)


def open_sealed(ciphertext: Readable, out: Writable, identities: Sequence[str]) -> Opened:
    """Decrypt what `seal` has made; what was written counts only once this has returned.

    Raises
    ------
    IdentityError
        None of the identities opens it.
    ProblemError
        It is damaged, or holds something else; a `FileListError` where it should be several files.
    OSError
        As reading and writing do.
    """
    import pyrage

    reader, writer = _Plain(ciphertext), _Unpacking(out)
    known = _identities(identities)
    try:
        pyrage.decrypt_io(reader, writer, known)
    except (pyrage.DecryptError, OSError, DatacollectError) as error:
        # Damage within is an OSError of pyrage's own.
        raise reader.error or writer.error or _refused(error) from None
    return writer.opened()


def _refused(error: Exception) -> Exception:
    if "No matching keys" in str(error):
        return IdentityError("none of the identities opens it: it was sealed for others")
    return ProblemError(f"the ciphertext is damaged or cut off: {safe_text(str(error))}")


def _recipients(texts: Sequence[str]) -> list[Any]:
    import pyrage

    found = []
    for text in texts:
        try:
            found.append(pyrage.x25519.Recipient.from_str(text))
        except pyrage.RecipientError:
            raise ProblemError(
                f"{text!r} is no recipient of age: it must begin with age1, as `age-keygen -y` "
                "prints it"
            ) from None
    return found


def _identities(texts: Sequence[str]) -> list[Any]:
    import pyrage

    try:
        return [pyrage.x25519.Identity.from_str(text) for text in texts]
    except pyrage.IdentityError:
        raise ProblemError(
            "an identity must begin with AGE-SECRET-KEY-1, as `age-keygen` writes it"
        ) from None


def _head(inner: Inner) -> bytes:
    ticket = inner.ticket_signature
    tree = {
        "header": inner.header.decode(),
        "secret": inner.secret.hex(),
        "ticket_signature": None if ticket is None else ticket.hex(),
    }
    told = json.dumps(tree, separators=(",", ":")).encode()
    return MAGIC + len(told).to_bytes(_LENGTH_BYTES, "big") + told


def _inner(told: bytes) -> Inner:
    tree = peer_json(told)
    if not isinstance(tree, dict) or tree.keys() != {"header", "secret", "ticket_signature"}:
        raise ProblemError(_OTHER_HEAD)
    secret, ticket = hex_bytes(tree["secret"], SECRET_BYTES), tree["ticket_signature"]
    signature = None if ticket is None else hex_bytes(ticket, SIGNATURE_BYTES)
    header = tree["header"].encode() if isinstance(tree["header"], str) else None
    if header is None or secret is None or (signature is None) != (ticket is None):
        raise ProblemError(_OTHER_HEAD)
    if len(header) > MOST_HEADER_BYTES:
        raise ProblemError(_OTHER_HEAD)
    return Inner(header, secret, signature)


# Streams: pyrage takes whatever reads and writes, and turns its errors into errors of its own.


class _Stream:
    error: Exception | None = None

    def _noting(self, call: Any, *args: Any) -> Any:
        try:
            return call(*args)
        except Exception as error:
            self.error = error
            raise


class _Reader(_Stream):
    """The head, then the file, whose code is computed on the way."""

    def __init__(self, file: Readable, head: bytes, code: Code) -> None:
        self._file, self._head, self.code = file, head, code

    def read(self, n: int = -1) -> bytes:
        if self._head:
            n = len(self._head) if n < 0 else n
            part, self._head = self._head[:n], self._head[n:]
            return part
        data: bytes = self._noting(self._file.read, n)
        self._noting(self.code.update, data)
        return data


class _Plain(_Stream):
    def __init__(self, file: Readable) -> None:
        self._file = file

    def read(self, n: int = -1) -> bytes:
        data: bytes = self._noting(self._file.read, n)
        return data


class _Hashing(_Stream):
    def __init__(self, out: BinaryIO) -> None:
        self._out, self.n_bytes, self.sha256 = out, 0, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._noting(self._out.write, data)
        self.sha256.update(data)
        self.n_bytes += len(data)
        return len(data)

    def flush(self) -> None:
        self._noting(self._out.flush)


class _Unpacking(_Stream):
    """Takes the head off, writes the file, computes its code."""

    def __init__(self, out: Writable) -> None:
        self._out, self._head, self._n_bytes = out, bytearray(), 0
        self._inner: Inner | None = None
        self._code: Code | None = None

    def write(self, data: bytes) -> int:
        rest = self._noting(self._beyond_head, data)
        if rest:
            assert self._code is not None
            # First: what is no list of files is written no further.
            self._noting(self._code.update, rest)
            self._noting(self._out.write, rest)
            self._n_bytes += len(rest)
        return len(data)

    def _beyond_head(self, data: bytes) -> bytes:
        if self._inner is not None:
            return data
        self._head += data
        begin = len(MAGIC) + _LENGTH_BYTES
        if len(self._head) < begin:
            return b""
        length = int.from_bytes(self._head[len(MAGIC) : begin], "big")
        if not self._head.startswith(MAGIC) or length > _MOST_INNER_BYTES:
            raise ProblemError("what was sealed is no file that was handed in")
        if len(self._head) < begin + length:
            return b""
        self._inner = _inner(bytes(self._head[begin : begin + length]))
        self._code = content_code(self._inner.secret, self._inner.header)
        return bytes(self._head[begin + length :])

    def flush(self) -> None:
        self._noting(self._out.flush)

    def opened(self) -> Opened:
        if self._inner is None or self._code is None:
            raise ProblemError("what was sealed is no file that was handed in")
        return Opened(self._inner, self._n_bytes, self._code.digest())
