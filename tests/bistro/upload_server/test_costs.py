"""What a request may cost a bistro, over HTTP: bytes read and written, places, answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from instances.bistros import (
    PUSH,
    Client,
    bistro_event,
    commitment_to,
    metadata,
    running_bistro,
)

from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.upload_server import limits, server
from datacollect.bistro.upload_server.store import UploadStore
from datacollect.bistro.upload_server.tus import BLOCK_BYTES

LARGE, SMALL = bytes(range(256)) * 8000, b"small"


@pytest.fixture
def event(tmp_path):
    return bistro_event(tmp_path)


@pytest.fixture
def read_back(monkeypatch):
    """Numbers of bytes that a bistro has read back of what it holds, read by read."""
    found, of_store = [], UploadStore.bytes_of

    def counting(*args):
        for block in of_store(*args):
            found.append(len(block))
            yield block

    monkeypatch.setattr(UploadStore, "bytes_of", counting)
    return found


@contextmanager
def begun_push(client: Client, path: str, offset: int, data: bytes, n_bytes: int) -> Iterator[None]:
    """Send some of a push; the connection stays as it is."""
    connection = client.connection()
    connection.putrequest("PATCH", path)
    for name, value in (
        ("Tus-Resumable", "1.0.0"),
        ("Content-Type", PUSH),
        ("Upload-Offset", str(offset)),
        ("Content-Length", str(len(data) - offset)),
    ):
        connection.putheader(name, value)
    with suppress(OSError):
        connection.endheaders(data[offset : offset + n_bytes])
    yield
    connection.close()


def offset_of(client: Client, path: str) -> int:
    status, headers, _ = client.ask("HEAD", path)
    assert status == 200
    return int(headers["upload-offset"])


def pushed_some(client: Client, path: str, n_bytes: int) -> int:
    """Push so much more, or all; return where that ends: what was cut before may come late."""
    for _ in range(100):
        offset = offset_of(client, path)
        stop = min(offset + n_bytes, len(LARGE))
        try:
            if client.patch(path, offset, LARGE[offset:stop])[0] == 204:
                return stop
        except OSError:
            client.close()
    raise AssertionError


def wait_for_stored(client: Client, n_bytes: int) -> None:
    """Wait until a bistro has so much; asking that ends no push."""
    end_s = time.monotonic() + 300
    while client.facts()["stored_bytes"] < n_bytes:
        assert time.monotonic() < end_s
        time.sleep(0.01)


@pytest.mark.slow
def test_no_byte_is_read_back_for_pushes_that_are_cut(event, tmp_path, read_back, monkeypatch):
    """Whoever cuts his own push again and again costs the disk no more than what he sends."""
    monkeypatch.setattr("datacollect.bistro.upload_server.server.PAUSE_S", 0.2)
    commitment = commitment_to(event, LARGE)
    with running_bistro(tmp_path) as (client, _):
        path = client.create(event, commitment)[1]["location"]
        offset = 0
        for step in range(6):
            with begun_push(client, path, offset, LARGE, BLOCK_BYTES + 9):
                wait_for_stored(client, offset + BLOCK_BYTES)
                if step % 2:
                    # By going on elsewhere; what has another checksum is sent again.
                    wrong = {"Upload_Checksum": "sha1 AAAA"}
                    stop = offset + BLOCK_BYTES
                    assert client.patch(path, stop, LARGE[stop : stop + 9], **wrong)[0] == 460
                else:
                    assert offset_of(client, path) == offset + BLOCK_BYTES
            offset = offset_of(client, path)
            assert offset % BLOCK_BYTES == 0
        found = client.patch(path, offset, LARGE[offset:])[1]
        assert read_bistro_receipt(found["datacollect-receipt"], event).size == len(LARGE)
        client.close()
    assert sum(read_back) == 0


@pytest.mark.slow
def test_each_byte_is_read_back_once_whatever_the_number_of_starts_and_cuts(
    event, tmp_path, read_back
):
    commitment = commitment_to(event, LARGE)
    path = ""
    for start in range(4):
        with running_bistro(tmp_path) as (client, _):
            path = path or client.create(event, commitment)[1]["location"]
            for _ in range(3):
                offset = pushed_some(client, path, 150_000)
                with begun_push(client, path, offset, LARGE, 10):
                    assert offset_of(client, path) >= offset
            if start == 3:
                pushed_some(client, path, len(LARGE))
                assert "datacollect-receipt" in client.ask("HEAD", path)[1]
            client.close()
    assert 0 < sum(read_back) <= len(LARGE)


@pytest.mark.slow
def test_what_came_to_its_end_and_was_cut_then_is_receipted_to_who_asks(event, tmp_path):
    """All bytes are there, and nobody has been told: whoever asks how far it is has the receipt."""
    commitment = commitment_to(event, LARGE)
    with running_bistro(tmp_path) as (client, bistro):
        path = client.create(event, commitment)[1]["location"]
        writing = bistro.begin_push(10**6, path.rpartition("/")[2], 0, len(LARGE))
        writing.add(LARGE)
        status, headers, _ = client.ask("HEAD", path)
        assert (status, headers["upload-offset"]) == (200, str(len(LARGE)))
        assert read_bistro_receipt(headers["datacollect-receipt"], event).size == len(LARGE)
        client.close()
    with running_bistro(tmp_path) as (client, bistro):
        other = commitment_to(event, LARGE, 1)
        path = client.create(event, other)[1]["location"]
        bistro.begin_push(10**6, path.rpartition("/")[2], 0, len(LARGE)).add(LARGE)
        client.close()
    with running_bistro(tmp_path) as (client, _):
        # The same after a restart, by who begins the same again.
        found = client.create(event, other)[1]
        assert (found["location"], "datacollect-receipt" in found) == (path, True)
        client.close()


def junk(client: Client, event, commitment, **more) -> int:
    """Ask for an upload that nobody has signed for; return the status."""
    text = metadata(event, commitment, owner=bytes(64))
    headers = {"Upload_Length": str(commitment.size), "Upload_Metadata": text}
    return client.ask("POST", "/tus/", None, **(headers | more))[0]


@pytest.mark.slow
def test_uploads_that_no_ticket_has_signed_count_for_their_address(event, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "ADDRESS_AT_ONCE", 6.0)
    monkeypatch.setattr(limits, "ADDRESS_PER_S", 0.0)
    monkeypatch.setattr(limits, "TICKET_AT_ONCE", 3.0)
    monkeypatch.setattr(limits, "TICKET_PER_S", 0.0)
    commitment = commitment_to(event, SMALL)
    with running_bistro(tmp_path) as (client, _):
        assert [junk(client, event, commitment) for _ in range(3)] == [403] * 3
        assert junk(client, event, commitment, Upload_Metadata="!") == 400
        # Notes are counted as well, whatever is in them.
        assert [client.ask("POST", "/covered", b"none")[0] for _ in range(3)] == [403, 403, 429]
        client.close()
        assert junk(client, event, commitment) == 429
        # Who has a ticket is not refused for his neighbour, and has limits of his own.
        for i in range(2):
            assert client.create(event, commitment_to(event, SMALL, i), SMALL)[0] == 201
        assert client.create(event, commitment, SMALL)[0] == 201  # again
        status, headers, _ = client.create(event, commitment)
        assert (status, int(headers["retry-after"]) > 0) == (429, True)
        assert client.create(event, commitment_to(event, SMALL, 7), SMALL, number=2)[0] == 201
        client.close()


@pytest.mark.slow
def test_at_an_open_event_each_upload_counts_for_its_address(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "ADDRESS_AT_ONCE", 3.0)
    monkeypatch.setattr(limits, "ADDRESS_PER_S", 0.0)
    event = bistro_event(tmp_path, admission="open")
    with running_bistro(tmp_path) as (client, _):
        statuses = [client.create(event, commitment_to(event, SMALL, i))[0] for i in range(4)]
        assert statuses == [201, 201, 201, 429]
        client.close()


@pytest.mark.slow
def test_a_note_that_comes_by_and_by_holds_no_place_against_others(event, tmp_path, monkeypatch):
    """Eight places, taken by strangers who send a byte of a note now and then."""
    monkeypatch.setattr(server, "NOTE_S", 1e9)
    more = "limits = { sessions = 8, sessions_per_address = 8 }\n"
    with running_bistro(tmp_path, more=more) as (client, _), ExitStack() as held:
        strangers = []
        for i in range(8):
            stranger = Client(client.address, source=f"127.0.0.{2 + i}").connection()
            held.callback(stranger.close)
            stranger.putrequest("POST", "/covered")
            stranger.putheader("Content-Length", "999")
            stranger.putheader("Expect", "100-continue")
            stranger.endheaders()
            assert stranger.sock.recv(100).startswith(b"HTTP/1.1 100 ")  # it is waited for
            stranger.send(b"x")
            strangers.append(stranger)
        end_s = time.monotonic() + 300
        while True:
            with suppress(OSError):
                assert client.create(event, commitment_to(event, SMALL), SMALL)[0] == 201
                break
            client.close()
            assert time.monotonic() < end_s
            for stranger in strangers:
                with suppress(OSError):
                    stranger.send(b"x")
            time.sleep(0.1)
        client.close()


def test_who_has_sent_what_was_wrong_waits_before_the_next_push_and_nobody_else(
    event, tmp_path, monkeypatch
):
    paused = []
    monkeypatch.setattr(server.Bistro, "pause", lambda bistro: paused.append(bistro.name))
    wrong = "sha1 " + 27 * "A" + "="
    first, second = (commitment_to(event, SMALL, salt) for salt in (1, 2))
    with running_bistro(tmp_path) as (client, _):
        path = client.create(event, first)[1]["location"]
        assert client.patch(path, 0, SMALL[:2])[0] == 204
        assert client.patch(path, 2, SMALL[2:], Upload_Checksum=wrong)[0] == 460
        assert "datacollect-receipt" in client.create(event, second, SMALL, number=2)[1]
        assert paused == []
        client.close()
    with running_bistro(tmp_path) as (client, _):
        assert "datacollect-receipt" in client.patch(path, 2, SMALL[2:])[1]
        assert paused == ["north"]
        client.close()
