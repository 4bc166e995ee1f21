"""Uploads over a real agent's TLS: what clients meet, also those who mean no good."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
from instances.agents import write_agent
from instances.bistros import (
    PUSH,
    Client,
    bistro_event,
    commitment_to,
    metadata,
    running_bistro,
    ticket_of,
)
from instances.events import key_of
from instances.odd_server import Answer, odd_server

from datacollect.bistro.formats.custody.batches import opening, read_batch
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.custody.segments import read_index
from datacollect.bistro.formats.custody.verdicts import Covered
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.upload_server import server as taking
from datacollect.bistro.upload_server.server import Bistro
from datacollect.bistro.upload_server.store import UploadStore
from datacollect.bistro.upload_server.tus import Tus
from datacollect.commands.main import run
from datacollect.errors import ProblemError, StoreError
from datacollect.files.units import format_bytes
from datacollect.net.tls import fingerprint_of_file

DATA = bytes(range(256)) * 400


@pytest.fixture
def event(tmp_path):
    limits = {"bytes": 10**8, "commitments_per_ticket": 3}
    log = log_key("dest.example/0123456789abcdef", key_of("verdicts").public).text
    return bistro_event(tmp_path, limits=limits, verdicts={"log": log})


@pytest.fixture
def north(event, tmp_path):
    with running_bistro(tmp_path) as (client, bistro):
        yield client, bistro
        client.close()


@pytest.fixture
def closed_soon(monkeypatch):
    """Batches and segments, for which nobody waits ten seconds."""
    for name in ("BATCH_AFTER_S", "CLOSED_AFTER_S"):
        monkeypatch.setattr(f"datacollect.bistro.upload_server.core.{name}", 0.5)


def held(folder, event):
    """Return what the served folder holds of each entry, as a destination puts it together."""
    served = folder / "north-uploads" / "served"
    rows, entries = {}, {}
    for path in sorted(served.glob("batches/*.batch")):
        batch = read_batch(path.read_bytes(), event)
        assert opening(batch.rows, event).all()
        rows |= {
            bytes(row["entry"]): (int(row["size"]), bytes(row["sha256"])) for row in batch.rows
        }
        entries |= {int(row["upload"]): bytes(row["entry"]) for row in batch.rows}
    found = {entry: bytearray(size) for entry, (size, _) in rows.items()}
    for path in sorted(served.glob("segments/*.index")):
        segment = path.with_suffix(".segment").read_bytes()
        pieces = read_index(path.read_bytes())
        assert pieces["n_bytes"].sum() == len(segment)
        for piece in pieces:
            at, start, n = (int(piece[f]) for f in ("upload_offset", "segment_offset", "n_bytes"))
            entry = entries.get(int(piece["upload"]))
            if entry in found:
                found[entry][at : at + n] = segment[start : start + n]
    for entry, data in found.items():
        assert hashlib.sha256(data).digest() == rows[entry][1]
    return {entry: bytes(data) for entry, data in found.items()}


@pytest.mark.slow
@pytest.mark.usefixtures("closed_soon")
def test_upload_in_one_request_is_receipted_and_leaves_as_segment_and_batch(event, north, tmp_path):
    client, _ = north
    commitment = commitment_to(event, DATA)
    status, headers, _ = client.create(event, commitment, DATA)
    assert (status, headers["upload-offset"]) == (201, str(len(DATA)))
    receipt = read_bistro_receipt(headers["datacollect-receipt"], event)
    assert (receipt.bistro, receipt.entry, receipt.batch) == ("north", commitment.entry, 0)
    assert (receipt.size, receipt.sha256) == (len(DATA), hashlib.sha256(DATA).digest())
    # A second time nothing is sent, and the receipt is the same.
    status, again, _ = client.ask("HEAD", headers["location"])
    assert (status, again["datacollect-receipt"]) == (200, headers["datacollect-receipt"])
    status, third, _ = client.create(event, commitment)
    assert (status, third["location"]) == (201, headers["location"])
    end_s = time.monotonic() + 300
    while held(tmp_path, event).get(commitment.entry) != DATA:
        assert time.monotonic() < end_s
        time.sleep(0.2)


def test_interrupted_push_goes_on_where_it_was_cut(event, north):
    client, _ = north
    commitment = commitment_to(event, DATA)
    _, headers, _ = client.create(event, commitment)
    path = headers["location"]
    connection = client.connection()
    connection.putrequest("PATCH", path)
    for name, value in (
        ("Tus-Resumable", "1.0.0"),
        ("Content-Type", PUSH),
        ("Upload-Offset", "0"),
        ("Content-Length", str(len(DATA))),
        ("Expect", "100-continue"),
    ):
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.sock.recv(100).startswith(b"HTTP/1.1 100 ")  # it has begun
    connection.send(DATA[:70_000])
    offset = -1
    while offset < 1:  # what was cut before it came is not there
        time.sleep(0.05)
        status, found, _ = client.ask("HEAD", path)
        assert status == 200
        offset = int(found["upload-offset"])
        if offset == 0:
            break
    # HEAD has ended the stale connection: what it still sends goes nowhere.
    with suppress(OSError):
        connection.send(DATA[70_000:])
    with pytest.raises((OSError, http.client.HTTPException)):
        connection.getresponse()
    connection.close()
    assert client.patch(path, offset + 1, DATA[offset + 1 :])[0] == 409
    status, found, _ = client.patch(path, offset, DATA[offset:])
    assert status == 204
    assert read_bistro_receipt(found["datacollect-receipt"], event).size == len(DATA)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Upload_Length": "-1"}, 400),
        ({"Upload_Length": str(len(DATA) + 1)}, 400),
        ({"Upload_Length": "9" * 30}, 400),
        ({"Upload_Metadata": "commitment !"}, 400),
        ({"Upload_Metadata": ""}, 400),
        ({"Tus_Resumable": "0.2.2"}, 412),
    ],
)
def test_creation_that_says_nothing_possible_is_refused(event, north, headers, status):
    commitment = commitment_to(event, DATA)
    given = {"Upload_Length": str(len(DATA)), "Upload_Metadata": metadata(event, commitment)}
    assert north[0].ask("POST", "/tus/", None, **(given | headers))[0] == status


def test_others_tokens_and_proofs_do_not_count(event, north, tmp_path):
    client, _ = north
    mine, theirs = commitment_to(event, DATA), commitment_to(event, DATA, salt=7)
    of_mine = metadata(event, mine)
    proof = next(each for each in metadata(event, theirs).split(",") if each.startswith("proof"))
    mixed = ",".join(proof if each.startswith("proof") else each for each in of_mine.split(","))
    length = str(len(DATA))
    for text in (mixed, metadata(event, mine, ticket=b"none"), metadata(event, mine, proof=b"")):
        status, _, _ = client.ask("POST", "/tus/", None, Upload_Length=length, Upload_Metadata=text)
        assert status in (400, 403)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = bistro_event(elsewhere, name="Another")
    strange = metadata(event, mine, ticket=ticket_of(other).token.encode())
    status, _, _ = client.ask("POST", "/tus/", None, Upload_Length=length, Upload_Metadata=strange)
    assert status == 403
    assert client.facts()["reserved_bytes"] == 0


def test_ticket_has_as_many_uploads_as_the_event_allows(event, north):
    client, _ = north
    made = [client.create(event, commitment_to(event, DATA, salt))[0] for salt in range(4)]
    assert made == [201, 201, 201, 403]
    # Another's ticket is not meant.
    assert client.create(event, commitment_to(event, DATA, 9), number=2)[0] == 201


def test_more_than_was_announced_and_wrong_bytes_are_refused(event, north, monkeypatch):
    monkeypatch.setattr(taking, "PAUSE_S", 0.0)
    client, _ = north
    commitment = commitment_to(event, DATA)
    path = client.create(event, commitment)[1]["location"]
    assert client.patch(path, 0, DATA + b"x")[0] == 413
    wrong = "sha1 " + base64.b64encode(hashlib.sha1(b"other").digest()).decode()
    assert client.patch(path, 0, DATA[:10], Upload_Checksum=wrong)[0] == 460
    assert client.ask("HEAD", path)[1]["upload-offset"] == "0"
    right = "sha256 " + base64.b64encode(hashlib.sha256(DATA[:10]).digest()).decode()
    assert client.patch(path, 0, DATA[:10], Upload_Checksum=right)[0] == 204
    # The whole is not what was committed to: it is forgotten, and may begin again.
    assert client.patch(path, 10, bytes(len(DATA) - 10))[0] == 460
    assert client.ask("HEAD", path)[0] == 404
    status, found, _ = client.create(event, commitment, DATA)
    assert (status, "datacollect-receipt" in found) == (201, True)


def test_given_up_upload_gives_its_room_back(event, north):
    client, _ = north
    commitment = commitment_to(event, DATA)
    path = client.create(event, commitment)[1]["location"]
    assert client.facts()["reserved_bytes"] == len(DATA)
    assert client.ask("DELETE", path)[0] == 403
    assert client.give_up(event, path, commitment_to(event, DATA, 1))[0] == 403
    assert client.facts()["reserved_bytes"] == len(DATA)
    assert client.give_up(event, path, commitment)[0] == 204
    assert client.facts()["reserved_bytes"] == 0
    assert client.patch(path, 0, DATA)[0] == 404


def test_full_bistro_names_the_others(event, tmp_path):
    with running_bistro(tmp_path, most_bytes=len(DATA)) as (client, _):
        assert client.create(event, commitment_to(event, DATA))[0] == 201
        status, headers, body = client.create(event, commitment_to(event, DATA, 1))
        assert (status, json.loads(body)["bistros"]) == (507, ["south"])
        assert int(headers["retry-after"]) > 0
        client.close()


def test_sealed_anew_may_differ_from_what_was_committed_to(event, north):
    client, _ = north
    commitment, anew = commitment_to(event, DATA), DATA[:1000]
    assert client.create(event, commitment, DATA)[0] == 201
    sha256 = hashlib.sha256(anew).digest()
    text = metadata(event, commitment, size=len(anew), sha256=sha256)
    status, found, _ = client.ask(
        "POST", "/tus/", anew, Upload_Length="1000", Upload_Metadata=text, Content_Type=PUSH
    )
    receipt = read_bistro_receipt(found["datacollect-receipt"], event)
    assert (status, receipt.sealed_anew, receipt.size) == (201, True, 1000)
    # Once for each entry.
    text = metadata(event, commitment, size=9, sha256=b"a" * 32)
    again = client.ask("POST", "/tus/", None, Upload_Length="9", Upload_Metadata=text)
    assert again[1]["upload-offset"] == "1000"


def test_unfinished_upload_outlives_a_restart(event, tmp_path):
    commitment = commitment_to(event, DATA)
    with running_bistro(tmp_path) as (client, _):
        path = client.create(event, commitment)[1]["location"]
        assert client.patch(path, 0, DATA[:50_000])[0] == 204
        client.close()
    with running_bistro(tmp_path) as (client, _):
        assert client.ask("HEAD", path)[1]["upload-offset"] == "50000"
        assert "datacollect-receipt" in client.patch(path, 50_000, DATA[50_000:])[1]
        client.close()
    with running_bistro(tmp_path) as (client, _):
        # What was promised for batch 0 stands in batch 0, whenever it ended.
        assert held(tmp_path, event) == {commitment.entry: DATA}
        client.close()


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [
        (StoreError("no room"), True),
        (ProblemError("uploads.sqlite: is no database"), False),
        (RuntimeError(), False),
    ],
)
def test_nobody_waits_for_a_disk_that_has_failed(event, north, monkeypatch, error, goes_on):
    """Whatever ends the thread that commits; a full disk is tried again, a damaged one is not."""
    client, _ = north
    commitment = commitment_to(event, DATA)

    def fail(*_):
        raise error

    with monkeypatch.context() as failing:
        failing.setattr(UploadStore, "commit", fail)
        assert client.create(event, commitment, DATA)[0] == 507
        assert client.create(event, commitment)[0] == 507
        assert client.ask("GET", "/bistro")[0] == 503
    end_s = time.monotonic() + 300
    while goes_on and client.ask("GET", "/bistro")[0] != 200:
        assert time.monotonic() < end_s
        time.sleep(0.1)
    assert client.create(event, commitment, DATA)[0] == (201 if goes_on else 507)


@pytest.mark.slow
@pytest.mark.usefixtures("closed_soon")
def test_destination_says_what_may_go(event, north, tmp_path):
    client, _ = north
    assert client.create(event, commitment_to(event, DATA), DATA)[0] == 201
    covered = Covered(event.id, "north", 1, 9, (range(9),), int(time.time()))
    key = key_of("verdicts")
    assert client.ask("POST", "/covered", covered.signed(event, key_of("other")).data)[0] == 403
    other = replace(covered, bistro="south").signed(event, key).data
    assert client.ask("POST", "/covered", other)[0] == 403
    assert client.facts()["last_contact_s"] is None
    end_s = time.monotonic() + 300
    segments = tmp_path / "north-uploads/served/segments"
    # Until its segment is closed, and goes.
    while client.facts()["stored_bytes"] or [*segments.iterdir()]:
        assert client.ask("POST", "/covered", covered.signed(event, key).data)[0] == 200
        assert time.monotonic() < end_s
        time.sleep(0.2)
    assert client.facts()["last_contact_s"] is not None


def test_older_word_that_comes_again_lets_nothing_go_also_after_a_restart(event, tmp_path):
    """Who has heard it repeats it, once the destination has lost its disk and needs all again."""
    key, now_s = key_of("verdicts"), int(time.time())

    def note(time_s, *segments):
        return Covered(event.id, "north", 1, 9, segments, time_s).signed(event, key).data

    before, since = note(now_s - 10, range(9)), note(now_s)
    with running_bistro(tmp_path, keep_s=0.0) as (client, _):
        assert client.create(event, commitment_to(event, DATA), DATA)[0] == 201
        assert client.ask("POST", "/covered", since)[0] == 200
        client.close()
    # Its segment is closed by the start: by the older word it would go at once.
    for _ in range(2):
        with running_bistro(tmp_path, keep_s=0.0) as (client, _):
            contact_s = client.facts()["last_contact_s"]
            assert client.ask("POST", "/covered", before)[0] == 409
            assert client.facts()["last_contact_s"] == contact_s
            assert client.facts()["stored_bytes"] == len(DATA)
            assert client.ask("POST", "/covered", since)[0] == 200
            client.close()
    assert held(tmp_path, event)


@pytest.mark.slow
@pytest.mark.usefixtures("closed_soon")
def test_what_was_collected_is_served_until_its_room_is_needed(event, tmp_path):
    n_bytes = len(DATA)
    with running_bistro(tmp_path, most_bytes=n_bytes + n_bytes // 2, keep_s=1e6) as (client, _):
        assert client.create(event, commitment_to(event, DATA), DATA)[0] == 201
        covered = Covered(event.id, "north", 1, 9, (range(9),), int(time.time()))
        note = covered.signed(event, key_of("verdicts")).data
        end_s = time.monotonic() + 300
        while client.facts()["stored_bytes"]:  # until its segment is closed
            assert client.ask("POST", "/covered", note)[0] == 200
            assert time.monotonic() < end_s
            time.sleep(0.2)
        segments = tmp_path / "north-uploads/served/segments"
        assert {path.suffix for path in segments.iterdir()} == {".segment", ".index"}
        other = DATA[::-1]
        # Whoever is told that there is room finds it made.
        assert client.create(event, commitment_to(event, other, 1))[0] == 201
        assert not [*segments.iterdir()]
        client.close()


def test_stock_clients_learn_what_is_spoken(north):
    status, headers, _ = north[0].ask("OPTIONS", "/tus/")
    assert (status, headers["tus-version"]) == (204, "1.0.0")
    assert "creation-with-upload" in headers["tus-extension"]


def test_pages_of_any_origin_may_push_and_read_the_receipt_but_nothing_else_of_an_agent(
    event, north
):
    client, _ = north
    asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "PATCH"}
    status, headers, _ = client.ask("OPTIONS", "/tus/x", **asked)
    assert status == 204
    assert {"POST", "HEAD", "PATCH"} <= set(headers["access-control-allow-methods"].split(", "))
    wanted = {"Tus-Resumable", "Upload-Length", "Upload-Metadata", "Upload-Offset", "Content-Type"}
    assert wanted <= set(headers["access-control-allow-headers"].split(", "))
    refused = client.ask("POST", "/tus/", Upload_Length="1")
    taken = client.create(event, commitment_to(event, DATA), DATA)
    assert (refused[0], taken[0]) == (400, 201)
    for _, headers, _ in (refused, taken):
        assert headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in headers
        exposed = set(headers["access-control-expose-headers"].split(", "))
        assert {"Location", "Upload-Offset", "Datacollect-Receipt"} <= exposed
    for path in ("/v1/inventory", "/bistro", "/else"):
        _, headers, _ = client.ask("GET", path)
        assert "access-control-allow-origin" not in headers


def test_agents_own_paths_answer_as_ever(north):
    assert north[0].ask("GET", "/v1/inventory")[0] == 401
    assert north[0].ask("GET", "/else")[0] == 404


def test_command_says_how_much_room_there_is(event, north, capsys, tmp_path):
    client, _ = north
    assert client.create(event, commitment_to(event, DATA), DATA)[0] == 201
    url = f"https://127.0.0.1:{client.address[1]}"
    fingerprint = fingerprint_of_file(tmp_path / "north.cert.pem")
    assert run(["bistro", "status", url, "--fingerprint", fingerprint, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["bistro"], facts["stored_bytes"]) == ("north", len(DATA))
    assert facts["last_contact_s"] is None
    assert run(["bistro", "status", url, "--fingerprint", fingerprint]) == 0
    said = capsys.readouterr().out
    assert f"stored: {format_bytes(len(DATA))}\n" in said
    assert "last contact: none" in said


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"bistro": "north", "event": "e", "free_bytes": "much"}', b"[" * 10_000],
)
def test_command_takes_no_other_server_for_a_bistro(body, capsys):
    with odd_server(lambda _: Answer(200, body)) as server:
        assert run(["bistro", "status", server.url]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "the answer is not one of a bistro" in said.err


def test_nobody_is_told_of_what_another_has_sent_before_it_is_kept(event, north, monkeypatch):
    """Two push the same at once: the second gets no receipt for what the disk then loses."""
    client, _ = north
    commitment = commitment_to(event, DATA)
    fails, n_waiting, waits = threading.Event(), [], Bistro._wait

    def fail(*_):
        assert fails.wait(60)
        raise StoreError("no room")

    def wait(*args):
        n_waiting.append(1)
        waits(*args)

    monkeypatch.setattr(UploadStore, "commit", fail)
    monkeypatch.setattr(Bistro, "_wait", wait)
    with ThreadPoolExecutor(2) as threads:
        asked, others = [], [Client(client.address) for _ in range(2)]
        for other in others:
            asked.append(threads.submit(other.create, event, commitment, DATA))
            while len(n_waiting) < len(asked) and not asked[-1].done():
                time.sleep(0.01)
        fails.set()
        assert [each.result()[0] for each in asked] == [507, 507]
    for other in others:
        other.close()


class BrokenError(Exception):
    """Nobody expects it."""


class Broken:
    """A request whose connection fails in a way that nobody expects."""

    method, body_bytes = "PATCH", len(DATA)

    def __init__(self, path: str) -> None:
        self.target = path
        self.headers = {
            "tus-resumable": "1.0.0",
            "content-type": PUSH,
            "upload-offset": "0",
        }

    def read(self) -> bytes:
        raise BrokenError

    def answer(self, *_: object) -> None:
        raise AssertionError

    def cut(self, why: str) -> None:
        raise AssertionError(why)


def test_push_that_ends_by_an_error_of_its_own_harms_nobody(event, north):
    client, bistro = north
    path = client.create(event, commitment_to(event, DATA))[1]["location"]
    with pytest.raises(BrokenError):
        Tus(bistro).answer(Broken(path))
    assert client.ask("HEAD", path)[0] == 200
    assert "datacollect-receipt" in client.patch(path, 0, DATA)[1]


def test_command_says_what_to_do_where_there_is_nothing_to_ask(event, tmp_path, capsys):
    relaying = write_agent(tmp_path, "relaying", connect_to={"S": "192.0.2.1:7443"})
    assert run(["bistro", "status", str(relaying)]) == 2
    assert "has no table accept" in capsys.readouterr().err
    with running_bistro(tmp_path) as (client, _):
        client.close()
    file = tmp_path / "north.toml"
    certificate = tmp_path / "north.cert.pem"

    def refused() -> str:
        assert run(["bistro", "status", str(file)]) == 2
        return " ".join(capsys.readouterr().err.split())

    certificate.write_text("nothing")
    assert "must hold a certificate in PEM; copy it again" in refused()
    certificate.unlink()
    assert "no such file; the agent makes this certificate at its first start" in refused()
    # A file that is there and cannot be read is no matter of the agent's start.
    certificate.mkdir()
    assert refused().endswith("the certificate cannot be read: Is a directory")


def test_command_says_that_a_bistros_disk_has_failed(capsys):
    with odd_server(lambda _: Answer(503)) as server:
        assert run(["bistro", "status", server.url]) == 3
    assert "its disk is full or failing" in capsys.readouterr().err


def test_note_that_comes_by_and_by_holds_no_connection(event, north, monkeypatch):
    client, _ = north
    monkeypatch.setattr(taking, "NOTE_S", -1.0)
    assert client.ask("POST", "/covered", b"a note")[0] == 408
