"""People: each hands files in, pushes them to bistros, and looks at what became of them.

What they keep, they keep on the disk; everything else a loss of power takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from types import SimpleNamespace

from bistro.simulation.bistros import Bistro
from bistro.simulation.collector import Parties
from bistro.simulation.seals import commitment_to, content_of, sealed
from bistro.simulation.services import Said, shown_to
from bistro.simulation.world import EVENT, World
from instances.events import owner_key, owner_of, ticket_of

from datacollect.bistro.formats.assignment.assigning import assign, by_rendezvous
from datacollect.bistro.formats.assignment.loads import read_loads
from datacollect.bistro.formats.custody.verdicts import DOES_NOT_OPEN, REFUSED
from datacollect.bistro.formats.event.statements import give_up_statement, hand_in_statement
from datacollect.bistro.formats.log.content import header_bytes
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.file_list import frame
from datacollect.bistro.formats.receipt.counted_time import proved_time
from datacollect.bistro.formats.receipt.receipt import Receipt, acknowledgements_body
from datacollect.bistro.formats.receipt.upload_wish import push_metadata
from datacollect.bistro.formats.sealing.sealed import Inner
from datacollect.bistro.log_service.messages import Acknowledge
from datacollect.bistro.person.core import HandingIn
from datacollect.bistro.person.messages import Answered, AskProof, Commit, Question, Save, Ticked
from datacollect.bistro.person.pushing import Begin, End, Payload, Pushing, Send
from datacollect.bistro.person.sending import _metadata
from datacollect.errors import ProblemError
from datacollect.net.http_asking import Answer
from datacollect.net.keys import PrivateKey

PATIENCE_S, RUN_S = 3.0, 30.0
# Who is not done runs it again so much later, until then.
AGAIN_S, GIVES_UP_S = 4.0, 70.0
LOOKS_EVERY_S = 9.0
# Of several files: some systems take the second for the first, one lies in a folder.
SEVERAL = ("f", "F", "src/f")


class Person:
    """Somebody with a ticket."""

    def __init__(self, world: World, number: int) -> None:
        self.name = f"c{number}"
        self.number = number + 1
        self.ticket = ticket_of(EVENT, self.number)
        self.ticket_id = self.ticket.number.hex()
        self.handed_in: list[HandIn] = []

    def inner(self, text: str, salt: bytes, owner: bytes, n_files: int) -> Inner:
        """Return what is sealed beside a file, or beside several."""
        header: dict[str, object] = {"event": EVENT.id.hex(), "ticket": self.ticket_id}
        if n_files == 1:
            header["name"] = "f"
        else:
            header |= {"content": "datacollect-content/3", "files": n_files}
        signature = self.ticket.key.sign(hand_in_statement(EVENT.id, salt, owner))
        return Inner(header_bytes(header), sha256(text.encode()).digest(), signature)


@dataclass(frozen=True)
class File:
    """A sealed file, as its person keeps it.

    Attributes
    ----------
    commitment : Commitment
    data : bytes
        The ciphertext.
    anew : bytes or None
        The same content, sealed once more; None: whoever it is cannot do that.
    owner : PrivateKey
        Whose public half the commitment names.
    """

    commitment: Commitment
    data: bytes
    anew: bytes | None
    owner: PrivateKey


def file_of(person: Person, text: str, *, is_damaged: bool) -> File:
    """Return a file of somebody's own; a damaged one is not what the seal should have made.

    Of some people each draft is several files.
    """
    salt, content = sha256(f"salt {text}".encode()).digest(), text.encode()
    names = SEVERAL if person.number % 2 else SEVERAL[:1]
    if len(names) > 1:
        content = b"".join(frame(name, len(content)) + content for name in names)
    inner = person.inner(text, salt, owner_of(text), len(names))
    data, anew = sealed(inner, content), sealed(inner, content, 1)
    if is_damaged:
        data = data[:-9]
    code, owner = content_of(inner, content), owner_of(text)
    commitment = commitment_to(EVENT, salt, data, code, owner, person.number)
    return File(commitment, data, anew, owner_key(text))


def copy_of(file: File, thief: Person, text: str) -> File:
    """Return what somebody commits to who has got another one's ciphertext."""
    salt = sha256(f"salt {text}".encode()).digest()
    theirs = file.commitment
    owner = owner_of(text)
    commitment = commitment_to(EVENT, salt, file.data, theirs.content, owner, thief.number)
    return File(commitment, file.data, None, owner_key(text))


class HandIn:
    """One file on its way, from its commitment to its verdict.

    Parameters
    ----------
    world : World
    person : Person
    file : File
    parties : Parties
    at_s : float
        When it begins.
    n_copies : int
        At so many bistros.
    """

    def __init__(
        self,
        world: World,
        person: Person,
        file: File,
        parties: Parties,
        at_s: float,
        n_copies: int = 1,
    ) -> None:
        self.world, self.person, self.file, self.parties = world, person, file, parties
        self.at_s, self.n_copies = at_s, n_copies
        self.receipt = Receipt(file.commitment)
        # When each bistro's receipt has come.
        self.held: dict[str, float] = {}
        self.is_anew = False
        self.anew_held_by: str | None = None
        self.anew_since_s: float | None = None
        self.n_starts = 0
        # Whoever is late, and pushes all the same.
        self.is_stubborn = world.random.random() < 0.2
        person.handed_in.append(self)
        delay_s = at_s - world.at_s
        world.after(delay_s, self._run)
        world.after(delay_s + LOOKS_EVERY_S, self._look)
        if world.has_faults and world.random.random() < 0.3:
            world.after(delay_s + world.random.uniform(0, 20), self._crash)

    @property
    def entry(self) -> bytes:
        return self.file.commitment.entry

    @property
    def time_s(self) -> int | None:
        """What the receipt proves."""
        found = [proved_time(each, self.entry, EVENT).time_s for each in self.receipt.proofs]
        return min((each for each in found if each is not None), default=None)

    # Runs ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Begin, or begin again: what is kept is gone on with."""
        self.n_starts += 1
        self._core = HandingIn(EVENT, self.receipt, self._order(), self.world.at_s, RUN_S)
        self._wake_s = float("inf")
        self._handle(Ticked(self.world.at_s))

    def _order(self) -> list[int]:
        """Return in which order services are asked."""
        return self.world.random.sample(range(len(EVENT.services)), len(EVENT.services))

    def _crash(self) -> None:
        self.n_starts += 1
        self._later(self.world.random.uniform(0.5, 4.0), self._run)

    def _later(self, delay_s: float, do: Callable[[], None]) -> None:
        """Do something unless it was begun again meanwhile."""
        self.world.after(delay_s, self._if_same(do))

    def _if_same(self, do: Callable[..., None]) -> Callable[..., None]:
        start = self.n_starts

        def done(*values: object) -> None:
            if self.n_starts == start:
                do(*values)

        return done

    def _handle(self, event: Ticked | Answered) -> None:
        is_on = self._core.wake_s is not None
        for action in self._core.handle(event):
            if isinstance(action, Save):
                self.receipt = self.receipt.with_more(
                    self._core.receipt.acknowledgements, self._core.receipt.proofs
                )
            else:
                self._ask(action)
        wake_s = self._core.wake_s
        if wake_s is not None:
            delay_s = max(wake_s - self.world.at_s, 1e-6)
            self._later(delay_s, lambda: self._handle(Ticked(self.world.at_s)))
        elif is_on:
            self._push()

    def _ask(self, to: Question) -> None:
        assert isinstance(to, Commit | AskProof)
        service = self.parties.services[to.service]

        def answered(answer: Answer | None) -> None:
            self._handle(Answered(self.world.at_s, to, answer, "" if answer else "no answer"))

        def asked(reply: Callable[[Answer], None]) -> None:
            if isinstance(to, Commit):
                service.commit(
                    *(self.person.name, self.entry),
                    shown_to(service, self.person.ticket, self.entry),
                    lambda said: reply(_answer(said)),
                )
            else:
                service.answer_proof(self.person.name, self.entry, reply)

        self.world.ask(
            *(self.person.name, service.name, asked, self._if_same(answered), PATIENCE_S)
        )

    # Pushes -------------------------------------------------------------------------------------

    def _push(self) -> None:
        """Once it is proved in time, send it to so many bistros as are wanted."""
        time_s = self.time_s
        if time_s is None:
            self._again()
        elif self.is_anew:
            self._push_anew()
        elif (time_s <= EVENT.latest_s or self.is_stubborn) and len(self.held) < self.n_copies:
            self._ask_for_loads()

    def _again(self) -> None:
        if self.world.at_s < GIVES_UP_S:
            self._later(AGAIN_S, self._run)

    def _ask_for_loads(self) -> None:
        service = self.world.random.choice(self.parties.services)

        def asked(reply: Callable[[bytes], None]) -> None:
            if self.parties.loads.get(service.name) is not None:
                reply(self.parties.loads[service.name])

        self.world.ask(
            *(self.person.name, service.name, asked, self._if_same(self._take_loads), 1.0)
        )

    def _take_loads(self, data: bytes | None) -> None:
        names = [each.name for each in EVENT.bistros]
        order = by_rendezvous(self.entry, names)
        if data is not None:
            loads = read_loads(data, EVENT)
            near = self.world.random.sample(names, 2)
            if loads.is_fresh(self.world.now().unix_s) and len(loads.bistros) == len(names):
                try:
                    first = assign(loads, near, len(self.file.data), 5.0)
                except ProblemError:
                    first = []
                order = [*first, *(name for name in order if name not in first)]
        left = [names.index(name) for name in order if name not in self.held]
        receipt = replace(self.receipt, bistro_receipts=())
        self._begin_push(receipt, left, Payload.committed(self.file.commitment))

    def _push_anew(self) -> None:
        if self.anew_since_s is None:
            data = self.file.anew
            assert data is not None
            order = self.world.random.sample(range(len(EVENT.bistros)), len(EVENT.bistros))
            payload = Payload(len(data), sha256(data).digest(), sealed_anew=True)
            self._begin_push(self.receipt, order, payload)

    def _begin_push(self, receipt: Receipt, order: list[int], payload: Payload) -> None:
        self._pushing, self._payload = Pushing(EVENT, receipt, order, payload), payload
        self._step()

    def _step(self) -> None:
        step, pushing = self._pushing.step, self._pushing
        if step is None:
            self._pushed(pushing)
            return
        bistro = self.parties.bistros[step.bistro]
        data = self.file.anew if self._payload.sealed_anew else self.file.data
        assert data is not None
        kept = SimpleNamespace(ticket=self.person.ticket, owner=self.file.owner)
        metadata = _metadata(EVENT, bistro.listed, self.receipt, kept, self._payload)
        sent = b""
        if isinstance(step, Begin):
            sent = data[: step.n_bytes]
        elif isinstance(step, Send):
            sent = data[step.offset :]
        elif isinstance(step, End):
            sent = given_up(self.file.owner, bistro, step)

        def asked(reply: Callable[[Answer], None]) -> None:
            bistro.tus(step, metadata, len(data), sent, reply)

        def answered(answer: Answer | None) -> None:
            pushing.take(answer, "" if answer else "no answer")
            self._later(pushing.wait_s, self._step)

        self.world.ask(*(self.person.name, bistro.name, asked, self._if_same(answered), PATIENCE_S))

    def _pushed(self, pushing: Pushing) -> None:
        if pushing.holder is None:
            self._again()
            return
        self.receipt = self.receipt.with_more(bistro_receipts=pushing.receipt.bistro_receipts)
        if self._payload.sealed_anew:
            self.anew_held_by, self.anew_since_s = pushing.holder[0], self.world.at_s
            return
        self.held.setdefault(pushing.holder[0], self.world.at_s)
        if len(self.held) < self.n_copies:
            self._ask_for_loads()

    # Verdicts -----------------------------------------------------------------------------------

    def _look(self) -> None:
        """Ask what became of it; who is told that it does not open seals it anew, once."""
        if self.held and self.file.anew is not None and not self.is_anew:
            collector = self.parties.collector

            def asked(reply: Callable[[tuple[str, str]], None]) -> None:
                verdict = collector.verdict_on(self.entry)
                if verdict is not None:
                    reply((verdict.word, verdict.why))

            self.world.ask(
                *(self.person.name, collector.name, asked, self._told, PATIENCE_S),
            )
        if self.world.at_s < GIVES_UP_S:
            self.world.after(LOOKS_EVERY_S, self._look)

    def _told(self, verdict: tuple[str, str] | None) -> None:
        if verdict == (REFUSED, DOES_NOT_OPEN) and not self.is_anew:
            self.is_anew = True
            self.n_starts += 1
            self._push()


def given_up(owner: PrivateKey, bistro: Bistro, step: End) -> bytes:
    """Return the signature of giving up an upload."""
    upload = step.path.rpartition("/")[2]
    return owner.sign(give_up_statement(EVENT.id, bistro.listed.key, upload))


class Stranger:
    """Has a ticket and somebody's receipt, and no owner's key; wants to take that one's place.

    Parameters
    ----------
    world : World
    parties : Parties
    victim : HandIn
    """

    name = "stranger"

    def __init__(self, world: World, parties: Parties, victim: HandIn) -> None:
        self.world, self.parties, self.victim = world, parties, victim
        self.answers: list[Answer] = []
        self._look()

    def _look(self) -> None:
        """Push as soon as the receipt has a proof, before its owner if possible."""
        if self.victim.receipt.proofs:
            for bistro in self.parties.bistros:
                self._push(bistro)
        elif self.world.at_s < GIVES_UP_S:
            self.world.after(0.05, self._look)

    def _push(self, bistro: Bistro) -> None:
        commitment = self.victim.file.commitment
        junk = self.world.random.choice((bytes(commitment.size), b"junk"))
        metadata = push_metadata(
            commitment,
            self.victim.receipt.proofs[0].data,
            event=EVENT,
            bistro_key=bistro.listed.key,
            # As if it were what was committed to, or sealed anew.
            sha256=commitment.ciphertext_sha256 if len(junk) > 4 else sha256(junk).digest(),
            size=len(junk),
            owner=owner_key(self.name),
            ticket=ticket_of(EVENT, 99),
        )

        def asked(reply: Callable[[Answer], None]) -> None:
            bistro.tus(Begin(0, len(junk)), metadata, len(junk), junk, reply)

        def answered(answer: Answer | None) -> None:
            self.answers += [] if answer is None else [answer]

        self.world.ask(self.name, bistro.name, asked, answered, PATIENCE_S)


def _answer(said: Said) -> Answer:
    """Return what a service answers over HTTP."""
    if isinstance(said, Acknowledge):
        return Answer(200, acknowledgements_body(said.words, is_list=False))
    return Answer(said.status, said.text.encode(), said.retry_after_s)
