"""What must be true of an event that was carried out, from first principles, whoever lies."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256

from bistro.simulation.audits import audited
from bistro.simulation.bistros import Skipping
from bistro.simulation.collector import Denying, verdicts_of
from bistro.simulation.event import WholeEvent, quick_disks
from bistro.simulation.people import SEVERAL, HandIn, Person
from bistro.simulation.services import Service, Thief
from bistro.simulation.world import EVENT
from instances.custody import StoredLog, write_batches

from datacollect.bistro.auditor.custody_audit import Custody
from datacollect.bistro.auditor.findings import DESTINATION, SERVICES
from datacollect.bistro.destination.file_sets import LIST, read_set
from datacollect.bistro.formats.custody.batches import read_batch
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    NEVER_CAME,
    REFUSED,
    SUPERSEDED,
    Verdict,
    read_verdict,
)
from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint, cosigned_times
from datacollect.bistro.formats.log.tree import leaf_hash
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.bistro.log_service.messages import Refuse, Row
from datacollect.errors import ProblemError


class JudgedEvent(WholeEvent):
    """An event, the audit of it, and what must be true of both."""

    def audit(self) -> tuple[Custody, set[str]]:
        share = self.world.random.choice((0.5, 1.0, 1.0))
        self.handed = {
            one.entry: one.receipt for one in self.handed_in if self.world.random.random() < share
        }
        receipts: dict[str, Receipt] = {k.hex(): v for k, v in self.handed.items()}
        batches = [
            read_batch(data, EVENT) for each in self.parties.bistros for data in each.shown()
        ]
        where = write_batches(self.folder / "fetched", batches)
        logs = [StoredLog(EVENT, each.store) for each in self.services]
        verdicts = StoredLog(EVENT, self.collector.log.store).write(self.folder / "verdicts")
        return audited(EVENT, logs, receipts, where, verdicts, is_over=True)

    def times(self, services: list[Service]) -> dict[bytes, int]:
        """Return by when entries stood in logs, by what is published of them, and by receipts."""
        handed = [proof.signed for each in self.handed.values() for proof in each.proofs]
        found: dict[bytes, int] = {}
        for service in services:
            rows = service.store.rows
            hashes = [leaf_hash(row.entry) for row in rows]
            published = [SignedCheckpoint.parse(note) for note in service.store.published.values()]
            for signed in [*published, *(each for each in handed if each.is_of(service.log))]:
                size = signed.checkpoint.size
                if (
                    size > max(service.store.published, default=0)
                    or _root(hashes[:size]) != signed.checkpoint.root
                ):
                    continue
                said = sorted(cosigned_times(signed.note, EVENT.witness_keys).values())
                time_s = said[EVENT.quorum - 1]
                for row in rows[:size]:
                    found[row.entry] = min(time_s, found.get(row.entry, time_s))
        return found

    # What must be true --------------------------------------------------------------------------

    def check(self) -> set[str]:
        """Judge all from first principles; return what has happened."""
        found, accused = self.audit()
        liars = self.liars()
        assert accused <= liars, (accused, liars)
        for dispute in found.disputes:
            assert liars & set(dispute.between), (dispute, liars)
        self.final = verdicts_of(self.collector.log)
        self._check_counts(found)
        self._check_drops()
        self._check_people(found, accused)
        self._check_copies()
        self._check_refusals()
        self._check_late()
        self._check_files()
        self._check_strangers()
        self._check_named(found, accused)
        return self._happened(found, accused)

    def _check_counts(self, found: Custody) -> None:
        """Each entry in time is one of four, once."""
        times = self.times(self.services)
        in_time = {entry for entry, at_s in times.items() if at_s <= EVENT.latest_s}
        words = {entry: verdict.word for entry, verdict in self.final.items()}
        expected = Counter(words.get(entry, "missing") for entry in in_time)
        for word in ("collected", "refused", "superseded", "missing"):
            assert found.counts[word] == expected[word], word
        assert found.counts["in_time"] == len(in_time)

    def _check_drops(self) -> None:
        allowed = set() if self.collector.is_honest else self.victims
        assert {entry for _, entry in self.early_drops} <= allowed

    def _is_told(self, entry: bytes, found: Custody, accused: set[str]) -> bool:
        """Whether an audit says that the destination has not done its part."""
        return "destination" in accused or any(
            "destination" in each.between and entry.hex() in each.examples
            for each in found.disputes
        )

    def _check_people(self, found: Custody, accused: set[str]) -> None:
        """Whoever holds an honest bistro's receipt is collected, or an own later draft is."""
        honest = {each.name for each in self.parties.bistros if each.is_honest}
        times = self.times(self.services)
        # What only a lying service has proved, it may take back.
        sure = self.times([each for each in self.services if each.is_honest])
        own = [one for one in self.handed_in if one not in self.copies]
        for person in self.people if self.collector.is_honest else ():
            self._check_drafts(person, [one for one in own if one.person is person], times)
        for one in own:
            if not honest & one.held.keys() or sure.get(one.entry, 2**60) > EVENT.latest_s:
                continue
            if self.collector.is_honest or one.entry not in self.victims:
                self._check_verdict(one, honest, times)
            elif _opens(one.file.data) and not isinstance(self.collector, Denying):
                verdict = self.final.get(one.entry)
                is_kept = verdict is not None and verdict.word in (COLLECTED, SUPERSEDED)
                assert is_kept or self._is_told(one.entry, found, accused)

    def _check_verdict(self, one: HandIn, honest: set[str], times: dict[bytes, int]) -> None:
        verdict = self.final[one.entry]
        if _opens(one.file.data) or one.anew_held_by in honest:
            assert verdict.word in (COLLECTED, SUPERSEDED), (one.person.name, verdict)
        elif not one.is_anew:
            assert (verdict.word, verdict.why) == (REFUSED, DOES_NOT_OPEN)
        if verdict.word == SUPERSEDED:
            self._check_superseded(one, times)

    def _check_superseded(self, one: HandIn, times: dict[bytes, int]) -> None:
        """A later draft of the same person counts; of what is beyond the quota, an earlier one."""
        own, time_s, first = one.person.handed_in, times.get(one.entry, 0), one.entry
        while (verdict := self.final[one.entry]).word == SUPERSEDED:
            found = [each for each in own if each.entry.hex() == verdict.why]
            assert len(found) == 1, "superseded by somebody else's"
            (one,) = found
        assert one not in self.copies
        if first in self.first_of(one.person, times):
            assert verdict.word == COLLECTED
            assert times.get(one.entry, 2**60) >= time_s
        else:
            assert (verdict.word, verdict.why) in ((COLLECTED, ""), (REFUSED, NEVER_CAME))

    def _check_strangers(self) -> None:
        """Whoever has a ticket and a receipt, and no owner's key, is let in by nobody.

        Nor can a service use elsewhere what it has heard of tickets.
        """
        answers = self.stranger.answers if self.stranger else []
        assert {each.status for each in answers} <= {403, 507}
        thief = self.services[1]
        if isinstance(thief, Thief):
            assert not {row.entry for row in self.services[0].store.rows} & {*thief.stolen}
            assert all(isinstance(said, Refuse) for said in thief.heard)

    def _check_files(self) -> None:
        """What an honest destination says it has collected lies on its disk: all of it."""
        for one in self.handed_in if self.collector.is_honest else ():
            verdict = self.final.get(one.entry)
            if verdict is None or verdict.word not in (COLLECTED, SUPERSEDED):
                continue
            folder = self.collector.opener.into / one.entry.hex()
            files = {path.name for path in folder.rglob("*") if path.is_file()}
            if not one.person.number % 2:
                assert len(files) == 1
                continue
            found = read_set(folder / LIST)
            assert found is not None
            assert tuple(each.name for each in found) == SEVERAL
            for each in found:
                data = (folder / each.file).read_bytes()
                assert (len(data), sha256(data).hexdigest()) == (each.n_bytes, each.sha256)

    def _check_refusals(self) -> None:
        """An honest destination refuses for what is so, whatever bistros show it."""
        opening = {one.entry for one in self.handed_in if _opens(one.file.data)}
        for row in self.collector.log.store.rows if self.collector.is_honest else ():
            verdict = read_verdict(row.entry, EVENT.id)
            assert verdict.why != DOES_NOT_OPEN or verdict.entry not in opening

    def _check_late(self) -> None:
        """Nobody honest takes what no log proves in time."""
        times = self.times(self.services)
        for entry, verdict in self.final.items() if self.collector.is_honest else ():
            is_taken = verdict.word in (COLLECTED, SUPERSEDED)
            # A lying service may have logged anew what it had taken back.
            if is_taken and entry in times and self.services[1].is_honest:
                assert times[entry] <= EVENT.latest_s
        names = {each.name for each in self.parties.bistros if each.is_honest}
        for one in self.handed_in:
            time_s = one.time_s
            assert time_s is None or time_s <= EVENT.latest_s or not names & one.held.keys()

    def entries_of(self, person: Person, times: dict[bytes, int]) -> list[bytes]:
        """Return the entries of a ticket that logs show in time, in the order of their times."""
        own = {one.entry: times.get(one.entry, 2**60) for one in person.handed_in}
        in_time = [(time_s, entry) for entry, time_s in own.items() if time_s <= EVENT.latest_s]
        return [entry for _, entry in sorted(in_time)]

    def first_of(self, person: Person, times: dict[bytes, int]) -> set[bytes]:
        """Return those of them that a ticket is good for."""
        return {*self.entries_of(person, times)[: EVENT.commitments_per_ticket]}

    def _check_drafts(self, person: Person, own: list[HandIn], times: dict[bytes, int]) -> None:
        """Of all drafts of a ticket that it is good for and that came, the last one counts.

        Where a service may have taken some back, nobody can say what is beyond the quota.
        """
        first = self.first_of(person, times)
        if len(person.handed_in) > EVENT.commitments_per_ticket:
            if not self.services[1].is_honest:
                return
            beyond = [one for one in own if one.entry in times and one.entry not in first]
            for one in beyond:
                verdict = self.final.get(one.entry)
                assert verdict is None or verdict.word != COLLECTED, "beyond the quota"
            own = [one for one in own if one not in beyond]
        came: dict[str, list[HandIn]] = {COLLECTED: [], SUPERSEDED: []}
        for one in own:
            verdict = self.final.get(one.entry)
            if verdict is not None and verdict.word in came:
                came[verdict.word].append(one)
        if came[COLLECTED] or came[SUPERSEDED]:
            (last,) = came[COLLECTED]
            # Of what a lying service has taken back nobody can say when it was there.
            known = [times.get(one.entry, 0) for one in (last, *came[SUPERSEDED])]
            assert known[0] in (0, max(known))

    def _check_copies(self) -> None:
        """Who copies a ciphertext gains nothing."""
        for one in self.copies:
            verdict = self.final.get(one.entry)
            # What the ticket has signed inside the seal is for the original's owner.
            if self.collector.is_honest and verdict is not None:
                assert verdict.word == REFUSED, verdict

    def _check_named(self, found: Custody, accused: set[str]) -> None:
        """Who has signed what does not fit together is accused."""
        liar = self.parties.bistros[0]
        for party in self.parties.bistros:
            if getattr(party, "has_lied", False):
                assert party.name in accused
        log = self.collector.log.store
        times = self.times(self.services)
        in_time = {entry for entry, at_s in times.items() if at_s <= EVENT.latest_s}
        rows = log.rows[: max(log.published, default=0)]
        if _contradicts_itself(rows, in_time | {_displacing(each) for each in rows}):
            assert "destination" in accused
        elif _contradicts_itself(rows, in_time):
            # What logs lack, a service may have taken back: only where one has is nothing said.
            assert accused & {each.log.name for each in self.services} or any(
                each.between == (DESTINATION, SERVICES) for each in found.disputes
            )
        if isinstance(liar, Skipping):
            promised = {
                entry
                for entry, receipt in self.handed.items()
                if entry in self.victims and liar.name in self._signers(receipt)
            }
            assert (liar.name in accused) == bool(promised)

    def _signers(self, receipt: Receipt) -> set[str]:
        return {read_bistro_receipt(each, EVENT).bistro for each in receipt.bistro_receipts}

    def _happened(self, found: Custody, accused: set[str]) -> set[str]:
        parties = (*self.witnesses, *self.services, *self.parties.bistros, self.collector)
        kinds = {type(each).__name__ for each in parties}
        happened = kinds | {name for name, n in found.counts.items() if n}
        names = {each.name: type(each).__name__ for each in parties}
        happened |= {f"{names.get(each, each)} accused" for each in accused}
        happened |= {
            f"{names[n]} in dispute" for d in found.disputes for n in d.between if n in names
        }
        happened |= {f"refused {why}" for why in found.refused}
        happened |= {"crash of Service" for each in self.services if each.n_crashes}
        happened |= {"crash of Bistro" for each in self.parties.bistros if each.n_crashes}
        happened |= {"killed Collector"} if self.collector.n_killed else set()
        happened |= {"sealed anew" for one in self.handed_in if one.anew_held_by}
        happened |= {"copied" for one in self.copies if one.held}
        happened |= {"stranger refused"} if self.stranger and self.stranger.answers else set()
        happened |= {"run again" for one in self.handed_in if one.n_starts > 1}
        return happened


def _root(hashes: list[bytes]) -> bytes:
    """Return the root of a tree (RFC 6962)."""
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256().digest()
    half = 1 << (len(hashes) - 1).bit_length() - 1
    return sha256(b"\1" + _root(hashes[:half]) + _root(hashes[half:])).digest()


def _contradicts_itself(rows: list[Row], in_time: set[bytes]) -> bool:
    """Whether a log of verdicts says what cannot be.

    What never came may stand in the place of another, if a log proves it in time.
    """
    collected: set[bytes] = set()
    ever = {each.entry for each in map(_verdict, rows) if each and each.word == COLLECTED}
    for verdict in map(_verdict, rows):
        if verdict is None or (verdict.word == REFUSED and verdict.entry in collected):
            return True
        if verdict.word == SUPERSEDED:
            by = bytes.fromhex(verdict.why)
            if by == verdict.entry or by not in ever | in_time:
                return True
        if verdict.word == COLLECTED:
            collected.add(verdict.entry)
    return False


def _displacing(row: Row) -> bytes:
    """Return what stands in an entry's place; nothing where it was not superseded."""
    verdict = _verdict(row)
    return bytes.fromhex(verdict.why) if verdict and verdict.word == SUPERSEDED else b""


def _verdict(row: Row) -> Verdict | None:
    try:
        return read_verdict(row.entry, EVENT.id)
    except ProblemError:
        return None


def _opens(data: bytes) -> bool:
    return data.endswith(b"]")


def carried_out(seed: int) -> set[str]:
    """Carry an event out and judge it; return what has happened."""
    with quick_disks() as folder:
        whole = JudgedEvent(seed, folder)
        try:
            whole.run()
            return whole.check()
        finally:
            whole.end()
