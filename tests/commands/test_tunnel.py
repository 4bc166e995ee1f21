"""``datacollect tunnel``: standard streams, ports of loopback, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import NO_RSYNC
from instances.agents import KEY, received, running, write_agent
from instances.ports import free_port
from instances.tunnels import collection_of, counting, service, tunnel_agent, tunnel_table

from datacollect.commands.main import run
from datacollect.net.keys import write_private_key

PROGRAM = [sys.executable, "-m", "datacollect"]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Return the collection file of an agent with a service, and of a relay to it."""
    folder = tmp_path_factory.mktemp("two")
    with (
        service(counting) as place,
        running(tunnel_agent(folder, {"echo": place})) as s1,
        running(write_agent(folder, "K1", connect_to={"S1": s1.place})) as k1,
    ):
        path = folder / "collection.json"
        path.write_text(json.dumps(collection_of(folder, s1, k1)))
        yield path


@contextlib.contextmanager
def listening(*words: str, stderr=subprocess.PIPE):
    """Run ``--listen 0``; yield the process and its port."""
    process = subprocess.Popen(
        [*PROGRAM, "tunnel", *words, "--listen", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
    with process:
        try:
            yield process, json.loads(process.stdout.readline())["port"]
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("via", [[], ["--via", "K1"]])
def test_standard_input_and_output_are_a_connection(two, via):
    done = subprocess.run(
        [*PROGRAM, "tunnel", str(two), "S1:echo", "--stdio", *via],
        input=bytes(1_000_000),
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hello\ngot 1000000", b"")


@pytest.mark.slow
def test_a_port_leads_each_connection_to_the_service(two):
    with listening(str(two), "S1:echo") as (process, port):
        for n_bytes in (10, 100_000):
            with socket.create_connection(("127.0.0.1", port), timeout=120) as one:
                one.sendall(bytes(n_bytes))
                one.shutdown(socket.SHUT_WR)
                assert received(one) == b"hello\ngot %d" % n_bytes
        with socket.create_connection(("127.0.0.1", port), timeout=120) as one:
            assert one.recv(100) == b"hello\n"
            # Whoever kills it cuts off what is open.
            process.send_signal(signal.SIGKILL)
            with pytest.raises(ConnectionResetError):
                one.recv(100)


@pytest.mark.slow
def test_a_connection_without_a_route_is_reset_and_why_is_said(tmp_path, two):
    tree = json.loads(two.read_text())
    tree["agents"]["S1"]["fingerprint"] = tree["agents"]["K1"]["fingerprint"]
    tree["key"] = str(two.parent / "collector.key")
    path = tmp_path / "other.json"
    path.write_text(json.dumps(tree))
    with listening(str(path), "S1:echo") as (process, port):
        # Who is held up while he connects learns of it by that.
        with (
            pytest.raises(ConnectionResetError),
            socket.create_connection(("127.0.0.1", port), timeout=120) as one,
        ):
            one.recv(1)
        process.terminate()
        said = process.stderr.read()
        assert "its certificate must have the fingerprint" in said
        assert process.wait(120) == 143


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("S1:echo", 2, "give either --stdio or --listen PORT, got neither"),
        ("S1:echo --stdio --listen 0", 2, "got both"),
        ("S1:echo --listen 70000", 2, "a port from 0 to 65535"),
        ("S1:echo --stdio --json", 2, "--json is for --listen"),
        ("S1:echo --stdio --via K1,,K2", 2, "--via must be names of relays"),
        ("S1:echo --stdio --via K9", 2, "got 'K9'"),
        ("S1:echo --stdio --via K1,K1", 2, "K1 is listed twice"),
        ("S1:echo --stdio --via K1 --direct", 2, "cannot be combined"),
        ("S1:echo --stdio --via K1 --strict", 2, "leave strict out"),
        ("S9:echo --stdio", 2, "got 'S9'"),
        ("S1 --stdio", 2, "AGENT:SERVICE"),
        ("S1:smtp --stdio --direct", 2, "no service 'smtp'"),
        ("K1:echo --stdio --direct", 2, "has no tunnels"),
    ],
)
def test_what_it_refuses(two, words, code, message, capsys):
    assert run(["tunnel", str(two), *words.split()]) == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_port_in_use_is_named(two, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert run(["tunnel", str(two), "S1:echo", "--listen", str(port)]) == 2
    assert f"--listen {port}: Address already in use" in capsys.readouterr().err


def test_no_route_is_exit_1(two, tmp_path, capsys):
    tree = json.loads(two.read_text())
    tree["agents"]["K1"]["url"] = f"https://127.0.0.1:{free_port()}"
    path = tmp_path / "other.json"
    path.write_text(json.dumps(tree))
    assert run(["tunnel", str(path), "S1:echo", "--stdio", "--via", "K1"]) == 1
    assert "no route to S1:echo: K1: cannot be reached" in capsys.readouterr().err


def test_bytes_of_files_pass_by_descriptors(two, tmp_path):
    """As a shell redirects them: a file in, a file out, both blocking."""
    import datacollect as dc
    from datacollect.transfer.tunnel.standard_streams import carry

    (tmp_path / "in").write_bytes(bytes(123_456))
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as sink:
        tunnel = dc.tunnel(two, "S1:echo")
        carry(tunnel, source.fileno(), sink.fileno())
    tunnel.close()
    assert (tmp_path / "out").read_bytes() == b"hello\ngot 123456"


def test_nobody_who_takes_what_comes_cuts_it_off(two):
    import datacollect as dc
    from datacollect.errors import TransferError
    from datacollect.transfer.tunnel.standard_streams import carry

    source, sink = os.pipe(), os.pipe()
    os.close(sink[0])
    tunnel = dc.tunnel(two, "S1:echo")
    with pytest.raises(TransferError, match="standard output: Broken pipe"):
        carry(tunnel, source[0], sink[1])
    for number in (source[1], sink[1]):
        os.close(number)
    threading.Timer(0.1, os.close, (source[0],)).start()


# rsync ----------------------------------------------------------------------------------------


def start_agent(path: Path) -> tuple[subprocess.Popen, dict]:
    process = subprocess.Popen(
        [*PROGRAM, "agent", str(path), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return process, json.loads(process.stdout.readline())


@pytest.mark.slow
def test_rsync_goes_on_over_two_relays_of_which_one_is_killed(tmp_path):
    """A tree of one large file and some small ones, at 1 MB/s, so that the kill comes midway."""
    import shutil
    import time

    if shutil.which("rsync") is None:
        pytest.skip(NO_RSYNC)
    tree = tmp_path / "tree"
    (tree / "some/where").mkdir(parents=True)
    (tree / "large").write_bytes(os.urandom(6_000_000))
    for i in range(20):
        (tree / f"some/where/{i}").write_bytes(os.urandom(1000 * i))
    port = free_port()
    (tmp_path / "rsyncd.conf").write_text(
        f"port = {port}\naddress = 127.0.0.1\nuse chroot = no\n"
        f"pid file = {tmp_path}/rsyncd.pid\n[tree]\npath = {tree}\n"
    )
    write_private_key(tmp_path / "collector.key", KEY)
    s1 = write_agent(tmp_path, "S1", more=tunnel_table({"rsync": f"127.0.0.1:{port}"}))
    with contextlib.ExitStack() as held:
        daemon = subprocess.Popen(
            ["rsync", "--daemon", "--no-detach", f"--config={tmp_path}/rsyncd.conf"]
        )
        held.callback(daemon.wait)
        held.callback(daemon.kill)
        facts = {}

        def start(path: Path) -> subprocess.Popen:
            process, told = start_agent(path)
            held.callback(process.stdout.close)
            held.callback(process.wait)
            held.callback(process.kill)
            facts[told["name"]] = {"url": told["url"], "fingerprint": told["fingerprint"]}
            return process

        start(s1)
        place = facts["S1"]["url"].removeprefix("https://")
        k2 = write_agent(tmp_path, "K2", connect_to={"S1": place})
        k2.write_text(k2.read_text().replace("127.0.0.1:0", f"127.0.0.1:{free_port()}"))
        relay = start(k2)
        place = facts["K2"]["url"].removeprefix("https://")
        limits = "limits = { rate = 1_000_000 }\n"
        start(write_agent(tmp_path, "K1", connect_to={"K2": place}, more=limits))
        collection = tmp_path / "collection.json"
        collection.write_text(
            json.dumps(
                {
                    "format": "datacollect-collection/1",
                    "destination": "D",
                    "key": "collector.key",
                    "agents": facts,
                }
            )
        )
        _, tunnel_port = held.enter_context(
            listening(str(collection), "S1:rsync", "--via", "K1,K2", stderr=subprocess.DEVNULL)
        )
        copy = [
            *("rsync", "-a", "--partial", "--timeout=120"),
            *(f"rsync://127.0.0.1:{tunnel_port}/tree/", str(tmp_path / "copy")),
        ]
        first = subprocess.Popen(copy, stderr=subprocess.DEVNULL)
        until_s = time.monotonic() + 120
        while _size(tmp_path / "copy") < 500_000 and time.monotonic() < until_s:
            time.sleep(0.02)
        relay.send_signal(signal.SIGKILL)
        relay.wait()
        assert first.wait(120) != 0
        assert 0 < _size(tmp_path / "copy") < 6_000_000
        start(k2)
        assert subprocess.run(copy, check=False, timeout=300).returncode == 0
    found = {
        str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()
    }
    for name, data in found.items():
        assert (tmp_path / "copy" / name).read_bytes() == data


def _size(folder: Path) -> int:
    """How much of the large file is there, under its own name or another."""
    files = [path for path in folder.glob("*large*") if path.is_file()]
    return max((path.stat().st_size for path in files), default=0)
