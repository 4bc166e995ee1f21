"""Which bistro is tried first: by a table that counts, and by a hash whatever else is answered."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from instances.custody import BISTROS, CHANGES
from instances.events import counting_bytes, draft, key_of, proof_of
from instances.odd_server import Answer, odd_server

from datacollect.bistro.formats.assignment.assigning import by_rendezvous
from datacollect.bistro.formats.assignment.loads import BistroLoad, Loads, Wire
from datacollect.bistro.formats.event.draft import complete
from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.bistro.person import choosing
from datacollect.bistro.person.choosing import Chooser, round_trip_s
from datacollect.net.http_asking import Askers
from datacollect.net.tls import web_context

SIZE = 1000


@contextmanager
def serving(answer, n_services: int = 1, n_silent: int = 0, **changes):
    """Yield an event some of whose services answer, and the first of these servers."""
    with odd_server(answer) as server, socket.create_server(("127.0.0.1", 0)) as silent:
        urls = [f"http://127.0.0.1:{silent.getsockname()[1]}/{i}" for i in range(n_silent)]
        urls += [f"{server.url}/{i}" for i in range(n_services)]
        tree = draft(n_services=len(urls), **CHANGES | changes)
        for row, url in zip(tree["services"], urls, strict=True):
            row["url"] = url
        data = complete(tree, key_of("organiser").public, counting_bytes(), {})
        yield read_event(data), server


def receipt_of(event: Event, number: int = 0) -> Receipt:
    salt = number.to_bytes(32, "big")
    return Receipt(Commitment(event.id, salt, SIZE, b"h" * 32, b"p" * 32, b"o" * 32))


def spread_of(event: Event, receipt: Receipt) -> list[int]:
    names = [each.name for each in event.bistros]
    return [names.index(name) for name in by_rendezvous(receipt.entry, names)]


def chosen(event: Event, receipt: Receipt | None = None) -> list[int]:
    askers = Askers(web_context())
    try:
        return Chooser(event, askers).order(receipt or receipt_of(event), SIZE)
    finally:
        askers.close()


def table(of: Event, key: str = "dest", **changes) -> bytes:
    """Return a signed table: the west has least, the south has no room, the north is loaded."""
    rows = (
        BistroLoad("north", 9_000_000, 1e6),
        BistroLoad("south", 0, 1e6, free_bytes=SIZE - 1),
        BistroLoad("west", 1_000_000, 1e6),
        BistroLoad("nowhere", 0, 1e9),
    )
    made = Loads(rows, (Wire(1e9, ("west", "nowhere")),), of.id, 1, int(time.time()))
    return replace(made, **changes).signed(of, key_of(key)).data


@pytest.fixture(autouse=True)
def near(monkeypatch):
    """Have all bistros answer, the north first; return the round trips, to be changed."""
    found = dict(zip(BISTROS, (0.01, 0.02, 0.03), strict=True))
    urls = {f"https://{name}.example": name for name in BISTROS}
    monkeypatch.setattr(choosing, "round_trip_s", lambda url: found[urls[url]])
    return found


def test_the_least_loaded_of_the_near_ones_is_first_and_the_rest_follow_by_the_hash():
    with serving(lambda _: Answer(200, table(event))) as (event, _):
        for number in range(5):
            receipt = receipt_of(event, number)
            west = BISTROS.index("west")
            rest = [i for i in spread_of(event, receipt) if i != west]
            assert chosen(event, receipt) == [west, *rest]


def test_who_is_silent_is_not_near(near):
    near["west"] = None
    with serving(lambda _: Answer(200, table(event))) as (event, _):
        assert chosen(event)[0] == BISTROS.index("north")


@pytest.mark.slow
def test_who_is_silent_is_tried_last(near):
    near |= {"north": None, "west": None}
    with serving(lambda _: Answer(200, table(event, bistros=ROOMY))) as (event, _):
        for number in range(5):
            assert chosen(event, receipt_of(event, number))[0] == BISTROS.index("south")


def test_only_the_nearest_are_compared(near, monkeypatch):
    monkeypatch.setattr(choosing, "NEAR", 1)
    with serving(lambda _: Answer(200, table(event))) as (event, _):
        assert chosen(event)[0] == BISTROS.index("north")


def test_who_makes_people_wait_is_left_for_another():
    with serving(lambda _: Answer(200, made)) as (event, _):
        rows = (BistroLoad("north", 9, 1.0), BistroLoad("west", 0, 1.0, wait_s=60.0))
        made = table(event, bistros=rows, wires=())
        assert chosen(event)[0] == BISTROS.index("north")


ROOMY = tuple(BistroLoad(name, 0, 1.0) for name in BISTROS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        b"",
        b"noise",
        b"x" * (2**20 + 1),
        {"event": bytes(32)},
        {"key": "organiser"},
        {"hours": -1},
        {"hours": +1},
        {"bistros": ()},
        {"bistros": (BistroLoad("nowhere", 0, 1.0),)},
        {"bistros": (BistroLoad("west", 0, 1.0),) * 2},
        {"bistros": (BistroLoad("west", 0, 1.0, free_bytes=0),)},
    ],
)
def test_no_table_stops_an_upload(changes):
    """Without one that counts each entry has an order of its own."""
    with serving(lambda _: Answer(200, body)) as (event, _):
        body = changes
        if not isinstance(changes, bytes):
            hours = changes.get("hours", 0)
            # From now, not from when tests were collected.
            at = {"time_s": int(time.time()) + 3600 * hours} if hours else {}
            body = table(event, **(at or changes))
        receipt = receipt_of(event)
        assert chosen(event, receipt) == spread_of(event, receipt)


@pytest.mark.parametrize("status", [302, 404, 429, 500])
def test_no_answer_stops_an_upload(status):
    with serving(lambda _: Answer(status, b"no")) as (event, _):
        assert chosen(event) == spread_of(event, receipt_of(event))


def test_a_service_without_a_table_is_left_for_the_next():
    def answer(request):
        return Answer(200, table(event)) if request.path == "/1/loads" else Answer(404)

    with serving(answer, n_services=2) as (event, server):
        assert chosen(event)[0] == BISTROS.index("west")
    assert [each.path for each in server.requests] == ["/0/loads", "/1/loads"]


def test_a_service_that_has_proved_the_time_is_asked_before_silent_ones():
    with serving(lambda _: Answer(200, table(event)), n_silent=1) as (event, _):
        receipt = receipt_of(event)
        proof = proof_of(receipt.entry, event.services[1].log.name, 77, service="s1")
        assert chosen(event, receipt.with_more(proofs=[proof]))[0] == BISTROS.index("west")


def test_an_event_without_a_log_of_verdicts_asks_nobody():
    with serving(lambda _: Answer(500), verdicts=None) as (event, server):
        assert chosen(event) == spread_of(event, receipt_of(event))
    assert server.requests == []


def test_a_table_and_round_trips_count_for_all_files_of_an_upload():
    with serving(lambda _: Answer(200, table(event))) as (event, server):
        askers = Askers(web_context())
        chooser = Chooser(event, askers)
        for number in range(3):
            assert chooser.order(receipt_of(event, number), SIZE)[0] == BISTROS.index("west")
        askers.close()
    assert len(server.requests) == 1


def test_where_there_is_no_table_it_is_not_asked_for_with_each_file():
    with serving(lambda _: Answer(404)) as (event, server):
        askers = Askers(web_context())
        chooser = Chooser(event, askers)
        for number in range(3):
            receipt = receipt_of(event, number)
            assert chooser.order(receipt, SIZE) == spread_of(event, receipt)
        askers.close()
    assert len(server.requests) == 1


def test_a_round_trip_is_that_of_connecting():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            found = round_trip_s(f"https://{host}:{port}/b")
            assert found is not None
            assert 0 < found < 10
    assert round_trip_s(f"http://127.0.0.1:{port}") is None
    assert round_trip_s("https://no-such-host.invalid") is None
