"""Services and witnesses end to end: real processes, real disks, TLS."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest
from instances.events import key_of
from instances.timestamping import NAME, WITHIN_S, Answer, World, until

from datacollect.bistro.formats.assignment.loads import MOST_LOADS_BYTES, BistroLoad, Loads
from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.log.acknowledgement import Acknowledgement
from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint, cosigned_times, log_key
from datacollect.bistro.formats.log.tiles import Tile, entries_of, tiles_of
from datacollect.bistro.formats.receipt.counted_time import proved_time
from datacollect.bistro.formats.receipt.receipt import read_amendments
from datacollect.bistro.http.config import ServiceConfig
from datacollect.bistro.log_service.server.service import run_service
from datacollect.errors import ProblemError
from datacollect.files.held_folder import Held
from datacollect.net.keys import PrivateKey, write_private_key

MANY = 1000
# A batch, a file more, and nothing beyond.
QUOTA = MANY + 2


def entry(n: int) -> bytes:
    return hashlib.sha256(str(n).encode()).digest()


def word_of(world: World, row: dict) -> Acknowledgement:
    signature = base64.b64decode(row["signature"])
    return Acknowledgement(world.event.services[0].log.name, row["index"], row["time_s"], signature)


def is_acknowledged(world: World, answer: Answer, of: bytes) -> bool:
    return answer.status == 200 and word_of(world, answer.json).is_by(
        world.event.services[0].log, of
    )


@pytest.fixture
def world(tmp_path):
    with World(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A service that many tests ask, and its witnesses."""
    limits = {"commitments_per_ticket": QUOTA}
    with World(tmp_path_factory.mktemp("running"), limits=limits) as made:
        made.start_witnesses()
        # Once it takes something it has heard what witnesses know.
        made.commit(made.start(), entry(70_000), 99)
        yield made


@pytest.mark.slow
def test_commit_is_acknowledged_and_proved_with_one_witness_dead(world):
    world.start_witnesses(0, 1, 2)
    service = world.start()
    answer = world.commit(service, entry(1))
    assert is_acknowledged(world, answer, entry(1))
    proof = world.proof(service, entry(1))
    assert proved_time(proof, entry(1), world.event) is not None
    assert world.get(service, "/checkpoint").body == proof.signed.note.data
    new = world.new_certificate()
    os.kill(service.process.pid, signal.SIGHUP)
    until(lambda: world.certificate(service.url) == new, "the new certificate")
    world.tls[0].write_text("noise")
    os.kill(service.process.pid, signal.SIGHUP)
    until(lambda: "the old one stays" in service.said(), "the note")
    assert world.certificate(service.url) == new
    assert world.kill(service, signal.SIGTERM) == 0


@pytest.mark.slow
def test_what_was_acknowledged_outlasts_kills_and_witnesses_agree(world):
    world.start_witnesses()
    acknowledged: dict[bytes, int] = {}
    for start in range(4):
        service = world.start()
        # From one to some hundred entries, so that it dies in all kinds of moments.
        stop = 4**start + (start > 0)
        commit_until_killed(world, service, 1 + start * 1000, stop, acknowledged)
    service = world.start()
    last = world.commit(service, entry(10**6), 10**6)
    assert is_acknowledged(world, last, entry(10**6))
    world.proof(service, entry(10**6))
    for each, index in acknowledged.items():
        proof = world.proof(service, each)
        assert (proof.index, proof.includes(each)) == (index, True)

    # Each witness has signed the last one, for they sign only what has grown of what they knew.
    def signed_by_all() -> SignedCheckpoint | None:
        found = SignedCheckpoint.parse(world.get(service, "/checkpoint").body)
        return found if len(cosigned_times(found.note, world.event.witness_keys)) == 4 else None

    head = until(signed_by_all, "the last witness")
    assert head.checkpoint.size > last.json["index"]


def commit_until_killed(world, service, first: int, n: int, acknowledged: dict[bytes, int]) -> None:
    """Commit one after the other, and kill the service while it goes on."""
    is_enough = threading.Event()

    def commit_all() -> None:
        with suppress(OSError, HTTPException, AssertionError):  # in the middle of an answer, too
            for i in range(first, first + 1000):
                answer = world.commit(service, entry(i), i)
                assert is_acknowledged(world, answer, entry(i))
                acknowledged[entry(i)] = answer.json["index"]
                if i == first + n - 1:
                    is_enough.set()

    thread = threading.Thread(target=commit_all)
    thread.start()
    assert is_enough.wait(WITHIN_S), service.said()
    world.kill(service)
    thread.join()


@pytest.mark.slow
def test_second_process_is_refused(running):
    file = running.folder / "second.toml"
    text = running.services[0].file.read_text()
    port = running.services[0].url.rpartition(":")[2]
    file.write_text(text.replace(f":{port}", ":0"))
    done = subprocess.run(
        running.command("timestamp", str(file)), check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "another process is using this folder" in done.stderr


@pytest.mark.slow
def test_key_of_no_service_is_refused(running):
    text = running.services[0].file.read_text()
    file = running.folder / "other.toml"
    file.write_text(text.replace("s0.key", "other.key"))
    write_private_key(running.folder / "other.key", key_of("s1"))
    done = subprocess.run(
        running.command("timestamp", str(file)), check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "key must be the private key of one of the event's services" in done.stderr


@pytest.mark.slow
def test_full_disk_is_said_with_a_time_and_it_goes_on_when_there_is_room(world):
    world.start_witnesses()
    service = world.start()
    assert is_acknowledged(world, world.commit(service, entry(1)), entry(1))
    # Files may not grow: the same to a program as a disk without room.
    limit = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (4096, limit[1]))
    full = world.commit(service, entry(2), 2)
    assert (full.status, int(full.headers["Retry-After"])) == (507, 30)
    assert b"disk is full" in full.body
    assert world.get(service, "/checkpoint").status in (200, 404)
    assert "nothing is accepted" in service.said()
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, limit)

    def taken() -> Answer | None:
        found = world.commit(service, entry(2), 2)
        return None if found.status == 507 else found

    assert is_acknowledged(world, until(taken, "room"), entry(2))
    world.kill(service)
    service = world.start()
    assert world.proof(service, entry(1)).index == 0
    assert world.proof(service, entry(2)).index == 1


@pytest.mark.slow
def test_log_restored_from_an_old_copy_takes_nothing_and_says_what_is_missing(world, tmp_path):
    world.start_witnesses()
    service = world.start()
    world.commit(service, entry(1))
    world.proof(service, entry(1))
    world.kill(service)
    shutil.copytree(service.folder, tmp_path / "copy")
    world.start()
    world.commit(service, entry(2), 2)
    world.proof(service, entry(2))
    world.kill(service)
    shutil.rmtree(service.folder)
    shutil.copytree(tmp_path / "copy", service.folder)
    world.start()

    def refused() -> Answer | None:
        found = world.commit(service, entry(3), 3)
        assert found.status == 503
        return found if b"old copy" in found.body else None

    answer = until(refused, "the refusal")
    assert b"entries 1 to 1 are missing" in answer.body
    assert "entries 1 to 1 are missing" in service.said()
    # What it has published, it still tells.
    assert world.get(service, f"/proof/{entry(1).hex()}").status == 200


@pytest.mark.slow
def test_batch_is_acknowledged_in_order_and_quota_counts_it(running):
    service = running.services[0]
    batch = [entry(10_000 + i) for i in range(MANY)]
    answer = running.commit(service, batch, 77)
    words = [word_of(running, row) for row in answer.json]
    log = running.event.services[0].log
    assert all(word.is_by(log, each) for word, each in zip(words, batch, strict=True))
    assert [word.index - words[0].index for word in words] == list(range(MANY))
    again = running.commit(service, [batch[0]], 77)
    assert again.json[0]["index"] == words[0].index
    assert running.commit(service, [entry(20_000 + i) for i in range(2)], 77).status == 200
    refused = running.commit(service, entry(30_000), 77)
    assert refused.status == 403
    assert b"good for 1002 commitments" in refused.body
    assert running.proof(service, batch[-1]).includes(batch[-1])


@pytest.mark.slow
def test_published_files_are_the_log(running):
    """Whoever reads tiles alone finds the entries and the checkpoint's root."""
    service = running.services[0]
    running.commit(service, [entry(40_000 + i) for i in range(300)], 78)
    running.proof(service, entry(40_299))
    head = SignedCheckpoint.parse(running.get(service, "/checkpoint").body).checkpoint
    found: list[bytes] = []
    for tile in tiles_of(head.size):
        data = running.get(service, f"/{tile.path}")
        assert data.status == 200, tile
        if tile.level < 0:
            found += entries_of(data.body, tile)
    assert root_of(found) == head.root
    assert running.get(service, f"/checkpoints/{head.size}").status == 200
    assert running.get(service, f"/{Tile(7, 0).path}").status == 404


def root_of(entries: list[bytes]) -> bytes:
    """Return the root of a tree by its definition (RFC 6962, section 2.1)."""
    if len(entries) == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    left = 2 ** ((len(entries) - 1).bit_length() - 1)
    return hashlib.sha256(b"\x01" + root_of(entries[:left]) + root_of(entries[left:])).digest()


def test_too_many_requests_of_a_ticket_are_told_when_to_come_again(running):
    service = running.services[0]
    connection = running.connection(service.url)
    body = running.commit_body(service, entry(50_000), 79)
    for _ in range(300):
        connection.request("POST", "/commit", body)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            break
    assert (response.status, response.headers["Retry-After"]) == (429, "1")
    connection.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/commit", b"", 400),
        ("POST", "/commit", b"{", 400),
        ("POST", "/commit", b"[" * 30_000, 400),
        ("POST", "/commit", b"\xff\xfe", 400),
        ("POST", "/commit", b'{"entry": 1}', 400),
        ("POST", "/commit", b'{"entry": []}', 400),
        ("POST", "/commit", b'{"entry": "00"}', 400),
        ("POST", "/commit", b'{"entry": "' + b"AA" * 32 + b'"}', 400),
        ("POST", "/commit", b'{"entry": "' + b"aa" * 32 + b'"}', 403),
        ("POST", "/commit", b'{"entry": "' + b"aa" * 32 + b'", "ticket": "v4.public.x"}', 403),
        ("POST", "/commit", b'{"entry": "' + b"aa" * 32 + b'", "ticket": 7}', 400),
        ("POST", "/commit", b'{"entry": "' + b"aa" * 32 + b'", "more": 7}', 400),
        ("POST", "/commit", b" " * 1_000_000, 413),
        ("POST", "/amend", b" " * 70_000, 413),
        ("POST", "/amend", b"noise", 400),
        ("POST", "/other", b"", 404),
        ("PUT", "/commit", b"", 405),
        ("GET", "/", None, 404),
        ("GET", "/commit", None, 404),
        ("GET", "/proof/", None, 400),
        ("GET", "/proof/" + "AA" * 32, None, 400),
        ("GET", "/proof/" + "aa" * 32, None, 404),
        ("GET", "/checkpoints/-1", None, 404),
        ("GET", "/checkpoints/000", None, 404),
        ("GET", "/checkpoints/" + "9" * 30, None, 404),
        ("GET", "/tile/0/../../log.sqlite", None, 404),
        ("GET", "/tile/0/000.p/256", None, 404),
        ("GET", "/" + "a" * 7000, None, 404),
    ],
)
def test_hostile_requests_are_answered_in_words(running, method, path, body, status):
    answer = running.ask(running.services[0], method, path, body)
    assert answer.status == status
    assert answer.body.endswith(b"\n")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_pages_of_any_origin_may_ask_and_read_answers_and_the_time(running):
    """Also refusals; nothing allows credentials, for there are none."""
    service = running.services[0]
    asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    before = running.ask(service, "OPTIONS", "/commit", **asked)
    assert before.status == 204
    assert "POST" in before.headers["Access-Control-Allow-Methods"]
    assert before.headers["Access-Control-Allow-Headers"] == "Content-Type"
    refused = running.ask(service, "POST", "/commit", b"{}")
    read = running.get(service, "/event")
    assert (refused.status, read.status) == (400, 200)
    for answer in (before, refused, read):
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers
    assert {"Date", "Retry-After"} <= set(read.headers["Access-Control-Expose-Headers"].split(", "))


def test_slow_and_broken_clients_hold_nobody_up(running):
    service = running.services[0]
    port = int(service.url.rpartition(":")[2])
    idle = [socket.create_connection((NAME, port), WITHIN_S) for _ in range(50)]
    speaking = []
    for start in (b"POST /commit HTTP/1.1\r\n", b"noise\r\n\r\n", b"GET / HTTP/1.1\r\nA: "):
        plain = socket.create_connection((NAME, port), WITHIN_S)
        speaking.append(running.trusting.wrap_socket(plain, server_hostname=NAME))
        speaking[-1].sendall(start)
    head = b"POST /commit HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{"
    speaking[0].sendall(head)
    assert is_acknowledged(running, running.commit(service, entry(60_000), 80), entry(60_000))
    for each in (*idle, *speaking):
        each.close()
    assert is_acknowledged(running, running.commit(service, entry(60_001), 80), entry(60_001))


@pytest.mark.slow
def test_the_destinations_table_of_loads_is_passed_on(tmp_path):
    key = key_of("verdicts")
    verdicts = {"log": log_key("dest.example/0123456789abcdef", key.public).text}
    with World(tmp_path, settings="workers = 1\n", verdicts=verdicts) as world:
        world.start_witnesses()
        service = world.start()
        assert world.get(service, "/loads").status == 404

        def signed(number: int, time_s: float, by: PrivateKey = key) -> bytes:
            loads = Loads((BistroLoad("a", number, 1.0),), (), world.event.id, number, int(time_s))
            return loads.signed(world.event, by).data

        now_s = time.time()
        second = signed(2, now_s)
        for body, status in (
            (second, 200),
            (signed(1, now_s), 200),
            (signed(3, now_s, key_of("organiser")), 403),
            (b"noise", 403),
            (signed(3, now_s - 100), 409),
            (b" " * (MOST_LOADS_BYTES + 1), 413),
        ):
            assert world.ask(service, "POST", "/loads", body).status == status
            # An older one, and what does not count, changes nothing.
            assert world.get(service, "/loads").body == second


@pytest.mark.slow
def test_amendments_are_entries_for_all_to_read_and_revoke_tickets(world):
    world.start_witnesses()
    service = world.start()
    token = hashlib.sha256(world.ticket(5).token.encode()).hexdigest()
    changes = {"deadline": "2027-04-20T23:59:59-04:00", "revoked": [token]}
    note = sign_amendment(world.event, changes, 1, key_of("organiser"))
    assert world.commit(service, entry(1)).status == 200
    answer = world.ask(service, "POST", "/amend", note)
    assert is_acknowledged(world, answer, note)
    refused = world.commit(service, entry(2), 5)
    assert refused.status == 403
    assert b"revoked" in refused.body

    def proved():
        data = world.get(service, "/amendments").body
        (found,) = read_amendments(data, world.event.id)
        return found if found.proofs else None

    found = until(proved, "the proof of the amendment")
    assert found.note == note
    assert found.proofs[0].includes(note)
    world.kill(service)
    world.start()
    assert world.commit(service, entry(2), 5).status == 403


@pytest.mark.slow
def test_processes_in_front_share_one_log_and_end_with_it(tmp_path):
    with World(tmp_path, settings="workers = 2\n") as world:
        world.start_witnesses()
        service = world.start()
        indices = set()
        for i in range(20):
            # Each over a connection of its own: the kernel spreads them.
            answer = world.commit(service, entry(i), i + 1)
            assert is_acknowledged(world, answer, entry(i))
            indices.add(answer.json["index"])
        assert indices == set(range(20))
        world.proof(service, entry(19))
        forged = world.ask(service, "POST", "/commit", committing(entry(99), "v4.public.AAAA"))
        assert forged.status == 403
        assert world.ask(service, "POST", "/commit", committing(entry(99), None)).status == 403
        token = hashlib.sha256(world.ticket(5).token.encode()).hexdigest()
        note = sign_amendment(world.event, {"revoked": [token]}, 1, key_of("organiser"))
        assert is_acknowledged(world, world.ask(service, "POST", "/amend", note), note)
        revoked = world.commit(service, entry(99), 5)
        assert (revoked.status, b"revoked" in revoked.body) == (403, True)
        new = world.new_certificate()
        os.kill(service.process.pid, signal.SIGHUP)
        until(lambda: world.certificate(service.url) == new, "the new certificate")
        fronts = children_of(service.process.pid)
        assert len(fronts) == 2
        # The kernel would share the port with any other.
        other = world.folder / "other.toml"
        other.write_text(service.file.read_text().replace('"log0"', '"other"'))
        command = world.command("timestamp", str(other))
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Address already in use; stop the program that listens there" in done.stderr
        assert world.end(service) == 0
        until(lambda: not any(is_alive(pid) for pid in fronts), "the end of fronts")

        # Nor do they outlive it where nobody has told them.
        service = world.start()
        fronts = children_of(service.process.pid)
        os.kill(service.process.pid, signal.SIGKILL)
        world.waited(service)
        until(lambda: not any(is_alive(pid) for pid in fronts), "the end of fronts")

        # A front that dies ends the service, for whoever watches it to start again.
        service = world.start()
        os.kill(children_of(service.process.pid)[0], signal.SIGKILL)
        assert world.waited(service) == 3
        assert "stopped unexpectedly" in service.said()


@pytest.mark.slow
def test_of_two_that_start_at_one_moment_with_processes_in_front_one_runs(tmp_path):
    with World(tmp_path, settings="workers = 2\n") as world:
        world.start_witnesses()
        command = world.command("timestamp", str(world.services[0].file), "--json")
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        both = [subprocess.Popen(command, env=world.environment, **streams) for _ in range(2)]
        until(lambda: any(each.poll() is not None for each in both), "the end of one")
        [ended, running] = sorted(both, key=lambda each: each.poll() is None)
        said, words = ended.communicate()
        assert (ended.returncode, said) == (2, "")
        assert "another process is using this folder" in words or "Address already in use" in words
        assert json.loads(running.stdout.readline())["url"]
        for i in range(10):
            answer = world.commit(world.services[0], entry(i), i + 1)
            assert is_acknowledged(world, answer, entry(i))
        running.terminate()
        running.communicate()
        assert running.returncode == 0


def test_nobody_serves_in_front_of_a_folder_that_another_has(world, monkeypatch):
    text = world.services[0].file.read_text()
    world.services[0].file.write_text(f"{text}workers = 2\n")
    config = ServiceConfig.from_file(world.services[0].file)
    held = Held(config.folder)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process in front was made"))
    with pytest.raises(ProblemError, match="another process is using this folder"):
        run_service(config, pytest.fail, pytest.fail)
    held.close()


def committing(entry: bytes, ticket: str | None) -> bytes:
    return json.dumps({"entry": entry.hex(), "ticket": ticket}).encode()


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
