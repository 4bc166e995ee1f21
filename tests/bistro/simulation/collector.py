"""The destination: rounds of the real one, on a simulated network; and those that lie.

A round waits for others, and is killed in the middle of it: what it has committed by then is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bistro.simulation.bistros import Bistro
from bistro.simulation.services import Reply, Said, Service
from bistro.simulation.witnesses import Witness
from bistro.simulation.world import EVENT, World
from instances.events import key_of

from datacollect.bistro.destination.marking import MarkKeys
from datacollect.bistro.destination.opening import Opener
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run.destination_round import Destination
from datacollect.bistro.destination.run.load_telling import loads_of
from datacollect.bistro.destination.run.log_table import LogTable, read_table
from datacollect.bistro.destination.run.log_times import LogTimes
from datacollect.bistro.destination.run.logged_entries import LoggedEntries
from datacollect.bistro.destination.run.quotas import Quotas
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    LATE,
    REFUSED,
    SUPERSEDED,
    Verdict,
    read_verdict,
)
from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.event.event import Service as ListedService
from datacollect.bistro.formats.log.notes import Note, VerifierKey
from datacollect.bistro.log_service import messages
from datacollect.errors import ProblemError, TransferError
from datacollect.net.http_asking import Answer
from datacollect.net.keys import PrivateKey

T = TypeVar("T")
PATIENCE_S, PUBLISHED_WITHIN_S = 2.0, 12.0
ROUND_S = 16.0


@dataclass
class Parties:
    """Whom people speak to; `loads`: the table of loads that each service passes on."""

    services: list[Service]
    bistros: list[Bistro]
    collector: Any = None
    loads: dict[str, bytes] = field(default_factory=dict)


class Killed(Exception):
    """The process is no more."""


class VerdictLog(Service):
    """The log of verdicts, in the destination's process."""

    def _identity(self, which: int) -> tuple[str, PrivateKey, VerifierKey]:
        assert EVENT.verdicts is not None
        return "destination", key_of("dest"), EVENT.verdicts

    def _reply(self, client: str, reply: Reply, said: Said) -> None:
        reply(said)

    def record(self, entries: tuple[bytes, ...], reply: Reply) -> None:
        if self.core is not None:
            number = self._number(self.name, reply)
            self.tell(messages.RecordAsked(self.world.now(), number, entries))


def _open_all(opener, openings):
    opener.prepare()
    yield from map(opener.open, openings)


class Collector:
    """An honest destination; it is killed now and then, most of all in its calls to the register.

    Parameters
    ----------
    world : World
    parties : Parties
    witnesses : list of Witness
    keys : mapping of str to str
        Public keys of tickets, by their numbers.
    folder : Path
    victims : set of bytes
        Entries that a liar treats in another way.
    """

    is_honest = True
    name = "destination"

    def __init__(
        self,
        world: World,
        parties: Parties,
        witnesses: list[Witness],
        keys: Mapping[str, str],
        folder: Path,
        victims: set[bytes],
    ) -> None:
        self.world, self.parties, self.folder, self.victims = world, parties, folder, victims
        self.log = VerdictLog(world, 0, witnesses)
        self.register = Register(str(folder / "register"), EVENT)
        self.keys, self.marks = keys, MarkKeys(EVENT, key_of("dest"))
        places = (folder / "fetched", folder / "opened")
        self.opener = Opener((), keys, *places, {}, self.marks, EVENT.most_files)
        self.n_killed = self._calls_left = 0
        self._forget()
        world.after(ROUND_S, self._round)

    # Rounds -------------------------------------------------------------------------------------

    def _round(self) -> None:
        if self.log.core is not None:
            self._core = self.log.core
            if self.world.at_s < self.world.healed_s and self.world.random.random() < 0.4:
                self._calls_left = self.world.random.randint(1, 60)
            try:
                self._do_round()
            except Killed:
                self.n_killed += 1
                self.register.close()
                self.register = Register(str(self.folder / "register"), EVENT)
                self._forget()
            self._calls_left = 0
        self.world.after(ROUND_S, self._round)

    def _forget(self) -> None:
        """Have nothing but what is on the disk."""
        services = {each.name: _Asked(self, each) for each in self.parties.services}
        self._times = LogTimes(EVENT, services, lambda _: None)
        self._logs = LoggedEntries(self._read_log, lambda _: None)
        self._quotas = Quotas(
            *(EVENT, self._logs, self.marks, self.keys, self._may_hold),
            proved=self._proved,
        )

    def _proved(self) -> list[tuple[int, bytes]]:
        return self.register.proved()

    def _may_hold(self, since_s: int) -> bool:
        names = [each.name for each in EVENT.bistros]
        return not self.register.held.have_all_said(names, since_s)

    def _read_log(self, listed: ListedService, event: Event) -> LogTable:
        service = self.parties.services[EVENT.services.index(listed)]
        log = self.ask(service.name, service.show_log)
        if log is None:
            raise TransferError("no answer")
        return read_table(listed, event, log)

    def _do_round(self) -> None:
        register = _Killable(self.register, self._count)
        self._logs.kept = register.logs
        destination = Destination(
            EVENT,
            key_of("dest"),
            register,
            self.opener,
            self,
            self.bring,
            self._times,
            self.tell,
            _open_all,
            self._quotas,
        )
        destination.do_round(int(self.world.now().unix_s))
        if self.world.at_s < self.world.healed_s:
            self._pass_loads_on()

    def _count(self) -> None:
        """Be killed at the n-th call."""
        if self._calls_left:
            self._calls_left -= 1
            if not self._calls_left:
                self.log.crash()
        self._live()

    def _live(self) -> None:
        if self.log.core is not self._core:
            raise Killed

    def wait(self, is_over: Callable[[], bool], patience_s: float) -> bool:
        """Let time pass; whoever is killed meanwhile goes on with nothing."""
        found = self.world.wait(lambda: self.log.core is not self._core or is_over(), patience_s)
        self._live()
        return found

    def ask(self, host: str, asked: Callable[[Callable[[T], None]], None]) -> T | None:
        """Ask and wait for the answer; None: there was none."""
        answers: list[T | None] = []
        self.world.ask(self.name, host, asked, answers.append, PATIENCE_S)
        self.wait(lambda: bool(answers), 2 * PATIENCE_S)
        return answers[0]

    def bring(self, wanted: Mapping[str, Sequence[str]]) -> set[str]:
        """Fetch what fits, of all bistros at once; return those that have answered."""
        bistros = [each for each in self.parties.bistros if each.name in wanted]
        answers: list[tuple[str, dict[str, bytes] | None]] = []
        for bistro in bistros:
            self.world.ask(
                self.name,
                bistro.name,
                lambda reply, b=bistro: b.fetch(
                    wanted[b.name], self.opener.segments / b.name, reply
                ),
                lambda files, b=bistro: answers.append((b.name, files)),
                PATIENCE_S,
            )
        self.wait(lambda: len(answers) == len(bistros), 2 * PATIENCE_S)
        for name, files in answers:
            for path, data in (files or {}).items():
                to = self.opener.segments / name / path
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(data)
        return {name for name, files in answers if files is not None}

    def tell(self, notes: Mapping[str, Note]) -> None:
        """Tell bistros what may go; what is lost on its way is told again by the next round."""
        for bistro in self.parties.bistros:
            data = notes[bistro.name].data
            self.world.send(self.name, bistro.name, lambda b=bistro, d=data: b.covered(d))

    def _pass_loads_on(self) -> None:
        """Sign how loaded bistros say that they are, and have services tell it."""
        told = {each.name: self.ask(each.name, each.tell_facts) for each in self.parties.bistros}
        facts = {name: one for name, one in told.items() if one is not None}
        table = loads_of(EVENT, facts, None, self.world.now().unix_s)
        data = table.signed(EVENT, key_of("dest")).data
        for service in self.parties.services:
            self.world.send(
                self.name,
                service.name,
                lambda name=service.name: self.parties.loads.update({name: data}),
            )

    # Verdicts -----------------------------------------------------------------------------------

    @property
    def published_size(self) -> int:
        assert self.log.core is not None
        return self.log.core.published_size

    def record(self, entries: Sequence[bytes]) -> int | None:
        """Have verdicts logged, as the real log of verdicts does."""
        verdicts = [read_verdict(each, EVENT.id) for each in entries]
        told = tuple(dict.fromkeys(data for each in verdicts for data in self.said(each)))
        until_s = self.world.at_s + PUBLISHED_WITHIN_S
        stop = None if told else 0
        while self.world.at_s < until_s:
            if stop is None:
                stop = self._recorded(told)
            if stop is not None and self.published_size >= stop:
                return self.published_size
            self.wait(lambda: False, 0.2)
        return None

    def _recorded(self, entries: tuple[bytes, ...]) -> int | None:
        answers: list[Said] = []
        self.log.record(entries, answers.append)
        self.wait(lambda: bool(answers), 1.0)
        said = answers[0] if answers else None
        if isinstance(said, messages.Acknowledge):
            return 1 + max(word.index for word in said.words)
        return None

    def said(self, verdict: Verdict) -> list[bytes]:
        """Return what it writes into its log."""
        return [verdict.data]

    def verdict_on(self, entry: bytes) -> Verdict | None:
        """Return the last published verdict on an entry."""
        return verdicts_of(self.log, entry).get(entry)

    def end(self) -> None:
        """Let go of the folder."""
        self.register.close()


def verdicts_of(log: Service, entry: bytes = b"") -> dict[bytes, Verdict]:
    """Return the last published verdict on each entry, or on one; what is none says nothing."""
    found = {}
    digits = entry.hex().encode()
    for row in log.store.rows[: max(log.store.published, default=0)]:
        if digits not in row.entry:
            continue
        try:
            verdict = read_verdict(row.entry, EVENT.id)
        except ProblemError:
            continue
        found[verdict.entry] = verdict
    return found


class _Asked:
    """A service, as `LogTimes` asks it."""

    def __init__(self, collector: Collector, service: Service) -> None:
        self._collector, self._service = collector, service

    def get(self, path: str, _: int) -> Answer:
        entry = bytes.fromhex(path.rpartition("/")[2])
        service, me = self._service, self._collector.name
        answer = self._collector.ask(
            service.name, lambda reply: service.answer_proof(me, entry, reply)
        )
        if answer is None:
            raise TransferError("no answer")
        return answer


class _Killable:
    """A register whose calls are counted, before and after."""

    def __init__(self, register: Any, count: Callable[[], None]) -> None:
        self._register, self._count = register, count

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._register, name)
        if not callable(found):
            return _Killable(found, self._count)

        def called(*values: object, **named: object) -> object:
            self._count()
            result = found(*values, **named)
            self._count()
            return result

        return called


class LyingCollector(Collector):
    """Treats its victims in another way."""

    is_honest = False

    def said(self, verdict: Verdict) -> list[bytes]:
        if verdict.word == COLLECTED and verdict.entry in self.victims:
            return self.instead(verdict)
        return [verdict.data]

    def instead(self, verdict: Verdict) -> list[bytes]:
        """Return what it says of a victim's upload that it has collected."""
        raise NotImplementedError


class Ignoring(LyingCollector):
    """Says nothing of what it has been given."""

    def instead(self, verdict: Verdict) -> list[bytes]:
        return []


class Denying(LyingCollector):
    """Says that it does not open."""

    def instead(self, verdict: Verdict) -> list[bytes]:
        return [Verdict(EVENT.id, verdict.entry, REFUSED, DOES_NOT_OPEN).data]


class SayingLate(LyingCollector):
    """Says that it came too late."""

    def instead(self, verdict: Verdict) -> list[bytes]:
        return [Verdict(EVENT.id, verdict.entry, REFUSED, LATE).data]


class Contradicting(LyingCollector):
    """Takes back what it has collected."""

    def instead(self, verdict: Verdict) -> list[bytes]:
        refused = Verdict(EVENT.id, verdict.entry, REFUSED, DOES_NOT_OPEN)
        return [verdict.data, refused.data]


class Displacing(LyingCollector):
    """Says that something counts instead that it has not collected."""

    def instead(self, verdict: Verdict) -> list[bytes]:
        other = bytes(32) if verdict.entry[0] % 2 else verdict.entry
        return [Verdict(EVENT.id, verdict.entry, SUPERSEDED, other.hex()).data]


class Rambling(LyingCollector):
    """Writes what is no verdict."""

    def instead(self, verdict: Verdict) -> list[bytes]:
        return [b"whatever"]


LYING_COLLECTORS = (Ignoring, Denying, SayingLate, Contradicting, Displacing, Rambling)
