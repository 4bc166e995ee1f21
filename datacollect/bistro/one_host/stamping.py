"""Has outside authorities stamp the log of an event, each minute in which it has grown."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.checkpoints import MOST_CHECKPOINT_BYTES, SignedCheckpoint
from datacollect.bistro.formats.receipt.stamps import Stamp, read_stamps
from datacollect.bistro.formats.receipt.tokens import (
    AUTHORITIES_NEEDED,
    query_of,
    token_time,
)
from datacollect.errors import DatacollectError, TransferError
from datacollect.files.durability import sync, synchronise
from datacollect.net.fan_out import fan_out
from datacollect.net.http_asking import Asker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from datacollect.bistro.formats.event.event import Authority, Event

EVERY_S = 60.0
QUERY_TYPE = "application/timestamp-query"


class Stamping:
    """Stamps the log of an event's first service.

    Parameters
    ----------
    event : Event
        It names two authorities or more.
    file : Path
        Of the stamps; made where it is absent.
    say : function
        Takes lines on what does not work, each once.
    service : Asker
        Who asks the service.
    """

    def __init__(
        self, event: Event, file: Path, say: Callable[[str], None], service: Asker
    ) -> None:
        self._event, self._file, self._say, self._service = event, file, say, service
        self._said: set[str] = set()
        self._size = _mended(file)

    def start(self) -> None:
        """Begin, in a thread that ends with the process."""
        threading.Thread(target=self._run, name="stamping", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(EVERY_S)
            self.look()

    def look(self) -> None:
        """Stamp the log, if it has grown since; what fails is tried again the next time."""
        try:
            answer = self._service.get("/checkpoint", MOST_CHECKPOINT_BYTES)
            if answer.status == 404:  # nothing has been logged so far
                return
            if answer.status != 200:
                raise TransferError(f"the service answers {answer.status} for its checkpoint")
            signed = SignedCheckpoint.parse(answer.body)
            if signed.checkpoint.size <= self._size:
                return
            stamp = self._stamped(signed)
            if len(stamp.tokens) >= AUTHORITIES_NEEDED:
                _append(self._file, stamp.line)
                self._size = signed.checkpoint.size
        except Exception as error:  # noqa: BLE001 - said; the next minute it is tried again
            self._say_once(f"the log is not stamped: {error}")

    def _stamped(self, signed: SignedCheckpoint) -> Stamp:
        message = Stamp(signed, ()).message
        query = query_of(message)
        authorities = {each.url: each for each in self._event.authorities}
        tokens = []
        asked = fan_out(authorities, lambda url: _token(authorities[url], query, message))
        for url, outcome in asked.items():
            if outcome.error is None:
                tokens.append(outcome.result())
            elif isinstance(outcome.error, DatacollectError):
                self._say_once(f"{url} does not stamp the log: {outcome.error}")
            else:
                raise outcome.error
        return Stamp(signed, tuple(tokens))

    def _say_once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._say(line)


def _token(authority: Authority, query: bytes, message: bytes) -> bytes:
    with Asker(authority.url) as asker:
        answer = asker.post("", query, QUERY_TYPE)
    if answer.status != 200:
        raise TransferError(f"it answers {answer.status}")
    token_time(answer.body, message, authority)
    return answer.body


def _mended(file: Path) -> int:
    """Take the end of a file away that was not written whole; return the largest size in it.

    What is whole stays where it lies: stamps cannot be had again.
    """
    if not file.exists():
        file.touch()
        synchronise(file.parent)
    data = file.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        os.truncate(file, len(whole))
        synchronise(file)
    return max((each.signed.checkpoint.size for each in read_stamps(whole)), default=0)


def _append(file: Path, line: bytes) -> None:
    """Append a line durably, whole or not at all: another one would follow its beginning."""
    fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        end = os.fstat(fd).st_size
        try:
            while line:
                line = line[os.write(fd, line) :]
            sync(fd)
        except OSError:
            os.ftruncate(fd, end)
            raise
    finally:
        os.close(fd)
