"""``datacollect measure cycle``: what it says before anything is sent, and what it has done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from instances.measuring import OPERATOR, star, write_hosts

from datacollect.measuring.cycle.planning import plan_cycle_of
from datacollect.measuring.cycle.record import CycleRecord, write_record
from datacollect.measuring.operator.pings import PingSettings
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.operator.tools import TOOLS
from datacollect.measuring.plan.hosts_file import HostsFile
from datacollect.net.keys import write_private_key


@pytest.fixture
def hosts(tmp_path):
    """Three hosts that are not there."""
    write_private_key(tmp_path / "operator.key", OPERATOR)
    lines = ['format = "datacollect-hosts/1"', 'destination = "D"', 'key = "operator.key"']
    for i, name in enumerate("DSK"):
        lines += [f"[hosts.{name}]", f'url = "https://127.0.0.1:{i + 1}"']
        lines += [f'fingerprint = "sha256:{i:064}"']
    (tmp_path / "hosts.toml").write_text("\n".join(lines))
    return str(tmp_path / "hosts.toml")


def test_a_dry_run_says_rounds_and_costs_and_writes_nothing(hosts, tmp_path, call):
    """Three hosts meet in three rounds each way; 10 pings in 5 s, 10 s of tcp, 100 MB at most."""
    folder = tmp_path / "samples"
    options = ("-o", str(folder), "--tools", "ping,tcp", "--dry-run")
    code, out, err = call("measure", "cycle", hosts, *options)
    assert code == 0
    assert len(out.splitlines()) == 6
    assert out.splitlines()[0].startswith("round 1: ")
    assert "cycle 0: 6 pairs in 6 rounds: at most 600 MB and 2 min" in err
    assert "each (ping 560 B, tcp 100 MB)" in " ".join(err.split())
    code, out, _ = call("measure", "cycle", hosts, *options, "--only", "matter", "--json")
    said = json.loads(out)
    pairs = {(test["from"], test["to"]) for one in said["rounds"] for test in one}
    assert pairs == {("S", "D"), ("K", "D")}
    assert (said["cycle"], said["most_bytes"], said["left_out"]) == (0, 200_001_120, [])
    assert said["most_s"] == 2 * (5.0 + 10.0 + 2 * 3.0)
    assert not folder.exists()


def test_a_dry_run_says_what_comparisons_may_cost(hosts, tmp_path, call):
    """Two links alone and both at once, 4 s each, three times; nothing is known of their rates."""
    options = ("-o", str(tmp_path / "samples"), "--tools", "ping,shared", "--dry-run")
    code, _, err = call("measure", "cycle", hosts, *options)
    assert code == 0
    assert "in common: at most 1.2 GB and 1 min 03 s each, as many as" in " ".join(err.split())
    said = json.loads(call("measure", "cycle", hosts, *options, "--json")[1])
    assert said["comparison_most_bytes"] == 12 * 100_000_000
    assert said["comparison_most_s"] == 3 * 3 * (4.0 + 3.0)
    said = json.loads(
        call("measure", "cycle", hosts, *options[:-2], "ping", "--dry-run", "--json")[1]
    )
    assert (said["comparison_most_bytes"], said["comparison_most_s"]) == (None, None)


def test_a_dry_run_says_what_floods_that_plans_ask_for_may_cost(hosts, tmp_path, call):
    """30 % of six tests of 100 MB and of two at once; six floods of each host of 8 s."""
    options = ("-o", str(tmp_path / "samples"), "--tools", "tcp,flood", "--dry-run")
    code, _, err = call("measure", "cycle", hosts, *options)
    assert code == 0
    text = "more at once in a plan than was shown: at most 240 MB and 2 min 24 s in all"
    assert text in " ".join(err.split())
    said = json.loads(call("measure", "cycle", hosts, *options, "--json")[1])
    assert (said["host_floods_most_bytes"], said["host_floods_most_s"]) == (240_000_000, 144.0)
    options = (*options[:3], "tcp", "--dry-run", "--json")
    tcp = json.loads(call("measure", "cycle", hosts, *options)[1])
    assert (tcp["host_floods_most_bytes"], tcp["host_floods_most_s"]) == (None, None)


def test_with_sixty_hosts_floods_that_plans_ask_for_take_twenty_minutes_at_most(hosts):
    file = Path(hosts)
    more = "".join(
        f'[hosts.h{i}]\nurl = "https://127.0.0.1:{1000 + i}"\nfingerprint = "sha256:{99 + i:064}"\n'
        for i in range(57)
    )
    file.write_text(f"{file.read_text()}\n{more}")
    planned = plan_cycle_of(HostsFile.from_file(file), file.parent / "samples", ["tcp", "flood"])
    assert planned.host_floods.seconds == 20 * 60.0
    assert planned.host_floods.n_bytes == int(0.3 * planned.cost.n_bytes)


def test_hosts_without_agents_are_named_before_anything_is_sent(hosts, tmp_path, call):
    file = Path(hosts)
    file.write_text(file.read_text() + '\n[hosts.I]\niperf3 = "127.0.0.1:5201"\n')
    options = ("-o", str(tmp_path / "samples"), "--dry-run")
    _, out, err = call("measure", "cycle", hosts, *options)
    assert "left out, as no agent runs there: I; run one, or measure iperf3" in " ".join(
        err.split()
    )
    assert "I" not in out
    _, out, _ = call("measure", "cycle", hosts, *options, "--json")
    assert json.loads(out)["without_agent"] == ["I"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--only", "some"), "'some' is not one of 'all', 'matter'"),
        (("--tools", "ping,tpc"), "unknown tool 'tpc'; tools of a cycle are ping, trace"),
        (("--tools", "flod"), "are ping, trace, pairs, tcp, curve, flood, shared; did you mean"),
    ],
)
def test_wrong_options_are_two(hosts, tmp_path, call, options, expected):
    code, _, err = call("measure", "cycle", hosts, "-o", str(tmp_path / "samples"), *options)
    assert code == 2
    assert expected in " ".join(err.split())


@pytest.mark.slow
def test_a_cycle_says_what_it_has_done(tmp_path, call, monkeypatch):
    """E, F and S may send to D; without a budget for more only these are asked for."""
    ping = TOOLS["ping"]._replace(settings_for=lambda _: PingSettings(2, 0.2))
    monkeypatch.setitem(TOOLS, "ping", ping)
    tcp = TOOLS["tcp"]._replace(settings_for=lambda _: TcpSettings(1, 0.3, 300_000))
    monkeypatch.setitem(TOOLS, "tcp", tcp)
    with star(tmp_path) as agents:
        file = write_hosts(tmp_path, agents)
        assert HostsFile.from_file(file).destination == "D"
        options = ("-o", str(tmp_path / "samples"), "--tools", "ping", "--tools", "tcp")
        code, out, err = call("measure", "cycle", file, *options, "--only", "matter", "--json")
        assert code == 0
        said = json.loads(out)
        assert (said["cycle"], said["tests"], said["failed"], said["left_out"]) == (0, 6, 0, [])
        assert "ping: round 3 of 3 is done, 0 tests failed so far" in " ".join(err.split())
        code, out, _ = call("measure", "cycle", file, *options)
    assert code == 1
    assert out == "cycle 1: 18 tests, 6 of them failed\n"
    problem = call("measure", "problem", str(tmp_path / "samples"), "--hosts", file, "--json")
    assert len(json.loads(problem[1])["problem"]["links"]) == 6


def test_a_cycle_says_why_tests_failed(hosts, tmp_path, call):
    """Nobody is there: one line for each host that is away, with the pairs that it cost."""
    folder = ("-o", str(tmp_path / "samples"), "--tools", "ping")
    code, out, err = call("measure", "cycle", hosts, *folder)
    assert code == 1
    assert "6 of them failed" in out
    told = " ".join(err.split())
    assert "failed, ping " in told
    assert "cannot be reached" in told
    code, out, _ = call("measure", "cycle", hosts, *folder, "--json")
    failures = json.loads(out)["failures"]
    assert len(failures) == 6
    assert {one["tool"] for one in failures} == {"ping"}
    assert all("127.0.0.1" in one["ended"] for one in failures)


def test_a_cycle_that_is_another_one_says_what_becomes_of_the_last(hosts, tmp_path, call):
    samples = tmp_path / "samples"
    samples.mkdir()
    asked = {"tools": ["tcp"], "only": None, "hosts": {}, "destination": "D"}
    write_record(samples, CycleRecord(3, 1e9, asked, (), None, {}))
    options = ("-o", str(samples), "--tools", "ping", "--dry-run")
    code, _, err = call("measure", "cycle", hosts, *options)
    assert code == 0
    told = " ".join(err.split())
    assert "cycle 4: " in told
    assert "cycle 3, which had not ended, was for other tools or hosts" in told


def test_tools_that_are_none_are_refused(hosts, tmp_path, call):
    code, _, err = call("measure", "cycle", hosts, "-o", str(tmp_path / "samples"), "--tools", ",")
    assert code == 2
    assert "--tools names no tool; leave it out for ping, trace, tcp" in " ".join(err.split())
