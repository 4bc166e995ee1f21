"""One collection by its seed: people, services, witnesses, bistros, destination, then an audit."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from bistro.simulation.collectors import (
    EVENT,
    LYING_BISTROS,
    LYING_DESTINATIONS,
    Bistro,
    Destination,
    Skipping,
    Upload,
    handed_in,
)
from instances.custody import (
    BISTROS,
    SignedLog,
    commitment_of,
    sealed,
    service_log,
    verdict_log,
    write_batches,
)
from instances.events import witness_names

from datacollect.bistro.auditor import audit_event as auditing
from datacollect.bistro.auditor.custody_audit import Custody, Sources, audit_custody
from datacollect.bistro.auditor.log_reading import read_log
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.custody.verdicts import read_verdict
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.errors import ProblemError

OPENS_S = EVENT.deadline_s - 60
NEVER_S = 10**12


class Log:
    """A service's log while it grows."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.heads: list[tuple[int, int]] = []

    def times(self) -> dict[bytes, int]:
        """Return by when each entry stood there: the least time of a head that holds it."""
        return {
            entry: min((time_s for size, time_s in self.heads if size > i), default=NEVER_S)
            for i, entry in enumerate(self.entries)
        }


class Person:
    """Somebody with a ticket, who keeps receipts."""

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket
        self.uploads: list[Upload] = []
        self.words: dict[bytes, list[str]] = {}


class Collection:
    """A collection that has been carried out and audited."""

    def __init__(self, seed: int) -> None:
        chance = self.random = random.Random(seed)
        self.is_over = chance.random() < 0.8
        self.people = [Person(i) for i in range(chance.randint(2, 8))]
        victims = {each.ticket for each in self.people if chance.random() < 0.5}
        kind = chance.choice((None, "service", *LYING_BISTROS, *LYING_DESTINATIONS))
        self.kind = kind if kind is None or isinstance(kind, str) else kind.__name__
        self.bistros = [Bistro(chance, name, victims) for name in BISTROS]
        if kind in LYING_BISTROS:
            self.bistros[0] = kind(chance, BISTROS[0], victims)
        self.logs = [Log(), Log()]
        self._commit()
        self.signed = self._signed()
        self.shown = [*self.signed]
        self.in_time = {entry for entry, at_s in self.times().items() if at_s <= EVENT.latest_s}
        make = kind if kind in LYING_DESTINATIONS else Destination
        self.destination = make(chance, self.bistros, self.in_time.__contains__, victims)
        self._push()
        if kind == "service":
            self._take_back()

    # What people do.

    def _commit(self) -> None:
        """Everybody commits to drafts, some to somebody else's sealed file; some are late."""
        moments = [
            (self.random.uniform(0, 80), person.ticket)
            for person in self.people
            for _ in range(self.random.choice((1, 1, 1, 2, 3)))
        ]
        for after_s, ticket in sorted(moments):
            person = self.people[ticket]
            text = f"{person.ticket} {len(person.uploads)}"
            commitment, data, sealed_for = commitment_of(EVENT, text), sealed(text), person.ticket
            other = self.random.choice(self.people)
            if self.random.random() < 0.1 and other is not person and other.uploads:
                stolen = other.uploads[0]
                theirs = stolen.commitment
                commitment = Commitment(
                    *(EVENT.id, commitment.salt, theirs.size, theirs.ciphertext_sha256),
                    *(theirs.content, commitment.owner, commitment.mark),
                )
                data, sealed_for = stolen.data, stolen.sealed_for
            upload = Upload(commitment, data, sealed_for, person.ticket, after_s)
            person.uploads.append(upload)
            for log in self.random.sample(self.logs, self.random.choice((1, 1, 2))):
                log.entries.append(upload.entry)
                if self.random.random() < 0.7:
                    self._publish(log, after_s)
        for log in self.logs:
            self._publish(log, 85)

    def _publish(self, log: Log, after_s: float) -> None:
        time_s = int(OPENS_S + after_s + self.random.uniform(0.5, 2))
        if len(log.entries) > max((size for size, _ in log.heads), default=0):
            log.heads.append((len(log.entries), max([time_s, *(at for _, at in log.heads)])))

    def _signed(self) -> list[SignedLog]:
        """Up to two witnesses backdate, and up to one is late: three of four make a time."""
        names = witness_names()
        early = set(names[: self.random.choice((0, 0, 1, 2))])
        late = set(names[3:]) if self.random.random() < 0.3 else set()
        self.lying_witnesses = early | late

        # Clocks that are wrong by the same all the time go back nowhere.
        is_steady = self.random.random() < 0.7
        amounts_s = self.random.choices((1, 100, 10_000), k=1 if is_steady else 3)

        def wrong_s(name: str) -> int:
            amount_s = self.random.choice(amounts_s)
            return -amount_s if name in early else amount_s * (name in late)

        return [
            service_log(EVENT, i, log.entries, log.heads, wrong_s=wrong_s)
            for i, log in enumerate(self.logs)
        ]

    def times(self) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for log in self.logs:
            for entry, time_s in log.times().items():
                found[entry] = min(time_s, found.get(entry, NEVER_S))
        return found

    def _push(self) -> None:
        pushes = [(person, upload) for person in self.people for upload in person.uploads]
        self.random.shuffle(pushes)
        # Whoever has a receipt may show it to anybody.
        for bistro in self.bistros:
            for _, upload in pushes:
                bistro.hear(upload.commitment)
        for person, upload in pushes:
            if upload.entry in self.in_time and self.random.random() < 0.85:
                for bistro in self.random.sample(self.bistros, self.random.choice((1, 1, 2))):
                    person.words.setdefault(upload.entry, []).append(bistro.take(upload))
            if self.random.random() < 0.4:
                self.destination.look()
        self._close()
        self._seal_anew()

    def _close(self) -> None:
        for bistro in self.bistros:
            bistro.close()
        self.destination.look()

    def _seal_anew(self) -> None:
        """Who is told that it does not open may push the same content once more."""
        for person in self.people:
            for upload in person.uploads:
                is_refused = self.destination.state.get(upload.entry) == "refused"
                if is_refused and upload.sealed_for == person.ticket and self.random.random() < 0.5:
                    anew = Upload(
                        *(upload.commitment, upload.data + b" anew", person.ticket),
                        *(person.ticket, upload.at_s, True),
                    )
                    bistro = self.random.choice(self.bistros)
                    person.words[upload.entry].append(bistro.take(anew))
        self._close()

    def _take_back(self) -> None:
        """A service shows auditors another log, without the last things that it had logged."""
        log = self.logs[1]
        log.heads = log.heads[: self.random.randint(0, len(log.heads))]
        log.entries = log.entries[: max((size for size, _ in log.heads), default=0)]
        self.shown[1] = service_log(EVENT, 1, log.entries, log.heads)

    # The audit.

    def audit(self) -> tuple[Custody, set[str]]:
        """Return what an audit finds, and whom it accuses alone."""
        wholes = {}
        for service, log in zip(EVENT.services, self.shown, strict=True):
            whole = read_log(service, EVENT, log, is_over=self.is_over)
            if whole is not None:
                wholes[service.log.name] = whole
        hidden = {service.log.name for service in EVENT.services} - wholes.keys()
        held = self.receipts()
        lies = auditing._lies(EVENT, wholes, held, hidden, is_over=self.is_over)
        with TemporaryDirectory() as name:
            folder = Path(name)
            batches = [batch for bistro in self.bistros for batch in bistro.shown()]
            sources = Sources(
                write_batches(folder / "batches", batches),
                str(verdict_log(EVENT, self.destination.log).write(folder / "verdicts")),
                workers=0,
            )
            found = audit_custody(
                *(EVENT, wholes, held.values(), sources),
                is_over=self.is_over,
                is_whole=not lies,
            )
        return found, {lie.who for lie in (*lies, *found.lies)}

    def receipts(self) -> dict[str, Receipt]:
        """Return what people hand to the auditor: nobody anything, most, or all."""
        share = self.random.choice((0.0, 0.7, 1.0))
        self.handed: dict[bytes, list[str]] = {}
        found = {}
        for person in self.people:
            for upload in person.uploads:
                if self.random.random() < share:
                    words = person.words.get(upload.entry, [])
                    self.handed[upload.entry] = words
                    proofs = [log.proof(upload.entry) for log in self.signed]
                    receipt = Receipt(upload.commitment, bistro_receipts=tuple(words))
                    found[upload.entry.hex()] = receipt.with_more(proofs=filter(None, proofs))
        return found

    def liars(self) -> set[str]:
        """Return who must not be trusted."""
        liars = {each.name for each in self.bistros if not each.is_honest} | self.lying_witnesses
        if not self.destination.is_honest:
            liars.add("destination")
        if self.kind == "service":
            # It takes back what witnesses have signed; alone, nobody can tell which service.
            liars |= {"services", EVENT.services[1].log.name}
        return liars

    # What must be true.

    def check(self) -> set[str]:
        """Judge the audit from first principles; return what has happened."""
        found, accused = self.audit()
        liars = self.liars()
        assert accused <= liars, (accused, liars)
        for dispute in found.disputes:
            assert liars & set(dispute.between), dispute
        self._check_counts(found)
        self._check_kept(found)
        for party in (*self.bistros, self.destination):
            is_evident = self.is_over or party is not self.destination
            if is_evident and not party.is_honest and party.has_lied:
                # What never came, and stands in no log that was read, proves nothing against the
                # destination alone: a service may show the auditor less than it has signed.
                disputed = {name for dispute in found.disputes for name in dispute.between}
                is_disputed = party is self.destination and party.name in disputed
                assert party.name in accused or is_disputed
        self._check_skipped(accused)
        happened = {f"{self.kind}"}
        happened |= {f"{self.kind} accused" for _ in accused - self.lying_witnesses}
        happened |= {f"{self.kind} in dispute" for _ in found.disputes}
        return happened | {name for name, n in found.counts.items() if n}

    def _check_counts(self, found: Custody) -> None:
        words: dict[bytes, str] = {}
        for data in self.destination.log:
            try:
                verdict = read_verdict(data, EVENT.id)
            except ProblemError:
                continue
            words[verdict.entry] = verdict.word
        times = self.times()
        in_time = {entry for entry, at_s in times.items() if at_s <= EVENT.latest_s}
        expected = Counter(words.get(entry, "missing") for entry in in_time)
        for word in ("collected", "refused", "superseded", "missing"):
            assert found.counts[word] == expected[word], word
        assert found.counts["in_time"] == len(in_time)
        assert found.counts["late"] + found.counts["unproved"] == len(times) - len(in_time)
        self.lost = {entry for entry in in_time if entry not in words}

    def _check_kept(self, found: Custody) -> None:
        """What bistros have signed that they hold, and has no verdict, is told, all of it."""
        reported = {
            entry
            for bistro in self.bistros
            for batch in bistro.shown()
            for entry in handed_in(batch)
        }
        signed = reported | {entry for entry, words in self.handed.items() if words}
        assert found.counts["acknowledged"] == len(self.lost & signed)
        told = [each for each in found.disputes if "there is no verdict" in each.text]
        n_told = sum(each.n_entries for each in told)
        assert n_told == (len(self.lost & signed) if self.is_over else 0)

    def _check_skipped(self, accused: set[str]) -> None:
        """A receipt whose batch lacks its row accuses, where somebody has handed it in."""
        bistro = self.bistros[0]
        if isinstance(bistro, Skipping):
            victims = {
                entry
                for entry, upload in bistro.held.items()
                if upload.ticket in bistro.victims and self._words_of(entry, bistro.name)
            }
            assert (bistro.name in accused) == bool(victims)

    def _words_of(self, entry: bytes, bistro: str) -> list[str]:
        words = self.handed.get(entry, [])
        return [each for each in words if read_bistro_receipt(each, EVENT).bistro == bistro]
