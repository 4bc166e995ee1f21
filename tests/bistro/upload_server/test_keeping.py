"""What keeps a bistro's disk full, over HTTP, beside a destination's real register."""

from __future__ import annotations

import time
from dataclasses import replace
from hashlib import sha256

import pytest
from instances.bistros import bistro_event, commitment_to, metadata, running_bistro
from instances.events import key_of, ticket_of

from datacollect.bistro.destination.holdings import LOST
from datacollect.bistro.destination.opening import Opener
from datacollect.bistro.destination.register import Register
from datacollect.bistro.formats.custody.batches import read_batch
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.custody.segments import read_index
from datacollect.bistro.formats.custody.verdicts import Covered, ranges_of
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.receipt.upload_wish import metadata_of, metadata_text

DATA = bytes(range(256)) * 400
WITHIN_S = 300.0


class Collecting:
    """A destination that fetches by reading the bistro's folder, and collects all that is whole."""

    def __init__(self, folder, event) -> None:
        self.served, self.event = folder / "north-uploads" / "served", event
        self.register = Register(str(folder / "register"), event)
        self.fetched = folder / "fetched"
        keys = {ticket_of(event, n).number.hex(): ticket_of(event, n).key.public for n in (1, 2)}
        self.keys = keys
        self.opener = Opener((), keys, self.fetched, folder / "into")
        self.collected: dict[bytes, bytes] = {}

    def note(self, client) -> None:
        """Take what is served, judge what is whole, say what may go."""
        taking, held = self.register, self.register.held
        for path in sorted(self.served.glob("batches/*.batch")):
            batch = read_batch(path.read_bytes(), self.event)
            if held.take_batch(batch, self.keys):
                taking.take_times((bytes(e), int(time.time()) - 60) for e in batch.rows["entry"])
        for path in sorted(self.served.glob("segments/*.index")):
            number = int(path.stem)
            try:
                index, data = path.read_bytes(), path.with_suffix(".segment").read_bytes()
            except FileNotFoundError:  # it was let go meanwhile
                continue
            held.take_index("north", number, read_index(index))
            copy = self.fetched / f"{number}"
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(data)
            held.take_segment("north", number, copy.stat().st_size)
        for opening in [*held.to_open()]:
            data = b"".join(
                (self.fetched / f"{segment}").read_bytes()[at : at + n]
                for segment, at, _, n in opening.parts.tolist()
            )
            is_right = sha256(data).digest() == opening.upload.sha256
            taking.opened(opening.upload, "" if is_right else LOST)
            self.collected[opening.upload.commitment.entry] = data
        taking.logged(taking.to_log())
        n_batches = held.n_batches("north")
        segments = ranges_of(held.covered("north", int(time.time())))
        said = Covered(self.event.id, "north", 1, n_batches, segments, int(time.time()))
        note = said.signed(self.event, key_of("verdicts"))
        assert client.ask("POST", "/covered", note.data)[0] == 200


@pytest.fixture
def event(tmp_path, monkeypatch):
    monkeypatch.setattr("datacollect.bistro.upload_server.core.BATCH_AFTER_S", 0.3)
    monkeypatch.setattr("datacollect.bistro.upload_server.core.CLOSED_AFTER_S", 0.3)
    monkeypatch.setattr("datacollect.bistro.upload_server.server.TICK_S", 0.05)
    log = log_key("dest.example/0123456789abcdef", key_of("verdicts").public).text
    return bistro_event(tmp_path, verdicts={"log": log}, limits={"commitments_per_ticket": 20})


def until(true, each):
    end_s = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < end_s
        each()
        time.sleep(0.1)


def collect(destination, client, entry):
    until(lambda: entry in destination.collected, lambda: destination.note(client))


@pytest.mark.slow
def test_a_byte_in_each_segment_and_false_beginnings_keep_none_and_hide_nothing(event, tmp_path):
    """A stranger trickles, and begins anew and gives up; others hand in. After a restart, too."""
    destination = Collecting(tmp_path, event)
    slow = commitment_to(event, DATA, 50)
    segments = tmp_path / "north-uploads" / "served" / "segments"
    offset, path = 0, ""
    for start in range(2):
        with running_bistro(tmp_path) as (client, _):
            path = client.create(event, slow, number=2)[1]["location"]
            for i in range(3):
                salt = 3 * start + i
                honest = commitment_to(event, DATA, salt)
                assert client.patch(path, offset, DATA[offset : offset + 1])[0] == 204
                offset += 1
                # The same entry begins, and is given up.
                begun = client.create(event, honest, DATA[:9])[1]["location"]
                assert client.give_up(event, begun, honest)[0] == 204
                assert client.create(event, honest, DATA)[0] == 201
                collect(destination, client, honest.entry)
            until(
                lambda: client.facts()["stored_bytes"] < len(DATA),
                lambda: destination.note(client),
            )
            assert client.ask("HEAD", path)[1]["upload-offset"] == str(offset)
            client.close()
    n_kept = sum(path.stat().st_size for path in segments.glob("*.segment"))
    assert n_kept < len(DATA)
    with running_bistro(tmp_path) as (client, _):
        found = client.patch(path, offset, DATA[offset:])[1]
        word = read_bistro_receipt(found["datacollect-receipt"], event)
        assert word.sha256 == slow.ciphertext_sha256
        collect(destination, client, slow.entry)
        client.close()
    assert {*destination.collected.values()} == {DATA}
    assert destination.register.held.lies() == []
    destination.register.close()


@pytest.mark.slow
def test_the_ticket_of_a_row_has_signed_it_and_no_other_can_be_put_there(event, tmp_path):
    """The owner has signed for ticket 1: ticket 2 is refused at the bistro, or named in a row."""
    destination = Collecting(tmp_path, event)
    with running_bistro(tmp_path) as (client, _):
        commitment = commitment_to(event, DATA)
        assert client.create(event, commitment, DATA)[0] == 201
        other = commitment_to(event, DATA, 1)
        values = metadata_of(metadata(event, other, 1))
        values["ticket"] = ticket_of(event, 2).token.encode()
        headers = {"Upload_Length": str(len(DATA)), "Upload_Metadata": metadata_text(values)}
        assert client.ask("POST", "/tus/", None, **headers)[0] == 403
        until(lambda: destination.collected, lambda: destination.note(client))
        client.close()
    (path,) = destination.served.glob("batches/*.batch")
    batch = read_batch(path.read_bytes(), event)
    rows = batch.rows.copy()
    rows["ticket"] = ticket_of(event, 2).number
    register = Register(str(tmp_path / "another"), event)
    register.held.take_batch(replace(batch, rows=rows), destination.keys)
    assert [*register.incomplete()] == []
    (lie,) = register.held.lies()
    assert "without the owner's signature" in lie.text
    register.close()
    destination.register.close()
