"""An agent's core among clients of all kinds, by seed: honest ones, thieves, a clock that jumps.

The world knows what each ticket was made for, and judges what the core has done by that alone:
it never reads a ticket itself.
"""

from __future__ import annotations

import random
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from datacollect.net.connect import connect_request
from datacollect.net.keys import PrivateKey
from datacollect.net.tickets import RELAY, SOURCE, TUNNEL, Ticket, sign_ticket
from datacollect.transfer.agent.config.file import AgentConfig, AgentLimits, TunnelConfig
from datacollect.transfer.agent.core import actions, events
from datacollect.transfer.agent.core.core import AgentCore
from datacollect.transfer.protocol.messages import FileEntry, Read, WireSegment, read_body

NAME, NEXT, OTHER = "R1", "S1", "S2"
OURS, WITHDRAWN, STRANGER = (PrivateKey(bytes([i]) * 32) for i in (1, 2, 3))
FILES = ("run7/a.bin", "other/b.bin")
OF_TIME = ("expired", "future")
# Services of the agent's file, and how many tunnels it lets be open.
SERVICES = {"ssh": ("127.0.0.1", 22), "rsync": ("127.0.0.1", 873)}
MOST_TUNNELS, TUNNEL_BYTES, HALF_IDLE_S = 3, 5000, 300.0
# The clock may be set back by so much and no ticket lives again.
MOST_BACK_S = 600.0


# An agent among few clients takes a third of the time.
FEW_STEPS = 20


class Wrong(AssertionError):
    """The agent has done what it must not, or not what it must."""


@dataclass
class Made:
    """A ticket, and what it was made for."""

    token: str = field(repr=False)
    ticket: Ticket
    key: PrivateKey
    flaw: str | None
    n_dialled: int = 0
    bytes_allowed: int = 0


class SimulatedAgent:
    """One agent and its clients."""

    def __init__(self, seed: int) -> None:
        self.seed, self.draws = seed, random.Random(f"agent {seed}")
        # What was added later draws for itself: seeds that once failed stay what they were.
        self.draws_of_bodies = random.Random(f"bodies {seed}")
        self.draws_of_tunnels = random.Random(f"tunnels {seed}")
        self.half_closed_s: dict[int, float] = {}
        self.monotonic_s, self.offset_s, self.most_offset_s = 0.0, 1.7e9, 1.7e9
        self.kept: dict[str, float] = {}
        self.made: list[Made] = []
        self.sessions: dict[int, Made | None] = {}
        self.promised: dict[int, tuple[Made, int]] = {}  # bytes of the answer under way
        self.n_sessions = 0
        self.collectors = frozenset({OURS.public, WITHDRAWN.public})
        self.core = self._new_core()
        self.did: Counter[str] = Counter()

    def run(self, n_steps: int = 60) -> None:
        """Let things happen."""
        steps = (
            *[self._relay_client] * 5,
            *[self._source_client] * 4,
            self._garbage,
            self._pass_time,
            self._jump,
            self._tick,
            self._end_one,
            self._restart,
        )
        for _ in range(n_steps):
            self.draws.choice(steps)()
            if self.draws_of_tunnels.random() < 0.3:
                self._tunnel_client()
        if self.draws.random() < 0.3:
            self._withdraw()
        self._stop()

    # Time ------------------------------------------------------------------------------------

    @property
    def now(self) -> events.ClockReading:
        return events.ClockReading(self.monotonic_s, self.offset_s + self.monotonic_s)

    def _pass_time(self) -> None:
        self.monotonic_s += self.draws.choice((0.1, 1.0, 5.0, 30.0, 59.0, 61.0))

    def _jump(self) -> None:
        self.offset_s += self.draws.choice((-500.0, -60.0, 60.0, 3600.0))
        self.most_offset_s = max(self.most_offset_s, self.offset_s)
        self.offset_s = max(self.offset_s, self.most_offset_s - MOST_BACK_S)

    def _tick(self) -> None:
        self._tell(events.Tick(self.now))

    def _restart(self) -> None:
        """The process is gone and comes back with what it had on disk."""
        self.sessions.clear()
        self.promised.clear()
        self.half_closed_s.clear()
        self.did["restarts"] += 1
        self.core = self._new_core()

    def _new_core(self) -> AgentCore:
        config = AgentConfig(
            file=Path("agent.toml"),
            name=NAME,
            listen=("10.0.0.1", 7443),
            collectors=self.collectors,
            serve=Path("data"),
            connect_to={NEXT: ("10.0.0.2", 7443), OTHER: ("10.0.0.3", 7443)},
            certificate=Path("cert.pem"),
            key=Path("key.pem"),
            own_certificate=True,
            nonces=Path("nonces"),
            limits=replace(AgentLimits(), new_per_s=1e6),
            tunnel=TunnelConfig(self.collectors, SERVICES, MOST_TUNNELS, TUNNEL_BYTES, HALF_IDLE_S),
        )
        return AgentCore(config, "1", dict(self.kept))

    # Clients ---------------------------------------------------------------------------------

    def _ticket(self, kind: str, draws: random.Random | None = None) -> Made:
        """Make a ticket, good or with one flaw; or take one that was made before."""
        draws, now_s = draws or self.draws, self.now.unix_s
        old = [made for made in self.made if made.ticket.kind == kind]
        if old and draws.random() < 0.35:
            return draws.choice(old)
        life_s = draws.choice((10.0, 60.0))
        ticket = Ticket(
            OURS.public,
            NAME,
            kind,
            "c1",
            issued_s=now_s,
            expires_s=now_s + life_s,
            egress={RELAY: NEXT, TUNNEL: "ssh"}.get(kind),
            agents=(NAME,) if kind == RELAY else (),
            files=("run7/*",) if kind == SOURCE else None,
            most_bytes=draws.choice((None, 100, 250)) if kind == SOURCE else None,
            most_sockets=draws.choice((1, 2)),
            nonce=b64encode(len(self.made).to_bytes(16, "big")).decode(),
        )
        key = draws.choice((OURS, WITHDRAWN))
        ticket = replace(ticket, issuer=key.public)
        flaw = draws.choice((None, None, *_FLAWS))
        if flaw is not None:
            ticket, key = _FLAWS[flaw](ticket, key)
        if flaw in OF_TIME:  # what its times say then decides
            flaw = None
        signed = sign_ticket(replace(ticket, kind=kind), key)
        if flaw == "bits":
            at = draws.randrange(len("v4.public."), len(signed))
            other = draws.choice([c for c in "ABab01" if c != signed[at]])
            signed = signed[:at] + other + signed[at + 1 :]
        made = Made(signed, ticket, key, flaw)
        self.made.append(made)
        return made

    def _accept(self) -> int:
        self.n_sessions += 1
        self.sessions[self.n_sessions] = None
        self._tell(events.Accepted(self.now, self.n_sessions, "10.9.9.9"))
        return self.n_sessions

    def _relay_client(self) -> None:
        made = self._ticket(self.draws.choice((RELAY, RELAY, RELAY, SOURCE)))
        wanted = self.draws.choice((NEXT, NEXT, NEXT, OTHER, "S9"))
        number = self._accept()
        self._tell(events.FirstByte(self.now, number, ord("C")))
        if self.draws.random() < 0.2:
            self._pass_time()
        found = self._tell(events.HeadRead(self.now, number, connect_request(wanted, made.token)))
        good = self._is_good(made, RELAY) and wanted == NEXT == made.ticket.egress
        good = good and made.ticket.nonce not in self.kept
        keeps = [a for a in found if isinstance(a, actions.KeepNonce)]
        if any(isinstance(a, actions.Refuse) and a.status == 429 for a in found):
            good = False  # others of the same collection are open
        if bool(keeps) != good:
            raise Wrong(f"seed {self.seed}: {made} for {wanted}: {found}")
        if not keeps:
            self._require_refusal(found, number)
            return
        self.did["relayed"] += 1
        self.kept[made.ticket.nonce] = keeps[0].until_s
        if self.draws.random() < 0.2:  # killed before it could dial
            self._restart()
            return
        found = self._tell(events.NonceKept(self.now, number))
        dials = [a for a in found if isinstance(a, actions.Dial)]
        made.n_dialled += len(dials)
        if [(d.host, d.port) for d in dials] != [("10.0.0.2", 7443)] or made.n_dialled > 1:
            raise Wrong(f"seed {self.seed}: {made.n_dialled} uses of a relay ticket: {dials}")
        self.sessions[number] = made
        self._tell(events.Dialled(self.now, number))

    def _tunnel_client(self) -> None:
        draws = self.draws_of_tunnels
        made = self._ticket(draws.choice((TUNNEL, TUNNEL, TUNNEL, RELAY, SOURCE)), draws)
        wanted = draws.choice(("ssh", "ssh", "ssh", "rsync", "smtp", NEXT))
        number = self._accept()
        self._tell(events.FirstByte(self.now, number, 0x16))
        asked = connect_request(wanted, made.token)
        n_open = sum(
            other is not None and other.ticket.kind == TUNNEL for other in self.sessions.values()
        )
        found = self._tell(events.TunnelAsked(self.now, number, asked))
        good = self._is_good(made, TUNNEL) and wanted == "ssh" == made.ticket.egress
        good = good and made.ticket.nonce not in self.kept and n_open < MOST_TUNNELS
        keeps = [a for a in found if isinstance(a, actions.KeepNonce)]
        if bool(keeps) != good:
            raise Wrong(f"seed {self.seed}: tunnel {made} for {wanted}, {n_open} open: {found}")
        if not keeps:
            self._require_refusal(found, number)
            return
        self.did["tunnels"] += 1
        self.kept[made.ticket.nonce] = keeps[0].until_s
        if draws.random() < 0.1:  # killed before it could connect
            self._restart()
            return
        found = self._tell(events.NonceKept(self.now, number))
        dials = [a for a in found if isinstance(a, actions.Dial)]
        made.n_dialled += len(dials)
        if [(d.host, d.port) for d in dials] != [SERVICES["ssh"]] or made.n_dialled > 1:
            raise Wrong(f"seed {self.seed}: {made.n_dialled} uses of a tunnel ticket: {dials}")
        self.sessions[number] = made
        opened = self._tell(events.Dialled(self.now, number))[0]
        if not isinstance(opened, actions.Establish) or opened.most_bytes is None:
            raise Wrong(f"seed {self.seed}: a tunnel without a limit: {opened}")
        if opened.most_bytes > TUNNEL_BYTES:
            raise Wrong(f"seed {self.seed}: a tunnel of {opened.most_bytes} bytes")
        if draws.random() < 0.5:
            self._tell(events.HalfClosed(self.now, number))
            self.half_closed_s[number] = self.monotonic_s
        self._pass_long()

    def _pass_long(self) -> None:
        """Let so much time pass now and then that half-closed tunnels end, and no others."""
        draws = self.draws_of_tunnels
        if draws.random() < 0.2:
            self.monotonic_s += draws.choice((100.0, 299.0, 301.0))
            self._tick()
            for number, since_s in self.half_closed_s.items():
                is_late = self.monotonic_s - since_s >= HALF_IDLE_S
                if number in self.sessions and is_late:
                    raise Wrong(f"seed {self.seed}: a half-closed tunnel stays: {number}")

    def _source_client(self) -> None:
        made = self._ticket(self.draws.choice((SOURCE, SOURCE, SOURCE, RELAY)))
        number = self._accept()
        self._tell(events.FirstByte(self.now, number, 0x16))
        for _ in range(self.draws.randint(1, 3)):
            if not self._ask(number, made):
                return

    def _ask(self, number: int, made: Made) -> bool:
        """Ask for bytes by a read, or a whole file; whether the session goes on."""
        draws, path = self.draws, self.draws.choice((FILES[0], *FILES))
        n_bytes = draws.choice((10, 60, 120))
        headers = {"authorization": f"Bearer {made.token}"}
        if draws.random() < 0.5:
            entry = FileEntry(path, 1000, 1, 1)
            body = read_body(Read((WireSegment(entry, 0, n_bytes),)))
            where = self.draws_of_bodies.choice(("/v1/read", "/v1/read", "/v1/hash"))
            event = events.RequestRead(self.now, number, "POST", where, headers, len(body))
        else:
            body = b""
            event = events.RequestRead(self.now, number, "GET", f"/v1/files/{path}", headers)
        same = sum(other is made for n, other in self.sessions.items() if n != number)
        found = self._tell(event)
        if any(isinstance(a, actions.ReadBody) for a in found):
            found = self._send_body(number, made, body, same, found)
        elif body and not any(isinstance(a, actions.Respond) and a.last for a in found):
            raise Wrong(f"seed {self.seed}: neither reads a body nor ends: {found}")
        sends = [a for a in found if isinstance(a, _SENDS)]
        if sends:
            good = self._is_good(made, SOURCE) and path == FILES[0]
            if not good or same >= made.ticket.most_sockets:
                raise Wrong(f"seed {self.seed}: {made}: {path}: {sends}")
            self.did["served"] += 1
            self.sessions[number] = made
            sent = n_bytes
            if isinstance(sends[0], actions.SendFile):
                most = sends[0].most_bytes
                sent = 1000 if most is None else min(1000, most)
            made.bytes_allowed += sent
            budget = made.ticket.most_bytes
            # Only a restart forgets what was spent.
            if budget is not None and made.bytes_allowed > budget * (1 + self.did["restarts"]):
                raise Wrong(f"seed {self.seed}: {made.bytes_allowed} of {budget} bytes")
            if draws.random() < 0.7:
                self._tell(events.Sent(self.now, number, sent))
                return True
            self.promised[number] = made, sent
            return False
        refused = [a for a in found if isinstance(a, actions.Respond) and a.status >= 400]
        if not refused:
            raise Wrong(f"seed {self.seed}: neither served nor refused: {found}")
        spent = made.ticket.most_bytes is not None
        if self._is_good(made, SOURCE) and path == FILES[0] and not spent and same == 0:
            raise Wrong(f"seed {self.seed}: refuses what it should serve: {found}")
        if refused[0].last:
            self._end(number)
        return False

    def _send_body(
        self, number: int, made: Made, body: bytes, same: int, found: list[Any]
    ) -> list[Any]:
        """Send what the core wants read, perhaps late: only a ticket that counts lets it."""
        if not self._is_good(made, SOURCE) or same >= made.ticket.most_sockets:
            raise Wrong(f"seed {self.seed}: a body is read before its ticket counts: {made}")
        if found != [actions.ReadBody(number, len(body))]:
            raise Wrong(f"seed {self.seed}: reads a body and does more: {found}")
        # From now on the session is the ticket's, whatever comes of the request.
        self.sessions[number] = made
        self.did["bodies"] += 1
        if self.draws_of_bodies.random() < 0.1:
            self.monotonic_s += self.draws_of_bodies.choice((1.0, 30.0, 61.0))
        return self._tell(events.BodyRead(self.now, number, body))

    def _garbage(self) -> None:
        number = self._accept()
        self._tell(events.FirstByte(self.now, number, 0x47))
        head = self.draws.choice(
            (
                b"GET / HTTP/1.1\r\n\r\n",
                b"CONNECT S1:443 HTTP/1.1\r\nHost: S1\r\nHost: S2\r\n\r\n",
                b"CONNECT S1 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
                self.draws.randbytes(200),
                b"CONNECT " + b"A" * 20_000,
            )
        )
        found = self._tell(events.HeadRead(self.now, number, head))
        self._require_refusal(found, number)

    def _end_one(self) -> None:
        if self.sessions:
            self._end(self.draws.choice(sorted(self.sessions)))

    def _end(self, number: int) -> None:
        self._tell(self._ended(number, "gone"))

    def _withdraw(self) -> None:
        """All sessions of a withdrawn key end, and its tickets count no more."""
        self.collectors = frozenset({OURS.public})
        found = self._tell(events.CollectorsRead(self.now, self.collectors, self.collectors))
        closed = {a.session for a in found if isinstance(a, actions.EndSession)}
        for number, made in self.sessions.items():
            if made is not None and (made.key is WITHDRAWN) != (number in closed):
                raise Wrong(f"seed {self.seed}: withdrawn: {made}, closed {closed}")
        for number in closed:
            self._end(number)
        for _ in range(10):
            self._relay_client()
        for _ in range(10):
            self._tunnel_client()

    def _stop(self) -> None:
        """Once told twice it ends, whatever is under way."""
        self._tell(events.StopAsked(self.now))
        found = self._tell(events.StopAsked(self.now))
        for number in list(self.sessions):
            self._end(number)
        self._tick()
        if not self.core.finished:
            raise Wrong(f"seed {self.seed}: it does not end: {found} {self.core.sessions}")

    # Judges ----------------------------------------------------------------------------------

    def _is_good(self, made: Made, kind: str) -> bool:
        """Whether the ticket counts here and now, by what it was made for."""
        ticket, now_s = made.ticket, self.now.unix_s
        in_time = ticket.issued_s <= now_s + 5.0 and now_s < ticket.expires_s
        known = made.key.public in self.collectors
        return made.flaw is None and ticket.kind == kind and in_time and known

    def _require_refusal(self, found: list[Any], number: int) -> None:
        if not any(isinstance(a, actions.Refuse) for a in found):
            raise Wrong(f"seed {self.seed}: is not refused: {found}")
        self.did["refused"] += 1
        self._end(number)

    def _tell(self, event: Any) -> list[Any]:
        found = self.core.handle(event)
        for action in found:
            if isinstance(action, actions.WriteLog) and "v4.public." in repr(action):
                raise Wrong(f"seed {self.seed}: a ticket in the log: {action}")
        for action in found:
            made = self.sessions.get(getattr(action, "session", 0))
            is_tunnel = made is not None and made.ticket.kind == TUNNEL
            is_end = isinstance(action, actions.EndSession)
            if is_end and is_tunnel and "no data" in action.why:
                since_s = self.half_closed_s.get(action.session)
                if since_s is None or self.monotonic_s - since_s < HALF_IDLE_S:
                    raise Wrong(f"seed {self.seed}: an open tunnel ends: {action}")
            if is_end and action.session != event_session(event):
                self.core.handle(self._ended(action.session, action.why))
        return found

    def _ended(self, number: int, why: str) -> events.Ended:
        """Return the end of a session; of an answer under way a part was sent, or nothing."""
        self.sessions.pop(number, None)
        made, n_bytes = self.promised.pop(number, (None, 0))
        sent_bytes = n_bytes // 2 if number % 2 else 0
        if made is not None:
            made.bytes_allowed -= n_bytes - sent_bytes
        return events.Ended(self.now, number, why, sent_bytes)


_SENDS = actions.SendSegments | actions.HashSegments | actions.SendFile


def event_session(event: Any) -> int | None:
    """The session that an event is about."""
    return getattr(event, "session", None)


_FLAWS: dict[str, Any] = {
    "audience": lambda ticket, key: (replace(ticket, audience=OTHER), key),
    "forged": lambda ticket, _: (ticket, STRANGER),
    "stranger": lambda ticket, _: (replace(ticket, issuer=STRANGER.public), STRANGER),
    "expired": lambda ticket, key: (
        replace(ticket, issued_s=ticket.issued_s - 60, expires_s=ticket.issued_s - 1),
        key,
    ),
    "too long": lambda ticket, key: (replace(ticket, expires_s=ticket.issued_s + 90_000), key),
    "future": lambda ticket, key: (
        replace(ticket, issued_s=ticket.issued_s + 30, expires_s=ticket.issued_s + 60),
        key,
    ),
    "bits": lambda ticket, key: (ticket, key),
}
