"""Who hears what a person sends to one service can spend nothing of it at another, over HTTP."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import socket
import ssl
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from instances.timestamping import NAME, WITHIN_S, Answer, World

from datacollect.bistro.formats.event.statements import commit_statement
from datacollect.bistro.http.config import ServiceConfig
from datacollect.bistro.person.messages import Commit
from datacollect.errors import ProblemError
from datacollect.net.http_asking import Asker

QUOTA = 10
LYING, HONEST = 0, 1
THIEF, ANOTHER, OWNER = "127.0.0.3", "127.0.0.4", "127.0.0.2"
# What an address may ask at once without a ticket that has signed.
SHARE = 600


def entry(n: int) -> bytes:
    return hashlib.sha256(str(n).encode()).digest()


@pytest.fixture(
    scope="module", params=["", "workers = 2\n"], ids=["alone", "with processes in front"]
)
def world(tmp_path_factory, request):
    """Two services, of which only the second one is run by datacollect."""
    limits = {"commitments_per_ticket": QUOTA}
    folder = tmp_path_factory.mktemp("world")
    with World(folder, n_services=2, settings=request.param, limits=limits) as made:
        made.start_witnesses()
        # Once it takes something it has heard what witnesses know.
        made.commit(made.start(HONEST), entry(0), 99)
        yield made


def body(world: World, entries: list[bytes], number: int, **changes: object) -> bytes:
    """Return what a ticket asks of the honest service; `changes` of what is sent."""
    tree = json.loads(world.commit_body(world.services[HONEST], entries, number))
    return json.dumps(tree | changes).encode()


def signature(world: World, entries: list[bytes], number: int, service: int = HONEST) -> str:
    log = world.event.services[service].log
    said = commit_statement(world.event.id, log.key, entries)
    return base64.b64encode(world.ticket(number).key.sign(said)).decode()


@contextmanager
def from_address(world: World, address: str):
    """Yield what posts from an address, over one connection: one process in front counts it."""
    port = int(world.services[HONEST].url.rpartition(":")[2])
    connection = http.client.HTTPSConnection(
        NAME, port, context=world.trusting, timeout=WITHIN_S, source_address=(address, 0)
    )

    def post(data: bytes) -> Answer:
        connection.request("POST", "/commit", data)
        response = connection.getresponse()
        return Answer(response.status, response.read(), dict(response.getheaders()))

    with closing(connection):
        yield post


def posted(world: World, data: bytes, address: str = THIEF) -> Answer:
    with from_address(world, address) as post:
        return post(data)


def hammered(world: World, data: bytes, n: int, at_once: int = 100) -> list[int]:
    """Post so often, many at once over one connection; return the statuses of the answers.

    Who waits for each answer may be too slow, on a busy machine, for what grows again meanwhile.
    """
    place = (NAME, int(world.services[HONEST].url.rpartition(":")[2]))
    plain = socket.create_connection(place, WITHIN_S, source_address=(THIEF, 0))
    head = f"POST /commit HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {len(data)}\r\n\r\n"
    statuses = []
    with (
        world.trusting.wrap_socket(plain, server_hostname=NAME) as connection,
        connection.makefile("rb") as answers,
    ):
        for _ in range(n // at_once):
            connection.sendall((head.encode() + data) * at_once)
            for _ in range(at_once):
                statuses.append(int(answers.readline().split()[1]))
                answers.read(int(http.client.parse_headers(answers)["Content-Length"]))
    return statuses


def require_whole_quota(world: World, number: int) -> None:
    """Have a ticket's owner hand in all that it is good for, and not one more."""
    entries = [entry(1000 * number + i) for i in range(QUOTA)]
    assert posted(world, body(world, entries, number), OWNER).status == 200
    more = posted(world, body(world, [entry(number)], number), OWNER)
    assert (more.status, b"good for 10 commitments" in more.body) == (403, True)


@contextmanager
def lying_service(world: World):
    """Yield what a service hears that keeps nothing of it, in the place of the first one."""
    heard: list[bytes] = []

    class Hearing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_error(503)

        def log_message(self, *_: object) -> None:
            pass

    port = int(world.services[LYING].url.rpartition(":")[2])
    with ThreadingHTTPServer((NAME, port), Hearing) as server:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*world.tls)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield heard
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_what_one_service_has_heard_it_cannot_repeat_to_another(world):
    """It repeats token and signature of whoever asks it, with the entry and with its own."""
    number = 1
    service = world.event.services[LYING]
    with lying_service(world) as heard, Asker(service.url, world.trusting, WITHIN_S) as asker:
        asked = Commit(LYING).ask(asker, world.event, entry(1), world.ticket(number))
        assert asked.status == 503
    (told,) = map(json.loads, heard)
    assert told["ticket"] == world.ticket(number).token
    own = [told | {"entry": [entry(i).hex() for i in range(2, 2 + QUOTA)]}]
    for tree in (told, *own):
        refused = posted(world, json.dumps(tree).encode())
        assert (refused.status, b"signature must be the ticket's" in refused.body) == (403, True)
    require_whole_quota(world, number)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(lambda _: {"entry": [entry(21).hex()]}, id="other entries"),
        pytest.param(
            lambda _: {"entry": [entry(23).hex(), entry(22).hex()]}, id="in another order"
        ),
        pytest.param(
            lambda world: {"signature": signature(world, [entry(22), entry(23)], 3)},
            id="by another ticket",
        ),
        pytest.param(
            lambda world: {"signature": signature(world, [entry(22), entry(23)], 2, LYING)},
            id="for another log",
        ),
        pytest.param(
            lambda world: {"ticket": world.ticket(3).token}, id="for the token of another ticket"
        ),
    ],
)
def test_a_signature_is_for_one_log_and_for_these_entries(world, changes):
    made = body(world, [entry(22), entry(23)], 2, **changes(world))
    refused = posted(world, made)
    assert (refused.status, b"signature must be the ticket's" in refused.body) == (403, True)


@pytest.mark.slow
def test_a_token_without_a_signature_is_refused(world):
    tree = json.loads(body(world, [entry(31)], 4))
    del tree["signature"]
    refused = posted(world, json.dumps(tree).encode())
    assert (refused.status, b"signature must be the ticket's" in refused.body) == (403, True)
    for odd in (7, "", "AAAA", "!" * 88):
        assert posted(world, body(world, [entry(31)], 4, signature=odd)).status == 400
    require_whole_quota(world, 4)


@pytest.mark.slow
def test_repeated_to_the_same_log_it_is_the_same_index_and_costs_nothing(world):
    number = 5
    made = body(world, [entry(41)], number)
    first = posted(world, made, OWNER)
    again = [posted(world, made, THIEF) for _ in range(2 * QUOTA)]
    assert {first.status, *(each.status for each in again)} == {200}
    assert {each.json[0]["index"] for each in again} == {first.json[0]["index"]}
    rest = [entry(1000 * number + i) for i in range(QUOTA - 1)]
    assert posted(world, body(world, rest, number), OWNER).status == 200


@pytest.mark.slow
def test_who_hammers_with_a_stolen_token_does_not_lock_its_owner_out(world):
    """The thief's address is told to come later; the owner signs from another one."""
    number = 6
    stolen = body(world, [entry(51)], number, signature=signature(world, [entry(51)], 7))
    # While it goes on its share grows again, by 20 a second.
    statuses = hammered(world, stolen, 2 * SHARE)
    assert set(statuses) == {403, 429}
    assert statuses.index(429) > SHARE // 2
    with from_address(world, THIEF) as post:
        assert post(stolen).status in (403, 429)
        assert posted(world, body(world, [entry(52)], number), OWNER).status == 200
    require_rest = body(world, [entry(1000 * number + i) for i in range(QUOTA - 1)], number)
    assert posted(world, require_rest, OWNER).status == 200


@pytest.mark.slow
def test_what_was_heard_spends_nothing_of_it_after_a_restart_either(world):
    """Killed between two tries: what was refused before is refused, and what was taken stands."""
    number = 8
    heard = body(world, [entry(61)], number, signature=signature(world, [entry(61)], number, LYING))
    first = body(world, [entry(62)], number)
    taken = posted(world, first, OWNER)
    for n_starts in range(2):
        if n_starts:
            world.kill(world.services[HONEST])
            # Before it takes anything it asks what witnesses know.
            world.commit(world.start(HONEST), entry(63), 99)
        for _ in range(QUOTA + 1):
            assert posted(world, heard, ANOTHER).status == 403
        again = posted(world, first, ANOTHER)
        assert (again.status, again.json[0]["index"]) == (200, taken.json[0]["index"])
    rest = [entry(1000 * number + i) for i in range(QUOTA - 1)]
    assert posted(world, body(world, rest, number), OWNER).status == 200
    assert posted(world, body(world, [entry(64)], number), OWNER).status == 403


def test_a_service_keeps_no_log_of_an_event_of_an_older_kind(tmp_path):
    with World(tmp_path) as world:
        file = tmp_path / "event.toml"
        text = file.read_text()
        assert "datacollect-event/2" in text
        file.write_text(text.replace("datacollect-event/2", "datacollect-event/1"))
        with pytest.raises(
            ProblemError, match="format must be datacollect-event/2, got datacollect-event/1"
        ) as said:
            ServiceConfig.from_file(world.services[0].file)
    assert "anyone who hears a ticket can use it" in str(said.value)
