"""The file of amendments that is kept: it only grows, and is of one event."""

from __future__ import annotations

import pytest
from instances.events import event_of, key_of, proof_of

from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment
from datacollect.bistro.http.published import Saved
from datacollect.errors import ProblemError

EVENT = event_of()
NOTES = [
    sign_amendment(
        EVENT, {"deadline": f"2027-04-{day}T23:59:59-04:00"}, number, key_of("organiser")
    )
    for number, day in ((1, 16), (2, 17))
]


def saved(folder) -> Saved:
    return Saved(EVENT, "event.toml", folder)


def test_what_was_saved_stays_whatever_a_service_says_later(tmp_path):
    proofs = [proof_of(NOTES[0], EVENT.services[0].log.name, time_s) for time_s in (100, 200)]
    saved(tmp_path).add([PublishedAmendment(NOTES[0], (proofs[0],)), PublishedAmendment(NOTES[1])])
    saved(tmp_path).add([PublishedAmendment(NOTES[0], (proofs[1],))])
    assert saved(tmp_path).path == tmp_path / "event.amendments.json"
    assert saved(tmp_path).amendments == [
        PublishedAmendment(NOTES[0], tuple(proofs)),
        PublishedAmendment(NOTES[1]),
    ]


def test_file_of_another_event_is_refused_and_left_as_it_is(tmp_path):
    other = event_of(name="Another")
    note = sign_amendment(other, {"revoked": ["ab" * 32]}, 1, key_of("organiser"))
    there = Saved(other, "event.toml", tmp_path)
    there.add([PublishedAmendment(note)])
    before = there.path.read_bytes()
    with pytest.raises(ProblemError, match=r"event\.amendments\.json: event must be"):
        saved(tmp_path)
    assert there.path.read_bytes() == before
