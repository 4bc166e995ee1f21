"""The agent's mind alone: what is asked over TLS, and by which tickets."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from instances.agent_cores import (
    START_S,
    ask,
    at,
    core,
    reading,
    source,
    status_of,
    tell,
    ticket,
    tls,
)
from instances.agents import KEY

from datacollect.net.tickets import sign_ticket
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.core import actions, events
from datacollect.transfer.agent.core.core import AgentCore


def test_a_session_is_judged_at_its_first_request_and_expires(tmp_path):
    agent = core(tmp_path)
    tls(agent)
    assert status_of(ask(agent, "/v1/inventory")) == 401
    [done] = ask(agent, "/v1/inventory", source(files=("run7/**",)))
    assert done == actions.ListFiles(1, None, 10_000, ("run7/**",))
    assert status_of(ask(agent, "/v1/inventory", s=599.9)) == 200
    assert status_of(ask(agent, "/v1/inventory", s=600.0)) == 401
    assert status_of(ask(agent, "/v1/agent", s=600.0)) == 200


@pytest.mark.parametrize("audience", ["S1", "r"])
def test_a_misrouted_source_ticket_is_refused(tmp_path, audience):
    agent = core(tmp_path)
    tls(agent)
    one = replace(ticket("source", expires_s=START_S + 600), audience=audience)
    log, answer = ask(agent, "/v1/inventory", sign_ticket(one, KEY))
    assert (answer.status, answer.last) == (401, True)
    assert log.what == "refused"


def test_a_relay_ticket_reads_nothing(tmp_path):
    agent = core(tmp_path)
    tls(agent)
    assert status_of(ask(agent, "/v1/inventory", sign_ticket(ticket(), KEY))) == 401


def test_only_files_of_the_ticket_are_sent(tmp_path):
    agent = core(tmp_path)
    tls(agent)
    token = source(files=("run7/*",))
    [send] = ask(agent, "/v1/read", token, body=reading())
    assert send.read.n_bytes == 10
    assert status_of(ask(agent, "/v1/read", body=reading(path="run8/a"))) == 403
    assert status_of(ask(agent, "/v1/confirm", body=b'{"files":[["run8/a",1,1,1]]}')) == 403
    assert status_of(ask(agent, "/v1/files/run8/a")) == 403
    [send] = ask(agent, "/v1/files/run7/a%20b", range="bytes=0-1")
    assert (send.path, send.ranges, send.with_body) == ("run7/a b", "bytes=0-1", True)


def test_bytes_are_counted_over_all_sessions_of_a_ticket(tmp_path):
    agent = core(tmp_path)
    token = source(most_bytes=25, most_sockets=2)
    for number in (1, 2):
        tls(agent, number)
        assert status_of(ask(agent, "/v1/read", token, body=reading(), number=number)) == 200
    # Ten bytes of each are promised, none is sent.
    assert status_of(ask(agent, "/v1/read", body=reading())) == 403
    agent.handle(events.Sent(at(1), 1, 0))  # it had changed: nothing was sent
    assert status_of(ask(agent, "/v1/read", body=reading())) == 200
    agent.handle(events.Sent(at(1), 1, 10))
    [send] = ask(agent, "/v1/files/run7/a.tar")
    assert send.most_bytes == 5
    agent.handle(events.Sent(at(1), 1, 5))
    assert status_of(ask(agent, "/v1/read", body=reading(n_bytes=1), number=2)) == 403


@pytest.mark.parametrize("target", ["/v1/files/run7/a.tar", "/v1/read"])
def test_what_a_broken_answer_did_not_send_is_the_tickets_again(tmp_path, target):
    """A GET promises all that is left: broken off after 4 bytes, 21 of 25 remain."""
    agent = core(tmp_path)
    token = source(most_bytes=25, most_sockets=2)
    tls(agent, 1)
    body = reading() if target == "/v1/read" else b""
    assert status_of(ask(agent, target, token, body=body)) == 200
    agent.handle(events.Ended(at(1), 1, "the connection failed", sent_bytes=4))
    tls(agent, 2)
    [send] = ask(agent, "/v1/files/run7/a.tar", token, number=2)
    assert send.most_bytes == 21


def test_a_clock_that_is_set_back_gives_no_ticket_its_bytes_anew(tmp_path):
    """All 10 bytes are sent; the ticket expires at 600 s; at 601 s the clock goes back to 599."""
    agent = core(tmp_path)
    token = source(most_bytes=10)
    tls(agent)
    assert status_of(ask(agent, "/v1/read", token, body=reading())) == 200
    agent.handle(events.Sent(at(1), 1, 10))
    agent.handle(events.Ended(at(1), 1, "done"))
    agent.handle(events.Tick(at(601)))
    tls(agent, 2)
    assert status_of(ask(agent, "/v1/read", token, body=reading(), number=2, s=599.0)) == 403


def test_connections_of_a_ticket_are_counted(tmp_path):
    agent = core(tmp_path)
    token = source(most_sockets=1)
    for number, status in ((1, 200), (2, 429)):
        tls(agent, number)
        assert status_of(ask(agent, "/v1/inventory", token, number=number)) == status
    agent.handle(events.Ended(at(1), 1, "done"))
    assert status_of(ask(agent, "/v1/inventory", token, number=2)) == 200


@pytest.mark.parametrize(
    ("token", "target", "status"),
    [
        (None, "/v1/read", 401),
        ("nonsense", "/v1/read", 401),
        (source(issued_s=START_S + 60), "/v1/confirm", 401),
        (None, "/v1/agent", 405),
        (None, "/v1/nothing", 404),
        (source(), "/v1/files/a", 405),
    ],
)
def test_no_body_is_read_before_its_head_has_been_judged(tmp_path, token, target, status):
    agent = core(tmp_path)
    tls(agent)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    *_, answer = agent.handle(events.RequestRead(at(0), 1, "POST", target, headers, 5))
    # What lies behind the head is unread: the session cannot go on.
    assert (answer.status, answer.last) == (status, True)


def test_a_body_may_have_so_many_bytes(tmp_path):
    agent = core(tmp_path)
    tls(agent)
    headers = {"authorization": f"Bearer {source()}"}
    asked = [
        events.RequestRead(at(0), 1, "POST", "/v1/read", headers, n) for n in (2**22, 2**22 + 1)
    ]
    assert agent.handle(asked[0]) == [actions.ReadBody(1, 2**22)]
    assert agent.handle(asked[1])[-1].status == 413


def test_a_ticket_that_expires_while_a_body_comes_counts_no_more(tmp_path):
    agent = core(tmp_path)
    tls(agent)
    body, headers = reading(), {"authorization": f"Bearer {source()}"}
    asked = events.RequestRead(at(599), 1, "POST", "/v1/read", headers, len(body))
    assert agent.handle(asked) == [actions.ReadBody(1, len(body))]
    assert status_of(agent.handle(events.BodyRead(at(601), 1, body))) == 401


def test_a_body_that_nobody_asked_for_is_nothing(tmp_path):
    agent = core(tmp_path)
    tls(agent)
    assert agent.handle(events.BodyRead(at(0), 1, b"{}")) == []


def test_hashes_cost_as_many_bytes_as_reading(tmp_path):
    agent = core(tmp_path)
    tls(agent)
    token = source(most_bytes=25, files=("run7/*",))
    [action] = ask(agent, "/v1/hash", token, body=reading())
    assert action == actions.HashSegments(1, action.read)
    assert status_of(ask(agent, "/v1/hash", body=reading(path="run8/a"))) == 403
    agent.handle(events.Sent(at(1), 1, 10, only_hashed=True))
    assert agent.sessions[1].down_bytes == 0
    assert status_of(ask(agent, "/v1/hash", body=reading())) == 200
    agent.handle(events.Sent(at(1), 1, 10, only_hashed=True))
    assert status_of(ask(agent, "/v1/hash", body=reading())) == 403


@pytest.mark.parametrize(("query", "detail"), [("", False), ("&detail=1", True)])
def test_detail_is_for_those_who_ask_for_it(tmp_path, query, detail):
    agent = core(tmp_path)
    tls(agent)
    [done] = ask(agent, f"/v1/inventory?after=a&most=5{query}", source())
    assert done == actions.ListFiles(1, "a", 5, None, detail)


def test_facts_tell_the_features(tmp_path):
    agent = core(tmp_path)
    tls(agent)
    [answer] = ask(agent, "/v1/agent")
    assert json.loads(answer.body)["features"] == ["detail", "reasons", "hashes", "stays", "seals"]


@pytest.mark.parametrize(
    ("method", "target", "body", "status"),
    [
        ("GET", "/", b"", 404),
        ("GET", "/v1/agent/", b"", 404),
        ("POST", "/v1/agent", b"", 405),
        ("GET", "/v1/agent", b"x", 400),
        ("GET", "/v1/read", b"", 405),
        ("DELETE", "/v1/files/a", b"", 405),
        ("GET", "/v1/files/", b"", 400),
        ("GET", "/v1/files/..%2f..%2fetc/passwd", b"", 400),
        ("GET", "/v1/files//etc/passwd", b"", 400),
        ("GET", "/v1/files/a/./b", b"", 400),
        ("GET", "/v1/files/a%00b", b"", 400),
        ("GET", "/v1/files/%ff", b"", 400),
        ("GET", "/v1/inventory?most=0", b"", 400),
        ("GET", "/v1/inventory?most=5&most=6", b"", 400),
        ("GET", "/v1/inventory?what=1", b"", 400),
        ("GET", "/v1/inventory?detail=2", b"", 400),
        ("GET", "/v1/inventory?detail=1&detail=1", b"", 400),
        ("GET", "/v1/hash", b"", 405),
        ("POST", "/v1/hash", b"[]", 400),
        ("POST", "/v1/read", b"", 400),
        ("POST", "/v1/read", b'{"segments":[["a",5,' + b"9" * 30 + b",1,0,1]]}", 400),
        ("POST", "/v1/read", b"[]", 400),
        ("POST", "/v1/read", b"[" * 9000, 400),
        ("POST", "/v1/read", b'{"segments":[["../a",1,1,1,0,1]]}', 400),
        ("POST", "/v1/read", b'{"segments":[["/etc/passwd",1,1,1,0,1]]}', 400),
        ("POST", "/v1/read", b'{"segments":[["a",5,1,1,0,6]]}', 400),
        ("POST", "/v1/read", b'{"segments":[["a",5,1,1,-1,2]]}', 400),
        ("POST", "/v1/read", b'{"segments":[["a",5,1,1,0,true]]}', 400),
        ("POST", "/v1/read", b'{"segments":[["a",5,1,1,0,1e0]]}', 400),
        ("POST", "/v1/read", b'{"segments":[["\\ud800",5,1,1,0,1]]}', 400),
        ("POST", "/v1/read", b'{"segments":[["a",99999999,1,1,0,16777217]]}', 400),
        ("POST", "/v1/read", b'{"segments":[' + b'["a",5,1,1,0,1],' * 4096 + b"[]]}", 400),
        ("POST", "/v1/read", b'{"segments":[],"x":1}', 400),
        ("POST", "/v1/confirm", b'{"files":[["a",1,1]]}', 400),
    ],
)
def test_requests_that_make_no_sense(tmp_path, method, target, body, status):
    agent = core(tmp_path)
    tls(agent)
    headers = {"authorization": f"Bearer {source()}"}
    done = tell(agent, method, target, headers, body)
    assert status_of(done) == status
    # The session may go on, unless a body lies before the next request.
    read = agent.handle(events.RequestRead(at(0), 1, method, target, headers, len(body)))
    assert done[-1].last == bool(body and not isinstance(read[0], actions.ReadBody))


def test_an_agent_without_a_folder_serves_nothing(tmp_path):
    config = AgentConfig(
        tmp_path / "R.toml",
        "R",
        ("::1", 0),
        frozenset({KEY.public}),
        None,
        {"S": ("192.0.2.1", 7443)},
        *(tmp_path, tmp_path),
        own_certificate=True,
        nonces=tmp_path,
    )
    agent = AgentCore(config, "1")
    tls(agent)
    assert status_of(ask(agent, "/v1/inventory", source())) == 404
    [answer] = ask(agent, "/v1/agent", s=5.0)
    facts = json.loads(answer.body)
    assert (facts["serves"], facts["relays_to"], facts["time_s"]) == (False, ["S"], START_S + 5)
