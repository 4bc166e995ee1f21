"""Responses of a misbehaving server: a pure function, without sockets."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass, replace
from email.utils import formatdate
from enum import Enum
from typing import NamedTuple

from judges.misbehaviour import HONEST, REFUSALS, WITHOUT_HEAD, Behaviour

PAGE = b"<!DOCTYPE html><title>Sign in</title><form><input name=user><input name=password>\n" * 5
ERRORS = {
    "error JSON": b'{"error": {"code": 401, "message": "The token has expired"}}\n',
    "error XML": b"<?xml version='1.0'?>\n<Error><Code>ExpiredToken</Code></Error>\n",
    "error text": b"Access denied: your session has expired\n",
}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"
TYPES = {
    **dict.fromkeys(("page", "html"), "text/html"),
    "error JSON": "application/json",
    "error XML": "application/xml",
    **dict.fromkeys(("error text", "pointer"), "text/plain"),
}
CAP_BYTES = 1000
MORE_BYTES = 100
# Counted in requests for the file.
REPLACED_AFTER = 1
MOVED, HOP, LOGIN = "/moved", "/hop", "/login"
EPOCH_S = 1_600_000_000


class Ends(Enum):
    """Bytes after those of a response."""

    STAYS = "the connection stays, for other requests"
    CLOSES = "the connection is closed"
    RESETS = "the connection is reset"
    WAITS = "nothing, for long; then the connection is closed"
    NEVER = "more and more bytes"


class Pace(Enum):
    """Pace of a response's bytes."""

    PROMPT = "at once"
    DRIP = "in eight parts"
    LATE = "at once, after a while"
    TRICKLE = "a byte now and then"


@dataclass(frozen=True)
class ServedFile:
    """A file as it is, as another of the same size that takes its place, and a longer one."""

    data: bytes
    other: bytes
    grown: bytes


class Request(NamedTuple):
    """Part of a request that counts.

    Attributes
    ----------
    path : str
        Without what redirects have put before it.
    n_before : int
        Requests for this path that were answered before it.
    first, last : int or None
        The range that is wanted; `last` may be open.
    if_range : str or None
    is_moved : bool
        Whether a redirect has led here.
    n_hops : int
        Redirects on the way of those that lead on ten times.
    is_head : bool
        Without a body.
    """

    path: str
    n_before: int = 0
    first: int | None = None
    last: int | None = None
    if_range: str | None = None
    is_moved: bool = False
    n_hops: int = 0
    is_head: bool = False


@dataclass(frozen=True)
class Answer:
    """An answer: `payload` as HTTP would give it out, before it is put in chunks.

    Attributes
    ----------
    status : int
        0: no head at all comes, but `payload` as it is.
    headers : tuple of (str, str)
        All but Content-Length and Transfer-Encoding.
    lengths : tuple of str
        Values of Content-Length, as many as there are.
    is_chunked, is_ended : bool
        In chunks; and whether the last of them comes.
    informational : int or None
        Status of an answer that comes before it.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    payload: bytes = b""
    lengths: tuple[str, ...] = ()
    is_chunked: bool = False
    is_ended: bool = True
    ends: Ends = Ends.STAYS
    pace: Pace = Pace.PROMPT
    informational: int | None = None

    def header(self, name: str) -> list[str]:
        """Return the values of a header."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


class Elsewhere(NamedTuple):
    """URLs of other servers, without a path: of the same scheme, and without TLS."""

    url: str = "http://elsewhere.example"
    insecure_url: str = "http://insecure.example"


def answer(
    behaviour: Behaviour, file: ServedFile, request: Request, elsewhere: Elsewhere
) -> Answer:
    """Return what is answered to a request for a file that behaves so."""
    rule = _rule(behaviour, request.n_before)
    if rule.timing in WITHOUT_HEAD:
        return _without_head(rule.timing)
    if rule.redirect != "none" and (
        not request.is_moved or rule.redirect == "loop" or 0 < request.n_hops < 10
    ):
        found = _redirect(rule, request, elsewhere)
    else:
        found = _final(rule, file, request)
    found = _framed(rule, found, is_head=request.is_head)
    return _timed(rule, found)


def _rule(behaviour: Behaviour, n_before: int) -> Behaviour:
    """Return by which rule a request is answered, after so many."""
    word, _, n = behaviour.turn.partition(" ")
    if word == "always" or (n_before < int(n)) == (word == "recovers"):
        return behaviour
    return replace(HONEST, redirect="none")


def _without_head(timing: str) -> Answer:
    match timing:
        case "silent":
            return Answer(0, ends=Ends.WAITS)
        case "closed":
            return Answer(0, ends=Ends.CLOSES)
        case "noise":
            return Answer(0, payload=b"\x16\x03\x01 220 mail.example ESMTP\r\n", ends=Ends.CLOSES)
        case "endless head":
            return Answer(0, payload=b"HTTP/1.1 200 OK\r\nX-More: ", ends=Ends.NEVER)
        case _:
            return Answer(0, payload=b"HTTP/1.1 200 OK\r\n", ends=Ends.NEVER)


def _redirect(rule: Behaviour, request: Request, elsewhere: Elsewhere) -> Answer:
    path = request.path
    to = {
        "login": f"{LOGIN}/{rule.status}",
        "elsewhere": f"{elsewhere.url}{MOVED}{path}",
        "insecure": f"{elsewhere.insecure_url}{MOVED}{path}",
        "another scheme": "file:///etc/hostname",
        "ten times": f"{HOP}/{request.n_hops + 1}{path}",
    }
    status = int(rule.redirect) if rule.redirect.isdigit() else 302
    headers = [("Content-Type", "text/html")]
    if rule.redirect != "nowhere":
        headers.append(("Location", to.get(rule.redirect, f"{MOVED}{path}")))
    payload = b"<html>moved</html>"
    return Answer(status, tuple(headers), payload, (str(len(payload)),))


def _final(rule: Behaviour, file: ServedFile, request: Request) -> Answer:
    if rule.status in REFUSALS:
        status, headers = REFUSALS[rule.status]
        payload = b"" if status in (204, 304) else b"<html>no</html>"
        lengths = () if status in (204, 304) else (str(len(payload)),)
        validators = _validators(rule, file.data, request) if status == 304 else ()
        return Answer(status, (*headers, *validators), payload, lengths)
    content = _content(rule, file, request)
    data = "application/octet-stream"
    kind = {"data": data, "text": "text/plain"}.get(rule.type, TYPES.get(rule.body, data))
    validators = _validators(rule, _told(rule, file, content), request)
    found = _part(rule, content, request, dict(validators).get("ETag"))
    kinds = () if found.header("Content-Type") else (("Content-Type", kind),)
    found = replace(found, headers=(*kinds, *validators, *found.headers))
    found = _encoded(rule, found, content)
    if rule.status in ("100 first", "103 first"):
        found = replace(found, informational=int(rule.status[:3]))
    return found


def _content(rule: Behaviour, file: ServedFile, request: Request) -> bytes:
    """Return the whole file, as this answer has it."""
    data = file.data
    is_later = request.n_before > REPLACED_AFTER
    match rule.body:
        case "shifted":
            return data[1:] + b"\0"
        case "zeros":
            return bytes(len(data))
        case "other version":
            return file.other
        case "html":
            return (PAGE * (len(data) // len(PAGE) + 1))[: len(data)]
        case "page":
            return PAGE
        case "error JSON" | "error XML" | "error text":
            return ERRORS[rule.body]
        case "pointer":
            return POINTER % (hashlib.sha256(b"one for all").hexdigest().encode(), len(data))
        case "replaced":
            return file.other if is_later else data
        case "regrown":
            return file.grown if is_later else data
        case "nodes differ":
            return file.other if request.n_before % 2 else data
        case "empty":
            return b""
        case "one byte":
            return data[:1]
        case "compressed":
            return gzip.compress(data, mtime=0)
        case _:
            return data


def _told(rule: Behaviour, file: ServedFile, content: bytes) -> bytes:
    """Return the bytes of which its validators are: those that come, but where they lie."""
    return content if rule.body not in ("shifted", "zeros", "other version", "html") else file.data


def _validators(rule: Behaviour, told: bytes, request: Request) -> tuple[tuple[str, str], ...]:
    digest = hashlib.sha256(told).hexdigest()[:12]
    modified = EPOCH_S + int(digest, 16) % 1_000_000
    match rule.validator:
        case "none":
            return ()
        case "weak":
            return (("ETag", f'W/"{digest}"'),)
        case "modified":
            return (("Last-Modified", formatdate(modified, usegmt=True)),)
        case "modified always new":
            when = modified + 120 * request.n_before
            return (("Last-Modified", formatdate(when, usegmt=True)),)
        case "always new":
            return (("ETag", f'"{digest}-{request.n_before}"'),)
        case "nodes":
            return (("ETag", f'"{digest}-{"ab"[request.n_before % 2]}"'),)
        case _:
            when = formatdate(modified, usegmt=True)
            return (("ETag", f'"{digest}"'), ("Last-Modified", when))


def _part(rule: Behaviour, content: bytes, request: Request, etag: str | None) -> Answer:
    """Return what of the file is sent, and what its status and Content-Range say."""
    n, first = len(content), request.first
    is_other = request.if_range is not None and request.if_range != etag and rule.status != "deaf"
    if rule.status == "416" and first is not None:
        return Answer(416, _range_headers(rule, None, n), b"", ("0",))
    if first is None or rule.status == "whole" or is_other:
        return _sent(rule, 200, (), content)
    if first >= n:
        return Answer(416, _range_headers(rule, None, n), b"", ("0",))
    last = n - 1 if request.last is None else min(request.last, n - 1)
    if rule.body == "capped":
        last = min(last, first + CAP_BYTES - 1)
    if rule.status == "206 for all":
        first, last = 0, n - 1
    if rule.content_range == "another range":
        # It wraps round, so that there is one of every file of at least two bytes.
        by = max(1, min(10, n - 1 - last) or -min(10, first))
        first, last = first + by, max(first + by, min(last + by, n - 1))
    part = content[first : last + 1]
    if rule.status == "200 for a part":
        return _sent(rule, 200, (), part)
    headers = _range_headers(rule, (first, last), n)
    if rule.status == "multipart":
        between = b"\r\n--THIS\r\nContent-Range: bytes %d-%d/%d\r\n\r\n" % (first, last, n)
        kind = (("Content-Type", "multipart/byteranges; boundary=THIS"),)
        return _sent(rule, 206, kind, between + part + b"\r\n--THIS--\r\n")
    return _sent(rule, 206, headers, part)


def _sent(
    rule: Behaviour, status: int, headers: tuple[tuple[str, str], ...], part: bytes
) -> Answer:
    """Return an answer with these bytes, or fewer or more, as the rule has it."""
    match rule.body:
        case "short":
            cut = part[: len(part) // 2]
            return Answer(status, headers, cut, (str(len(part)),), ends=Ends.CLOSES)
        case "long":
            return Answer(status, headers, part + bytes(MORE_BYTES), (str(len(part) + MORE_BYTES),))
        case "endless":
            return Answer(status, headers, part, (), ends=Ends.NEVER)
        case _:
            return Answer(status, headers, part, (str(len(part)),))


def _range_headers(
    rule: Behaviour, sent: tuple[int, int] | None, n: int
) -> tuple[tuple[str, str], ...]:
    where = "*" if sent is None else f"{sent[0]}-{sent[1]}"
    right = f"bytes {where}/{n}"
    match rule.content_range:
        case "absent":
            return ()
        case "a lying range" if sent is not None:
            right = f"bytes {sent[0] + 10}-{sent[1] + 10}/{n + 10}"
        case "another total":
            right = f"bytes {where}/{n + 7}"
        case "a smaller total":
            right = f"bytes {where}/{max(n - 7, 1)}"
        case "total 0":
            right = f"bytes {where}/0"
        case "total *":
            right = f"bytes {where}/*"
        case "malformed":
            right = f"bytes={where}:{n}"
        case "other units":
            right = f"lines {where}/{n}"
        case "given twice":
            return (("Content-Range", right), ("Content-Range", f"bytes 1-1/{n}"))
    return (("Content-Range", right),)


def _encoded(rule: Behaviour, found: Answer, content: bytes) -> Answer:
    """Compress, or say so."""
    match rule.encoding:
        case "none":
            return found
        case "gzip" if found.status in (200, 206):
            payload = gzip.compress(content, mtime=0)
            headers = [each for each in found.headers if each[0] not in ("Content-Range", "ETag")]
            headers.append(("Content-Encoding", "gzip"))
            return replace(
                found,
                status=200,
                headers=tuple(headers),
                payload=payload,
                lengths=(str(len(payload)),),
            )
        case "gzip of the part" if found.status in (200, 206):
            payload = gzip.compress(found.payload, mtime=0)
            headers = (*found.headers, ("Content-Encoding", "gzip"))
            return replace(found, headers=headers, payload=payload, lengths=(str(len(payload)),))
        case _:
            word = {"identity": "identity", "lying": "br"}.get(rule.encoding, "gzip")
            return replace(found, headers=(*found.headers, ("Content-Encoding", word)))


def _framed(rule: Behaviour, found: Answer, *, is_head: bool) -> Answer:
    """Say how long it is, rightly or not; what cannot be told by its length ends by closing."""
    n = len(found.payload)
    if found.ends is Ends.NEVER:
        return found
    match rule.length:
        case "absent":
            found = replace(found, lengths=(), ends=Ends.CLOSES)
        case "chunked":
            found = replace(found, lengths=(), is_chunked=True)
        case "chunked without end":
            found = replace(found, lengths=(), is_chunked=True, is_ended=False, ends=Ends.CLOSES)
        case "too large":
            found = replace(found, lengths=(str(n + MORE_BYTES),), ends=Ends.CLOSES)
        case "too small":
            found = replace(found, lengths=(str(n // 2),), ends=Ends.CLOSES)
        case "given twice":
            found = replace(found, lengths=(str(n), str(n)))
        case "contradicting":
            found = replace(found, lengths=(str(n), str(n + MORE_BYTES)), ends=Ends.CLOSES)
        case "malformed":
            found = replace(found, lengths=(f"{n} bytes",), ends=Ends.CLOSES)
    if is_head or found.status in (204, 304):
        return replace(found, payload=b"", is_chunked=False)
    return found


def _timed(rule: Behaviour, found: Answer) -> Answer:
    half = found.payload[: len(found.payload) // 2]
    match rule.timing:
        case "drip":
            return replace(found, pace=Pace.DRIP)
        case "late" if found.status not in (301, 302, 303, 307, 308):
            return replace(found, pace=Pace.LATE)
        case "trickle":
            return replace(found, pace=Pace.TRICKLE)
        case "stall":
            return replace(found, payload=half, is_ended=False, ends=Ends.WAITS)
        case "reset":
            return replace(found, payload=half, is_ended=False, ends=Ends.RESETS)
        case _:
            return found
