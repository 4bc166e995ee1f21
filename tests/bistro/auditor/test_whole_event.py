"""Audits of events made by hand: each entry is judged once, and who has lied is named."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from conftest import NO_DASK
from instances.custody import (
    CHANGES,
    SignedLog,
    batch_of,
    commitment_of,
    custody_event,
    custody_event_bytes,
    older_event_bytes,
    service_log,
    verdict_log,
    word_of,
    write_batches,
)
from instances.dask_cluster import Cluster
from instances.events import event_bytes, key_of

import datacollect as dc
from datacollect.bistro.auditor import audit_event as auditing
from datacollect.bistro.formats.custody.batches import FIRST
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    LATE,
    NEVER_CAME,
    REFUSED,
    SUPERSEDED,
    Verdict,
)
from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.commands.main import run
from datacollect.net.http_asking import Answer

EVENT = custody_event()
A, B, C, D, E, F = COMMITMENTS = [commitment_of(EVENT, name) for name in "abcdef"]
IN_TIME_S, LATE_S = EVENT.latest_s, EVENT.latest_s + 1


def said(commitment, word=COLLECTED, why=""):
    return Verdict(commitment.event, commitment.entry, word, why)


class Case:
    """An event, and all that was signed in it.

    A to E are logged in time, F is late; A and B are in a batch of north, C in one of south.

    A and C are collected, B is refused, D superseded by A; nobody has ever seen E.
    """

    def __init__(self, folder, monkeypatch, event_data=None):
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.event_data = custody_event_bytes() if event_data is None else event_data
        event = read_event(self.event_data)
        self.commitments = [commitment_of(event, name) for name in "abcdef"]
        a, b, c, d, _, f = self.commitments
        self.batches = [
            batch_of(event, "north", 0, FIRST, [a, b]),
            batch_of(event, "south", 0, FIRST, [c]),
        ]
        self.verdicts = [said(a), said(b, REFUSED, DOES_NOT_OPEN), said(c)]
        self.verdicts.append(said(d, SUPERSEDED, a.entry.hex()))
        self.receipts = {}
        # By default of the verdicts.
        self.verdict_log = None
        self.is_over = True
        entries = [each.entry for each in self.commitments]
        self.logs = [
            service_log(event, 0, entries, [(5, IN_TIME_S), (6, LATE_S)]),
            service_log(event, 1, [f.entry], [(1, LATE_S + 5)]),
        ]
        self.event = event

    def files(self):
        """Write all that an auditor is given; answer for the services from memory."""
        (self.folder / "event.toml").write_bytes(self.event_data)
        write_batches(self.folder / "batches", self.batches)
        log = self.verdict_log or verdict_log(self.event, self.verdicts)
        log.write(self.folder / "verdicts")
        for name, receipt in self.receipts.items():
            (self.folder / "receipts").mkdir(exist_ok=True)
            (self.folder / "receipts" / f"{name}.receipt.json").write_bytes(receipt.data)
        services = zip(self.event.services, self.logs, strict=True)
        logs = {service.url: log for service, log in services}

        class Asked:
            def __init__(self, url, *_):
                self.url = url

            def __enter__(self):
                return logs[self.url]

            def __exit__(self, *_):
                pass

        now_s = EVENT.collect_until_s + auditing.OVER_AFTER_S - (0 if self.is_over else 1)
        self.monkeypatch.setattr(auditing, "Asker", Asked)
        self.monkeypatch.setattr(auditing, "web_context", lambda: None)
        self.monkeypatch.setattr(auditing, "time", SimpleNamespace(time=lambda: now_s))

    def audit(self, **options):
        self.files()
        receipts = self.folder / "receipts" if self.receipts else None
        return dc.audit_event(
            self.folder / "event.toml",
            receipts=receipts,
            batches=self.folder / "batches",
            verdicts=self.folder / "verdicts",
            **options,
        )

    def evidence(self):
        """Return who is accused, and of what."""
        return [(lie.who, lie.text) for lie in self.audit().evidence]


@pytest.fixture
def case(tmp_path, monkeypatch):
    return Case(tmp_path, monkeypatch)


COUNTS = {
    "in_time": 5,
    "collected": 2,
    "refused": 1,
    "superseded": 1,
    "missing": 1,
    "acknowledged": 0,
    "late": 1,
    "unproved": 0,
    "superseded_by_absent": 0,
}


def test_each_entry_in_time_is_judged_once_and_late_ones_are_counted_apart(case):
    found = case.audit()
    assert found.custody.counts == COUNTS
    assert found.custody.refused == {DOES_NOT_OPEN: 1}
    assert found.custody.missing == (E.entry,)
    assert found.custody.bistros == {"north": (1, 2), "south": (1, 1), "west": (0, 0)}
    assert (found.evidence, found.custody.disputes, found.custody.troubles) == ((), (), ())
    assert found.exit_code == 0


def test_the_last_verdict_counts(case):
    case.verdicts.append(said(B))
    assert case.audit().custody.counts == {**COUNTS, "collected": 3, "refused": 0}


def test_an_entry_is_in_time_by_the_earlier_of_two_logs(case):
    case.logs[1] = service_log(EVENT, 1, [F.entry], [(1, IN_TIME_S)])
    assert case.audit().custody.counts == {**COUNTS, "in_time": 6, "missing": 2, "late": 0}


def test_an_entry_that_no_quorum_has_signed_has_no_time(case):
    few = service_log(EVENT, 0, [each.entry for each in COMMITMENTS], [(5, IN_TIME_S)])
    few.heads.append(service_log(EVENT, 0, few.entries, [(6, IN_TIME_S)]).heads[0])
    note = few.heads[-1].note
    few.heads[-1] = replace(few.heads[-1], note=replace(note, signatures=note.signatures[:3]))
    case.logs = [few, service_log(EVENT, 1, [], [])]
    assert case.audit().custody.counts == {**COUNTS, "late": 0, "unproved": 1}


def test_an_entry_that_ends_with_zeros_is_named_whole(case):
    entry = b"e" + bytes(31)
    case.logs[1] = service_log(EVENT, 1, [entry, F.entry], [(2, IN_TIME_S)])
    case.verdicts.append(said(F))
    assert set(case.audit().custody.missing) == {E.entry, entry}


def test_all_ways_give_the_same_answer(case):
    here = case.audit(workers=0).to_dict()
    assert case.audit(workers=2).to_dict() == here


@pytest.mark.slow
def test_a_cluster_gives_the_same_answer(case, tmp_path_factory):
    pytest.importorskip("distributed", reason=NO_DASK)
    here = case.audit(workers=0).to_dict()
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), n_workers=1)
    try:
        assert case.audit(dask=cluster.address).to_dict() == here
    finally:
        cluster.stop()


# Evidence against one.


def test_a_row_that_opens_no_commitment_is_evidence(case):
    case.batches[1] = batch_of(EVENT, "south", 0, FIRST, [C], {"salt": bytes(32)})
    [(who, text)] = case.evidence()
    assert who == "south"
    assert text.startswith("It has signed rows for 1 entry that open no commitment.")
    assert C.entry.hex() in text


def pushed_to(bistro):
    """Return what the owner of E has signed for a bistro."""
    return bytes(batch_of(EVENT, bistro, 0, FIRST, [E]).rows["signature"][0])


JUNK = {"sha256": b"j" * 32, "size": 4}
UNSIGNED = {
    "junk": JUNK | {"signature": bytes(64)},
    "junk with its own signature": JUNK | {"signature": key_of("west").sign(b"junk")},
    "what was pushed to another bistro": {"signature": pushed_to("south")},
    "other bytes than were pushed": JUNK | {"signature": pushed_to("west")},
}


@pytest.mark.parametrize("changes", UNSIGNED.values(), ids=UNSIGNED)
def test_a_row_that_its_owner_has_not_signed_is_evidence_against_its_bistro_alone(case, changes):
    """Nobody has pushed E to west, and nobody owes E a verdict."""
    case.batches.append(batch_of(EVENT, "west", 0, FIRST, [E], changes))
    [(who, text)] = case.evidence()
    assert who == "west"
    assert text.startswith("It has signed rows for 1 entry that lack the owner's signature")
    assert E.entry.hex() in text
    found = case.audit().custody
    assert (found.counts, found.disputes) == (COUNTS, ())


def test_two_batches_of_one_number_are_evidence(case):
    case.batches.append(batch_of(EVENT, "north", 0, FIRST, [A]))
    assert case.evidence() == [("north", "It has signed 2 different batches with the number 0.")]


def test_one_batch_in_two_places_is_no_evidence(case):
    case.batches *= 2
    assert case.audit().custody.bistros == {"north": (1, 2), "south": (1, 1), "west": (0, 0)}
    assert case.evidence() == []


@pytest.mark.parametrize(
    ("number", "previous", "is_broken"), [(1, None, False), (1, b"x" * 32, True), (1, FIRST, True)]
)
def test_a_batch_that_does_not_follow_is_evidence(case, number, previous, is_broken):
    digest = case.batches[0].digest
    case.batches.append(batch_of(EVENT, "north", number, previous or digest, []))
    expected = [("north", "Its batch 1 does not follow the one before it.")]
    assert case.evidence() == expected * is_broken


def test_a_first_batch_that_names_one_before_it_is_evidence(case):
    case.batches[1] = batch_of(EVENT, "south", 0, b"x" * 32, [C])
    assert case.evidence() == [("south", "Its batch 0 does not follow the one before it.")]


def receipt_of(commitment, *words):
    return Receipt(commitment, bistro_receipts=words)


def with_proof(case, receipt):
    return receipt.with_more(proofs=[case.logs[0].proof(receipt.entry)])


def test_a_receipt_whose_batch_lacks_the_row_is_evidence(case):
    words = (word_of(EVENT, "south", A, 0), word_of(EVENT, "north", A, 0))
    case.receipts["a"] = with_proof(case, receipt_of(A, *words))
    [(who, text)] = case.evidence()
    assert who == "south"
    assert text.startswith("It has signed receipts for 1 entry, and other rows in the batches")


def test_a_receipt_whose_batch_has_other_bytes_of_the_entry_is_evidence(case):
    case.batches[1] = batch_of(EVENT, "south", 0, FIRST, [C], {"sha256": b"y" * 32})
    case.receipts["c"] = with_proof(case, receipt_of(C, word_of(EVENT, "south", C, 0)))
    assert [who for who, _ in case.evidence()] == ["south"]


def test_a_receipt_for_other_bytes_than_were_committed_to_is_evidence(case):
    word = word_of(EVENT, "west", E, 7, sha256=b"z" * 32)
    case.receipts["e"] = with_proof(case, receipt_of(E, word))
    assert [who for who, text in case.evidence() if "holds other bytes" in text] == ["west"]


def test_what_was_sealed_anew_may_be_other_bytes(case):
    word = word_of(EVENT, "west", A, 7, sha256=b"z" * 32, sealed_anew=True)
    case.receipts["a"] = with_proof(case, receipt_of(A, word))
    assert case.evidence() == []


def test_what_a_bistro_has_not_signed_accuses_nobody(case):
    mine = word_of(EVENT, "south", A, 0)
    forged = mine[:-6] + ("AAAAAA" if not mine.endswith("AAAAAA") else "BBBBBB")
    case.receipts["a"] = with_proof(case, receipt_of(A, forged, "nonsense", ""))
    assert case.evidence() == []


def test_collected_and_then_refused_is_evidence(case):
    case.verdicts.append(said(A, REFUSED, DOES_NOT_OPEN))
    [(who, text)] = case.evidence()
    assert who == "destination"
    assert text.startswith("It has reported 1 entry as collected, and later as refused.")


def test_superseded_by_what_no_log_shows_is_a_dispute_in_the_end(case):
    """A service may show an auditor less of its log than it has shown the destination."""
    case.verdicts[3] = said(D, SUPERSEDED, "cd" * 32)
    found = case.audit()
    (dispute,) = found.custody.disputes
    assert dispute.between == ("destination", "services")
    assert dispute.text.startswith(
        "1 entry: superseded by an entry that never arrived and that no log shows"
    )
    assert dispute.examples == (D.entry.hex(),)
    assert (found.evidence, found.exit_code) == ((), 1)
    case.is_over = False
    assert case.audit().custody.disputes == ()


@pytest.mark.parametrize(("liar", "is_said"), [("a witness", True), ("a service", False)])
def test_what_logs_lack_is_said_unless_a_service_has_taken_something_back(case, liar, is_said):
    """Only services can take entries out of logs; what witnesses have signed changes none."""
    case.verdicts[3] = said(D, SUPERSEDED, "cd" * 32)
    entries = [each.entry for each in case.commitments]
    log, first = case.logs[0], case.event.witness_keys[0].name
    if liar == "a witness":
        # It has signed the larger log a minute earlier than the smaller one.
        heads = [(5, IN_TIME_S), (6, LATE_S)]
        moved = {first: -60}
        log.heads[1] = service_log(
            case.event, 0, entries, heads, wrong_s=lambda name: moved.get(name, 0)
        ).heads[1]
    else:
        word = acknowledge(log.key.name, E.entry, 0, IN_TIME_S, key_of("s0"))
        case.receipts["e"] = Receipt(E, acknowledgements=(word,))
    found = case.audit()
    assert {lie.who for lie in found.evidence} == {first if is_said else log.key.name}
    assert bool(found.custody.disputes) == is_said


def test_what_is_beyond_a_quota_may_be_superseded_by_what_never_came(case):
    case.verdicts[3] = said(D, SUPERSEDED, E.entry.hex())
    case.verdicts += [said(E, REFUSED, NEVER_CAME)]
    assert case.evidence() == []
    assert case.audit().custody.counts["missing"] == 0


def test_what_is_superseded_by_what_never_came_is_counted_and_named(case, capsys):
    """Nobody but the owner of D can see whether E is of the same ticket: it is no evidence."""
    case.verdicts[3] = said(D, SUPERSEDED, E.entry.hex())
    case.verdicts += [said(E, REFUSED, NEVER_CAME), said(D, SUPERSEDED, E.entry.hex())]
    found = case.audit()
    assert found.custody.counts["superseded_by_absent"] == 1
    assert found.custody.unseen == (D.entry,)
    assert (found.evidence, found.exit_code) == ((), 0)
    case.monkeypatch.chdir(case.folder)
    arguments = ["audit", "event.toml", "--batches", "batches", "--verdicts", "verdicts"]
    assert run(arguments) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "1 superseded by an entry that never arrived" in lines
    assert f"superseded by an entry that never arrived: {D.entry.hex()}" in " ".join(lines)
    assert run([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["custody"]
    assert told["superseded_by_absent"] == 1
    assert told["superseded_by_absent_first"] == [D.entry.hex()]
    case.is_over = False
    assert case.audit().custody.counts["superseded_by_absent"] == 0


def test_where_nobody_can_know_what_is_beyond_a_quota_only_what_came_supersedes(
    tmp_path, monkeypatch
):
    case = Case(tmp_path, monkeypatch, event_bytes(**CHANGES, admission="open"))
    *_, d, e, _ = case.commitments
    case.verdicts[3] = said(d, SUPERSEDED, e.entry.hex())
    case.verdicts += [said(e, REFUSED, NEVER_CAME)]
    assert [who for who, _ in case.evidence()] == ["destination"]


def test_what_a_bistro_has_signed_for_and_never_came_is_a_dispute(case):
    case.verdicts[2] = said(C, REFUSED, NEVER_CAME)
    (dispute,) = case.audit().custody.disputes
    assert dispute.between == ("south", "destination")
    assert "reported as never arrived" in dispute.text


def test_a_later_draft_may_supersede_one_that_has_superseded_another(case):
    case.verdicts = [said(A), said(B), said(A, SUPERSEDED, B.entry.hex())]
    case.verdicts += [said(B, SUPERSEDED, C.entry.hex()), said(C)]
    assert case.evidence() == []
    assert case.audit().custody.counts["superseded"] == 2


def test_two_that_supersede_each_other_are_evidence(case):
    case.verdicts = [said(A), said(B), said(A, SUPERSEDED, B.entry.hex())]
    case.verdicts += [said(B, SUPERSEDED, A.entry.hex()), said(C)]
    [(who, text)] = case.evidence()
    assert who == "destination"
    assert B.entry.hex() in text


def test_what_counts_again_may_supersede_what_had_superseded_it(case):
    case.verdicts = [said(A), said(B), said(A, SUPERSEDED, B.entry.hex())]
    case.verdicts += [said(A, COLLECTED, B.entry.hex())]
    case.verdicts += [said(B, SUPERSEDED, A.entry.hex()), said(C)]
    assert case.evidence() == []
    counts = case.audit().custody.counts
    assert (counts["collected"], counts["superseded"]) == (2, 1)


def test_superseded_by_itself_is_evidence(case):
    case.verdicts[3] = said(D, SUPERSEDED, D.entry.hex())
    [(who, text)] = case.evidence()
    assert (who, "by the very same entry" in text) == ("destination", True)


def test_what_is_no_verdict_in_its_log_is_evidence(case):
    case.verdicts.append(b"datacollect-verdict/1\nwhatever\n")
    [(who, text)] = case.evidence()
    assert who == "destination"
    assert text.startswith("1 entry of its log is no verdict; the first is entry 4")


def test_however_many_entries_are_no_verdicts_few_are_told(case):
    case.verdicts += [b"no verdict %d" % i for i in range(100)]
    assert [who for who, _ in case.evidence()] == ["destination"]
    assert case.evidence()[0][1].startswith("100 entries of its log are no verdicts")


def test_a_word_on_a_receipt_that_the_log_of_verdicts_does_not_hold_is_evidence(case):
    other = verdict_log(EVENT, [said(E)])
    receipt = with_proof(case, receipt_of(E))
    case.receipts["e"] = replace(receipt, collected=other.proof(said(E).data).data.decode())
    accused = case.evidence()
    assert accused[0][0] == "destination"
    assert "two logs that differ" in accused[0][1]


# One of several has failed, and nothing that is signed says which.


def disputes(case):
    found = case.audit()
    assert found.evidence == ()
    assert found.exit_code == (1 if found.custody.disputes else 0)
    return {each.between: each.examples for each in found.custody.disputes}


def test_a_row_without_a_verdict_is_of_the_bistro_or_the_destination_in_the_end(case):
    del case.verdicts[2]
    assert disputes(case) == {("south", "destination"): (C.entry.hex(),)}
    case.is_over = False
    assert disputes(case) == {}
    assert case.audit().custody.counts["acknowledged"] == 1


def test_a_receipt_without_a_verdict_is_the_same_though_its_batch_is_not_here(case):
    case.receipts["e"] = with_proof(case, receipt_of(E, word_of(EVENT, "west", E, 3)))
    assert disputes(case) == {("west", "destination"): (E.entry.hex(),)}


def test_of_two_bistros_that_say_they_hold_it_both_are_named(case):
    case.batches.append(batch_of(EVENT, "west", 0, FIRST, [C]))
    del case.verdicts[2]
    assert disputes(case) == {("south", "west", "destination"): (C.entry.hex(),)}


def test_late_entries_with_a_receipt_are_nobodys_failure(case):
    case.batches.append(batch_of(EVENT, "west", 0, FIRST, [F]))
    assert disputes(case) == {}


def test_refused_as_late_in_time_is_of_the_destination_or_the_log(case):
    case.verdicts[1] = said(B, REFUSED, LATE)
    log = EVENT.services[0].log.name
    assert disputes(case) == {("destination", log): (B.entry.hex(),)}


def test_what_is_in_no_log_is_of_who_reports_it_or_of_the_services(case):
    stranger = commitment_of(EVENT, "stranger")
    case.batches.append(batch_of(EVENT, "west", 0, FIRST, [stranger]))
    case.verdicts.append(said(stranger))
    entry = (stranger.entry.hex(),)
    assert disputes(case) == {("destination", "services"): entry, ("west", "services"): entry}
    # It may have been handed in after the logs were read.
    case.is_over = False
    assert disputes(case) == {}


# What is not here, or cannot be read.


def test_a_batch_that_is_not_here_is_named_and_accuses_nobody(case):
    case.batches.append(batch_of(EVENT, "north", 3, b"q" * 32, []))
    found = case.audit()
    assert found.custody.troubles == ("batches 1 to 2 of north are not here",)
    assert (found.evidence, found.exit_code) == ((), 3)


@pytest.mark.parametrize("cut", [0, 3, 4, 100, 300, -1])
def test_a_cut_batch_is_named_and_accuses_nobody(case, cut):
    case.files()
    [file] = (case.folder / "batches" / "south").iterdir()
    file.write_bytes(file.read_bytes()[:cut])
    case.batches = []
    found = case.audit()
    assert len(found.custody.troubles) == 1
    assert (found.evidence, found.exit_code) == ((), 3)


def test_a_batch_that_claims_many_rows_or_is_too_long_is_read_in_part_only(case, monkeypatch):
    data = case.batches[1].data
    monkeypatch.setattr("datacollect.bistro.auditor.custody_audit.MOST_BATCH_BYTES", len(data))
    case.files()
    [file] = (case.folder / "batches" / "south").iterdir()
    file.write_bytes(data + bytes(10**6))
    case.batches = case.batches[:1]
    found = case.audit()
    assert "its rows do not match its note" in found.custody.troubles[0]


def test_a_log_of_verdicts_without_a_quorum_counts_nothing_and_accuses_nobody(case):
    case.files()
    verdict_log(EVENT, case.verdicts, n_witnesses=2).write(case.folder / "verdicts")
    found = dc.audit_event(
        case.folder / "event.toml",
        batches=case.folder / "batches",
        verdicts=case.folder / "verdicts",
    )
    assert (
        "2 witnesses have signed the log of verdicts, and 3 are needed"
        in (found.custody.troubles[0])
    )
    assert found.custody.counts == {
        **COUNTS,
        "collected": 0,
        "refused": 0,
        "superseded": 0,
        "missing": 5,
        "acknowledged": 3,
    }
    assert (found.evidence, found.custody.disputes, found.exit_code) == ((), (), 3)


def test_every_cut_of_the_log_of_verdicts_is_noticed(case):
    case.files()
    paths = [path for path in (case.folder / "verdicts").rglob("*") if path.is_file()]
    assert len(paths) == 3
    for path in paths:
        data = path.read_bytes()
        for changed in (data[:-1], data[: len(data) // 2], b"", data + b"x", bytes(len(data))):
            path.write_bytes(changed)
            found = dc.audit_event(
                case.folder / "event.toml", verdicts=case.folder / "verdicts", workers=0
            )
            assert found.exit_code in (1, 3)
            assert {lie.who for lie in found.evidence} <= {"destination"}
        path.write_bytes(data)


def test_a_service_that_cannot_be_read_leaves_nobody_accused_of_what_only_it_had(case):
    stranger = commitment_of(EVENT, "stranger")
    case.batches.append(batch_of(EVENT, "west", 0, FIRST, [stranger]))
    case.logs[1].get = lambda *_: Answer(500, b"")
    found = case.audit()
    assert (found.evidence, found.custody.disputes, found.exit_code) == ((), (), 3)


# Events of version 1.


@pytest.fixture
def older(tmp_path, monkeypatch):
    """The same event as they were once: no owners, and tickets that were words."""
    return Case(tmp_path, monkeypatch, older_event_bytes())


def test_an_event_of_version_1_is_audited_as_before(older):
    a, b, _, _, e, _ = older.commitments
    assert older.batches[0].data[4:].startswith(b"datacollect-batch/1\n")
    older.verdicts[1] = said(b, REFUSED, "lacks the ticket's secret")
    words = (word_of(older.event, "north", a, 0), word_of(older.event, "west", e, 3))
    for name, commitment, word in zip("ae", (a, e), words, strict=True):
        older.receipts[name] = with_proof(older, receipt_of(commitment, word))
        assert b"datacollect-receipt/1" in older.receipts[name].data
    found = older.audit()
    assert found.custody.counts == {**COUNTS, "acknowledged": 1}
    assert found.custody.refused == {"lacks the ticket's secret": 1}
    assert found.evidence == ()
    assert [each.outcome for each in found.receipts] == ["in time", "in time"]
    assert [each.between for each in found.custody.disputes] == [("west", "destination")]


def test_of_an_event_of_version_1_one_line_says_what_it_cannot_show(older, capsys):
    older.files()
    older.monkeypatch.chdir(older.folder)
    arguments = ["audit", "event.toml", "--batches", "batches", "--verdicts", "verdicts"]
    assert run(arguments) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("anyone who heard a ticket could use it") == 1
    assert run([*arguments, "--json"]) == 0
    assert "anyone who heard a ticket" in json.loads(capsys.readouterr().out)["caveat"]


def test_each_kind_of_event_has_its_own_batches_and_verdicts(case, older):
    """A batch without owners is none of an event in which they sign; nor is a ticket's secret."""
    case.verdicts[1] = said(B, REFUSED, "lacks the ticket's secret")
    case.files()
    write_batches(case.folder / "batches", older.batches)
    found = dc.audit_event(
        case.folder / "event.toml",
        batches=case.folder / "batches",
        verdicts=case.folder / "verdicts",
    )
    assert len(found.custody.troubles) == 2
    assert [lie.who for lie in found.evidence] == ["destination"]
    assert found.caveat == ""


# The command.


def test_the_command_says_who_became_what(case, capsys):
    del case.verdicts[2]
    case.files()
    folder = case.folder
    case.monkeypatch.chdir(folder)
    arguments = ["audit", "event.toml", "--batches", "batches", "--verdicts", "verdicts"]
    assert run(arguments) == 1
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for line in ("5 in time", "1 collected", "1 superseded", "1 refused", "1 it does not open"):
        assert line in lines
    assert {"2 missing", "1 late", "north 1 2", "west 0 0"} <= set(lines)
    assert "at fault is south or destination" in out
    assert run([*arguments, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["custody"]
    assert (found["missing"], found["acknowledged"], found["is_over"]) == (2, 1, True)
    assert found["disputes"][0]["between"] == ["south", "destination"]
    assert found["verdicts"] == {"where": "verdicts", "size": 3, "witnesses": 4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "choose what to audit"),
        (["--log", "--verdicts", "v"], "choose what to audit"),
        (["--log", "--batches", "b"], "batches are compared with verdicts"),
        (["--verdicts", "v", "--workers", "1", "--dask", "tcp://a:1"], "cannot be combined"),
        (["--verdicts", "v", "--batches", "absent"], "no such folder"),
        (["--verdicts", "v", "--batches", "empty"], "empty: holds no batches, *.batch; check"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(case, capsys, options, message):
    case.files()
    case.monkeypatch.chdir(case.folder)
    (case.folder / "empty").mkdir()
    assert run(["audit", "event.toml", *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


# A log of verdicts that was succeeded -----------------------------------------------------------


def succeeded(case, *verdicts):
    """Have an amendment end the log of verdicts in time; the log that succeeds it says these."""
    named = log_key("verdicts2.example/00000000000000aa", key_of("dest2").public)
    note = sign_amendment(EVENT, {"verdicts": {"log": named.text}}, 1, key_of("organiser"))
    entries = [each.entry for each in case.commitments]
    heads = [(5, IN_TIME_S), (6, LATE_S), (7, ENDED_S)]
    case.logs[0] = service_log(EVENT, 0, [*entries, note], heads)
    data = [each.data for each in verdicts]
    log = SignedLog(EVENT, named, "dest2", data, [(len(data), EVENT.collect_until_s)])
    case.verdict_log = log


def shown(case, name, commitment, verdict, at_s):
    """Let somebody show what the first log has proved of an entry at a time."""
    log = SignedLog(EVENT, EVENT.verdicts, "dest", [verdict.data], [(1, at_s)])
    receipt = replace(receipt_of(commitment), collected=log.proof(verdict.data).data.decode())
    case.receipts[name] = with_proof(case, receipt)


ENDED_S = LATE_S + 1000


def test_what_an_ended_log_had_proved_stands_in_the_audit(case):
    """D, of which the successor knows nothing, was collected by the first log."""
    succeeded(case, *case.verdicts[:3])
    shown(case, "d", D, said(D), ENDED_S)
    found = case.audit()
    assert not found.evidence
    assert found.custody.counts["collected"] == 3
    assert case.audit().custody.counts["missing"] == 1


def test_what_it_says_after_its_end_does_not_count(case):
    succeeded(case, *case.verdicts[:3])
    shown(case, "d", D, said(D), ENDED_S + 1)
    found = case.audit()
    assert not found.evidence
    assert found.custody.counts["collected"] == 2
    assert found.custody.counts["missing"] == 2


def test_successor_that_refuses_what_was_collected_is_evidence(case):
    succeeded(case, said(D, REFUSED, DOES_NOT_OPEN), *case.verdicts[:3])
    shown(case, "d", D, said(D), ENDED_S)
    (lie,) = case.audit().evidence
    assert lie.who == "destination"
    assert lie.text.startswith("It has reported 1 entry as collected, and later as refused.")


def test_ended_log_that_has_signed_two_trees_is_evidence(case):
    succeeded(case, *case.verdicts[:3])
    shown(case, "d", D, said(D), ENDED_S)
    shown(case, "a", A, said(A), ENDED_S)
    accused = {lie.who for lie in case.audit().evidence}
    assert accused == {"destination", *(each.name for each in EVENT.witness_keys)}
