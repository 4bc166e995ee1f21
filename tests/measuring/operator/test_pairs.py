"""Pairs of agents over real sockets; ends that lie, vanish, or are not who they should be."""

from __future__ import annotations

import json
import math
import os
import stat
import threading
import time
from contextlib import closing, contextmanager

import pytest
from instances.agents import running, write_agent
from instances.measuring import OPERATOR, entry_of, measure_table, measuring, token_of
from instances.tunnels import service

from datacollect.errors import ProblemError, RefusedError
from datacollect.measuring.agent import handlers
from datacollect.measuring.agent.measure_config import measure_of
from datacollect.measuring.operator.agents import AskedAgent
from datacollect.measuring.operator.pair_tests import any_known, measure_pair
from datacollect.measuring.operator.pings import PingSettings
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.plan.host_lease import Granted
from datacollect.net.agent_entries import AgentEntry
from datacollect.net.http_asking import Asker
from datacollect.net.keys import PrivateKey
from datacollect.net.tls import client_context
from datacollect.transfer.agent.config.file import AgentConfig

SHORT = TcpSettings(streams=2, seconds=0.4, most_bytes=20_000_000)


@contextmanager
def pair(folder, sender=None, receiver=None):
    """S sends to D; keywords for their tables [measure]."""
    with (
        measuring(folder, "D", **(receiver or {})) as to,
        measuring(folder, "S", {"D": to.place}, **(sender or {})) as by,
    ):
        yield by, to


def measured(by, to, settings=SHORT, **more):
    return measure_pair(entry_of(by), entry_of(to), OPERATOR, settings, **more)


def used_bytes(agent) -> int:
    folder = agent.agent._config.file.parent
    rows = json.loads((folder / f"{agent.name}.measured").read_text())
    return sum(n_bytes for _, _, n_bytes in rows)


def test_tcp_sends_no_faster_than_the_agents_rate(tmp_path):
    """4 MB/s at most for 0.5 s, by the kernel's pacing, and both ends count the same."""
    settings = TcpSettings(streams=2, seconds=0.5, most_bytes=50_000_000)
    with pair(tmp_path, {"rate": 4_000_000}) as (by, to):
        row = measured(by, to, settings)
        assert (row["ended"], row["streams"], row["tool"]) == ("done", 2, "tcp")
        assert 0 < row["bytes"] < 4e6
        assert row["bandwidth_from_connect_bytes_per_s"] == row["bytes"] / row["duration_s"]
        assert row["bandwidth_from_connect_bytes_per_s"] < 5e6
        # What the kernel had not sent in the end is not sent afterwards.
        assert row["bytes"] * 0.99 - 10_000 < used_bytes(to) < 5e6
        assert json.loads(row["settings"])["streams"] == 2


def test_a_test_ends_with_its_bytes(tmp_path):
    with pair(tmp_path) as (by, to):
        row = measured(by, to, TcpSettings(streams=3, seconds=30.0, most_bytes=300_000))
        assert row["ended"] == "done"
        assert row["duration_s"] < 20.0
        assert used_bytes(by) == used_bytes(to) == 300_000


def test_a_window_is_what_may_be_on_its_way(tmp_path):
    """Of 20 kB at a time the sender waits for room in them; what kernels do not allow is refused.

    A buffer of 2 GB is more than net.core.wmem_max of any host.
    """
    with pair(tmp_path) as (by, to):
        row = measured(by, to, TcpSettings(1, 0.5, 100_000_000, window_bytes=20_000))
        assert row["ended"] == "done"
        assert json.loads(row["settings"])["window_bytes"] == 20_000
        row = measured(by, to, TcpSettings(1, 0.5, 100_000_000, window_bytes=2**30))
        assert "S: refuses: this host's kernel allows windows of at most" in row["ended"]
        assert measured(by, to)["ended"] == "done"


def test_hosts_are_free_again_after_a_test(tmp_path):
    with pair(tmp_path) as (by, to):
        for _ in range(2):
            assert measured(by, to, TcpSettings(1, 5.0, 10_000))["ended"] == "done"


def test_ping_says_by_what_it_measures(tmp_path, monkeypatch):
    """The system's ping where it is, which loses one of four here; else handshakes."""
    program = tmp_path / "ping"
    program.write_text(
        "#!/bin/sh\n"
        'echo "64 bytes from x: icmp_seq=1 ttl=64 time=20.0 ms"\n'
        'echo "64 bytes from x: icmp_seq=2 ttl=64 time=40.5 ms"\n'
        'echo "64 bytes from x: icmp_seq=4 ttl=64 time=30.0 ms"\n'
        'echo "4 packets transmitted, 3 received, 25% packet loss, time 3003ms"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pair(tmp_path) as (by, to):
        row = measured(by, to, PingSettings(4, 0.2))
        assert (row["rtt_s"], row["loss"], row["ended"]) == (0.03, 0.25, "done")
        assert json.loads(row["settings"])["by"] == "icmp"
        program.write_text("#!/bin/sh\necho 'ping: socket: Operation not permitted' >&2\nexit 2\n")
        row = measured(by, to, PingSettings(3, 0.2))
        assert json.loads(row["settings"])["by"] == "tcp handshake"
        assert (row["loss"], row["ended"]) == (0.0, "done")
        assert 0 < row["rtt_s"] < 1


@pytest.mark.parametrize(
    ("known", "said"), [(True, True), (False, False), (None, None), ("yes", None)]
)
def test_rows_say_whether_hosts_collected_or_that_it_is_not_known(
    tmp_path, monkeypatch, known, said
):
    """Where an agent's kernel does not show marks, "no" would be a guess."""
    monkeypatch.setattr(handlers, "is_marked", lambda _: known)
    with pair(tmp_path) as (by, to):
        assert measured(by, to, TcpSettings(1, 5.0, 10_000))["beside_pull"] is said


@pytest.mark.parametrize(
    ("answers", "whole"),
    [([False, True], True), ([None, True], True), ([None, False], None), ([False] * 2, False)],
)
def test_one_end_that_collects_is_enough_and_both_must_be_known_not_to(answers, whole):
    assert any_known(answers) is whole


def test_names_of_operators_do_not_matter(tmp_path):
    with pair(tmp_path) as (by, to):
        row = measure_pair(entry_of(by, "left"), entry_of(to, "right"), OPERATOR, SHORT)
        assert (row["from"], row["to"], row["ended"]) == ("left", "right", "done")


# Where nothing is sent -----------------------------------------------------------------------


def asked(by, to, place, tool="tcp", receiver=None):
    """Ask S for a test as an operator may who leaves the usual way: with leases, to any place."""
    receiver = receiver or to.agent.fingerprint
    with closing(AskedAgent(entry_of(by), OPERATOR)) as agent:
        agent.token_for(by.agent.fingerprint, receiver, tool, 10**6, "A" * 22 + "==")
        have_lease(agent)
        far_token = token_of(receiver, by.agent.fingerprint, receiver)
        body = {"to": place, "far_token": far_token, "streams": 1, "seconds": 0.3}
        return agent.run(tool, body | {"n": 1, "every_s": 0.2, "half_width": 0.15}, 15.0)


def have_lease(agent):
    """Ask until it is granted: a lease before ends once its agent has heard of its client's end."""
    end_s = time.monotonic() + 30.0
    while not isinstance(agent.ask_lease(1, 30.0), Granted):
        assert time.monotonic() < end_s
        time.sleep(0.05)


@contextmanager
def stranger():
    """Yield where one listens who keeps all that comes."""
    came = []

    def keep(connection):
        connection.settimeout(5.0)
        came.append(connection.recv(65_536))

    with service(keep) as place:
        yield place, came


@pytest.mark.parametrize("tool", ["tcp", "ping", "pairs"])
def test_strangers_are_not_even_called(tmp_path, tool):
    with pair(tmp_path) as (by, to), stranger() as (place, came):
        with pytest.raises(
            RefusedError, match="not one of the addresses in this agent's connect_to"
        ):
            asked(by, to, place, tool)
        assert came == []


@pytest.mark.parametrize("tool", ["tcp", "ping", "pairs"])
def test_who_does_not_show_the_certificate_gets_a_greeting_and_nothing_else(tmp_path, tool):
    """An address of connect_to behind which somebody else stands: first no agent, then another."""
    with (
        stranger() as (place, came),
        measuring(tmp_path, "D") as to,
        measuring(tmp_path, "S", {"X": place, "D": to.place}) as by,
    ):
        said = asked(by, to, place, tool)
        assert said["ended"].startswith("X: ")
        # TLS begins with a record of the greeting, and that is all.
        assert len(came) == 1
        assert came[0][0] == 22
        assert len(came[0]) < 2000
        assert not said.get("sent_bytes")
        assert not said.get("round_trips_s")
        assert not said.get("sent_packets")
        other = "sha256:" + "0" * 64
        said = asked_of_another(by, to, other)
        assert "must have the fingerprint" in said["ended"]
        assert said["sent_bytes"] == 0


@pytest.mark.parametrize("token", ["", "x\r\nX: y", "x y", "\u00e9", "x" * 9000])
def test_what_is_no_token_is_not_sent_on(tmp_path, token):
    """It would end the header's line, and begin another request at the other end."""
    with pair(tmp_path) as (by, to), closing(AskedAgent(entry_of(by), OPERATOR)) as agent:
        ends = (by.agent.fingerprint, to.agent.fingerprint)
        agent.token_for(*ends, "tcp", 10**6, "B" * 21 + "A==")
        have_lease(agent)
        body = {"to": to.place, "far_token": token, "streams": 1, "seconds": 0.3}
        with pytest.raises(RefusedError, match="to must be the address of the test's other agent"):
            agent.run("tcp", body, 15.0)


def asked_of_another(by, to, receiver):
    with closing(AskedAgent(entry_of(by), OPERATOR)) as agent:
        agent.token_for(by.agent.fingerprint, receiver, "tcp", 10**6, "B" * 21 + "A==")
        have_lease(agent)
        body = {"to": to.place, "far_token": "x", "streams": 1, "seconds": 0.3}
        return agent.run("tcp", body, 15.0)


def test_a_receiver_that_was_not_asked_takes_nothing(tmp_path):
    """A sender with a ticket of its own making, or with a good one before the lease, is refused."""
    with pair(tmp_path) as (by, to):
        said = asked(by, to, to.place)
        assert said["ended"].startswith("D: refuses: this host is not leased for the test")
        assert not (tmp_path / "D/D.measured").exists()


def test_a_stolen_ticket_of_a_test_that_was_run_is_worth_nothing(tmp_path):
    """Who has it can neither send again nor have sent again; also after both have ended anew."""
    sent = []

    class Spying(AskedAgent):
        def token_for(self, *fields):
            sent.append((self, super().token_for(*fields)))
            return sent[-1][1]

    with pair(tmp_path) as (by, to):
        from datacollect.measuring.operator import pair_tests

        original = pair_tests.AskedAgent
        pair_tests.AskedAgent = Spying
        try:
            assert measured(by, to)["ended"] == "done"
        finally:
            pair_tests.AskedAgent = original
        (_, for_sender), (_, for_receiver) = sent
        spent = used_bytes(to)
        with thief(by, for_sender) as ask:
            assert ask("POST", "lease", {"attempt": 7, "seconds": 10})[0] == 200
            body = {"to": to.place, "far_token": for_receiver, "streams": 1, "seconds": 0.2}
            assert ask("POST", "tcp", body)[0] == 403
        with thief(to, for_receiver) as ask:
            assert ask("POST", "lease", {"attempt": 7, "seconds": 10})[0] == 200
            status, why = ask("POST", "sink", {"more": "data"})
            assert (status, "has been used" in why["why"]) == (403, True)
        # Neither counts at the other end.
        with thief(to, for_sender) as ask:
            assert ask("POST", "lease", {"attempt": 8, "seconds": 10})[0] == 401
        assert used_bytes(to) == spent


@contextmanager
def thief(agent, token):
    url = f"https://{agent.place}"
    with Asker(url, client_context(), 15.0, agent.agent.fingerprint) as asker:

        def ask(method, path, body):
            data = json.dumps(body).encode()
            headers = {"Authorization": f"Bearer {token}"}
            answer = asker.ask(method, f"/measure/{path}", headers, [data], len(data))
            return answer.status, json.loads(answer.body)

        yield ask


def test_an_operator_who_is_not_named_is_refused_by_name(tmp_path):
    with pair(tmp_path) as (by, to):
        nobody = PrivateKey(b"the key of somebody else in here")
        row = measure_pair(entry_of(by), entry_of(to), nobody, SHORT)
        assert "not one of the agent's operators" in row["ended"]
        assert row["ended"].startswith(("S: refuses", "D: refuses"))


def test_caps_end_a_series_of_tests(tmp_path):
    """Of a megabyte an hour two tests of 400 kB are paid for, and no third one; then a restart."""
    settings = TcpSettings(1, 10.0, 400_000)
    with pair(tmp_path, receiver={"bytes_per_hour": 1_000_000}) as (by, to):
        rows = [measured(by, to, settings) for _ in range(3)]
        assert [row["ended"] == "done" for row in rows] == [True, True, False]
        assert "D: refuses: the test may take 400000 bytes, and 200000 of" in rows[2]["ended"]
    with pair(tmp_path, receiver={"bytes_per_hour": 1_000_000}) as (by, to):
        assert "200000 of the 1000000" in measured(by, to, settings)["ended"]


def test_an_agent_that_measures_nothing_says_so(tmp_path):
    with running(write_agent(tmp_path, "D", serve="data")) as to, measuring(tmp_path, "S") as by:
        row = measured(by, to)
        assert "D: its agent's file has no [measure]" in row["ended"]


def test_an_end_that_is_away_is_named(tmp_path):
    with pair(tmp_path) as (by, _):
        gone = AgentEntry("D", ("127.0.0.1", 1), "sha256:" + "0" * 64)
        row = measure_pair(entry_of(by), gone, OPERATOR, SHORT)
        why = "Connection refused; is its agent running"
        assert row["ended"].startswith(f"D: 127.0.0.1:1: cannot be reached: {why}")


# Ends that lie ------------------------------------------------------------------------------


def saying(tree):
    """Return a handler that answers this, whatever is asked."""

    def answer(exchange):
        while exchange.read():
            pass
        exchange.answer(200, [], json.dumps(tree).encode())

    return answer


@pytest.mark.parametrize("counted", [0, 10_000, 10**12])
def test_a_receiver_that_lies_about_bytes_is_caught_by_the_sender(tmp_path, counted):
    lie = {"/measure/received": saying({"received_bytes": counted})}
    with pair(tmp_path, receiver={"change": lie}) as (by, to):
        row = measured(by, to, TcpSettings(1, 5.0, 1_000_000))
        assert "bandwidth_bytes_per_s" not in row
        assert "one of them is wrong, and no rate is kept" in row["ended"]
        assert "D " in row["ended"]
        assert str(counted) in row["ended"]
        assert "S " in row["ended"]


def test_connections_that_were_cut_within_a_record_of_tls_are_no_lie(tmp_path):
    """Of each of eight up to 16 kB have come, and count with the last byte of their record."""
    counted = 1_000_000 - 8 * 16 * 1024
    less = {"/measure/received": saying({"received_bytes": counted})}
    with pair(tmp_path, receiver={"change": less}) as (by, to):
        row = measured(by, to, TcpSettings(8, 5.0, 1_000_000))
        assert row["ended"] == "done"


@pytest.mark.slow
def test_a_sender_that_lies_about_bytes_is_caught_by_the_receiver(tmp_path):
    told = {"ended": "done", "sent_bytes": 10**9, "curve": [[0, 0], [1, 10**9]], "facts": []}
    with pair(tmp_path, {"change": {"/measure/tcp": saying(told)}}) as (by, to):
        row = measured(by, to)
        assert "S says that 1000000000 bytes have arrived, D has counted 0" in row["ended"]
        assert "bandwidth_bytes_per_s" not in row


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"ended": "done", "sent_bytes": 1, "curve": [], "facts": []},
        {"ended": "done", "sent_bytes": 1, "curve": [[0, 0], [-1, 5]], "facts": []},
        {"ended": "done", "sent_bytes": 1, "curve": [[0, 5], [1, 4]], "facts": []},
        {"ended": "done", "sent_bytes": 1, "curve": [[0, 0], [1, math.inf]], "facts": []},
        {"ended": "done", "sent_bytes": 1, "curve": [[0, 0], [math.nan, 1]], "facts": []},
        {"ended": "done", "sent_bytes": 1, "curve": [[0, 0], [1, 1]], "facts": [{"rtt_s": "x"}]},
        {"ended": "done", "curve": [[0, 0], [1, 1]], "facts": []},
        {"ended": "done", "sent_bytes": 1, "curve": "x", "facts": 3},
    ],
)
def test_answers_that_are_none_give_no_rate(tmp_path, told):
    with pair(tmp_path, {"change": {"/measure/tcp": saying(told)}}) as (by, to):
        row = measured(by, to)
        assert row["ended"].startswith("S: ")
        assert "bandwidth_bytes_per_s" not in row


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"ended": "done", "sent": 3, "round_trips_s": [1, 2, 3, 4]},
        {"ended": "done", "sent": 10**9, "round_trips_s": [1]},
        {"ended": "done", "sent": 3, "round_trips_s": [-1]},
        {"ended": "done", "sent": 3, "round_trips_s": ["x"]},
    ],
)
def test_round_trips_that_are_none_are_not_kept(tmp_path, told):
    with pair(tmp_path, {"change": {"/measure/ping": saying(told)}}) as (by, to):
        row = measured(by, to, PingSettings(3, 0.2))
        assert "malformed report on round trips" in row["ended"]
        assert "rtt_s" not in row


# Leases --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_who_waits_is_told_and_gets_the_host_when_the_other_has_gone(tmp_path):
    """The other operator vanishes with its connection, long before its lease would have ended."""
    lines = []
    with pair(tmp_path) as (by, to):
        other = AskedAgent(entry_of(to), OPERATOR)
        other.token_for(by.agent.fingerprint, to.agent.fingerprint, "tcp", 1000, "C" * 21 + "A==")
        other.ask_lease(1, 60.0)

        def report(line):
            lines.append(line)
            other.close()

        begun_s = time.monotonic()
        assert measured(by, to, report=report)["ended"] == "done"
        assert time.monotonic() - begun_s < 40.0
        assert lines[0].startswith("D is in another test; at most ")


def test_patience_ends(tmp_path):
    with pair(tmp_path) as (by, to), closing(AskedAgent(entry_of(to), OPERATOR)) as other:
        other.token_for(by.agent.fingerprint, to.agent.fingerprint, "tcp", 1000, "C" * 21 + "A==")
        other.ask_lease(1, 60.0)
        row = measured(by, to, patience_s=0.5)
        assert "the hosts are not available" in row["ended"]


def test_a_test_ends_when_its_operator_has_gone(tmp_path):
    """The lease's connection ends, and nothing is sent any more, a minute before its time."""
    with pair(tmp_path, {"rate": 1_000_000}) as (by, to):
        sending = AskedAgent(entry_of(by), OPERATOR)
        receiving = AskedAgent(entry_of(to), OPERATOR)
        ends = (by.agent.fingerprint, to.agent.fingerprint, "tcp", 10**8, "D" * 21 + "A==")
        _, far_token = sending.token_for(*ends), receiving.token_for(*ends)
        for agent in (sending, receiving):
            agent.ask_lease(1, 65.0)
        body = {"to": to.place, "far_token": far_token, "streams": 1, "seconds": 60.0}
        said = []
        run = threading.Thread(target=lambda: said.append(sending.run("tcp", body, 70.0)))
        run.start()
        while not (tmp_path / "D/D.measured").exists():
            time.sleep(0.01)
        sending._leasing.close()
        run.join(30.0)
        assert said[0]["ended"] == "the lease ended before the test"
        sending.close()
        receiving.close()
        # Both hosts are free, and what was not sent is not counted.
        assert measured(by, to, TcpSettings(1, 5.0, 10_000))["ended"] == "done"
        assert used_bytes(by) < 50_000_000


# The agent's file ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"operators": []}, "measure.operators must be a list"),
        ({"operators": ["x"]}, r"measure.operators\[0\] must be ed25519"),
        ({"tools": ["dig"]}, r"measure.tools\[0\]"),
        ({"bytes_per_hour": 0}, "measure.bytes_per_hour must be a whole number"),
        ({"rate": 0}, "measure.rate must be a finite number"),
        ({"hours": "22"}, "measure.hours must be two hours of the day"),
        ({"hours": "24-3"}, "measure.hours must be two hours of the day"),
        ({"udp_port": 70_000}, "measure.udp_port must be a whole number"),
    ],
)
def test_wrong_tables_are_named(tmp_path, keys, why):
    path = write_agent(tmp_path, "S", more=measure_table(**keys))
    with pytest.raises(ProblemError, match=why):
        AgentConfig.from_file(path)


def test_a_table_says_all(tmp_path):
    more = measure_table(rate="80 Mbit/s", hours="22-6", bytes_per_hour="1 GB")
    measure = measure_of(AgentConfig.from_file(write_agent(tmp_path, "S", more=more)))
    assert (measure.rate_bytes_per_s, measure.hours) == (1e7, (22, 6))
    assert (measure.tools, measure.bytes_per_hour) == (("ping", "trace", "pairs", "tcp"), 10**9)
