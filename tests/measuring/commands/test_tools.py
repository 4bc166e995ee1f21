"""``datacollect measure ping``, ``trace``, ``pairs``, ``tcp``: what they ask and keep; kills."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from instances.agents import write_agent
from instances.installed_packages import without_package
from instances.measuring import OPERATOR, measure_table
from instances.ports import free_port

from datacollect.commands.main import run
from datacollect.measurement.sample_store import read_parts, write_part
from datacollect.measuring.operator.packet_pairs import PAIRS
from datacollect.net.keys import PrivateKey, write_private_key

HOSTS = """
format = "datacollect-hosts/1"
destination = "D"
key = "operator.key"
budget = { bytes = "1 GB", time = "2 min" }
"""
DATACOLLECT = (sys.executable, "-m", "datacollect")


@contextmanager
def started(path: Path):
    """Run an agent's process; yield it with what it says when it is ready."""
    command = [*DATACOLLECT, "agent", str(path), "--json"]
    with (
        path.with_suffix(".log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def write_hosts(folder: Path, hosts: dict[str, str]) -> str:
    if not (folder / "operator.key").exists():
        write_private_key(folder / "operator.key", OPERATOR)
    tables = "".join(f"[hosts.{name}]\n{entry}" for name, entry in hosts.items())
    (folder / "hosts.toml").write_text(HOSTS + tables)
    return str(folder / "hosts.toml")


def nowhere(number: int) -> str:
    """Return the entry of an agent that is not there."""
    return f'url = "https://127.0.0.1:{number}"\nfingerprint = "sha256:{number:064}"\n'


def entry(facts: dict) -> str:
    return f'url = "{facts["url"]}"\nfingerprint = "{facts["fingerprint"]}"\n'


def agent_file(folder: Path, name: str, connect_to=None, **keys) -> Path:
    (folder / name).mkdir(exist_ok=True)
    return write_agent(folder / name, name, connect_to=connect_to, more=measure_table(**keys))


@pytest.fixture
def agents(tmp_path):
    """S sends to D, at 5 MB/s: processes, the file of both, and how to start D anew."""
    with ExitStack() as held:
        receiver, at_d = held.enter_context(started(agent_file(tmp_path, "D")))
        place = at_d["url"].removeprefix("https://")
        path = agent_file(tmp_path, "S", {"D": place}, rate=5_000_000)
        sender, at_s = held.enter_context(started(path))
        hosts = write_hosts(tmp_path, {"S": entry(at_s), "D": entry(at_d)})
        yield sender, receiver, hosts


def rows(folder) -> list[dict]:
    found = read_parts(Path(folder))
    assert not found.damaged
    return found.frame.to_dict("records")


def test_a_test_is_announced_run_and_kept(agents, tmp_path, capsys):
    _, _, hosts = agents
    folder = str(tmp_path / "samples")
    assert run(["measure", "tcp", hosts, "--seconds", "0.4", "-o", folder]) == 0
    captured = capsys.readouterr()
    assert "1 test, one after the other: at most 100 MB and 0.4 s" in captured.err
    assert captured.out.startswith("S → D: ")
    assert "limited by: " in captured.out
    assert run(["measure", "ping", hosts, "--count", "2", "--every", "0.2", "-o", folder]) == 0
    kept = {row["tool"]: row for row in rows(folder)}
    assert kept["tcp"]["ended"] == kept["ping"]["ended"] == "done"
    assert 0 < kept["tcp"]["bandwidth_bytes_per_s"] < 8e6
    assert 0 <= kept["ping"]["rtt_s"] < 10
    log = (tmp_path / "S/S.log").read_text()
    assert [json.loads(line)["what"] for line in log.splitlines() if '"to"' in line] == [
        *("tcp test", "ping test")
    ]


def test_a_trace_is_a_line_and_a_row(tmp_path, capsys, monkeypatch):
    """By a program that knows no ports, whose packets may take several paths."""
    program = tmp_path / "traceroute"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in *sport*) exit 1;; esac\n'
        'echo "traceroute to 127.0.0.1 (127.0.0.1), 30 hops max"\n'
        'echo " 1  9.9.9.1  0.1 ms 9.9.9.2  0.1 ms"\n'
        'echo " 2  * *"\n'
        'echo " 3  127.0.0.1  0.1 ms  0.1 ms"\n'
    )
    program.chmod(0o755)
    (tmp_path / "scamper").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with ExitStack() as held:
        _, at_d = held.enter_context(started(agent_file(tmp_path, "D")))
        place = at_d["url"].removeprefix("https://")
        _, at_s = held.enter_context(started(agent_file(tmp_path, "S", {"D": place})))
        hosts = write_hosts(tmp_path, {"S": entry(at_s), "D": entry(at_d)})
        assert run(["measure", "trace", hosts, "-o", str(tmp_path / "samples")]) == 0
    captured = capsys.readouterr()
    assert "1 test, one after the other: at most 3.6 kB and 30 s" in captured.err
    assert captured.out == "S → D: 9.9.9.1 or 9.9.9.2 *\n"
    [row] = rows(tmp_path / "samples")
    assert json.loads(row["routers"]) == [["9.9.9.1", "9.9.9.2"], None]


def test_a_trace_without_jc_asks_nobody(tmp_path, capsys, monkeypatch):
    without_package(monkeypatch, "jc")
    hosts = write_hosts(tmp_path, {"S": nowhere(1), "D": nowhere(2)})
    assert run(["measure", "trace", hosts]) == 2
    assert "[measure]" in capsys.readouterr().err


def test_a_test_that_fails_is_a_row_and_the_exit_code(agents, tmp_path, capsys):
    """The other way round nobody has allowed it: D's file has no connect_to."""
    _, _, hosts = agents
    command = ["measure", "tcp", hosts, "--from", "D", "--to", "S", "--json"]
    assert run([*command, "-o", str(tmp_path / "samples")]) == 1
    (row,) = json.loads(capsys.readouterr().out)["samples"]
    assert "D: refuses: " in row["ended"]
    assert "connect_to" in row["ended"]
    assert [each["ended"] for each in rows(tmp_path / "samples")] == [row["ended"]]


def test_a_dry_run_asks_nobody(tmp_path, capsys):
    hosts = write_hosts(tmp_path, {"S": nowhere(1), "R": nowhere(2), "D": nowhere(3)})
    assert run(["measure", "tcp", hosts, "--dry-run"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "S → D\nR → D\n"
    assert "2 tests, one after the other: at most 200 MB and 20 s" in captured.err
    assert run(["measure", "ping", hosts, "--from", "S", "--dry-run", "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree == {"tests": [{"from": "S", "to": "D"}], "most_bytes": 560, "most_s": 10.0}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["tcp", "--bytes", "2 GB"], "budget.bytes is 1e+09, and the tests may take 2e+09"),
        (
            ["tcp", "--seconds", "50", "--from", "S", "--from", "R", "--from", "Q"],
            "budget.time is 120",
        ),
        (["ping", "--count", "100", "--every", "2"], "a test takes at most 60 s, got 200 s"),
        (["tcp", "--from", "X"], "no host is called 'X'; there are S, D"),
        (["tcp", "--from", "D"], "no pair of hosts is left"),
        (["tcp", "--to", "S"], "'S' is an iperf3 server"),
        (["tcp", "--bytes", "much"], "--bytes must be a whole number of bytes"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anybody_is_asked(tmp_path, capsys, options, why):
    other = 'iperf3 = "s.example:5201"\n' if "--to" in options else nowhere(1)
    more = {name: nowhere(i) for i, name in enumerate("RQ", 3)} if "R" in options else {}
    hosts = write_hosts(tmp_path, {"S": other, "D": nowhere(2), **more})
    assert run(["measure", options[0], hosts, *options[1:], "--dry-run"]) == 2
    assert why in capsys.readouterr().err


def test_operators_are_read_again_on_a_signal(agents, tmp_path, capsys):
    """Another key is written into D's file; until D is told, it is nobody's."""
    _, receiver, hosts = agents
    path, command = tmp_path / "D/D.toml", ["measure", "ping", hosts, "--count", "1", "--every"]
    command += ["0.2", "-o", str(tmp_path / "samples")]
    text, other = path.read_text(), PrivateKey(b"the key of somebody else in here")
    path.write_text(text.replace(OPERATOR.public, other.public))
    assert run(command) == 0
    receiver.send_signal(signal.SIGHUP)
    until_s = time.monotonic() + 120.0
    while run(command) == 0:
        assert time.monotonic() < until_s
    said = capsys.readouterr().out
    assert (
        "D: refuses: the ticket does not count: the ticket's issuer is not one of the agent's"
        in said
    )
    path.write_text(text)
    receiver.send_signal(signal.SIGHUP)
    while run(command) != 0:
        assert time.monotonic() < until_s


# Interrupted at work -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (0, "nothing was measured, and the same command starts again"),
        (1, "what was measured is in {folder}; the same command measures all again"),
    ],
)
def test_tests_that_are_interrupted_say_where_the_rows_are(
    tmp_path, capsys, monkeypatch, done, said
):
    """Of two tests of ping `done` are over; a row of another day is there in either case."""
    hosts = write_hosts(tmp_path, {"S": nowhere(1), "R": nowhere(2), "D": nowhere(3)})
    folder, over = tmp_path / "samples", []
    folder.mkdir()
    row = {"to": "D", "time_s": 1.7e9, "tool": "ping", "ended": "done"}
    write_part(folder, "before", [{**row, "from": "S"}])

    def measured(pair, *_):
        if len(over) == done:
            raise KeyboardInterrupt
        over.append(pair)
        yield {**row, "from": pair[0].name, "rtt_s": 0.02, "loss": 0.0}

    monkeypatch.setattr("datacollect.measuring.operator.ends.measure_ends", measured)
    with pytest.raises(SystemExit):
        run(["measure", "ping", hosts, "-o", str(folder)])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"interrupted; {said.format(folder=folder)}"
    assert len(rows(folder)) == 1 + done


@pytest.mark.parametrize("done", [0, 1])
def test_a_cycle_that_is_interrupted_says_that_it_goes_on(tmp_path, capsys, monkeypatch, done):
    hosts = write_hosts(tmp_path, {"S": nowhere(1), "D": nowhere(2)})
    folder = tmp_path / "samples"
    folder.mkdir()

    def measured(*_, **__):
        row = {"from": "S", "to": "D", "time_s": 1.7e9, "tool": "ping", "ended": "done"}
        for i in range(done):
            write_part(folder, str(i), [row])
        raise KeyboardInterrupt

    monkeypatch.setattr("datacollect.measuring.cycle.measure_cycle.measure_cycle", measured)
    with pytest.raises(SystemExit):
        run(["measure", "cycle", hosts, "-o", str(folder)])
    said = f"what was measured is in {folder}; the same command continues"
    assert (f"interrupted; {said}\n" in capsys.readouterr().err) == (done == 1)


# Killed at work ------------------------------------------------------------------------------


def begun(folder: Path, name: str) -> None:
    """Return when a test is under way at a host."""
    until_s = time.monotonic() + 120.0
    while not (folder / name / f"{name}.measured").exists():
        assert time.monotonic() < until_s
        time.sleep(0.01)


def measuring_process(hosts: str, folder: Path):
    command = [*DATACOLLECT, "measure", "tcp", hosts, "--seconds", "50", "--bytes", "500 MB"]
    return subprocess.Popen(
        [*command, "-o", str(folder), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_an_operator_that_is_killed_leaves_both_hosts_free(agents, tmp_path):
    """Its test had 50 s to go: no lease outlives its holder."""
    _, _, hosts = agents
    folder = tmp_path / "samples"
    with measuring_process(hosts, folder) as operator:
        begun(tmp_path, "D")
        operator.send_signal(signal.SIGKILL)
        operator.communicate()
    command = ["measure", "tcp", hosts, "--seconds", "0.2", "--patience", "20", "-o", str(folder)]
    assert run(command) == 0
    assert [row["ended"] for row in rows(folder)] == ["done"]
    # What the killed one had reserved and not sent was given back.
    used = json.loads((tmp_path / "S/S.measured").read_text())
    assert sum(n_bytes for _, _, n_bytes in used) < 300_000_000


def paired(folder: Path, held: ExitStack):
    """S sends pairs to D at 20 kB/s: processes, and the file of both."""
    path = agent_file(folder, "D", udp_port=free_port())
    receiver, at_d = held.enter_context(started(path))
    place = at_d["url"].removeprefix("https://")
    path = agent_file(folder, "S", {"D": place}, rate=20_000)
    sender, at_s = held.enter_context(started(path))
    return sender, receiver, write_hosts(folder, {"S": entry(at_s), "D": entry(at_d)})


@pytest.mark.slow
def test_pairs_are_announced_refused_and_kept(tmp_path, capsys):
    """Loopback is faster than pairs can tell, or their sender."""
    folder = str(tmp_path / "samples")
    with ExitStack() as held:
        _, _, hosts = paired(tmp_path, held)
        assert run(["measure", "pairs", hosts, "--within", "0.2", "-o", folder]) == 1
    captured = capsys.readouterr()
    assert "1 test, one after the other: at most 3 MB and 30 s" in captured.err
    assert captured.out.startswith("S → D: pairs ")
    instead = ("test with connections instead", "use `datacollect measure tcp`")
    assert any(text in captured.out for text in instead)
    (row,) = rows(folder)
    assert json.loads(row["settings"])["half_width"] == 0.2
    assert row["loss"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["D", "S"])
def test_an_end_that_is_killed_while_pairs_are_sent_is_named(tmp_path, killed):
    """60 packets take some 4 s; who is killed is named, and its bytes stay counted."""
    with ExitStack() as held:
        sender, receiver, hosts = paired(tmp_path, held)
        command = [*DATACOLLECT, "measure", "pairs", hosts, "-o", str(tmp_path / "samples")]
        with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE) as operator:
            for name in "DS":
                begun(tmp_path, name)
            (receiver if killed == "D" else sender).kill()
            out, _ = operator.communicate(timeout=60)
            assert operator.returncode == 1
    (row,) = json.loads(out)["samples"]
    assert f"{killed}: " in row["ended"]
    assert row.get("capacity_bytes_per_s") is None
    used = json.loads((tmp_path / killed / f"{killed}.measured").read_text())
    assert [n_bytes for _, _, n_bytes in used] == [3_000_000]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            {
                "capacity_bytes_per_s": 625_000.0,
                "bandwidth_bytes_per_s": 250_000.0,
                "bandwidth_low_bytes_per_s": 200_000.0,
                "bandwidth_high_bytes_per_s": 300_000.0,
            },
            "S → D: capacity 5 Mbit/s, available 2 Mbit/s (1.6 Mbit/s to 2.4 Mbit/s)",
        ),
        ({"capacity_bytes_per_s": 25e6, "no": "too fast"}, "S → D: capacity 200 Mbit/s; too fast"),
        (
            {"capacity_bytes_per_s": 625_000.0, "ended": "the sender is too busy"},
            "S → D: capacity 5 Mbit/s; the sender is too busy",
        ),
    ],
)
def test_what_pairs_tell_is_a_line(found, said):
    settings = json.dumps({"no_bandwidth": found.pop("no")} if "no" in found else {})
    row = {"from": "S", "to": "D", "ended": "done", "settings": settings, **found}
    assert PAIRS.line(row) == said


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["D", "S"])
def test_an_end_that_is_killed_is_named_and_its_bytes_stay_counted(agents, tmp_path, killed):
    sender, receiver, hosts = agents
    folder = tmp_path / "samples"
    with measuring_process(hosts, folder) as operator:
        for name in "DS":
            begun(tmp_path, name)
        (receiver if killed == "D" else sender).kill()
        out, _ = operator.communicate(timeout=60)
        assert operator.returncode == 1
    (row,) = json.loads(out)["samples"]
    assert f"{killed}: " in row["ended"]
    assert len(rows(folder)) == 1
    # Who is killed gives nothing back, and a restarted agent knows it.
    used = json.loads((tmp_path / killed / f"{killed}.measured").read_text())
    assert [n_bytes for _, _, n_bytes in used] == [500_000_000]


@pytest.mark.slow
def test_an_agent_that_is_killed_in_a_cycle_costs_its_own_tests_only(tmp_path):
    """S and E send to D, one after the other, 100 MB at 50 MB/s; S is killed while it sends."""
    folder = tmp_path / "samples"
    with ExitStack() as held:
        _, at_d = held.enter_context(started(agent_file(tmp_path, "D")))
        to_d = {"D": at_d["url"].removeprefix("https://")}
        files = {name: agent_file(tmp_path, name, to_d, rate=50_000_000) for name in "SE"}
        killed, at_s = held.enter_context(started(files["S"]))
        _, at_e = held.enter_context(started(files["E"]))
        others = {"D": entry(at_d), "E": entry(at_e)}
        hosts = write_hosts(tmp_path, {**others, "S": entry(at_s)})
        options = ["--only", "matter", "--tools", "tcp", "-o", str(folder)]
        command = [*DATACOLLECT, "measure", "cycle", hosts, *options]
        with subprocess.Popen(command) as operator:
            begun(tmp_path, "S")
            killed.kill()
            assert operator.wait(timeout=120) == 1
        ended = {row["from"]: row["ended"] for row in rows(folder)}
        assert ended.keys() == {"S", "E"}
        assert ended["E"] == "done"
        assert "S: " in ended["S"]
        # No host is held, and who comes back counts what the killed one may have taken.
        _, at_s = held.enter_context(started(files["S"]))
        hosts = write_hosts(tmp_path, {**others, "S": entry(at_s)})
        assert run(["measure", "cycle", hosts, *options]) == 0
    assert len(rows(folder)) == 4
    used = json.loads((tmp_path / "S/S.measured").read_text())
    killed_bytes, _ = (n_bytes for _, _, n_bytes in used)
    assert killed_bytes == 100_000_000
