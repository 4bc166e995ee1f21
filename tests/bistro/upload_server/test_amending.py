"""A bistro learns of amendments: what services prove counts, and outlives a restart."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from instances.bistros import Client, bistro_event, commitment_to, running_bistro
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
    event = bistro_event(folder, **({"deadline": over, "services": [row]} | changes))
    service.said[0] = Answer(200, amendments_data(event.id, []))
    return event


def later(event, **more):
    stamped = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() + 60))
    return sign_amendment(event, {"deadline": stamped} | more, 1, key_of("organiser"))


def published(event, note, *, n_witnesses=3):
    """Return the answer of a service that has published it."""
    proof = proof_of(note, event.services[0].log.name, int(time.time()), n_witnesses)
    return Answer(200, amendments_data(event.id, [PublishedAmendment(note, (proof,))]))


def wait_until(condition):
    end_s = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def first(found):
    """Return the first that a function returns and that is not None."""
    values = []
    wait_until(lambda: values.append(found()) or values[-1] is not None)
    return values[-1]


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
        for said, status in (
            (published(event, forged), 503),
            (published(event, note, n_witnesses=1), 403),
            (Answer(200, b"{}"), 503),
            (Answer(200, b"x" * 10**7), 503),
        ):
            service.said.append(said)
            asked_twice_more(service)
            assert client.create(event, commitment, DATA)[0] == status
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


@pytest.fixture
def rarely(monkeypatch, service):
    """The usual minute between two looks; it is shorter only where somebody is late."""
    monkeypatch.setattr(amending, "EACH_S", 60.0)
    monkeypatch.setattr(amending, "LEAST_S", 0.5)
    return service


def test_nobody_is_too_late_before_services_were_asked_once_more(tmp_path, rarely):
    event = event_at(tmp_path, rarely)
    with running_bistro(tmp_path) as (client, _):
        wait_until(lambda: len(rarely.requests) == 1)
        assert client.create(event, commitment_to(event, DATA), DATA)[0] == 403
        rarely.said.append(published(event, later(event)))
        assert client.create(event, commitment_to(event, DATA), DATA)[0] == 201
        # In time, nobody is asked.
        n_asked = len(rarely.requests)
        assert client.create(event, commitment_to(event, DATA, 1), DATA)[0] == 201
        assert len(rarely.requests) == n_asked == 3
        client.close()


def test_nobody_is_too_late_where_no_service_answers(tmp_path, rarely):
    event = event_at(tmp_path, rarely)
    with running_bistro(tmp_path) as (client, _):
        wait_until(lambda: len(rarely.requests) == 1)
        rarely.said.append(Answer(503))
        status, headers, _ = client.create(event, commitment_to(event, DATA), DATA)
        assert (status, headers["retry-after"]) == (503, "2")
        rarely.said.append(published(event, later(event)))
        assert client.create(event, commitment_to(event, DATA), DATA)[0] == 201
        client.close()


def test_what_goes_wrong_while_services_are_asked_is_said_and_they_are_asked_again(
    tmp_path, rarely, monkeypatch
):
    event = event_at(tmp_path, rarely)
    with running_bistro(tmp_path) as (client, _):
        wait_until(lambda: len(rarely.requests) == 1)
        ask = amending.Amending.ask
        monkeypatch.setattr(amending.Amending, "ask", lambda *_: 1 / 0)
        assert client.create(event, commitment_to(event, DATA), DATA)[0] == 503
        monkeypatch.setattr(amending.Amending, "ask", ask)
        rarely.said.append(published(event, later(event)))
        assert client.create(event, commitment_to(event, DATA), DATA)[0] == 201
        client.close()


@pytest.mark.slow
def test_many_who_are_late_ask_services_no_oftener_than_one(tmp_path, rarely):
    """Nor does whoever has no proof of this event: he has nobody asked."""
    event = event_at(tmp_path, rarely)
    with running_bistro(tmp_path) as (client, _):
        wait_until(lambda: len(rarely.requests) == 1)
        other = {"Upload_Length": str(len(DATA)), "Upload_Metadata": "commitment e30=,proof e30="}
        assert client.ask("POST", "/tus/", **other)[0] == 400
        assert len(rarely.requests) == 1
        began_s = time.monotonic()
        with ThreadPoolExecutor(20) as pool:
            statuses = [*pool.map(lambda i: late(client.address, event, i), range(60))]
        assert {*statuses} == {403}
        most = 2 + (time.monotonic() - began_s) / 0.5
        assert 2 <= len(rarely.requests) <= most
        client.close()


def late(address, event, salt):
    client = Client(address)
    try:
        return client.create(event, commitment_to(event, DATA, salt), DATA)[0]
    finally:
        client.close()


def test_a_service_that_is_silent_keeps_out_nobody_whom_another_lets_in(
    tmp_path, rarely, monkeypatch
):
    monkeypatch.setattr(amending, "ANSWERS_S", 0.3)
    held = threading.Event()
    with odd_server(lambda _: held.wait(30) and ANSWER) as silent:
        rows = [
            {"url": each.url.rstrip("/"), "key": key_of(f"s{i}").public}
            for i, each in enumerate((rarely, silent))
        ]
        event = event_at(tmp_path, rarely, services=rows)
        with running_bistro(tmp_path) as (client, _):
            wait_until(lambda: silent.requests)
            # Who comes while all are asked as usual is told to come again, not that he is late.
            monkeypatch.setattr(amending, "WAIT_S", 0.1)
            status, headers, _ = client.create(event, commitment_to(event, DATA), DATA)
            assert (status, headers["retry-after"]) == (503, "2")
            held.set()
            monkeypatch.setattr(amending, "WAIT_S", 15.0)

            def answered() -> int | None:
                # On a busy machine neither may have answered within 0.3 s.
                status = client.create(event, commitment_to(event, DATA), DATA)[0]
                return None if status == 503 else status

            assert first(answered) == 403
            held.clear()
            rarely.said.append(published(event, later(event)))
            assert first(answered) == 201
            held.set()
            client.close()
