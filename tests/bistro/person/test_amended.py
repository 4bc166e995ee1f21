"""Whom an upload asks for what an organiser has changed."""

from __future__ import annotations

import pytest
from instances.events import event_bytes, event_of, key_of, proof_of

from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment
from datacollect.bistro.http.published import Found, Saved
from datacollect.bistro.person import upload
from datacollect.net.tls import web_context

EVENT = event_of()


@pytest.mark.parametrize("knowing", [0, 1])
def test_a_later_deadline_counts_whichever_service_has_published_it(tmp_path, monkeypatch, knowing):
    note = sign_amendment(EVENT, {"deadline": "2027-04-16T23:59:59-04:00"}, 1, key_of("organiser"))
    service = EVENT.services[knowing]
    proof = proof_of(note, service.log.name, EVENT.deadline_s, 3, f"s{knowing}")

    def found(event, urls, tls):
        rows = [PublishedAmendment(note, (proof,))] if service.url in urls else []
        return Found(rows, {}, {})

    monkeypatch.setattr(upload, "amendments_of", found)
    path = tmp_path / "event.toml"
    path.write_bytes(event_bytes())
    changed, file = upload._amended(EVENT, Saved(EVENT, path, tmp_path), web_context())
    assert changed.deadline_s == EVENT.deadline_s + 86_400
    assert file == str(tmp_path / "event.amendments.json")
