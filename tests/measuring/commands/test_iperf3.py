"""``datacollect measure tcp`` and ``ping`` with an iperf3 server: recorded results, and a real one.

The fake iperf3 prints what iperf3 3.12 has printed, see `tests/measurement/iperf3`, with what a
test changes; it keeps its options.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import need
from instances.measuring import OPERATOR
from instances.ports import free_port

from datacollect.measurement.sample_store import read_parts
from datacollect.measuring.operator import iperf3_tests
from datacollect.measuring.operator.pings import PingSettings
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.operator.tools import TOOLS
from datacollect.net.host_marks import IN_PULL, marked
from datacollect.net.keys import write_private_key

RECORDED = Path(__file__).parents[2] / "measurement/iperf3"
# Two runs of 5 s: 100 MB less a block for each is 9 973 785 bytes/s at most.
HALF_BYTES = 50_000_000 - 128 * 1024
MOST_BYTES_PER_S = HALF_BYTES // 5


def write_hosts(folder: Path, port: int = 5201, more: str = "", here: str = "") -> str:
    (folder / "hosts.toml").write_text(
        'format = "datacollect-hosts/1"\ndestination = "D"\n'
        'budget = { bytes = "1 GB", time = "2 min" }\n'
        f'[hosts.S]\niperf3 = "127.0.0.2:{port}"\n[hosts.D]\n{here}\n{more}'
    )
    return str(folder / "hosts.toml")


def recorded(name: str, **received) -> dict:
    """Return a recorded result in which other bytes have come."""
    tree = json.loads((RECORDED / f"{name}.json").read_text())
    if received:
        tree["end"]["sum_received"].update(received)
    return tree


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Put programs in place of iperf3's: each run takes the next of some outputs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def put(*outputs: str | dict, first: str = "") -> Path:
        for i, output in enumerate(outputs):
            text = output if isinstance(output, str) else json.dumps(output)
            (folder / f"output{i}").write_text(text)
        program = folder / "iperf3"
        program.write_text(
            f"#!/bin/sh\ncd {folder}\n{first}\nn=$(cat asked 2>/dev/null | wc -l)\n"
            'echo "$@" >> asked\ncat output$n\n'
        )
        program.chmod(0o755)
        return folder / "asked"

    return put


def kept(folder: Path) -> list[dict]:
    return read_parts(folder / "samples").frame.to_dict("records")


@pytest.mark.parametrize(
    ("ends", "name", "asked"),
    [((), "reverse", "-R "), (("--from", "D", "--to", "S"), "tcp", "")],
)
def test_a_slow_path_is_measured_by_time(tmp_path, call, fake, ends, name, asked):
    """5 MB in 5 s: less than the bytes would allow, so the first run is the test."""
    output = recorded(name, bytes=5_000_000, seconds=5.0, bits_per_second=8e6)
    log = fake(output)
    hosts, samples = write_hosts(tmp_path), str(tmp_path / "samples")
    code, out, err = call("measure", "tcp", hosts, *ends, "-o", samples)
    assert code == 0
    assert "1 test, one after the other: at most 100 MB and 10 s" in err
    pair = ("D", "S") if ends else ("S", "D")
    assert out == f"{pair[0]} → {pair[1]}: 8 Mbit/s (8 Mbit/s from connecting on)\n"
    most_bit_per_s = 8 * HALF_BYTES // 5
    assert log.read_text() == f"-c 127.0.0.2 -p 5201 -P 1 -J {asked}-t 5 -b {most_bit_per_s}\n"
    (row,) = kept(tmp_path)
    assert (row["from"], row["to"]) == pair
    assert (row["bandwidth_bytes_per_s"], row["bytes"], row["duration_s"]) == (1e6, 5e6, 5.0)
    # In microseconds; the client knows what it has sent alone.
    assert row["rtt_s"] == 9e-6 if name == "tcp" else row["rtt_s"] != row["rtt_s"]
    assert json.loads(row["settings"]) == {
        "streams": 1,
        "seconds": 10.0,
        "most_bytes": 100_000_000,
        "window_bytes": None,
        "settled_s": 0.0,
        "by": "iperf3",
    }


def test_a_fast_path_is_measured_by_bytes(tmp_path, call, fake):
    """The first run was as fast as it might be; the second one sends what is left, at any rate."""
    first = recorded("tcp", bytes=49_000_000, seconds=5.0, bits_per_second=7.9e7)
    log = fake(first, recorded("tcp", bytes=39_000_000, seconds=0.39, bits_per_second=8e8))
    hosts, samples = write_hosts(tmp_path), str(tmp_path / "samples")
    code, out, _ = call("measure", "tcp", hosts, "-o", samples, "--json")
    assert code == 0
    (row,) = json.loads(out)["samples"]
    assert row["bandwidth_bytes_per_s"] == 1e8
    asked = log.read_text().splitlines()
    assert len(asked) == 2
    assert asked[1].endswith(f"-R -n {int(0.8 * HALF_BYTES)}")
    # Both runs keep within the bytes that the test may take.
    assert 5 * MOST_BYTES_PER_S + int(0.8 * HALF_BYTES) < 100_000_000


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (recorded("refused"), "Connection refused'; check that `iperf3 -s -p 5201` runs there"),
        (
            {**recorded("refused"), "error": "the server is busy running a test. try again later"},
            "it runs one test at a time; repeat this one later",
        ),
        (json.dumps(recorded("tcp"))[:700], "S: iperf3 prints no complete result, but '{"),
        ("", "prints no complete result, but 'nothing'"),
        ("\x1b[31m" + "[" * 100_000, "prints no complete result, but '\\x1b"),
        ("[1]", "prints no complete result"),
        ({"start": {}, "end": {}}, "S: iperf3: start.connected is empty"),
        ({"start": 3, "end": 4}, "S: iperf3: start is missing; give the complete output"),
        (recorded("tcp", bytes=0, bits_per_second=0), "nothing arrived"),
        (recorded("streams"), "reports 2 connections of TCP, but 1 of TCP were asked for"),
        (recorded("udp"), "reports 1 connections of UDP, but 1 of TCP were asked for"),
    ],
)
def test_what_was_not_measured_is_a_row_that_says_why(tmp_path, call, fake, output, why):
    fake(output)
    code, out, _ = call(
        "measure", "tcp", write_hosts(tmp_path), "-o", str(tmp_path / "samples"), "--json"
    )
    assert code == 1
    (row,) = json.loads(out)["samples"]
    assert why in row["ended"]
    (row,) = kept(tmp_path)
    assert why in row["ended"]
    assert row["bandwidth_bytes_per_s"] != row["bandwidth_bytes_per_s"]


def test_a_server_that_says_nothing_is_given_up(tmp_path, call, fake, monkeypatch):
    monkeypatch.setattr("datacollect.measuring.operator.iperf3_tests.AROUND_S", 0.0)
    fake(first="exec sleep 60")
    command = ("measure", "tcp", write_hosts(tmp_path), "-o", str(tmp_path / "samples"))
    code, out, _ = call(*command, "--seconds", "2")
    assert code == 1
    assert "S: iperf3 has not ended after 1 s; check that its server runs" in out
    assert "127.0.0.2:5201" in out


def test_without_iperf3_a_row_says_what_to_install(tmp_path, call, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, _ = call("measure", "tcp", write_hosts(tmp_path), "-o", str(tmp_path / "samples"))
    assert code == 1
    assert out == "S → D: iperf3 is not installed on this host; apt install iperf3\n"


AGENT = f'url = "https://127.0.0.1:1"\nfingerprint = "sha256:{1:064}"\n'


@pytest.mark.parametrize(
    ("tool", "options", "why"),
    [
        ("tcp", ("--seconds", "1.5"), "ask for --seconds of at least 2"),
        ("tcp", ("--bytes", "500 kB"), "ask for --bytes of at least 524288"),
        ("tcp", ("--window", "64 kB"), "leave out --window"),
        ("curve", (), "an iperf3 server cannot take part in curve; run an agent there"),
        ("pairs", (), "an iperf3 server cannot take part in pairs"),
        ("trace", (), "an iperf3 server cannot take part in trace"),
        ("scan", (), "'S' is an iperf3 server, which these tests cannot ask; run an agent"),
        ("flood", (), "'S' is an iperf3 server, which these tests cannot ask; run an agent"),
        ("tcp", ("--from", "A"), "'D' has no agent, and only iperf3 servers can be measured fro"),
        ("ping", ("--to", "A", "--from", "S"), "S → A: host 'S' is an iperf3 server, so the ot"),
    ],
)
def test_what_iperf3_cannot_do_is_refused_before_anything_runs(tmp_path, call, tool, options, why):
    more = f"[hosts.A]\n{AGENT}" if "A" in options else ""
    hosts = write_hosts(tmp_path, more=more)
    if more:
        text = Path(hosts).read_text()
        Path(hosts).write_text(text.replace("budget", 'key = "operator.key"\nbudget', 1))
    code, _, err = call("measure", tool, hosts, *options, "-o", str(tmp_path / "samples"))
    assert code == 2
    assert why in " ".join(err.split())
    assert not (tmp_path / "samples").exists()


def test_ping_without_the_program_connects_to_the_server(tmp_path, call, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    options = ("-o", str(tmp_path / "samples"), "--count", "2", "--every", "0.2", "--json")
    with socket.create_server(("127.0.0.2", free_port())) as listener:
        hosts = write_hosts(tmp_path, listener.getsockname()[1])
        code, out, _ = call("measure", "ping", hosts, *options)
    assert code == 0
    (row,) = json.loads(out)["samples"]
    assert 0 < row["rtt_s"] < 10
    assert json.loads(row["settings"])["by"] == "tcp handshake"
    code, out, _ = call("measure", "ping", hosts, *options)
    assert code == 1
    (row,) = json.loads(out)["samples"]
    assert (row["loss"], row["rtt_s"]) == (1.0, None)
    assert "refused" in row["ended"]


def test_ping_asks_the_program(tmp_path, call, fake):
    fake()
    program = tmp_path / "bin/ping"
    program.write_text(
        "#!/bin/sh\necho '64 bytes from 127.0.0.2: icmp_seq=1 ttl=64 time=20.0 ms'\n"
        "echo '2 packets transmitted, 1 received, 50% packet loss'\n"
    )
    program.chmod(0o755)
    options = ("-o", str(tmp_path / "samples"), "--count", "2", "--every", "0.2")
    code, out, _ = call("measure", "ping", write_hosts(tmp_path), *options)
    assert (code, out) == (0, "S → D: 20 ms, loss 50%\n")


# The real one --------------------------------------------------------------------------------


@contextmanager
def server():
    """Run an iperf3 server; yield its port."""
    port = free_port()
    command = ["iperf3", "--forceflush", "-s", "-B", "127.0.0.2", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            while "listening" not in process.stdout.readline():
                pass
            yield port
        finally:
            process.kill()


@pytest.mark.parametrize("ends", [("S", "D"), ("D", "S")])
def test_a_real_server_is_measured_within_the_bytes(tmp_path, call, ends):
    """Loopback carries more than 160 Mbit/s: both runs are made, each within half of the bytes."""
    need("iperf3")
    with server() as port:
        hosts = write_hosts(tmp_path, port)
        options = ("--seconds", "2", "--bytes", "40 MB", "--from", ends[0], "--to", ends[1])
        command = ("measure", "tcp", hosts, *options, "-o", str(tmp_path / "samples"), "--json")
        code, out, _ = call(*command)
        assert code == 0, out
    (row,) = json.loads(out)["samples"]
    assert (row["from"], row["to"], row["streams"]) == (*ends, 1)
    assert row["bandwidth_bytes_per_s"] > 1e6
    assert 0 < row["bytes"] <= 20_000_000
    assert row["ended"] == "done"


def test_a_real_server_that_is_not_there_or_busy_is_said(tmp_path, call):
    need("iperf3")
    command = ("measure", "tcp", str(tmp_path / "hosts.toml"), "-o", str(tmp_path / "samples"))
    with server() as port:
        write_hosts(tmp_path, port)
        other = [
            "iperf3",
            "--forceflush",
            "-c",
            "127.0.0.2",
            "-p",
            str(port),
            "-t",
            "30",
            "-b",
            "1M",
        ]
        with subprocess.Popen(other, stdout=subprocess.PIPE, text=True) as busy:
            # It says so when it is connected.
            while "connected" not in busy.stdout.readline():
                time.sleep(0.01)
            code, out, _ = call(*command)
            busy.kill()
        assert code == 1
        assert "the server is busy running a test" in out
    code, out, _ = call(*command)
    assert code == 1
    assert "Connection refused" in out
    assert shutil.which("iperf3")


# Cycles ---------------------------------------------------------------------------------------

PING = """#!/bin/sh
echo '64 bytes from x: icmp_seq=1 ttl=64 time=20.0 ms'
echo '1 packets transmitted, 1 received, 0% packet loss, time 0ms'
"""


def test_a_cycle_measures_servers_from_the_destination(tmp_path, call, fake, monkeypatch):
    """Both ways, one server at a time; then there is a problem to be planned."""
    monkeypatch.setitem(
        TOOLS,
        "tcp",
        TOOLS["tcp"]._replace(settings_for=lambda _: TcpSettings(1, 10.0, 100_000_000)),
    )
    ping = TOOLS["ping"]._replace(settings_for=lambda _: PingSettings(1, 0.2))
    monkeypatch.setitem(TOOLS, "ping", ping)
    slow = {"bytes": 5_000_000, "seconds": 5.0, "bits_per_second": 8e6}
    log = fake(*4 * [recorded("reverse", **slow)])
    (log.parent / "ping").write_text(PING)
    (log.parent / "ping").chmod(0o755)
    hosts = write_hosts(tmp_path, more='[hosts.K]\niperf3 = "127.0.0.3:5201"\n')
    folder = ("-o", str(tmp_path / "samples"))
    code, out, err = call("measure", "cycle", hosts, *folder)
    assert (code, out) == (0, "cycle 0: 8 tests, 0 of them failed\n"), err
    rows = kept(tmp_path)
    pairs = [("D", "K"), ("D", "S"), ("K", "D"), ("S", "D")]
    for tool in ("ping", "tcp"):
        found = [(row["from"], row["to"]) for row in rows if row["tool"] == tool]
        assert sorted(found) == pairs
    assert {row["concurrency"] for row in rows} == {0}
    samples = str(tmp_path / "samples")
    problem = str(tmp_path / "problem.toml")
    held = ("--backlog", "S=5 GB", "--backlog", "K=1 GB")
    assert call("measure", "problem", samples, "--hosts", hosts, *held, "-o", problem)[0] == 0
    code, out, _ = call("plan", problem, "--json")
    assert (code, json.loads(out)["makespan_s"]) == (0, 5000.0)


def write_mixed(folder: Path, **hosts: str) -> Path:
    """Write a file of an iperf3 server S, this host D, and agents at some addresses."""
    write_private_key(folder / "operator.key", OPERATOR)
    agents = "".join(
        f'[hosts.{name}]\nurl = "https://{address}"\nfingerprint = "sha256:{i:064}"\n'
        for i, (name, address) in enumerate(hosts.items())
    )
    path = Path(write_hosts(folder, more=agents))
    text = path.read_text().replace("2 min", "1 h")
    path.write_text(text.replace("budget", 'key = "operator.key"\nbudget', 1))
    return path


def test_a_cycle_asks_each_pair_for_what_can_test_it(tmp_path, call):
    """Agents A and B test each other, S and this host D by iperf3; nobody else can meet."""
    hosts = write_mixed(tmp_path, A="127.0.0.1:1", B="127.0.0.1:2")
    options = ("-o", str(tmp_path / "samples"), "--dry-run", "--json")
    code, out, err = call("measure", "cycle", str(hosts), *options, "--tools", "ping,trace,pairs")
    assert code == 0, err
    said = json.loads(out)
    pairs = sorted((one["from"], one["to"]) for rows in said["rounds"] for one in rows)
    assert pairs == [("A", "B"), ("B", "A"), ("D", "S"), ("S", "D")]
    assert said["without_agent"] == []
    assert len(said["rounds"]) == 2
    code, _, err = call("measure", "cycle", str(hosts), *options[:2], "--dry-run")
    assert code == 0
    told = " ".join(err.split())
    assert "each (ping 560 B, tcp 100 MB)" in told
    assert "each (ping 560 B, trace" in told


@pytest.mark.parametrize("tools", ["pairs", "trace,curve"])
def test_tools_that_test_none_of_the_hosts_are_refused(tmp_path, call, tools):
    options = ("-o", str(tmp_path / "samples"), "--tools", tools)
    code, _, err = call("measure", "cycle", write_hosts(tmp_path), *options)
    assert code == 2
    assert f"tools must test some of the hosts, got {tools.replace(',', ', ')}" in err
    assert not (tmp_path / "samples").exists()


def test_without_an_end_here_servers_are_tested_by_nobody(tmp_path, call):
    hosts = write_hosts(tmp_path, here='iperf3 = "127.0.0.4:5201"')
    code, _, err = call("measure", "cycle", hosts, "-o", str(tmp_path / "samples"))
    assert code == 2
    assert "with an empty table [hosts.D]" in " ".join(err.split())


def test_a_server_beside_an_agent_is_one_machine(tmp_path, call):
    """S is where A's agent is: no lease keeps D's test of S away from B's of A."""
    hosts = write_mixed(tmp_path, A="127.0.0.2:1", B="127.0.0.3:1")
    options = ("-o", str(tmp_path / "samples"), "--tools", "tcp", "--dry-run", "--json")
    code, out, err = call("measure", "cycle", str(hosts), *options)
    assert code == 0, err
    assert [len(rows) for rows in json.loads(out)["rounds"]] == [1, 1, 1, 1]


def test_agents_that_no_test_joins_to_the_destination_are_named(tmp_path, call):
    hosts = write_mixed(tmp_path, A="127.0.0.7:1", B="127.0.0.8:1")
    options = ("-o", str(tmp_path / "samples"), "--only", "matter", "--dry-run")
    code, out, err = call("measure", "cycle", str(hosts), *options)
    assert code == 0
    assert "S → D" in out
    assert "left out, as no test that matters includes them: A, B" in " ".join(err.split())
    hosts.write_text(hosts.read_text().replace("[hosts.D]", '[hosts.D]\niperf3 = "127.0.0.9:1"'))
    code, _, err = call("measure", "cycle", str(hosts), *options)
    assert code == 2
    assert "no test leads to the destination, 'D'" in " ".join(err.split())


def test_a_row_says_that_this_host_collects_meanwhile(tmp_path, call, fake):
    fake(recorded("reverse", bytes=5_000_000, seconds=5.0, bits_per_second=8e6))
    with marked(IN_PULL):
        assert (
            call("measure", "tcp", write_hosts(tmp_path), "-o", str(tmp_path / "samples"))[0] == 0
        )
    (row,) = kept(tmp_path)
    assert row["beside_pull"] is True


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(None, False, None), (False, None, None), (None, True, True), (False, False, False)],
)
def test_what_the_kernel_does_not_tell_is_no_answer(
    tmp_path, call, fake, monkeypatch, before, after, said
):
    answers = iter((before, after))
    monkeypatch.setattr(iperf3_tests, "is_marked", lambda _: next(answers))
    fake(recorded("reverse", bytes=5_000_000, seconds=5.0, bits_per_second=8e6))
    command = ("measure", "tcp", write_hosts(tmp_path), "-o", str(tmp_path / "samples"), "--json")
    code, out, _ = call(*command)
    (row,) = json.loads(out)["samples"]
    assert (code, row["beside_pull"]) == (0, said)
