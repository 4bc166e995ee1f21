"""Audits of logs that real services keep: all fits, until somebody has signed something else."""

from __future__ import annotations

import json

import pytest
from instances.events import key_of, owner_of, proof_of, ticket_of
from instances.timestamping import World

import datacollect as dc
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.commands.main import run
from datacollect.net.keys import write_private_key

LATER = "2027-04-16T23:59:59-04:00"
HASH = "5e" * 32


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Two services, of which the first has an entry; three witnesses."""
    with World(tmp_path_factory.mktemp("audited"), n_services=2) as made:
        made.start_witnesses(0, 1, 2)
        made.start(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SSL_CERT_FILE", str(made.authority))
            patch.chdir(made.folder)
            (made.folder / "receipts").mkdir()
            (made.folder / "a.txt").write_text("mine")
            ticket = ticket_of(made.event)
            done = dc.upload("a.txt", "event.toml", ticket=ticket, into="receipts")
            assert done.exit_code == 0, done
            # Only now: people take services in any order, and tests ask for what the first holds.
            made.start(1)
            write_private_key("organiser.key", key_of("organiser"))
            yield made


@pytest.mark.slow
def test_amendment_is_published_by_all_and_a_second_run_makes_no_second_one(world, capsys):
    extend = ("event", "extend", "event.toml", "--key", "organiser.key")
    extend += ("--deadline", LATER, "--revoke", HASH, "--json")
    told = []
    for _ in range(2):
        assert run([*extend]) == 0
        told.append(json.loads(capsys.readouterr().out))
        assert len(told[-1]["published"]) == 2
    assert [each["number"] for each in told] == [1, 1]
    receipt = "receipts/a.txt.receipt.json"
    verdict = dc.verify_receipt(receipt, "event.toml", amendments=told[0]["amendments"])
    assert verdict.deadline_s == world.event.deadline_s + 24 * 3600
    assert run(["audit", "event.toml", "--log", "--receipts", "receipts", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["number"] for each in found["amendments"]] == [1]
    assert len(found["amendments"][0]["logs"]) == 2
    assert LATER in found["amendments"][0]["text"]
    assert found["evidence"] == []
    assert found["receipts"][0]["outcome"] == "in time"
    assert sum(log["size"] for log in found["logs"]) == 3
    # An earlier deadline is none.
    assert run([*extend[:5], "--deadline", "2027-04-16T12:00:00-04:00"]) == 2
    assert "can only move to later" in capsys.readouterr().err


def forged(world, *, is_proof: bool) -> Receipt:
    """Return a receipt by which a service and its witnesses have said something else."""
    receipt = Receipt(
        Commitment(world.event.id, bytes(32), 1, bytes(32), bytes(32), owner_of("forged"))
    )
    log = world.event.services[0].log.name
    if not is_proof:
        word = acknowledge(log, receipt.entry, 0, 1_800_000_000, key_of("s0"))
        return receipt.with_more([word])
    return receipt.with_more(proofs=[proof_of(receipt.entry, log, 1_800_000_000)])


@pytest.mark.parametrize(
    ("is_proof", "said"),
    [(True, "two logs that differ"), (False, "acknowledged an entry 0, but logged another")],
)
def test_receipt_that_contradicts_the_log_is_evidence(world, tmp_path, capsys, is_proof, said):
    (tmp_path / "b.receipt.json").write_bytes(forged(world, is_proof=is_proof).data)
    arguments = ["audit", "event.toml", "--log", "--receipts", str(tmp_path), "--json"]
    assert run(arguments) == 1
    found = json.loads(capsys.readouterr().out)
    log = world.event.services[0].log.name
    assert any(each["who"] == log and said in each["text"] for each in found["evidence"])


def test_log_that_cannot_be_read_is_named_and_the_others_are_audited(world, capsys):
    world.kill(world.services[1])
    assert run(["audit", "event.toml", "--log"]) == 3
    out = capsys.readouterr().out
    assert f"{world.services[1].url} could not be read" in " ".join(out.split())
    assert "no contradictions found" in out
