r"""Contents as entries commit to them: header and file, keyed by secrets that nobody else has.

Of a header that names ``datacollect-content/2`` name and ticket number are committed to apart, each
with a key of its own, so that an `Opening` shows which file it was and neither of them::

    key(what)     = HMAC-SHA-256(secret, "datacollect-content-key/2\n" + what)
    name's code   = HMAC-SHA-256(key("name"), name)
    ticket's code = HMAC-SHA-256(key("ticket"), number, or nothing where the event has no tickets)
    content's     = HMAC-SHA-256(key("file"),
                                 "datacollect-content/2\n" + event + both codes + file)

Of any other header, as older events have it, the code is
``HMAC-SHA-256(secret, "datacollect-content/1\n" + u32 length of the header + header + file)``: who
shows what opens that shows name and ticket number, too.

A header that names ``datacollect-content/3`` is of several files
(`datacollect.bistro.formats.log.file_list`), whose body stands where else the file does: a code is
updated with it, and refuses what is none.
"""

from __future__ import annotations

import hmac
import json
import struct
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from datacollect.bistro.formats.log.file_list import (
    FEWEST_FILES,
    MOST_FILES,
    FileList,
    FileListError,
    FilesCode,
    name_code,
)
from datacollect.bistro.formats.log.one_meaning import hex_bytes, peer_json
from datacollect.bistro.formats.log.opening import CODE_BYTES, Among, Opening
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Code: TypeAlias = hmac.HMAC | FilesCode

SECRET_BYTES = CODE_BYTES
EVENT_BYTES, TICKET_BYTES = 32, 16
# What an event says of its contents, and the header of each.
CONTENT_FORMATS = ("datacollect-content/1", "datacollect-content/2")
# The header of several files, in an event that takes as many.
FILES_FORMAT = "datacollect-content/3"
CONTENT_LABEL, KEY_LABEL = b"datacollect-content/1\n", b"datacollect-content-key/2\n"
# How a header begins whose parts are committed to apart: its keys are in order.
_OPENED_HEADER = f'{{"content":"{CONTENT_FORMATS[1]}",'.encode()
_FILES_HEADER = f'{{"content":"{FILES_FORMAT}",'.encode()
MOST_HEADER_BYTES = 65_536


def opening_of(secret: bytes, header: bytes) -> Opening | None:
    """Return what opens the commitment to a content; None: its header is committed to as a whole.

    Parameters
    ----------
    secret, header : bytes
        As for `content_code`.

    Raises
    ------
    ProblemError
        The header says that its parts are committed to apart, and has other parts.

    Examples
    --------
    >>> named = {"content": "datacollect-content/2", "event": "00" * 32, "name": "a"}
    >>> opening_of(bytes(32), header_bytes(named)).name.hex()[:16]
    '2d069ccffb5cbf81'
    >>> opening_of(bytes(32), b"{}") is None
    True
    """
    if not header.startswith(_OPENED_HEADER):
        return None
    event, name, number = _parts(header)
    return Opening(
        event,
        _key(secret, "file"),
        hmac.digest(_key(secret, "name"), name, "sha256"),
        _number_code(secret, number),
    )


class _FilesHeader(NamedTuple):
    event: bytes
    n_files: int
    number: bytes


def n_files(header: bytes) -> int:
    """Return how many files a header is of, as it says.

    Raises
    ------
    FileListError
        It says that they are several, and not how many, or something beside.

    Examples
    --------
    >>> several = {"content": "datacollect-content/3", "event": "00" * 32, "files": 3}
    >>> n_files(header_bytes(several)), n_files(b"{}")
    (3, 1)
    """
    return _files_header(header).n_files if header.startswith(_FILES_HEADER) else 1


def file_openings(
    secret: bytes, header: bytes, names: Sequence[str], codes: Sequence[bytes]
) -> Iterator[Opening]:
    """Yield what opens the commitment to each of several files.

    Parameters
    ----------
    secret, header : bytes
        As for `content_code`.
    names : sequence of str
        Of all files, in the order of the body.
    codes : sequence of bytes
        Of all files, as `FilesCode.files` returns them.
    """
    event, count, number = _files_header(header)
    key, ticket = partial(_key, secret), _number_code(secret, number)
    paths = FileList(event, ticket, tuple(codes)).paths()
    for index, (name, path) in enumerate(zip(names, paths, strict=True)):
        code = name_code(key, index, name)
        yield Opening(event, key(f"file {index}"), code, ticket, Among(index, count), path)


def _files_header(header: bytes) -> _FilesHeader:
    tree = peer_json(header)
    if isinstance(tree, dict) and header_bytes(tree) == header:
        event = hex_bytes(tree.get("event"), EVENT_BYTES)
        number = hex_bytes(tree["ticket"], TICKET_BYTES) if "ticket" in tree else b""
        is_all = tree.keys() <= {"content", "event", "files", "ticket"}
        count: Any = tree.get("files")
        is_count = type(count) is int and FEWEST_FILES <= count <= MOST_FILES
        if is_all and event is not None and number is not None and is_count:
            return _FilesHeader(event, count, number)
    raise FileListError(
        f"a header of {FILES_FORMAT} must be JSON as it is sealed, with event, files, from "
        f"{FEWEST_FILES} to {MOST_FILES}, and perhaps ticket"
    )


def _number_code(secret: bytes, number: bytes) -> bytes:
    return hmac.digest(_key(secret, "ticket"), number, "sha256")


def _key(secret: bytes, what: str) -> bytes:
    return hmac.digest(_secret(secret), KEY_LABEL + what.encode(), "sha256")


def _parts(header: bytes) -> tuple[bytes, bytes, bytes]:
    """Return event, name and ticket number of a header that has these and no more."""
    tree = peer_json(header)
    if isinstance(tree, dict) and header_bytes(tree) == header:
        event = hex_bytes(tree.get("event"), EVENT_BYTES)
        number = hex_bytes(tree["ticket"], TICKET_BYTES) if "ticket" in tree else b""
        name = tree.get("name")
        is_all = tree.keys() <= {"content", "event", "name", "ticket"}
        if is_all and event is not None and number is not None and isinstance(name, str):
            return event, name.encode(), number
    raise ProblemError(
        f"a header of {CONTENT_FORMATS[1]} must be JSON as it is sealed, with event, name and "
        "perhaps ticket"
    )


def header_bytes(header: Mapping[str, Any]) -> bytes:
    """Return a header as it is sealed and committed to: JSON with its keys in order.

    >>> header_bytes({"name": "a", "event": "0"})
    b'{"event":"0","name":"a"}'
    """
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    if len(text.encode()) > MOST_HEADER_BYTES:
        raise ProblemError(f"a header must have at most {MOST_HEADER_BYTES} bytes; shorten names")
    return text.encode()


def content_code(secret: bytes, header: bytes) -> Code:
    """Begin what an entry says of a content: it is to be updated with the file's bytes.

    Of several files it is updated with their body, and refuses what is none by `FileListError`.

    Parameters
    ----------
    secret : bytes
        32 random bytes that lie inside the seal and with the person.
    header : bytes
        As `header_bytes` makes it.

    Examples
    --------
    >>> code = content_code(bytes(32), b"{}")
    >>> code.update(b"abc")
    >>> code.hexdigest()[:16]
    '29b0b3ebfe8def3d'
    """
    opening = opening_of(secret, header)
    if opening is not None:
        return opening.code()
    if header.startswith(_FILES_HEADER):
        event, count, number = _files_header(header)
        return FilesCode(partial(_key, secret), event, _number_code(secret, number), count)
    said = CONTENT_LABEL + struct.pack(">I", len(header)) + header
    return hmac.new(_secret(secret), said, "sha256")


def content_digest(secret: bytes, header: bytes, file: Iterable[bytes]) -> bytes:
    """Return what an entry says of a header and a file: HMAC-SHA-256, 32 bytes.

    Parameters
    ----------
    secret, header : bytes
        As for `content_code`.
    file : iterable of bytes
        The file's content, or the body of several, in pieces of any length.
    """
    return _digest(content_code(secret, header), file)


def _secret(secret: bytes) -> bytes:
    if len(secret) != SECRET_BYTES:
        raise ProblemError(f"the secret of a file must have {SECRET_BYTES} bytes")
    return secret


def _digest(code: Code, file: Iterable[bytes]) -> bytes:
    for piece in file:
        code.update(piece)
    return code.digest()
