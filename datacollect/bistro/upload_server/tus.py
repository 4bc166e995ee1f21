"""tus 1.0 (https://tus.io/protocols/resumable-upload), as stock clients speak it.

Creation, creation with upload, expiration, checksum, termination. Whoever asks for an upload ends
the connection that is pushing it: it is its own, and stale.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.statements import GIVE_UP_HEADER
from datacollect.bistro.formats.log.checkpoints import whole
from datacollect.bistro.formats.log.entry import SIZE_STOP
from datacollect.bistro.formats.log.notes import decoded
from datacollect.bistro.upload_server import messages
from datacollect.bistro.upload_server.core import GONE, NO_ROOM
from datacollect.bistro.upload_server.limits import TOO_MANY
from datacollect.bistro.upload_server.requests import POSTS
from datacollect.bistro.upload_server.server import UNSURE
from datacollect.errors import ProblemError, RefusedError, TransferError
from datacollect.net.cross_origin import allowed, shared

if TYPE_CHECKING:
    from datacollect.bistro.upload_server.messages import Upload
    from datacollect.bistro.upload_server.server import Bistro
    from datacollect.transfer.agent.shell.handling import Exchange, Handler

PREFIX = "/tus/"
VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,expiration,checksum,termination"
PUSH_TYPE = "application/offset+octet-stream"
RECEIPT = "Datacollect-Receipt"
SUMS = ("sha256", "sha1")
# What pages may send and read: tickets travel in `Upload-Metadata`, never by themselves.
SHARED = shared(
    (
        *("Location", "Upload-Offset", "Upload-Length", "Upload-Expires", RECEIPT),
        *("Tus-Resumable", "Tus-Version", "Tus-Extension", "Tus-Max-Size"),
        *("Tus-Checksum-Algorithm", "Retry-After"),
    )
)
ALLOWED = allowed(
    ("POST", "HEAD", "PATCH", "DELETE", "OPTIONS"),
    (
        *("Content-Type", "Tus-Resumable", "Upload-Length", "Upload-Metadata", "Upload-Offset"),
        *("Upload-Checksum", GIVE_UP_HEADER, "X-HTTP-Method-Override", "X-Requested-With"),
    ),
)
# When somebody may come again who was refused for want of room; as nothing is known yet; as there
# were too many.
AGAIN_S, SOON_S, LATER_S = 30, 2, 5
# What is written at once.
BLOCK_BYTES = 256 * 1024


def handlers_of(bistro: Bistro) -> dict[str, Handler]:
    """Return who answers for a bistro at its agent, by path."""
    posted = {path: partial(bistro.answer_posted, post) for path, post in POSTS.items()}
    return {PREFIX: Tus(bistro).answer, "/bistro": bistro.answer_facts, **posted}


class Tus:
    """Answers what is asked below `PREFIX`."""

    def __init__(self, bistro: Bistro) -> None:
        self._bistro = bistro

    def answer(self, exchange: Exchange) -> None:
        """Answer a request.

        Raises
        ------
        OSError, TransferError
            The client has gone; what has come is kept.
        """
        request = self._bistro.enter(exchange)
        try:
            self._answer(exchange, request)
        except RefusedError as error:
            self._refuse(exchange, error)
        finally:
            self._bistro.leave(request)

    def _answer(self, exchange: Exchange, request: int) -> None:
        headers = exchange.headers
        method = headers.get("x-http-method-override", exchange.method)
        if method == "OPTIONS":
            self._say(exchange, 204, *self._abilities(), *ALLOWED)
            return
        if headers.get("tus-resumable") != VERSION:
            raise RefusedError(f"Tus-Resumable must be {VERSION}", 412)
        upload = exchange.target.partition("?")[0].removeprefix(PREFIX)
        if method == "POST" and not upload:
            self._create(exchange, request)
        elif method == "HEAD":
            self._told(exchange, 200, self._looked(request, upload), ("Cache-Control", "no-store"))
        elif method == "PATCH":
            if headers.get("content-type") != PUSH_TYPE:
                raise RefusedError(f"Content-Type must be {PUSH_TYPE}", 415)
            offset = _whole(headers, "upload-offset")
            self._told(exchange, 204, self._push(exchange, request, upload, offset))
        elif method == "DELETE":
            signature = decoded(headers.get(GIVE_UP_HEADER.lower(), "")) or b""
            self._bistro.ask(messages.EndAsked(request, upload, signature))
            self._say(exchange, 204)
        else:
            raise RefusedError(GONE, 404)

    def _abilities(self) -> list[tuple[str, str]]:
        return [
            ("Tus-Version", VERSION),
            ("Tus-Extension", EXTENSIONS),
            ("Tus-Checksum-Algorithm", ",".join(SUMS)),
            ("Tus-Max-Size", str(self._bistro.event.most_bytes or self._bistro.most_bytes)),
        ]

    def _create(self, exchange: Exchange, request: int) -> None:
        headers, now_s = exchange.headers, time.time()
        wish = self._bistro.wish_of(
            headers.get("upload-metadata", ""),
            _whole(headers, "upload-length"),
            now_s,
            exchange.address,
        )
        asked = messages.CreateAsked(
            request, now_s, wish, secrets.token_hex(16), self._bistro.free_bytes()
        )
        has_body = exchange.body_bytes > 0
        if has_body and headers.get("content-type") != PUSH_TYPE:
            raise RefusedError(f"Content-Type must be {PUSH_TYPE}", 415)
        found = self._bistro.tell(asked) if has_body else self._bistro.ask(asked)
        assert found is not None
        upload = found.upload
        if has_body and not upload.offset:
            upload = self._push(exchange, request, upload.id, 0)
        elif has_body or upload.offset == upload.wish.size:
            # Somebody else has sent some, or all: of that only what is on the disk is told.
            upload = self._looked(request, upload.id)
        self._told(exchange, 201, upload, ("Location", PREFIX + upload.id))

    def _looked(self, request: int, upload: str) -> Upload:
        """Return an upload as it is; one of which all has come, and nobody was told, ends here."""
        found = self._bistro.ask(messages.LookAsked(request, upload))
        assert found is not None
        if found.upload.offset == found.upload.wish.size and not found.upload.is_whole:
            found = self._bistro.begin_push(request, upload, found.upload.offset, 0).end(
                is_wrong=False
            )
        return found.upload

    def _push(self, exchange: Exchange, request: int, upload: str, offset: int) -> Upload:
        """Take the body of a request for an upload; return the upload as it is then."""
        bistro = self._bistro
        sum_ = _checksum(exchange.headers.get("upload-checksum"))
        if bistro.has_spoilt(upload):
            # One that is wrong without end leaves the processor to others, and its place.
            exchange.hold_place(False)
            bistro.pause()
            exchange.hold_place(True)
        writing = bistro.begin_push(request, upload, offset, exchange.body_bytes)
        block = bytearray()
        try:
            while data := exchange.read():
                block += data
                if sum_ is not None:
                    sum_[0].update(data)
                if len(block) >= BLOCK_BYTES:
                    writing.add(block)
                    block = bytearray()
            writing.add(block)
        except (OSError, TransferError):
            writing.add(block)
            writing.end(is_wrong=False)
            raise
        found = writing.end(is_wrong=sum_ is not None and sum_[0].digest() != sum_[1])
        return found.upload

    # Answers ----------------------------------------------------------------------------------

    def _told(
        self, exchange: Exchange, status: int, upload: Upload, *more: tuple[str, str]
    ) -> None:
        """Answer with how far an upload is, and with its receipt where it is whole."""
        headers = [
            ("Upload-Offset", str(upload.offset)),
            ("Upload-Length", str(upload.wish.size)),
            *more,
        ]
        if upload.is_whole:
            headers.append((RECEIPT, self._bistro.receipt_of(upload)))
        else:
            headers.append(("Upload-Expires", formatdate(upload.expires_s, usegmt=True)))
        self._say(exchange, status, *headers)

    def _say(self, exchange: Exchange, status: int, *headers: tuple[str, str]) -> None:
        exchange.answer(status, [("Tus-Resumable", VERSION), *SHARED, *headers])

    def _refuse(self, exchange: Exchange, error: RefusedError) -> None:
        headers = [("Tus-Resumable", VERSION), *SHARED]
        tree: dict[str, Any] = {"why": str(error)}
        if error.status == UNSURE:
            headers.append(("Retry-After", str(SOON_S)))
        if error.status == TOO_MANY:
            headers.append(("Retry-After", str(LATER_S)))
        if error.status == NO_ROOM:
            bistros = self._bistro.event.bistros
            headers.append(("Retry-After", str(AGAIN_S)))
            tree["bistros"] = [each.name for each in bistros if each.name != self._bistro.name]
        headers.append(("Content-Type", "application/json"))
        exchange.answer(error.status, headers, json.dumps(tree).encode())


def _whole(headers: Any, name: str) -> int:
    text = headers.get(name, "")
    try:
        return whole(text, name.title(), SIZE_STOP)
    except ProblemError as error:
        raise RefusedError(str(error), 400) from None


def _checksum(text: str | None) -> tuple[Any, bytes] | None:
    """Return a hash to feed, and what is to come of it."""
    if text is None:
        return None
    name, _, value = text.partition(" ")
    expected = decoded(value)
    if name not in SUMS or not expected:
        raise RefusedError(f"Upload-Checksum must be one of {', '.join(SUMS)}, and Base64", 400)
    return hashlib.new(name), expected
