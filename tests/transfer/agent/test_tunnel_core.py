"""Tunnels in the agent's core: who gets one, how many, for how long; no sockets and no clock."""

from __future__ import annotations

from dataclasses import replace

import pytest
from instances.agent_cores import (
    START_S,
    STRANGER,
    at,
    config_of,
    core,
    establish,
    head,
    refused,
    ticket,
    tls,
)
from instances.agents import KEY, write_agent
from instances.feeds import feed_table
from instances.tunnels import tunnel_table

from datacollect.errors import ProblemError
from datacollect.net.keys import PrivateKey
from datacollect.net.tickets import sign_ticket
from datacollect.transfer.agent.config.file import AgentConfig, TunnelConfig
from datacollect.transfer.agent.core import actions, events
from datacollect.transfer.agent.core.core import AgentCore
from datacollect.transfer.agent.core.greetings import Awaited

USER = PrivateKey(b"a user of tunnels, no collector.")
TO = {"ssh": ("127.0.0.1", 22), "rsync": ("127.0.0.1", 873)}


def agent(tmp_path, *, used=None, users=(USER.public,), **limits) -> AgentCore:
    config = replace(config_of(tmp_path), tunnel=TunnelConfig(frozenset(users), TO, **limits))
    return AgentCore(config, "1", used)


def pass_ticket(key=USER, kind="tunnel", **fields) -> str:
    one = replace(ticket(kind), issuer=key.public, **{"egress": "ssh", **fields})
    return sign_ticket(one, key)


def ask(core_: AgentCore, number: int, token: str, to: str = "ssh", s: float = 0.0):
    tls(core_, number, s)
    return core_.handle(events.TunnelAsked(at(s), number, head(token, to)))


def opened(core_: AgentCore, number: int, s: float = 0.0, **fields) -> None:
    [keep] = ask(core_, number, pass_ticket(**fields), s=s)
    assert isinstance(keep, actions.KeepNonce)
    assert core_.handle(events.NonceKept(at(s), number)) == [actions.Dial(number, "127.0.0.1", 22)]
    first, log = core_.handle(events.Dialled(at(s), number))
    assert isinstance(first, actions.Establish)
    assert (log.what, log.facts["kind"], log.facts["to"]) == ("relaying", "tunnel", "ssh")
    assert log.facts["user"] == USER.public


def ended(core_: AgentCore, s: float) -> list[str]:
    return [a.why for a in core_.handle(events.Tick(at(s))) if isinstance(a, actions.EndSession)]


def test_a_tunnel_opens_once_its_ticket_is_kept(tmp_path):
    one = agent(tmp_path, most_bytes=77)
    [keep] = ask(one, 1, pass_ticket())
    assert keep.until_s == START_S + 660
    assert one.handle(events.NonceKept(at(0), 1)) == [actions.Dial(1, "127.0.0.1", 22)]
    assert one.handle(events.Dialled(at(0), 1))[0] == actions.Establish(1, 77, Awaited.ALL)


@pytest.mark.parametrize(
    ("change", "to", "status", "why"),
    [
        ({"kind": "relay"}, "ssh", 407, "does not count"),
        ({"kind": "source"}, "ssh", 407, "does not count"),
        ({"key": KEY}, "ssh", 407, "not one of the agent's users"),
        ({"key": STRANGER}, "ssh", 407, "`users` of [tunnel]"),
        ({"audience": "R9"}, "ssh", 407, "the ticket is for agent"),
        ({"issued_s": START_S - 70, "expires_s": START_S - 10}, "ssh", 407, "expired 10 s ago"),
        ({"expires_s": START_S + 61}, "ssh", 407, "at most 60 s"),
        ({"egress": "smtp"}, "smtp", 404, "no service 'smtp'"),
        ({"egress": "127.0.0.1"}, "127.0.0.1", 404, "rsync, ssh"),
        ({"egress": "S"}, "S", 404, "no service"),  # a host of connect_to is none
        ({}, "rsync", 403, "another service"),
    ],
)
def test_tunnels_that_are_refused(tmp_path, change, to, status, why):
    token = pass_ticket(**change)
    found, text = refused(ask(agent(tmp_path), 1, token, to))
    assert found == status
    assert why in text
    assert token not in text


def test_services_are_named_to_users_alone(tmp_path):
    _, text = refused(ask(agent(tmp_path), 1, pass_ticket(STRANGER), "smtp"))
    assert "rsync" not in text


@pytest.mark.parametrize("kind", ["relay", "source"])
def test_a_tunnel_ticket_opens_nothing_else(tmp_path, kind):
    """Even where one key is both a user's and a collector's."""
    one = agent(tmp_path, users=(KEY.public,))
    token = pass_ticket(KEY, egress="S")
    if kind == "relay":
        assert one.handle(events.Accepted(at(0), 1, "a")) == []
        one.handle(events.FirstByte(at(0), 1, ord("C")))
        done = one.handle(events.HeadRead(at(0), 1, head(token, "S")))
        assert refused(done)[0] == 407
    else:
        tls(one, 1)
        headers = {"authorization": f"Bearer {token}"}
        done = one.handle(events.RequestRead(at(0), 1, "GET", "/v1/inventory", headers))
        assert done[-1].status == 401


def test_a_ticket_opens_one_tunnel_even_after_a_restart(tmp_path):
    one = agent(tmp_path)
    token = pass_ticket()
    [keep] = ask(one, 1, token)
    assert refused(ask(one, 2, token))[1].endswith("it has been used")
    after = agent(tmp_path, used={keep.nonce: keep.until_s})
    assert refused(ask(after, 1, token))[0] == 407


def test_what_cannot_be_kept_opens_no_tunnel(tmp_path):
    one = agent(tmp_path)
    ask(one, 1, pass_ticket())
    log, *rest = one.handle(events.NonceKept(at(0), 1, "disk full"))
    assert (log.what, log.facts["why"]) == ("failed", "disk full")
    assert refused(rest)[0] == 503


def test_so_many_at_a_time_of_all_users(tmp_path):
    one = agent(tmp_path, most_connections=2)
    opened(one, 1)
    opened(one, 2)
    status, text = refused(ask(one, 3, pass_ticket()))
    assert status == 429
    assert "[tunnel] allows, 2;" in text
    one.handle(events.Ended(at(1), 1, "done"))
    opened(one, 4, 1.0)
    # Who is relayed takes no place of a tunnel.
    establish(one, 5)


def test_a_service_that_does_not_answer_is_named(tmp_path):
    one = agent(tmp_path)
    ask(one, 1, pass_ticket())
    one.handle(events.NonceKept(at(0), 1))
    status, text = refused(one.handle(events.Dialled(at(1), 1, "Connection refused")))
    assert (status, text) == (502, "ssh cannot be reached: Connection refused")


def test_an_open_tunnel_stays_however_long_nothing_passes(tmp_path):
    one = agent(tmp_path)
    opened(one, 1)
    for s in (20.0, 900.0, 86_400.0):
        assert ended(one, s) == []


def test_a_half_closed_tunnel_ends_where_nothing_passes(tmp_path):
    one = agent(tmp_path, half_idle_s=300.0)
    opened(one, 1)
    one.handle(events.HalfClosed(at(1000), 1))
    assert ended(one, 1299) == []
    one.handle(events.Passed(at(1299), 1, 0, 1))
    assert ended(one, 1598) == []
    assert ended(one, 1599) == ["no data for too long"]


def test_a_relayed_connection_of_a_tunnel_stays_by_its_ticket(tmp_path):
    one = agent(tmp_path)
    establish(one, 1, stays=True)
    establish(one, 2)
    for number in (1, 2):
        one.handle(events.Passed(at(1), number, 100, 100))
    assert ended(one, 1000) == ["no data for too long"]
    assert one.sessions[1].phase.value == "relaying"


def test_a_key_that_is_gone_ends_its_tunnels_and_no_others(tmp_path):
    other = PrivateKey(b"another user of the same agent..")
    one = agent(tmp_path, users=(USER.public, other.public))
    opened(one, 1)
    ask(one, 2, pass_ticket(other))
    establish(one, 3)
    users = frozenset({other.public})
    done = one.handle(events.CollectorsRead(at(1), one.collectors, users))
    assert [a for a in done if isinstance(a, actions.EndSession)] == [
        actions.EndSession(1, "its user's key was withdrawn")
    ]
    assert refused(ask(one, 4, pass_ticket(), s=1.0))[0] == 407
    # A collector's key that is gone is no user's.
    done = one.handle(events.CollectorsRead(at(2), frozenset(), users))
    assert [a.session for a in done if isinstance(a, actions.EndSession)] == [3]


def test_an_agent_without_the_table_has_no_tunnels(tmp_path):
    one = core(tmp_path)
    tls(one)
    status, text = refused(one.handle(events.TunnelAsked(at(0), 1, head(pass_ticket(), "ssh"))))
    assert status == 404
    assert "write [tunnel] into its file" in text


def test_what_is_no_request_is_refused(tmp_path):
    one = agent(tmp_path)
    tls(one)
    raw = b"GET / HTTP/1.1\r\n\r\n"
    assert refused(one.handle(events.TunnelAsked(at(0), 1, raw)))[0] == 400


def test_a_client_that_asks_for_nothing_is_let_go_of(tmp_path):
    one = agent(tmp_path)
    tls(one)
    assert ended(one, 19) == []
    assert ended(one, 20) == ["no request in time"]


def test_a_service_whose_name_is_never_found_hangs_nobody(tmp_path):
    one = agent(tmp_path)
    ask(one, 1, pass_ticket())
    one.handle(events.NonceKept(at(0), 1))
    assert ended(one, 14) == []
    assert ended(one, 15) == ["its service does not respond"]


def test_an_agent_that_is_to_end_lets_a_tunnel_go_on_while_something_passes(tmp_path):
    one = agent(tmp_path)
    opened(one, 1)
    one.handle(events.StopAsked(at(10)))
    for s in (11, 12, 13):
        one.handle(events.Passed(at(s), 1, 1, 1))
        assert ended(one, s + 0.5) == []
    assert ended(one, 15) == ["the agent is stopping"]


# Services of the agent's own ---------------------------------------------------------------------


def with_service(tmp_path, **fields) -> AgentCore:
    return AgentCore(replace(config_of(tmp_path), services={"feed": {USER.public}}, **fields), "1")


def served(core_: AgentCore, number: int) -> None:
    [keep] = ask(core_, number, pass_ticket(egress="feed"), "feed")
    assert isinstance(keep, actions.KeepNonce)
    serve = actions.Serve(number, "feed", USER.public)
    assert core_.handle(events.NonceKept(at(0), number)) == [serve]
    assert isinstance(core_.handle(events.Dialled(at(0), number))[0], actions.Establish)


def test_a_service_of_the_agents_own_needs_no_table_of_tunnels(tmp_path):
    served(with_service(tmp_path), 1)


def test_it_counts_the_tickets_of_its_own_users(tmp_path):
    tunnels = TunnelConfig(frozenset({KEY.public}), TO, most_connections=1)
    one = with_service(tmp_path, tunnel=tunnels)
    [_, refuse] = ask(one, 1, pass_ticket(egress="feed", key=KEY), "feed")
    assert (refuse.status, "`users` of [feed]" in refuse.text) == (407, True)
    [_, refuse] = ask(one, 2, pass_ticket(), "feed")
    assert (refuse.status, refuse.text) == (403, "the ticket is for another service")
    # They take no tunnel's place.
    served(one, 3)
    [keep] = ask(one, 4, pass_ticket(key=KEY))
    assert isinstance(keep, actions.KeepNonce)


def test_a_key_that_is_withdrawn_ends_its_sessions(tmp_path):
    one = with_service(tmp_path)
    served(one, 1)
    done = one.handle(events.CollectorsRead(at(1), one.collectors, users_of={"feed": frozenset()}))
    assert [each.why for each in done if isinstance(each, actions.EndSession)] == [
        "its user's key was withdrawn"
    ]


def test_an_agent_that_ends_does_not_wait_for_them(tmp_path):
    """Whoever is served there comes again."""
    one = with_service(tmp_path)
    served(one, 1)
    done = one.handle(events.StopAsked(at(1)))
    assert actions.EndSession(1, "the agent is stopping", False) in done


def test_a_tunnel_of_its_name_is_refused(tmp_path):
    (tmp_path / "feeds").mkdir()
    path = write_agent(tmp_path, "D", more=feed_table() + "\n" + tunnel_table({"feed": "h:1"}))
    with pytest.raises(ProblemError, match=r"tunnel\.to\.feed: with the table feed"):
        AgentConfig.from_file(path)
