"""Requests over TLS: their method, target and body parsed into a value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote_to_bytes

from datacollect.errors import ProblemError, RefusedError
from datacollect.transfer.protocol.messages import (
    MOST_BODY_BYTES,
    MOST_ENTRIES,
    FileEntry,
    Read,
    is_path,
    parse_confirm,
    parse_read,
)

FILES = "/v1/files/"


@dataclass(frozen=True, slots=True)
class WantsSessions:
    """Request for what its sessions do."""


@dataclass(frozen=True, slots=True)
class WantsList:
    """A page of the inventory."""

    after: str | None
    most: int
    detail: bool = False


@dataclass(frozen=True, slots=True)
class WantsBytes:
    """Segments of files."""

    read: Read


@dataclass(frozen=True, slots=True)
class WantsHashes:
    """Hashes of segments of files."""

    read: Read


@dataclass(frozen=True, slots=True)
class WantsConfirmation:
    """Request for whether files are as they were listed."""

    files: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True)
class WantsFile:
    """A file by its path, as curl asks for it."""

    path: str
    with_body: bool


Wish: TypeAlias = (
    WantsSessions | WantsList | WantsBytes | WantsHashes | WantsConfirmation | WantsFile
)

# What everybody is told.
FACTS = "/v1/agent"

METHODS = {
    FACTS: ("GET",),
    "/v1/inventory": ("GET",),
    "/v1/read": ("POST",),
    "/v1/hash": ("POST",),
    "/v1/confirm": ("POST",),
    "/v1/sessions": ("POST",),
}


def require_route(method: str, target: str, body_bytes: int) -> str:
    """Return the path of a request by its head alone, if there is something to be asked for.

    Raises
    ------
    RefusedError
        There is no such thing (404), not by this method (405), or its body has no place (400) or
        is too long (413).
    """
    path = target.partition("?")[0]
    methods = ("GET", "HEAD") if path.startswith(FILES) else METHODS.get(path)
    if methods is None:
        raise RefusedError("no such path", 404)
    if method not in methods:
        raise RefusedError(f"only {' or '.join(methods)} is allowed here", 405)
    if body_bytes and method != "POST":
        raise RefusedError("a request by this method has no body", 400)
    if body_bytes > MOST_BODY_BYTES:
        raise RefusedError(f"a request's body has at most {MOST_BODY_BYTES} bytes", 413)
    return path


def wish_of(method: str, target: str, body: bytes) -> Wish:
    """Return what a request asks for, other than facts; `require_route` has let its head pass.

    Raises
    ------
    RefusedError
        It is malformed (400).

    Examples
    --------
    >>> wish_of("GET", "/v1/inventory?after=a%2Fb", b"")
    WantsList(after='a/b', most=10000, detail=False)
    """
    path, _, query = target.partition("?")
    try:
        return _wish(method, path, query, body)
    except ProblemError as error:
        raise RefusedError(str(error), 400) from None


def _wish(method: str, path: str, query: str, body: bytes) -> Wish:
    if path == "/v1/sessions":
        return WantsSessions()
    if path == "/v1/read":
        return WantsBytes(parse_read(body))
    if path == "/v1/hash":
        return WantsHashes(parse_read(body))
    if path == "/v1/confirm":
        return WantsConfirmation(parse_confirm(body))
    if path == "/v1/inventory":
        return _list_of(query)
    try:
        name = unquote_to_bytes(path.removeprefix(FILES)).decode()
    except UnicodeDecodeError:
        name = ""
    if not is_path(name):
        raise RefusedError("the path must lie within the folder", 400)
    return WantsFile(name, method == "GET")


def _list_of(query: str) -> WantsList:
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=3
        )
        given = dict(pairs)
    except ValueError:
        raise ProblemError("the query of the request is malformed") from None
    most = given.get("most", str(MOST_ENTRIES))
    if given.keys() - {"after", "most", "detail"} or len(given) < len(pairs):
        raise ProblemError("the query of the request may hold after, most and detail, each once")
    if not re.fullmatch(r"[1-9][0-9]{0,5}", most, re.ASCII):
        raise ProblemError(f"most must be a whole number from 1 to {MOST_ENTRIES}")
    detail = given.get("detail", "0")
    if detail not in ("0", "1"):
        raise ProblemError("detail must be 0 or 1")
    return WantsList(given.get("after"), min(int(most), MOST_ENTRIES), detail == "1")
