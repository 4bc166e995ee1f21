"""The agent's core alone: relaying, limits, its end; no sockets and no clock."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from instances.agent_cores import (
    START_S,
    STRANGER,
    accept,
    ask,
    ask_way,
    at,
    core,
    establish,
    head,
    refused,
    source,
    status_of,
    ticket,
    tls,
)
from instances.agents import KEY

from datacollect.net.connect import connect_request
from datacollect.net.tickets import sign_ticket
from datacollect.transfer.agent.core import actions, events
from datacollect.transfer.agent.core.admission import REFUSED_AT_ONCE, REFUSED_FROM_ONE
from datacollect.transfer.agent.core.core import GIVING_WAY_AT_ONCE, STRANGER_IDLE_S
from datacollect.transfer.agent.core.sessions import Phase


def test_a_way_opens_once_its_ticket_is_kept(tmp_path):
    establish(core(tmp_path), 1, most_bytes=77)


def test_a_ticket_opens_one_way_only(tmp_path):
    agent = core(tmp_path)
    one = establish(agent, 1)
    status, text = refused(ask_way(agent, 2, head(sign_ticket(one, KEY)), 1.0))
    assert (status, text) == (407, "the ticket does not count: it has been used")
    # Nor where the first connection has long ended, or was never opened.
    agent.handle(events.Ended(at(2), 1, "done"))
    assert refused(ask_way(agent, 3, head(sign_ticket(one, KEY)), 3.0))[0] == 407


def test_tickets_used_before_a_restart_stay_used(tmp_path):
    one = ticket()
    agent = core(tmp_path, used={one.nonce: one.expires_s + 600})
    assert refused(ask_way(agent, 1, head(sign_ticket(one, KEY))))[0] == 407


def test_used_tickets_are_forgotten_once_no_clock_could_revive_them(tmp_path):
    agent = core(tmp_path)
    one = establish(agent, 1)
    for s, kept in ((61.0, True), (659.0, True), (661.0, False)):
        agent.handle(events.Tick(at(s)))
        assert (one.nonce in agent.used_until_s) is kept


def test_what_cannot_be_kept_is_not_acted_upon(tmp_path):
    agent = core(tmp_path)
    ask_way(agent, 1, head(sign_ticket(ticket(), KEY)))
    log, *rest = agent.handle(events.NonceKept(at(0), 1, "disk full"))
    assert (log.what, log.facts["why"]) == ("failed", "disk full")
    assert refused(rest)[0] == 503


@pytest.mark.parametrize(
    ("change", "target", "status", "why"),
    [
        ({"audience": "R9"}, "S", 407, "the ticket is for agent"),
        ({"issued_s": START_S - 70, "expires_s": START_S - 10}, "S", 407, "expired 10 s ago"),
        ({"issued_s": START_S + 7, "expires_s": START_S + 20}, "S", 407, "s in the future"),
        ({"expires_s": START_S + 61}, "S", 407, "at most 60 s"),
        ({"agents": ("R", "R1", "R")}, "S", 407, "loop"),
        ({"agents": ("R1",)}, "S", 407, "chain"),
        ({"egress": "R1", "agents": ("R1", "R")}, "R1", 407, "loop"),
        ({"egress": "X"}, "X", 403, "write the host into `connect_to` of the agent's file"),
        ({}, "X", 403, "may not connect"),
        ({"egress": "X"}, "S", 403, "another next host"),
        ({}, "192.0.2.2", 403, "may not connect"),
        ({"egress": "192.0.2.1"}, "192.0.2.1", 403, "may not connect"),  # port 443, not 7443
    ],
)
def test_ways_that_are_refused(tmp_path, change, target, status, why):
    token = sign_ticket(replace(ticket(), **change), KEY)
    got, text = refused(ask_way(core(tmp_path), 1, head(token, target)))
    assert got == status
    assert why in text
    assert token not in text


def test_an_address_counts_where_it_is_the_very_one_of_the_file(tmp_path):
    raw = connect_request("192.0.2.1", sign_ticket(ticket(), KEY), 7443)
    [keep] = ask_way(core(tmp_path), 1, raw)
    assert isinstance(keep, actions.KeepNonce)


@pytest.mark.parametrize("kind", ["relay", "source"])
def test_strangers_and_tickets_of_another_kind_open_no_way(tmp_path, kind):
    other = ticket(kind, issued_s=START_S)
    tokens = [sign_ticket(other, STRANGER)]
    tokens += [sign_ticket(replace(other, issuer=STRANGER.public), STRANGER)]
    tokens += [sign_ticket(other, KEY)] if kind == "source" else []
    for number, token in enumerate(tokens):
        status, text = refused(ask_way(core(tmp_path), number, head(token)))
        assert status == 407
        assert "does not count" in text


def test_sockets_of_one_collection_are_counted(tmp_path):
    agent = core(tmp_path)
    establish(agent, 1, most_sockets=2)
    establish(agent, 2, most_sockets=2)
    one = sign_ticket(ticket(most_sockets=2), KEY)
    assert refused(ask_way(agent, 3, head(one)))[0] == 429
    establish(agent, 4, most_sockets=3)
    agent.handle(events.Ended(at(1), 1, "done"))
    agent.handle(events.Ended(at(1), 4, "done"))
    establish(agent, 5, most_sockets=2)


def test_a_way_ends_when_its_bytes_are_spent(tmp_path):
    agent = core(tmp_path)
    establish(agent, 1, most_bytes=10)
    assert agent.handle(events.Passed(at(1), 1, 4, 5)) == []
    [close] = agent.handle(events.Passed(at(2), 1, 0, 1, spent=True))
    assert close == actions.EndSession(1, "its ticket's bytes are spent", True)
    [log] = agent.handle(events.Ended(at(3), 1, "its ticket's bytes are spent"))
    assert (log.facts["up_bytes"], log.facts["down_bytes"]) == (4, 6)


@pytest.mark.parametrize(
    ("failure", "status"), [("Connection refused", 502), (None, 504)], ids=["refused", "silent"]
)
def test_a_next_host_that_cannot_be_reached(tmp_path, failure, status):
    agent = core(tmp_path)
    ask_way(agent, 1, head(sign_ticket(ticket(), KEY)))
    agent.handle(events.NonceKept(at(0), 1))
    assert agent.handle(events.Tick(at(9.9))) == []
    done = agent.handle(events.Dialled(at(5), 1, failure) if failure else events.Tick(at(10.0)))
    assert refused(done)[0] == status
    # What comes too late changes nothing.
    assert agent.handle(events.Dialled(at(11), 1)) == []


def test_silent_and_slow_clients_are_let_go(tmp_path):
    agent = core(tmp_path, head_s=20.0, idle_s=100.0)
    agent.handle(events.Accepted(at(0), 1, "a"))  # says nothing
    accept(agent, 2, ord("G"))  # never ends its head
    tls(agent, 3)  # never shows a ticket
    tls(agent, 4)
    ask(agent, "/v1/inventory", source(), number=4)
    agent.handle(events.Sent(at(1), 4))
    establish(agent, 5)
    agent.handle(events.Passed(at(1), 5, 500, 0))
    establish(agent, 6)  # never greets
    assert agent.handle(events.Tick(at(19.9))) == []
    done = [a for a in agent.handle(events.Tick(at(20.0))) if not isinstance(a, actions.WriteLog)]
    why = "no request in time"
    assert done == [
        actions.EndSession(1, why),
        actions.Refuse(2, 408, "the request took too long"),
        actions.EndSession(3, why),
        actions.EndSession(6, "no greeting from the client in time"),
    ]
    agent.handle(events.Passed(at(90), 5, 1, 0))
    assert agent.handle(events.Tick(at(101))) == [actions.EndSession(4, "no data for too long")]
    assert agent.handle(events.Tick(at(190))) == [actions.EndSession(5, "no data for too long")]


@pytest.mark.parametrize("port", [443, 7443])
def test_a_name_comes_with_the_usual_port_or_the_one_of_the_file(tmp_path, port):
    raw = connect_request("S", sign_ticket(ticket(), KEY), port)
    [keep] = ask_way(core(tmp_path), 1, raw)
    assert isinstance(keep, actions.KeepNonce)


@pytest.mark.parametrize("port", [22, 80, 7442, 65535])
def test_a_name_with_another_port_is_refused(tmp_path, port):
    raw = connect_request("S", sign_ticket(ticket(), KEY), port)
    status, text = refused(ask_way(core(tmp_path), 1, raw))
    assert (status, f"at port 7443, got {port}" in text) == (403, True)


def accepted(agent, number: int, address: str) -> str | None:
    """Return why a connection is closed when it is accepted; None: it may stay so far."""
    done = agent.handle(events.Accepted(at(0), number, address))
    return done[-1].why if done else None


def at_work(agent, number: int, address: str, s: float = 0.0) -> None:
    """Have a connection whose request a handler answers, as a bistro does."""
    tls(agent, number, address=address)
    agent.handle(events.HandedOver(at(s), number))


def test_connections_are_counted_before_they_say_anything(tmp_path):
    """Five in all: thousands of silent ones from one address leave others their room."""
    agent = core(tmp_path, sessions=5, sessions_per_address=3, new_per_s=1e6)
    for number in range(3):
        at_work(agent, number, "192.0.2.1")
    why = [None] * 3 + [accepted(agent, number, "192.0.2.1") for number in range(3, 2000)]
    # Three are inside, some more would hear a reason, all others are closed at once.
    assert why[: 3 + REFUSED_FROM_ONE] == [None] * (3 + REFUSED_FROM_ONE)
    assert set(why[3 + REFUSED_FROM_ONE :]) == {"too many connections from there"}
    for number in range(3 + REFUSED_FROM_ONE, 2000):
        agent.handle(events.Ended(at(0), number, ""))
    for number, address in ((2000, "192.0.2.2"), (2001, "192.0.2.3")):
        at_work(agent, number, address)
    # Now it is full for all.
    [*_, close] = accept(agent, 2002, 0x16, address="192.0.2.4")
    assert (close.session, close.why) == (2002, "too many connections")
    assert accept(agent, 2003, ord("C"), address="192.0.2.4") == [actions.ReadHead(2003)]
    assert agent.handle(events.HeadRead(at(0), 2003, head("x")))[-1].status == 503
    agent.handle(events.Ended(at(0), 2001, ""))
    tls(agent, 2004, address="192.0.2.5")


def test_those_who_hear_a_reason_are_few(tmp_path):
    agent = core(tmp_path, sessions=1, sessions_per_address=1, new_per_s=1e6)
    at_work(agent, 0, "192.0.2.1")
    why = [accepted(agent, i + 1, f"198.51.{i // 200}.{i % 200}") for i in range(500)]
    assert why[:REFUSED_AT_ONCE] == [None] * REFUSED_AT_ONCE
    assert set(why[REFUSED_AT_ONCE:]) == {"too many connections"}
    agent.handle(events.Ended(at(0), 1, ""))
    assert accepted(agent, 501, "203.0.113.1") is None


def closed_for(agent, number: int, address: str, s: float = 0.0) -> int | None:
    """Return which connection is closed for one that is accepted; None: it is refused, or none."""
    done = agent.handle(events.Accepted(at(s), number, address))
    ended = [each.session for each in done if isinstance(each, actions.EndSession)]
    return ended[0] if ended and ended != [number] else None


def test_an_idle_connection_gives_its_place_to_a_new_one_the_oldest_first(tmp_path):
    """Also one that was answered, and waits; none that is being answered, or has a ticket."""
    agent = core(tmp_path, sessions=4, sessions_per_address=4, new_per_s=1e6)
    at_work(agent, 1, "192.0.2.1")
    tls(agent, 2, address="192.0.2.1")
    ask(agent, "/v1/inventory", source(), number=2)
    at_work(agent, 3, "192.0.2.1", 1.0)
    agent.handle(events.Sent(at(2), 3, 0))
    assert accepted(agent, 4, "192.0.2.1") is None
    assert closed_for(agent, 5, "192.0.2.2", 3.0) == 4
    assert closed_for(agent, 6, "192.0.2.2", 3.0) == 3
    for number in (5, 6):
        agent.handle(events.FirstByte(at(3), number, 0x16))
        agent.handle(events.HandedOver(at(3), number))
    # Their places were given away once, whenever they end.
    for number in (3, 4):
        agent.handle(events.Ended(at(4), number, ""))
    assert closed_for(agent, 7, "192.0.2.2", 4.0) is None
    assert agent.sessions[7].refused_for == "too many connections"
    agent.handle(events.Ended(at(4), 1, ""))
    assert accepted(agent, 8, "192.0.2.1") is None
    assert agent.sessions[8].refused_for is None


def test_a_crowd_behind_one_address_has_the_time_to_ask(tmp_path):
    """A second: who has come this instant does not give way to the next one from there."""
    agent = core(tmp_path, sessions=9, sessions_per_address=1, new_per_s=1e6)
    assert accepted(agent, 1, "192.0.2.1") is None
    assert closed_for(agent, 2, "192.0.2.1", 0.9) is None
    agent.handle(events.Ended(at(0.9), 2, ""))
    assert closed_for(agent, 3, "192.0.2.1", 1.0) == 1


def test_whoever_has_most_idle_connections_loses_them_first(tmp_path):
    """1000 places, taken by two strangers who say nothing; 500 people behind one address come."""
    agent = core(tmp_path, sessions=1000, sessions_per_address=600, new_per_s=1e6)
    assert [accepted(agent, i, f"192.0.2.{i % 2}") for i in range(999)] == [None] * 999
    assert accepted(agent, 999, "203.0.113.9") is None
    for number in range(1000, 1500):
        closed = closed_for(agent, number, "198.51.100.7")
        assert closed is not None
        assert agent.sessions[closed].origin.startswith("192.0.2.")
        agent.handle(events.Ended(at(0), closed, ""))
        agent.handle(events.FirstByte(at(0), number, 0x16))
        agent.handle(events.HandedOver(at(0), number))
    assert agent.sessions[999].phase is not Phase.ENDING


def test_whoever_promises_a_body_and_sends_none_gives_way_as_well(tmp_path):
    agent = core(tmp_path, sessions=2, sessions_per_address=2, new_per_s=1e6)
    for number in (1, 2):
        at_work(agent, number, "192.0.2.1")
    agent.handle(events.Passed(at(15), 2, 100, 0))
    assert closed_for(agent, 3, "192.0.2.2", 19.9) is None
    agent.handle(events.Ended(at(19.9), 3, ""))
    assert closed_for(agent, 4, "192.0.2.2", 20.0) == 1


def test_whoever_sends_a_byte_now_and_then_gives_way_where_nothing_speaks_for_him(tmp_path):
    """He grows no younger by it; once all has come, he holds his place."""
    agent = core(tmp_path, sessions=2, sessions_per_address=2, new_per_s=1e6)
    for number in (1, 2):
        at_work(agent, number, f"192.0.2.{number}")
        agent.handle(events.PlaceHeld(at(0), number, False))
        agent.handle(events.Passed(at(5), number, 1, 0))
    agent.handle(events.PlaceHeld(at(5), 1, True))
    assert closed_for(agent, 3, "192.0.2.3", 5.0) == 2
    # The next request holds it again from its beginning.
    agent.handle(events.PlaceHeld(at(5), 1, False))
    agent.handle(events.Sent(at(5), 1, 0))
    agent.handle(events.HandedOver(at(6), 1))
    agent.handle(events.Ended(at(6), 2, ""))
    agent.handle(events.Ended(at(6), 3, ""))
    at_work(agent, 4, "192.0.2.4", 6.0)
    assert closed_for(agent, 5, "192.0.2.5", 8.0) is None


def test_those_that_give_way_and_do_not_end_are_few(tmp_path):
    agent = core(tmp_path, sessions=500, sessions_per_address=500, new_per_s=1e6)
    assert [accepted(agent, i, "192.0.2.1") for i in range(500)] == [None] * 500
    closed = [closed_for(agent, 500 + i, "192.0.2.2") for i in range(200)]
    assert None not in closed[:GIVING_WAY_AT_ONCE]
    assert {*closed[GIVING_WAY_AT_ONCE:]} == {None}
    agent.handle(events.Ended(at(0), closed[0], ""))
    assert closed_for(agent, 900, "192.0.2.3") is not None


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "::ffff:192.0.2.2"),
        ("fe80::1%eth0", "fe80::2%eth1", "fe80:0:0:1::1"),
    ],
)
def test_addresses_of_one_host_count_as_one(tmp_path, one, same, other):
    agent = core(tmp_path, sessions=3, sessions_per_address=1)
    at_work(agent, 1, one)
    log, close = accept(agent, 2, 0x16, address=same)
    assert (log.facts["from"], close.why) == (same, "too many connections from there")
    tls(agent, 3, address=other)


def test_new_connections_from_one_address_are_limited_in_rate(tmp_path):
    agent = core(tmp_path, new_per_s=2.0)
    closed = 0
    for number in range(50):  # within a second
        done = agent.handle(events.Accepted(at(number / 50), number, "a"))
        closed += any(isinstance(action, actions.EndSession) for action in done)
        agent.handle(events.Ended(at(number / 50), number, ""))
    assert closed == 50 - 20 - 1  # ten seconds' worth at once, and what a second adds but a bit
    assert agent.handle(events.Accepted(at(1), 99, "b")) == []


def test_strangers_cannot_fill_the_log(tmp_path):
    agent = core(tmp_path)
    logs = []
    for number in range(1000):
        logs += [a for a in ask_way(agent, number, b"x\r\n\r\n") if isinstance(a, actions.WriteLog)]
        agent.handle(events.Ended(at(0), number, ""))
    assert len(logs) == 200
    [log, _] = ask_way(agent, 1000, b"x\r\n\r\n", 1.0)
    assert log.facts["not_logged_before"] == 800


def test_what_strangers_send_over_tls_cannot_fill_the_log_either(tmp_path):
    """Nor may they by whatever this host has no room for, as threads."""
    for event in (
        lambda number: events.Malformed(at(0), number, 400, "the request is malformed"),
        lambda number: events.Ended(at(0), number, "no thread is available", is_failure=True),
    ):
        agent = core(tmp_path, new_per_s=1e6)
        logs = []
        for number in range(1000):
            tls(agent, number)
            logs += agent.handle(event(number))
            agent.handle(events.Ended(at(0), number, ""))
        assert len(logs) == 200


def test_a_session_that_this_host_could_not_carry_is_logged(tmp_path):
    agent = core(tmp_path)
    tls(agent)
    [log] = agent.handle(events.Ended(at(0), 1, "no thread is available", is_failure=True))
    assert (log.what, log.facts["why"]) == ("failed", "no thread is available")


def test_an_answer_that_moves_is_not_idle_however_long_it_takes(tmp_path):
    """A large file over a slow line: nothing else is reported for hours."""
    agent = core(tmp_path, idle_s=900.0)
    tls(agent)
    ask(agent, "/v1/files/run7/a.tar", source(expires_s=START_S + 80_000))
    for s in range(100, 20_000, 500):
        agent.handle(events.Passed(at(s), 1, 0, 1))
        assert agent.handle(events.Tick(at(s + 499))) == []
    last_s = 19_600.0
    [close] = agent.handle(events.Tick(at(last_s + 900)))
    assert close == actions.EndSession(1, "no data for too long")


def test_whoever_drips_has_one_time_for_all(tmp_path):
    """A first byte after 15 s of 20 buys no other 20, neither for a head nor for a greeting."""
    agent = core(tmp_path, head_s=20.0)
    for number, byte in ((1, ord("C")), (2, 0x16)):
        agent.handle(events.Accepted(at(0), number, "a"))
        agent.handle(events.FirstByte(at(15), number, byte))
    assert agent.handle(events.Tick(at(19.9))) == []
    done = [a for a in agent.handle(events.Tick(at(20.0))) if not isinstance(a, actions.WriteLog)]
    assert [type(action) for action in done] == [actions.Refuse, actions.EndSession]


def test_withdrawn_keys_end_their_sessions_only(tmp_path):
    agent = core(tmp_path)
    agent.collectors |= {STRANGER.public}
    establish(agent, 1)
    tls(agent, 2)
    theirs = replace(ticket("source", expires_s=START_S + 600), issuer=STRANGER.public)
    assert status_of(ask(agent, "/v1/inventory", sign_ticket(theirs, STRANGER), number=2)) == 200
    log, close = agent.handle(events.CollectorsRead(at(1), frozenset({KEY.public})))
    assert log.facts == {"n": 1, "withdrawn": [STRANGER.public]}
    assert close == actions.EndSession(2, "its collector's key was withdrawn")


def test_it_ends_after_what_is_under_way(tmp_path):
    agent = core(tmp_path, drain_s=60.0)
    establish(agent, 1)
    for number in (2, 3):
        tls(agent, number)
        ask(agent, "/v1/inventory", source(), number=number)
    agent.handle(events.Sent(at(1), 3))
    agent.handle(events.Passed(at(5), 1, 1, 1))
    stop, _, close = agent.handle(events.StopAsked(at(5)))
    assert stop == actions.StopListening()
    assert close == actions.EndSession(3, "the agent is stopping", False)  # it waits for nothing
    agent.handle(events.Ended(at(5), 3, ""))
    assert agent.handle(events.Tick(at(5.5))) == []
    assert agent.handle(events.Sent(at(5.6), 2)) == [
        actions.EndSession(2, "the agent is stopping", False)
    ]
    agent.handle(events.Ended(at(5.7), 2, ""))
    # Nothing has been relayed for a second.
    assert agent.handle(events.Tick(at(6.0))) == [
        actions.EndSession(1, "the agent is stopping", False)
    ]
    *_, last = agent.handle(events.Ended(at(6.1), 1, ""))
    assert last == actions.Exit()


def test_it_does_not_wait_for_ever_and_not_at_all_if_told_again(tmp_path):
    for event, reset in ((events.Tick(at(65.0)), True), (events.StopAsked(at(6.0)), True)):
        agent = core(tmp_path, drain_s=60.0)
        tls(agent)
        ask(agent, "/v1/inventory", source())
        agent.handle(events.StopAsked(at(5)))
        assert agent.handle(event) == [actions.EndSession(1, "the agent is stopping", reset)]


@pytest.mark.parametrize("is_told_again", [False, True])
def test_it_does_not_wait_for_sessions_that_hang(tmp_path, is_told_again):
    """A thread that waits for a disk that is gone notices nothing, and never ends."""
    agent = core(tmp_path, drain_s=60.0)
    tls(agent)
    ask(agent, "/v1/inventory", source())
    agent.handle(events.StopAsked(at(5)))
    told_s = 10.0 if is_told_again else 65.0
    told = events.StopAsked(at(told_s)) if is_told_again else events.Tick(at(told_s))
    assert agent.handle(told) == [actions.EndSession(1, "the agent is stopping", True)]
    assert agent.handle(events.Tick(at(told_s + 4.9))) == []
    log, last = agent.handle(events.Tick(at(told_s + 5.0)))
    assert (log.what, last) == ("failed", actions.Exit())
    assert log.facts == {"why": "1 sessions do not end; the agent stops without waiting for them"}
    assert actions.Exit() not in agent.handle(events.Ended(at(80), 1, ""))


def test_a_copy_goes_its_own_way(tmp_path):
    agent = core(tmp_path)
    one = establish(agent, 1)
    other = copy.deepcopy(agent)
    other.handle(events.Ended(at(1), 1, ""))
    assert (len(agent.sessions), len(other.sessions)) == (1, 0)
    assert refused(ask_way(other, 2, head(sign_ticket(one, KEY))))[0] == 407
    assert 2 not in agent.sessions


def test_a_stranger_whom_a_handler_served_holds_no_place_for_long(tmp_path):
    agent = core(tmp_path, head_s=20.0, idle_s=900.0)
    tls(agent)
    agent.handle(events.HandedOver(at(1), 1))
    assert agent.handle(events.Tick(at(500))) == []  # it is being answered
    agent.handle(events.Sent(at(501), 1))
    assert agent.handle(events.Tick(at(501 + STRANGER_IDLE_S - 1))) == []
    [end] = agent.handle(events.Tick(at(501 + STRANGER_IDLE_S)))
    assert isinstance(end, actions.EndSession)
