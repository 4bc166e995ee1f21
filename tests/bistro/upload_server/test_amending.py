"""A bistro learns of amendments: what services prove counts, and outlives a restart."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from instances.bistros import bistro_event, commitment_to, running_bistro
from instances.events import key_of, proof_of
from instances.odd_server import Answer, odd_server

from datacollect.bistro.formats.event.amendments import (
    SIGNER,
    amended,
    read_amendment,
    sign_amendment,
)
from datacollect.bistro.formats.log.notes import parse_note, signed
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment, amendments_data
from datacollect.bistro.upload_server import amending
from datacollect.bistro.upload_server.server import Bistro
from datacollect.bistro.upload_server.table import accept_of
from datacollect.errors import ProblemError
from datacollect.net.keys import write_private_key
from datacollect.transfer.agent.config.file import AgentConfig

DATA = b"sealed" * 100
ANSWER = Answer(404)


@pytest.fixture
def service(monkeypatch):
    """Answers what a test has it say."""
    monkeypatch.setattr(amending, "EACH_S", 0.05)
    said = [ANSWER]
    with odd_server(lambda _: said[-1]) as server:
        server.said = said
        yield server


def event_at(folder, service, **changes):
    """Write an event of that service, which was over a minute and a half ago."""
    over = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - 90))
    row = {"url": service.url.rstrip("/"), "key": key_of("s0").public}
    return bistro_event(folder, **({"deadline": over, "services": [row]} | changes))


def later(event, **more):
    stamped = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() + 60))
    return sign_amendment(event, {"deadline": stamped} | more, 1, key_of("organiser"))


def published(event, note, *, n_witnesses=3):
    """Return the answer of a service that has published it."""
    proof = proof_of(note, event.services[0].log.name, int(time.time()), n_witnesses)
    return Answer(200, amendments_data(event.id, [PublishedAmendment(note, (proof,))]))


def wait_until(condition):
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def asked_twice_more(service):
    """The one under way may have been answered before."""
    n = len(service.requests)
    wait_until(lambda: len(service.requests) >= n + 3)


@pytest.mark.slow
def test_later_deadline_counts_once_it_is_published_and_after_a_restart(tmp_path, service):
    event = event_at(tmp_path, service)
    commitment = commitment_to(event, DATA)
    note = later(event)
    forged = signed(parse_note(note, "it").text, SIGNER, key_of("somebody")).data
    with running_bistro(tmp_path) as (client, bistro):
        for said in (
            published(event, forged),
            published(event, note, n_witnesses=1),
            Answer(200, b"{}"),
            Answer(200, b"x" * 10**7),
        ):
            service.said.append(said)
            asked_twice_more(service)
            assert client.create(event, commitment, DATA)[0] == 403
        service.said.append(published(event, note))
        wait_until(lambda: bistro.event.deadline_s > event.deadline_s)
        assert client.create(event, commitment, DATA)[0] == 201
        client.close()
    service.said.append(Answer(503))
    with running_bistro(tmp_path) as (client, bistro):
        assert bistro.event.deadline_s > event.deadline_s
        assert client.create(event, commitment_to(event, DATA, 1), DATA)[0] == 201
        client.close()


def test_added_bistro_starts_and_others_name_it(tmp_path, service):
    event = event_at(tmp_path, service)
    row = {
        "name": "east",
        "url": "https://east.example",
        "key": key_of("east").public,
        "fingerprint": "sha256:" + "0" * 64,
    }
    write_private_key(tmp_path / "east.receipts", key_of("east"))
    with pytest.raises(ProblemError, match="must name a bistro"), running_bistro(tmp_path, "east"):
        pass
    note = later(event, bistros=[row])
    service.said.append(published(event, note))
    with running_bistro(tmp_path, "east") as (client, bistro):
        assert bistro.event == amended(event, [read_amendment(note, event)])
        assert client.create(event, commitment_to(event, DATA), DATA)[0] == 201
        client.close()


def test_bistro_starts_where_its_services_are_silent(tmp_path, service):
    event_at(tmp_path, service)
    service.said.append(Answer(200, b"", n_stated=9))
    with running_bistro(tmp_path) as (client, bistro):
        asked_twice_more(service)
        assert client.facts()["bistro"] == bistro.name
        client.close()


def test_damaged_amendments_are_named_at_the_start(tmp_path, service):
    event_at(tmp_path, service)
    with running_bistro(tmp_path) as (client, _):
        client.close()
    (tmp_path / "north-uploads" / "event.amendments.json").write_text("{")
    accept = accept_of(AgentConfig.from_file(tmp_path / "north.toml"))
    with (
        pytest.raises(ProblemError, match=r"event\.amendments\.json"),
        closing(Bistro(accept, print)),
    ):
        pass
