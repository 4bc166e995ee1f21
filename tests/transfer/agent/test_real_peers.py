"""Other people's programs against an agent: curl, openssl, a capture of the wire."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from contextlib import contextmanager, suppress

import pytest
from conftest import NO_CURL, NO_OPENSSL
from instances.agents import relay_ticket, running, session_with, source_ticket, write_agent

from datacollect.transfer.protocol.messages import Read, WireSegment

needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason=NO_CURL)
needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason=NO_OPENSSL)
DATA = os.urandom(300_000)


@pytest.fixture
def source(tmp_path):
    path = write_agent(tmp_path, "S1", serve="data")
    (tmp_path / "data/a b.bin").write_bytes(DATA)
    with running(path) as agent:
        yield agent


def curl(tmp_path, agent, *options: str) -> subprocess.CompletedProcess:
    """Ask for the file; the agent's certificate is its own authority, its name is its host."""
    command = ["curl", "-sS", "--max-time", "20", "--cacert", str(tmp_path / "S1.cert.pem")]
    command += ["-H", f"Authorization: Bearer {source_ticket('S1')}", *options]
    return subprocess.run(command, capture_output=True, check=False)


@needs_curl
def test_curl_fetches_a_file_whole_and_in_part(tmp_path, source):
    url = f"https://S1:{source.address[1]}/v1/files/a%20b.bin"
    here = ["--resolve", f"S1:{source.address[1]}:127.0.0.1", url]
    assert curl(tmp_path, source, *here).stdout == DATA
    assert curl(tmp_path, source, "-r", "100-199", *here).stdout == DATA[100:200]
    assert curl(tmp_path, source, "-r", "-5", *here).stdout == DATA[-5:]
    head = curl(tmp_path, source, "-I", *here).stdout.decode()
    assert f"content-length: {len(DATA)}" in head.lower()
    etag = next(line for line in head.splitlines() if line.lower().startswith("etag:"))[5:].strip()
    for tag, expected in ((etag, DATA[:10]), ('"another"', DATA)):
        part = curl(tmp_path, source, "-r", "0-9", "-H", f"If-Range: {tag}", *here)
        assert part.stdout == expected
    bad = curl(tmp_path, source, "-r", "999999-", "-w", "%{http_code}", *here)
    assert bad.stdout.endswith(b"416")
    # A download that was broken off goes on.
    (tmp_path / "out").write_bytes(DATA[:1234])
    curl(tmp_path, source, "-C", "-", "-o", str(tmp_path / "out"), *here)
    assert (tmp_path / "out").read_bytes() == DATA


@needs_curl
@pytest.mark.parametrize("basic", [True, False])
def test_curl_uses_an_agent_as_its_proxy(tmp_path, source, basic):
    relay = write_agent(tmp_path, "R1", connect_to={"S1": source.place})
    with running(relay) as r1:
        token = relay_ticket(["R1"], "S1")
        proof = ["--proxy-user", f"ticket:{token}"]
        if not basic:
            proof = ["--proxy-header", f"Proxy-Authorization: Bearer {token}"]
        options = ["--proxy", f"http://{r1.place}", "--proxytunnel", *proof]
        done = curl(tmp_path, source, *options, "https://S1/v1/files/a%20b.bin")
        assert done.stdout == DATA, done.stderr
        # Once only: the same ticket opens no second connection.
        again = curl(tmp_path, source, *options, "https://S1/v1/files/a%20b.bin")
        assert again.returncode != 0
        assert b"407" in again.stderr


@needs_openssl
@pytest.mark.parametrize(("version", "fits"), [("-tls1_3", True), ("-tls1_2", False)])
def test_openssl_greets(tmp_path, source, version, fits):
    command = ["openssl", "s_client", "-connect", source.place, version, "-verify_return_error"]
    command += ["-CAfile", str(tmp_path / "S1.cert.pem"), "-verify_hostname", "S1", "-brief"]
    request = b"GET /v1/agent HTTP/1.1\r\nHost: S1\r\nConnection: close\r\n\r\n"
    done = subprocess.run(
        [*command, "-ign_eof"], input=request, capture_output=True, timeout=30, check=False
    )
    assert (b'"name":"S1"' in done.stdout) is fits
    assert (b"Verification: OK" in done.stderr) is fits


@contextmanager
def capture(to: tuple[str, int]):
    """A wire that keeps all that crosses it in both directions; yield its address and its bytes."""
    kept, ends = bytearray(), []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pass_on(one, other):
            with suppress(OSError):
                while data := one.recv(65536):
                    kept.extend(data)
                    other.sendall(data)
                other.shutdown(socket.SHUT_WR)

        def accept():
            with suppress(OSError):
                while True:
                    near = listener.accept()[0]
                    far = socket.create_connection(to)
                    ends.extend((near, far))
                    for pair in ((near, far), (far, near)):
                        threading.Thread(target=pass_on, args=pair, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", kept
        listener.shutdown(socket.SHUT_RDWR)
        for end in ends:
            end.close()


def test_relays_see_bytes_and_none_of_the_text(tmp_path):
    """Each wire of a chain over two relays is captured: what it carries is not what was sent."""
    text = b"the quick brown fox jumps over the lazy dog\n" * 20_000
    path = write_agent(tmp_path, "S1", serve="data")
    (tmp_path / "data/secret-name.txt").write_bytes(text)
    with (
        running(path) as s1,
        capture(s1.address) as (to_s1, last),
        running(write_agent(tmp_path, "R2", connect_to={"S1": to_s1})) as r2,
        capture(r2.address) as (to_r2, middle),
        running(write_agent(tmp_path, "R1", connect_to={"R2": to_r2})) as r1,
    ):
        ticket = source_ticket("S1")
        with session_with(s1, r1, r2) as session:
            [file] = session.inventory(ticket).files
            buffer = bytearray(file.n_bytes)
            session.send_read(Read((WireSegment(file, 0, file.n_bytes),)))
            assert session.receive_into(memoryview(buffer)).status == 0
            assert buffer == text
        for wire in (last, middle):
            assert len(wire) > len(text)
            for secret in (text[:20], b"secret-name", ticket.encode()[-60:], b"/v1/read"):
                assert secret not in wire
        # A relay's own wire shows its ticket, which has been used, and the next host's name.
        assert b"CONNECT S1:443" in middle
        assert b"CONNECT" not in last
