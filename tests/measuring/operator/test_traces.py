"""Traces between agents over real sockets, by fake programs: what is run, and what is believed."""

from __future__ import annotations

import json
import stat
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from instances.measuring import OPERATOR, entry_of, measuring, token_of

from datacollect.errors import ProblemError, RefusedError
from datacollect.measuring.operator.agents import AskedAgent
from datacollect.measuring.operator.pair_tests import measure_pair
from datacollect.measuring.operator.traces import TraceSettings

HEADER = "traceroute to 127.0.0.1 (127.0.0.1), 30 hops max, 60 byte packets"
ROUTE = f"{HEADER}\n 1  9.9.9.1  0.1 ms  0.1 ms\n 2  9.9.9.2  0.1 ms 9.9.9.3  0.1 ms\n"
ARRIVED = f"{ROUTE} 3  127.0.0.1  0.2 ms  0.2 ms"
HOPS = [{"addr": "9.9.9.1", "probe_ttl": 1}, {"addr": "127.0.0.1", "probe_ttl": 3}]
OF_SCAMPER = json.dumps(
    {"type": "trace", "hop_count": 3, "hops": HOPS}, separators=(",", ":")
).replace('"trace",', '"trace", ')


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put programs where agents look first; what they are called with is written down."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def put(name, script):
        path = folder / name
        path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {tmp_path / name}.calls\n{script}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    # Those of this machine are out of the way.
    for name in ("scamper", "traceroute"):
        put(name, f"echo '{name}: not permitted' >&2; exit 1")
    return put


@pytest.fixture
def pair(tmp_path):
    with (
        measuring(tmp_path, "D") as to,
        measuring(tmp_path, "S", {"D": to.place}) as by,
    ):
        yield by, to


def saying(text):
    return f"cat <<'END'\n{text}\nEND"


def traced(by, to, settings=None):
    return measure_pair(entry_of(by), entry_of(to), OPERATOR, settings or TraceSettings())


def calls(tmp_path, name):
    return (tmp_path / f"{name}.calls").read_text().splitlines()


def test_scamper_traces_where_it_is_permitted(program, pair, tmp_path):
    program("scamper", saying(f'{{"type":"cycle-start"}}\n{OF_SCAMPER}\n{{"type":"cycle-stop"}}'))
    row = traced(*pair)
    assert (row["ended"], row["tool"]) == ("done", "trace")
    assert json.loads(row["routers"]) == ["9.9.9.1", None]
    assert json.loads(row["settings"]) == {"hops": 30, "seconds": 30.0, "by": "scamper"}
    assert not (tmp_path / "traceroute.calls").exists()
    # To the address where the other end has shown its certificate, over one path.
    [call] = calls(tmp_path, "scamper")
    assert call.endswith("-i 127.0.0.1")
    assert "trace -P udp-paris -s 40123 -d 33434 " in call


def test_else_traceroute_keeps_to_one_path(program, pair, tmp_path):
    program("traceroute", saying(ARRIVED))
    row = traced(*pair)
    assert (row["ended"], json.loads(row["routers"])) == ("done", ["9.9.9.1", "9.9.9.2"])
    assert json.loads(row["settings"])["by"] == "traceroute"
    [call] = calls(tmp_path, "traceroute")
    assert "--sport=40123" in call
    assert "-p 33434" in call
    # Numbers alone: nobody along the way chooses the names that are shown.
    assert call.startswith("-n ")


def test_where_it_cannot_all_that_answer_at_a_hop_are_kept_apart(program, pair, tmp_path):
    """A traceroute of few options, like BusyBox's."""
    program("traceroute", f'case "$*" in *sport*) exit 1;; esac\n{saying(ARRIVED)}')
    row = traced(*pair)
    assert json.loads(row["routers"]) == [["9.9.9.1"], ["9.9.9.2", "9.9.9.3"]]
    assert json.loads(row["settings"])["by"] == "traceroute, many flows"


def test_where_nothing_is_permitted_each_program_is_named(program, pair):
    row = traced(*pair)
    assert row["ended"].startswith(
        "no program on this host can trace: scamper: fails: scamper: not"
    )
    assert "traceroute: fails: traceroute: not permitted" in row["ended"]
    assert "routers" not in row


def test_where_nothing_is_installed_each_program_is_named(program, pair, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    row = traced(*pair)
    assert "scamper: scamper is not installed; traceroute: traceroute is not" in row["ended"]


def test_what_was_there_when_the_time_was_over_counts(program, pair):
    program("traceroute", f"{saying(ROUTE)}\nexec sleep 100")
    row = traced(*pair, TraceSettings(seconds=1.0))
    assert (row["ended"], json.loads(row["routers"])) == ("done", ["9.9.9.1", "9.9.9.2", None])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scamper", "traceroute"])
def test_a_program_that_hangs_is_ended(program, pair, name):
    program(name, "exec sleep 100")
    row = traced(*pair, TraceSettings(seconds=0.5))
    assert row["ended"] == f"{name} printed nothing in time"


@pytest.mark.parametrize(
    "text",
    [
        HEADER,
        f"{HEADER}\n 1  999.9.9.9  0.1 ms",
        f"{HEADER}\n 1  {'1.' * 2000}  0.1 ms",
        f"{HEADER}\n 77  9.9.9.9  0.1 ms",
    ],
)
def test_output_that_is_none_names_the_agent_and_gives_no_route(program, pair, text):
    program("traceroute", saying(text))
    row = traced(*pair)
    assert row["ended"].startswith("S: its answer is not a trace: ")
    assert "routers" not in row


def lying(tree):
    def answer(exchange):
        while exchange.read():
            pass
        exchange.answer(200, [], json.dumps(tree).encode())

    return answer


GOOD = {"ended": "done", "by": "traceroute", "address": "127.0.0.1", "text": ARRIVED}


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"ended": "done"},
        {**GOOD, "text": 7},
        {**GOOD, "text": ARRIVED + "\n" * 100_000},
        {**GOOD, "address": None},
        {**GOOD, "address": "D"},
        {**GOOD, "by": "guesswork"},
        {**GOOD, "by": ["scamper"]},
        {**GOOD, "by": "scamper"},
    ],
)
def test_an_agent_that_says_what_no_trace_says_is_named(tmp_path, told):
    with (
        measuring(tmp_path, "D") as to,
        measuring(tmp_path, "S", {"D": to.place}, {"/measure/trace": lying(told)}) as by,
    ):
        row = traced(by, to)
        assert "routers" not in row
        assert row["ended"] != "done"


def test_a_reason_is_shown_without_what_steers_terminals(tmp_path):
    told = {"/measure/trace": lying({"ended": "\x1b[2Jgone"})}
    with (
        measuring(tmp_path, "D") as to,
        measuring(tmp_path, "S", {"D": to.place}, told) as by,
    ):
        assert "\x1b" not in traced(by, to)["ended"]


# Where nothing is sent -----------------------------------------------------------------------


@contextmanager
def leased(by, to):
    ends = (by.agent.fingerprint, to.agent.fingerprint)
    with closing(AskedAgent(entry_of(by), OPERATOR)) as agent:
        agent.token_for(*ends, "trace", 10**5, "A" * 22 + "==")
        agent.ask_lease(1, 30.0)
        yield agent, {"far_token": token_of(ends[1], *ends), "hops": 3, "seconds": 1.0}


@pytest.mark.parametrize("place", ["8.8.8.8:53", "localhost:1", "-j:1", "$(touch x):1"])
def test_nobody_is_traced_to_who_is_not_in_connect_to(program, pair, tmp_path, place):
    with leased(*pair) as (agent, body), pytest.raises((RefusedError, ProblemError)):
        agent.run("trace", {"to": place, **body}, 15.0)
    assert not (tmp_path / "traceroute.calls").exists()


def test_nor_to_who_does_not_show_the_certificate(program, tmp_path):
    with (
        measuring(tmp_path, "D") as to,
        measuring(tmp_path, "X") as other,
        measuring(tmp_path, "S", {"D": other.place}) as by,
    ):
        moved = replace(entry_of(to), address=other.address)
        row = measure_pair(entry_of(by), moved, OPERATOR, TraceSettings())
        assert "fingerprint" in row["ended"]
    assert not (tmp_path / "traceroute.calls").exists()


@pytest.mark.parametrize(("key", "value"), [("hops", 0), ("hops", 1000), ("seconds", 1e9)])
def test_limits_are_the_agents(program, pair, tmp_path, key, value):
    _, to = pair
    with leased(*pair) as (agent, body), pytest.raises(RefusedError, match=f"{key} must be"):
        agent.run("trace", {"to": to.place, **body, key: value}, 15.0)


def test_bytes_count_as_those_of_other_tests(program, pair, tmp_path):
    program("traceroute", saying(ARRIVED))
    traced(*pair, TraceSettings(hops=10))
    [(_, _, n_bytes)] = json.loads((tmp_path / "S/S.measured").read_text())
    assert n_bytes == 10 * 2 * 60
