"""What a real bistro meets: damaged and full disks, stolen tickets, slow bodies, cuts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from conftest import NO_NAMESPACES, NO_PROC
from instances.bistros import (
    PUSH,
    Client,
    bistro_event,
    commitment_to,
    metadata,
    running_bistro,
)
from instances.how_many import many

from datacollect.bistro.formats.custody.batches import read_batch
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.transfer.pieces.room import SPARE_BYTES

DATA = bytes(range(256)) * 400
N_SMALL, N_CONNECTIONS = many(20_000), 50
LIMIT_S = 300.0


@pytest.fixture
def event(tmp_path):
    return bistro_event(tmp_path, limits={"bytes": 10**7, "commitments_per_ticket": 3})


@pytest.fixture
def north(event, tmp_path):
    with running_bistro(tmp_path) as (client, bistro):
        yield client, bistro
        client.close()


def head_of(client, event, commitment, method="POST", path="/tus/", offset=None, **more):
    """Begin a request with a body on a connection of its own; return the connection."""
    connection = client.connection()
    connection.putrequest(method, path)
    headers = {"Tus-Resumable": "1.0.0", "Content-Type": PUSH}
    headers["Content-Length"] = str(commitment.size - (offset or 0))
    if offset is None:
        headers["Upload-Length"] = str(commitment.size)
        headers["Upload-Metadata"] = metadata(event, commitment)
    else:
        headers["Upload-Offset"] = str(offset)
    for name, value in (headers | more).items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection


def test_sealed_anew_may_not_be_larger_than_the_event_allows(event, north):
    client, _ = north
    for size, status in ((10**7 + 1, 413), (10**7, 201)):
        text = metadata(event, commitment_to(event, DATA), size=size, sha256=b"a" * 32)
        found = client.ask("POST", "/tus/", None, Upload_Length=str(size), Upload_Metadata=text)
        assert found[0] == status


def test_truncated_ciphertext_is_no_upload(event, north):
    client, _ = north
    commitment = commitment_to(event, DATA)
    connection = head_of(client, event, commitment)
    connection.send(DATA[:-1])
    connection.close()
    # Nor does it become one by saying that it is shorter.
    short = client.ask(
        "POST",
        "/tus/",
        None,
        Upload_Length=str(len(DATA) - 1),
        Upload_Metadata=metadata(event, commitment),
    )
    assert short[0] == 400
    status, found, _ = client.create(event, commitment)
    assert (status, "datacollect-receipt" in found) == (201, False)


def test_entry_of_another_event_is_refused(event, north, tmp_path):
    client, _ = north
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = bistro_event(elsewhere, name="Another")
    # The log is the same, the proof counts, and yet it is of another event's entry.
    theirs = commitment_to(other, DATA)
    assert client.create(event, theirs, DATA)[0] == 403


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["changed", "truncated", "gone"])
def test_no_receipt_for_what_the_disk_has_lost(event, tmp_path, damage):
    commitment = commitment_to(event, DATA)
    with running_bistro(tmp_path) as (client, _):
        path = client.create(event, commitment)[1]["location"]
        assert client.patch(path, 0, DATA[:50_000])[0] == 204
        client.close()
    with running_bistro(tmp_path) as (client, _):
        (segment,) = (tmp_path / "north-uploads" / "served" / "segments").glob("*.segment")
        if damage == "changed":
            segment.write_bytes(b"\0" * 50_000)
        elif damage == "truncated":
            os.truncate(segment, 10)
        else:
            segment.unlink()
        status, found, _ = client.patch(path, 50_000, DATA[50_000:])
        assert (status, "datacollect-receipt" in found) == (500 if damage == "gone" else 460, False)
        if damage == "gone":
            assert client.give_up(event, path, commitment)[0] == 204
        # Sent once more it is taken.
        assert "datacollect-receipt" in client.create(event, commitment, DATA)[1]
        client.close()


def test_two_bistros_may_hold_the_same_upload(event, north, tmp_path):
    client, _ = north
    commitment = commitment_to(event, DATA)
    with running_bistro(tmp_path, "south") as (other, _):
        words = [
            read_bistro_receipt(
                each.create(event, commitment, DATA)[1]["datacollect-receipt"], event
            )
            for each in (client, other)
        ]
        other.close()
    assert [word.bistro for word in words] == ["north", "south"]
    assert words[0].sha256 == words[1].sha256


def test_stolen_ticket_ends_nobodys_push(event, north):
    """Who has it uses up its uploads, and what he pushes lacks the secret that its seal needs."""
    client, _ = north
    mine = commitment_to(event, DATA)
    path = client.create(event, mine)[1]["location"]
    assert client.patch(path, 0, DATA[:10])[0] == 204
    stolen = [client.create(event, commitment_to(event, DATA, 1 + salt))[0] for salt in range(3)]
    assert stolen == [201, 201, 403]
    # He knows my entry and its proof, which are for all to see, and not what opens it.
    guessed = commitment_to(event, DATA[:-1] + b"x")
    text = metadata(event, mine).split(",")
    text = [each for each in metadata(event, guessed).split(",") if each[:3] == "com"] + text[1:]
    asked = client.ask(
        "POST", "/tus/", None, Upload_Length=str(len(DATA)), Upload_Metadata=",".join(text)
    )
    assert asked[0] == 403
    assert "datacollect-receipt" in client.patch(path, 10, DATA[10:])[1]


@pytest.mark.slow
def test_slow_bodies_hold_nobody_else(event, north):
    client, _ = north
    slow = []
    for number in range(N_CONNECTIONS):
        commitment = commitment_to(event, DATA, 100 + number)
        # Each with a ticket of its own.
        text = metadata(event, commitment, number=100 + number)
        connection = head_of(client, event, commitment, **{"Upload-Metadata": text})
        connection.send(DATA[:1])
        slow.append(connection)
    assert client.create(event, commitment_to(event, DATA), DATA)[0] == 201
    for i, connection in enumerate(slow):
        connection.send(DATA[1:2])
        if i % 10 == 0:
            assert client.ask("GET", "/bistro")[0] == 200
    for connection in slow:
        connection.send(DATA[2:])
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Datacollect-Receipt") is None) == (201, False)
        connection.close()


def test_connection_cut_at_every_so_manieth_byte_loses_nothing(event, north):
    client, _ = north
    data = DATA[:300]
    commitment = commitment_to(event, data)
    kept = head_of(client, event, commitment)
    kept.close()
    raw = bytes_of(client, event, commitment, data)
    n_cuts = 0
    for stop in range(1, len(raw), 41):
        connection = client.connection()
        connection.connect()
        connection.sock.sendall(raw[:stop])
        connection.sock.close()
        n_cuts += 1
    assert n_cuts > 50
    found = client.create(event, commitment)[1]
    at = int(found["upload-offset"])
    if "datacollect-receipt" not in found:
        found = client.patch(found["location"], at, data[at:])[1]
    assert read_bistro_receipt(found["datacollect-receipt"], event).size == len(data)


def bytes_of(client, event, commitment, data):
    """Return the request that pushes all, as it goes over the connection."""
    lines = {
        "Host": "north",
        "Tus-Resumable": "1.0.0",
        "Content-Type": PUSH,
        "Content-Length": str(len(data)),
        "Upload-Length": str(len(data)),
        "Upload-Metadata": metadata(event, commitment),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST /tus/ HTTP/1.1\r\n{head}\r\n".encode() + data


@contextmanager
def agent_process(folder, before=()):
    """Run the agent of a bistro in a process; yield it and a client."""
    with running_bistro(folder) as (client, _):  # writes its file
        client.close()
    log = folder / "agent.log"
    command = [*before, sys.executable, "-m", "datacollect", "agent", str(folder / "north.toml")]
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [*command, "--json"], stdout=subprocess.PIPE, stderr=said, text=True
        ) as process,
    ):
        try:
            line = process.stdout.readline()
            assert line, log.read_text()
            port = int(json.loads(line)["url"].rpartition(":")[2])
            client = Client(("127.0.0.1", port))
            yield process, client
            client.close()
        finally:
            process.terminate()


def until(answer):
    end_s = time.monotonic() + LIMIT_S
    while (found := answer()) is None:
        assert time.monotonic() < end_s
        time.sleep(0.1)
    return found


# A disk of its own, of which the tests' namespace sees nothing.
SMALL_DISK = (
    *("unshare", "--map-root-user", "--mount", "sh", "-ec"),
    'mount -t tmpfs -o size="$1" tmpfs "$2"; shift 2; exec "$@"',
    "sh",
)


@pytest.mark.slow
def test_full_disk_names_others_and_goes_on_once_there_is_room(event, tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    size = str(SPARE_BYTES + 2**23)
    before = [*SMALL_DISK, size, str(place)]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*before, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip(NO_NAMESPACES)
    (tmp_path / "north-uploads").symlink_to(place)
    with agent_process(tmp_path, before) as (process, client):
        mine, later = commitment_to(event, DATA), commitment_to(event, DATA, 1)
        path = client.create(event, mine)[1]["location"]
        assert client.patch(path, 0, DATA[:1000])[0] == 204
        filler = Path(f"/proc/{process.pid}/root{place}/filler")
        with filler.open("wb", 0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        for status, _, body in (
            client.patch(path, 1000, DATA[1000:]),
            client.create(event, later, DATA),
        ):
            assert (status, json.loads(body)["bistros"]) == (507, ["south"])
        os.truncate(filler, 0)

        def goes_on():
            status, found, _ = client.ask("HEAD", path)
            return found if status == 200 else None

        at = int(until(goes_on)["upload-offset"])
        word = client.patch(path, at, DATA[at:])[1]["datacollect-receipt"]
        assert read_bistro_receipt(word, event).size == len(DATA)
        assert client.create(event, later, DATA)[0] == 201
    assert '"failed"' in (tmp_path / "agent.log").read_text()


@pytest.mark.slow
def test_thousands_of_small_uploads_at_once_are_all_held_in_bounded_memory(tmp_path):
    if not Path("/proc/self/status").exists():
        pytest.skip(NO_PROC)
    event = bistro_event(tmp_path, limits={"commitments_per_ticket": 100})
    with agent_process(tmp_path) as (process, client):
        first_kib = peak_kib(process)

        def push(part):
            one = Client(client.address)
            words = []
            for i in range(part, N_SMALL, N_CONNECTIONS):
                data = i.to_bytes(4, "big") * 25
                commitment = commitment_to(event, data, i)
                status, found, _ = one.create(event, commitment, data, 1 + i // 50)
                assert status == 201
                words.append(found["datacollect-receipt"])
            one.close()
            return words

        with ThreadPoolExecutor(N_CONNECTIONS) as threads:
            tokens = [token for words in threads.map(push, range(N_CONNECTIONS)) for token in words]
        words = [read_bistro_receipt(token, event) for token in tokens]
        assert len({word.entry for word in words}) == N_SMALL
        batches = tmp_path / "north-uploads" / "served" / "batches"

        def all_held():
            read = [read_batch(path.read_bytes(), event) for path in batches.glob("*.batch")]
            held = {(bytes(row["entry"]), batch.number) for batch in read for row in batch.rows}
            return held if len(held) == N_SMALL else None

        assert until(all_held) == {(word.entry, word.batch) for word in words}
        assert peak_kib(process) - first_kib < 100 * 1024
        assert client.facts()["stored_bytes"] == 100 * N_SMALL


def peak_kib(process):
    with Path(f"/proc/{process.pid}/status").open() as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
