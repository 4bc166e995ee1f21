"""Stamps of a log by outside authorities, and times that are held against them."""

from __future__ import annotations

import errno
import os
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from instances.authorities import answering, make_tsa
from instances.events import event_of, key_of, witness_names

from datacollect.bistro.auditor.stamp_reading import held_against
from datacollect.bistro.formats.event.strength import withstands
from datacollect.bistro.formats.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    cosign,
    sign_checkpoint,
    witness_key,
)
from datacollect.bistro.formats.log.notes import Note
from datacollect.bistro.formats.log.tree import leaf_hash
from datacollect.bistro.formats.receipt.evidence import ReadLog
from datacollect.bistro.formats.receipt.stamps import read_stamps
from datacollect.bistro.one_host.stamping import Stamping
from datacollect.errors import ProblemError, TransferError
from datacollect.net.http_asking import Answer

ENTRY = b"e" * 32
pytestmark = pytest.mark.slow  # OpenSSL plays the authorities


class Service:
    """Shows one checkpoint, or is away."""

    def __init__(self, shown: SignedCheckpoint | None = None) -> None:
        self.shown = shown

    def get(self, path: str, most_bytes: int) -> Answer:
        assert path == "/checkpoint"
        if self.shown is None:
            raise TransferError("the service is away")
        return Answer(200, self.shown.note.data)


@pytest.fixture
def authorities(tmp_path):
    """Two authorities that answer, and the rows of a draft that name them."""
    with ExitStack() as stack:
        found = [make_tsa(tmp_path / name, name) for name in ("one", "two")]
        rows = [
            {"url": stack.enter_context(answering(each)), "certificate": each.authority.certificate}
            for each in found
        ]
        yield found, rows


def event_with(rows):
    own = {"url": "https://w", "vkey": witness_key("w0.example", key_of("w0.example").public).text}
    return event_of(n_services=1, witnesses=[own], alone=True, quorum=1, authorities=rows)


def head(event, entry: bytes, time_s: float) -> SignedCheckpoint:
    """Return a log of one entry, as its only witness has signed it."""
    checkpoint = Checkpoint(event.services[0].log.name, 1, leaf_hash(entry))
    note = sign_checkpoint(checkpoint, key_of("s0"))
    [name, *_] = witness_names()
    line = cosign(note.text, int(time_s), name, key_of(name))
    return SignedCheckpoint(checkpoint, Note(note.text, (*note.signatures, line)))


def whole(event, shown: SignedCheckpoint):
    """Return that log as an auditor has read it."""
    log = ReadLog(event.services[0].log, shown, lambda *_: shown.checkpoint.root)
    return {log.key.name: SimpleNamespace(log=log, checkpoints=[shown])}


def test_log_is_stamped_once_for_each_size_and_its_times_are_borne_out(authorities, tmp_path):
    event = event_with(authorities[1])
    assert "Outside authorities stamp its log" in withstands(event)[-1]
    file, said = tmp_path / "stamps.jsonl", []
    shown = head(event, ENTRY, time.time())
    service = Service()
    stamping = Stamping(event, file, said.append, service)
    stamping.look()
    assert file.read_bytes() == b""
    assert "the service is away" in said[0]
    service.shown = shown
    for _ in range(2):
        stamping.look()
    [stamp] = read_stamps(file.read_bytes())
    assert abs(stamp.time_s(event) - time.time()) < 60
    # Killed in the midst of a line: the next start takes its beginning away, and stamps nothing
    # twice.
    file.write_bytes(file.read_bytes() + stamp.line[:30])
    Stamping(event, file, said.append, service).look()
    assert read_stamps(file.read_bytes()) == [stamp]
    found, lies = held_against([stamp], whole(event, shown), event)
    assert (found.n_stamps, found.n_borne_out, found.n_far, found.n_unstamped) == (1, 1, 0, 0)
    assert lies == []


def test_full_disk_leaves_no_beginning_of_a_line_and_the_next_minute_goes_on(
    authorities, tmp_path, monkeypatch
):
    event, file, said = event_with(authorities[1]), tmp_path / "stamps.jsonl", []
    stamping = Stamping(event, file, said.append, Service(head(event, ENTRY, time.time())))
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if os.fstat(fd).st_ino != file.stat().st_ino:
            return write(fd, data)
        if len(data) < 100:
            raise OSError(errno.ENOSPC, "no space left")
        return write(fd, data[: len(data) // 2])

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        stamping.look()
    assert file.read_bytes() == b""
    assert "no space left" in said[0]
    stamping.look()
    [stamp] = read_stamps(file.read_bytes())
    # What was cut is taken away where it lies: what is whole is never written again.
    file.write_bytes(stamp.line * 2 + b'{"')
    lies_at = file.stat().st_ino
    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        Stamping(event, file, said.append, Service())
    assert (file.read_bytes(), file.stat().st_ino) == (stamp.line * 2, lies_at)


def test_witness_that_backdates_and_a_log_that_was_changed_are_found(authorities, tmp_path):
    """What stands there as an hour old was stamped now; another log of one entry was stamped."""
    event = event_with(authorities[1])
    file = tmp_path / "stamps.jsonl"
    backdated = head(event, ENTRY, time.time() - 3600)
    Stamping(event, file, print, Service(backdated)).look()
    stamps = read_stamps(file.read_bytes())
    found, lies = held_against(stamps, whole(event, backdated), event)
    assert (found.n_far, found.n_borne_out, lies) == (1, 0, [])
    other = head(event, b"f" * 32, time.time())
    found, lies = held_against(stamps, whole(event, other), event)
    assert "two logs that differ" in lies[0].text
    # Without stamps, the witness's word alone stands.
    assert held_against([], whole(event, backdated), event)[0].n_unstamped == 1


def test_one_authority_alone_stamps_nothing_and_is_named_once(authorities, tmp_path):
    event, file, said = event_with(authorities[1]), tmp_path / "stamps.jsonl", []
    (authorities[0][1].folder / "tsa.key").unlink()
    stamping = Stamping(event, file, said.append, Service(head(event, ENTRY, time.time())))
    stamping.look()
    stamping.look()
    assert file.read_bytes() == b""
    assert [authorities[1][1]["url"] in line for line in said] == [True]


def test_file_that_is_none_is_refused_with_its_line():
    with pytest.raises(ProblemError, match=r"the stamps, line 1: must be an object"):
        read_stamps(b"{}\n")
    # The end of a file that is just being written is left out.
    assert read_stamps(b"{") == []


def test_whatever_keeps_a_log_from_being_stamped_is_said_once(tmp_path):
    said, answers = [], iter([Answer(404, b""), Answer(503, b""), RuntimeError("surprise")])

    def get(*_):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    service = SimpleNamespace(get=get)
    stamping = Stamping(event_of(), tmp_path / "stamps.jsonl", said.append, service)
    for _ in range(3):
        stamping.look()
    assert said == [
        "the log is not stamped: the service answers 503 for its checkpoint",
        "the log is not stamped: surprise",
    ]
