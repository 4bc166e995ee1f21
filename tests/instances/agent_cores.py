"""The agent's mind without a shell: a core, instants, tickets, and the usual events."""

from __future__ import annotations

from dataclasses import replace

from instances.agents import KEY

from datacollect.net.connect import connect_request
from datacollect.net.keys import PrivateKey
from datacollect.net.tickets import Ticket, sign_ticket
from datacollect.transfer.agent.config.file import AgentConfig, AgentLimits
from datacollect.transfer.agent.core import actions, events
from datacollect.transfer.agent.core.core import AgentCore
from datacollect.transfer.protocol.messages import FileEntry, Read, WireSegment, read_body

START_S = 1_000_000.0
STRANGER = PrivateKey(b"whom none of the agents here has")
FILE = FileEntry("run7/a.tar", 1000, 5, 7)


def at(s: float) -> events.ClockReading:
    """Return the instant `s` seconds after the start; its clocks differ."""
    return events.ClockReading(s, START_S + s)


def config_of(tmp_path, **limits) -> AgentConfig:
    return AgentConfig(
        file=tmp_path / "R.toml",
        name="R",
        listen=("127.0.0.1", 0),
        collectors=frozenset({KEY.public}),
        serve=tmp_path,
        connect_to={"S": ("192.0.2.1", 7443)},
        certificate=tmp_path / "c",
        key=tmp_path / "k",
        own_certificate=True,
        nonces=tmp_path / "n",
        limits=AgentLimits(**limits),
    )


def core(tmp_path, *, used=None, **limits) -> AgentCore:
    return AgentCore(config_of(tmp_path, **limits), "1", used)


def ticket(kind="relay", **fields) -> Ticket:
    fields = {"issued_s": START_S, "expires_s": START_S + 60, "most_sockets": 9, **fields}
    if kind == "relay":
        fields = {"egress": "S", "agents": ("R",), **fields}
    return Ticket(KEY.public, "R", kind, fields.pop("collection", "c1"), **fields)


def head(token: str, target: str = "S") -> bytes:
    return connect_request(target, token)


def accept(agent: AgentCore, number: int, byte: int, s: float = 0.0, address: str = "a"):
    assert agent.handle(events.Accepted(at(s), number, address)) == []
    return agent.handle(events.FirstByte(at(s), number, byte))


def ask_way(agent: AgentCore, number: int, raw: bytes, s: float = 0.0) -> list[actions.Action]:
    assert accept(agent, number, ord("C"), s) == [actions.ReadHead(number)]
    return agent.handle(events.HeadRead(at(s), number, raw))


def establish(agent: AgentCore, number: int, **fields) -> Ticket:
    one = ticket(**fields)
    [keep] = ask_way(agent, number, head(sign_ticket(one, KEY)))
    assert keep == actions.KeepNonce(number, one.nonce, one.expires_s + 600)
    dial = agent.handle(events.NonceKept(at(0), number))
    assert dial == [actions.Dial(number, "192.0.2.1", 7443)]
    first, log = agent.handle(events.Dialled(at(0), number))
    assert first == actions.Establish(number, one.most_bytes)
    assert log.what == "relaying"
    return one


def refused(done: list[actions.Action]) -> tuple[int, str]:
    [log, refuse] = done
    assert log.what == "refused"
    assert isinstance(refuse, actions.Refuse)
    return refuse.status, refuse.text


def tls(agent: AgentCore, number: int = 1, s: float = 0.0, address: str = "a") -> None:
    assert accept(agent, number, 0x16, s, address) == [actions.StartTls(number)]


def ask(agent, target, token=None, *, body=b"", number=1, s=0.0, **headers):
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return tell(agent, "POST" if body else "GET", target, headers, body, number=number, s=s)


def tell(agent, method, target, headers, body=b"", *, number=1, s=0.0):
    """Tell a request as the shell does: its head, and its body once that is to be read."""
    done = agent.handle(events.RequestRead(at(s), number, method, target, headers, len(body)))
    if done != [actions.ReadBody(number, len(body))]:
        return done
    return agent.handle(events.BodyRead(at(s), number, body))


def status_of(done: list[actions.Action]) -> int:
    answer = done[-1]
    return answer.status if isinstance(answer, actions.Respond) else 200


def source(**fields) -> str:
    return sign_ticket(ticket("source", **{"expires_s": START_S + 600, **fields}), KEY)


def reading(offset: int = 0, n_bytes: int = 10, path: str = FILE.path) -> bytes:
    return read_body(Read((WireSegment(replace(FILE, path=path), offset, n_bytes),)))
