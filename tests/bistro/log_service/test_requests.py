"""A new kind of request to a log service: its form, its row, the core's method, and who asks."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from instances.events import event_of, key_of

import datacollect.bistro
from datacollect.bistro.formats.log.entry import ENTRY_BYTES
from datacollect.bistro.http.config import Listening, ServiceConfig
from datacollect.bistro.http.exchange import Asked, Reply
from datacollect.bistro.log_service import requests
from datacollect.bistro.log_service.core import ServiceCore
from datacollect.bistro.log_service.messages import Action, Answer, Event, Request
from datacollect.bistro.log_service.requests import ServicePost
from datacollect.bistro.log_service.server import sequencer
from datacollect.bistro.log_service.server.front import Front
from datacollect.bistro.log_service.store import LogStore
from datacollect.errors import ProblemError
from datacollect.files.held_folder import Held

PACKAGE = Path(datacollect.bistro.__file__).parent

# The first file, its form: "which of these entries does the log lack?", and the answer.


def lacking_body(entries: list[bytes]) -> bytes:
    return b"".join(entries)


def read_lacking(body: bytes) -> tuple[bytes, ...]:
    if not body or len(body) % ENTRY_BYTES:
        raise ProblemError(f"the body must be entries of {ENTRY_BYTES} bytes")
    return tuple(body[i : i + ENTRY_BYTES] for i in range(0, len(body), ENTRY_BYTES))


# The second, `requests.py`: its class, its answer, its row.


@dataclass(frozen=True, slots=True)
class LackingAsked(Request):
    entries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Lacks(Answer):
    entries: tuple[bytes, ...]


def read(path: str, address: str, body: bytes) -> Asked:
    return Asked(path.removeprefix("/"), address, b"".join(read_lacking(body)))


ROW = ServicePost(
    10 * ENTRY_BYTES,
    lambda now, number, asked: LackingAsked(now, number, read_lacking(asked.body)),
    read,
    lambda answer, _: Reply(200, lacking_body([*answer.entries])),
)


# The third, `core.py`: what it does.


class Core(ServiceCore):
    def handle(self, event: Event) -> list[Action]:
        if isinstance(event, LackingAsked):
            lacks = (each for each in event.entries if self._reader.index_of(each) is None)
            return [Lacks(event.request, tuple(lacks))]
        return super().handle(event)


# The fourth, who asks: here as HTTP comes, and as it would come through a process in front.


def posted(path: str, body: bytes, method: str = "POST") -> SimpleNamespace:
    content = SimpleNamespace(is_eof=lambda: True, read_nowait=lambda: body)
    headers = SimpleNamespace(getall=lambda _, default: default)
    return SimpleNamespace(
        method=method,
        path=path,
        remote="192.0.2.1",
        headers=headers,
        content=content,
        content_length=len(body),
    )


class Between:
    """Leads to the sequencer as a process in front does: heads as JSON."""

    def __init__(self, keeper: sequencer.Sequencer) -> None:
        self._keeper = keeper

    async def ask(self, asked: Asked) -> Reply:
        return await self._keeper.ask(Asked.of(json.loads(json.dumps(asked.head)), asked.body))


async def unanswered(_url: str, _body: bytes) -> tuple[None, bytes]:
    return None, b""


def asked(folder: Path, *questions: SimpleNamespace, is_between: bool = False) -> list[Reply]:
    """Return what a log that holds nothing answers."""
    event = event_of(admission="open")
    config = ServiceConfig(event, b"", key_of("s0"), Listening(("", 0), None), folder, 0, ())

    async def run(store: LogStore) -> list[Reply]:
        keeper = sequencer.Sequencer(config, store, unanswered, lambda _: None)
        keeper.start()
        front = Front(config, Between(keeper) if is_between else keeper)
        try:
            return [await front.handle(each) for each in questions]
        finally:
            await keeper.stop()

    with closing(LogStore(Held(folder), event.services[0].log.text)) as store:
        return asyncio.run(run(store))


@pytest.mark.parametrize("is_between", [False, True])
def test_new_request_is_a_row_and_a_method_of_the_core(tmp_path, monkeypatch, is_between):
    monkeypatch.setitem(requests.POSTS, "/lacking", ROW)
    monkeypatch.setattr(sequencer, "ServiceCore", Core)
    entries = [bytes([n]) * ENTRY_BYTES for n in range(3)]
    answer, noise, long, got = asked(
        tmp_path,
        posted("/lacking", lacking_body(entries)),
        posted("/lacking", b"noise"),
        posted("/lacking", bytes(11 * ENTRY_BYTES)),
        posted("/lacking", b"", "PUT"),
        is_between=is_between,
    )
    # An empty log lacks all.
    assert (answer.status, read_lacking(answer.body)) == (200, tuple(entries))
    assert (noise.status, noise.body) == (400, b"the body must be entries of 32 bytes\n")
    assert (long.status, got.status) == (413, 405)


def test_what_has_no_row_is_nothing_here(tmp_path):
    assert [each.status for each in asked(tmp_path, posted("/lacking", b"a"))] == [404]


@pytest.mark.parametrize(
    ("path", "event", "files"),
    [
        (
            "COMMIT_PATH",
            "CommitAsked",
            ["formats/log/commit", "log_service/core", "log_service/requests", "person/messages"],
        ),
        (
            "AMEND_PATH",
            "AmendAsked",
            [
                "formats/event/amendments",
                "log_service/core",
                "log_service/requests",
                "organiser/extend",
            ],
        ),
        (
            "COVERED_PATH",
            "CoveredSaid",
            [
                "destination/run/bistro_asking",
                "formats/custody/verdicts",
                "upload_server/core",
                "upload_server/requests",
            ],
        ),
    ],
)
def test_four_files_know_a_request(path, event, files):
    """Whoever else had to name it would have to be changed for the next one, too."""
    wanted = re.compile(rf"\b({path}|{event})\b")
    found = [file for file in PACKAGE.rglob("*.py") if wanted.search(file.read_text())]
    names = sorted(str(file.relative_to(PACKAGE).with_suffix("")) for file in found)
    assert names == files
