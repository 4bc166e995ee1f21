"""Simulated web servers: the real core and peer of other servers, on connections in memory."""

from __future__ import annotations

import hashlib
import random
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any
from unittest import mock
from urllib.parse import unquote

from simulated.sources import Source, Trouble

from datacollect.errors import TransferError
from datacollect.transfer.sources.web import listing
from datacollect.transfer.sources.web.core.core import WebCore
from datacollect.transfer.sources.web.core.redirects import RedirectRule
from datacollect.transfer.sources.web.core.urls import Target, file_below, target_of
from datacollect.transfer.sources.web.core.versions import Version
from datacollect.transfer.sources.web.entries import ServerFile
from datacollect.transfer.sources.web.listing import WebListing
from datacollect.transfer.sources.web.pace import ServerPace
from datacollect.transfer.sources.web.peer import WebPeer
from datacollect.transfer.sources.web.standing import Standing

if TYPE_CHECKING:
    from datacollect.transfer.protocol.source import Known, Listed, Page

BASE = target_of("https://w.example/data?Signature=secret")
NO_TROUBLE = Trouble()
_REQUEST = re.compile(rb"GET (\S+) HTTP/1\.1\r\n(.*?)\r\n\r\n", re.DOTALL)


class WebSource(Source):
    """A web server with ranges and strong ETags; every second one has a manifest with SHA-256."""

    apart = True

    def write(self, path: str, size: int) -> None:
        """Write a file again, never text: a text that takes the place of data is kept out."""
        super().write(path, size)
        entry, data = self.versions[path].pop()
        if data:
            data = bytes([data[0] | 0x80]) + data[1:]
        self.versions[path].append((entry, data))

    @cached_property
    def standing(self) -> Standing:
        """What all its sessions have seen in a start."""
        return Standing(self.versions)

    def begin_start(self) -> None:
        """Forget what was seen in the start before."""
        self.__dict__.pop("standing", None)

    def listed(self, known: Known) -> list[Page]:
        """What the collector's own listing makes of it, which hears no trouble."""
        files = [
            ServerFile(path, self.target(path), None, self._sha256(path), "the manifest")
            for path in self.versions
        ]
        with mock.patch.object(listing, "ASKERS", 1):  # one thread: the same every time
            ask = lambda: self.peer(NO_TROUBLE)  # noqa: E731
            return list(WebListing(self.name, files, known, ask, 10.0).pages())

    def _sha256(self, path: str) -> str | None:
        data = self.current(path)[1]
        return hashlib.sha256(data).hexdigest() if len(path) % 2 else None

    def target(self, path: str) -> Target:
        return file_below(BASE, path)

    def peer(self, trouble: Trouble | None = None) -> WebPeer:
        """A session; its connections are ours."""
        trouble = self.trouble if trouble is None else trouble
        dial = lambda *_: Connection(self, trouble)  # noqa: E731
        core = WebCore(RedirectRule())
        peer = SimulatedPeer(self.name, core, dial, self.target, NoPace(), self.standing)
        peer.connect()
        return peer

    def etag(self, path: str) -> str:
        return f'"{self.current(path)[0].mtime_ns}"'

    def as_listed(self, listed: Listed) -> bytes:
        """What a file was when it was listed."""
        etag = Version.of_tag(listed.tag).etag
        for entry, data in self.versions[listed.path]:
            if listed.sha256 is not None:
                if hashlib.sha256(data).hexdigest() == listed.sha256:
                    return data
                continue
            # Answers to requests for what empty files do not have tell no ETag.
            if f'"{entry.mtime_ns}"' == etag or (etag is None and not data):
                return data
        raise AssertionError(f"{listed} was never so")

    def may_have_sent(self, listed: Listed, offset_bytes: int, part: bytes) -> bool:
        """By a SHA-256 the whole is judged, at its end: until then any version may lie there."""
        if listed.sha256 is None:
            return super().may_have_sent(listed, offset_bytes, part)
        sent = (data for _, data in self.versions[listed.path])
        return any(data[offset_bytes:][: len(part)] == part for data in sent)


class NoPace(ServerPace):
    """Time is the driver's."""

    def busy(self, wait_s: float, number: int) -> None:
        pass

    def pause(self, wait_s: float, is_over: object = None) -> None:
        pass


class SimulatedPeer(WebPeer):
    """Has no socket to shut down."""

    def abort(self, *, is_stuck: bool = False) -> None:
        self._is_stuck, self._talk.is_aborted = is_stuck, True


class Connection:
    """A connection to a web server, which answers what it is asked, well or not."""

    def __init__(self, source: WebSource, trouble: Trouble) -> None:
        self.source, self.trouble, self.draws = source, trouble, source.draws
        self.answers = b""
        self.ends = False

    def sendall(self, data: bytes) -> None:
        if not self.source.is_up and self.trouble is not NO_TROUBLE:
            raise ConnectionResetError("reset by peer")
        for found in _REQUEST.finditer(data):
            head, body = self._answer(unquote(found[1].decode().split("?")[0]), found[2])
            lines = "".join(f"{name}: {value}\r\n" for name, value in head.items() if name)
            answer = f"HTTP/1.1 {head['']} X\r\n{lines}\r\n".encode() + body
            if self.draws.random() < self.trouble.reset:
                answer, self.ends = answer[: self.draws.randint(0, len(answer))], True
            self.answers += answer

    def recv(self, most: int) -> bytes:
        if not self.answers:
            if not self.ends:
                raise TransferError("nothing comes, and nothing ever will")
            if self.draws.random() < 0.5:
                raise ConnectionResetError("reset by peer")
            return b""
        n = self.draws.randint(1, min(most, len(self.answers)))
        data, self.answers = self.answers[:n], self.answers[n:]
        return data

    def recv_into(self, view: memoryview) -> int:
        data = self.recv(len(view))
        view[: len(data)] = data
        return len(data)

    def settimeout(self, timeout_s: float) -> None:
        pass

    def close(self) -> None:
        pass

    def _answer(self, path: str, head: bytes) -> tuple[dict[str, Any], bytes]:
        """Return status and headers, and the body."""
        path, lines = path.removeprefix("/data/"), head.decode().lower().split("\r\n")
        asked = dict(line.split(": ", 1) for line in lines)
        if (wrong := self._trouble()) is not None:
            return wrong
        if path not in self.source.versions:
            return {"": 404, "Content-Length": 2}, b"no"
        data, etag = self.source.current(path)[1], self.source.etag(path)
        if "range" not in asked:  # what is said of it is asked in another way
            return {"": 200, "Content-Length": len(data), "ETag": etag}, data
        first, last = map(int, asked["range"].removeprefix("bytes=").split("-"))
        # Some servers do not know If-Range.
        if asked.get("if-range", etag) != etag and self.draws.random() < 0.5:
            return {"": 200, "Content-Length": len(data), "ETag": etag}, data
        if first >= len(data):
            return {"": 416, "Content-Length": 0, "Content-Range": f"bytes */{len(data)}"}, b""
        if self.draws.random() < self.trouble.unreadable + self.trouble.corrupt:
            first, last = max(0, first - 1), last - (first > 0)
        body = data[first : last + 1]
        found = {"": 206, "Content-Length": len(body), "ETag": etag}
        if self.draws.random() < 0.1:
            found["Connection"] = "close"
            self.ends = True
        return found | {"Content-Range": f"bytes {first}-{first + len(body) - 1}/{len(data)}"}, body

    def _trouble(self) -> tuple[dict[str, Any], bytes] | None:
        """Something else than the file, where unreadable answers are drawn."""
        if self.draws.random() >= self.trouble.unreadable + self.trouble.corrupt:
            return None
        return self.draws.choice(
            (
                ({"": 503, "Content-Length": 4, "Retry-After": 7}, b"busy"),
                ({"": 500, "Content-Length": 4}, b"oops"),
                ({"": 403, "Content-Length": 7}, b"expired"),
                ({"": 206, "Content-Length": 3, "Content-Range": "bytes 7-9/10"}, b"no!"),
                ({"": 206, "Content-Length": 3, "Content-Encoding": "gzip"}, b"no!"),
                ({"": 302, "Content-Length": 0, "Location": "https://10.0.0.1/x"}, b""),
            )
        )


def servers_among(names: tuple[str, ...], seed: int) -> set[str]:
    """Which hosts are web servers: one at least."""
    draws = random.Random(f"servers {seed}")
    return {draws.choice(names), *(name for name in names if draws.random() < 0.5)}
