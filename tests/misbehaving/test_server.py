"""The server that misbehaves: as many behaviours as promised, and on the wire what is said."""

from __future__ import annotations

import http.client
import random
import socket
import ssl
from contextlib import closing
from itertools import islice

import pytest
from judges.misbehaving_answers import Elsewhere, Request, answer
from judges.misbehaving_server import Site, misbehaving_server
from judges.misbehaviour import AXES, HONEST, Behaviour, draw, enumerate_behaviours
from judges.strict_client import EXAMPLE, Expectation, Known, expectation

from datacollect.net.tls import make_certificate

RANGES = ((None, None), (0, 0), (1000, 1999), (len(EXAMPLE.data), None))
ELSEWHERE = Elsewhere("https://elsewhere.example", "http://elsewhere.example")


def seen(behaviour):
    """All that clients can see of a behaviour in a few requests."""
    return tuple(
        answer(behaviour, EXAMPLE, Request("/f", n, *asked, is_moved=is_moved), ELSEWHERE)
        for n in range(5)
        for asked in RANGES
        for is_moved in (False, True)
    )


def test_two_thousand_behaviours_differ_in_what_clients_see():
    found = enumerate_behaviours()
    assert len({behaviour.key for behaviour in found}) == len(found)
    assert tuple(Behaviour.from_key(each.key) for each in found) == found
    # Each answers in its own way, but for a few whose deviations come to the same.
    chosen = found[::12]
    assert len({seen(behaviour) for behaviour in chosen}) > 0.9 * len(chosen)
    assert len(found) > 2500


def test_they_are_enumerated_and_drawn_alike_each_time():
    assert enumerate_behaviours() == enumerate_behaviours.__wrapped__()
    drawn = [list(islice(draw(random.Random(1)), 50)) for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_every_word_of_every_axis_occurs_alone_but_for_when():
    alone = {
        next(iter(b.deviations.items())) for b in enumerate_behaviours() if len(b.deviations) == 1
    }
    # When it misbehaves, and for how many names, is said of something else.
    of_others = ("turn", "names")
    assert alone == {
        (axis, word) for axis, words in AXES.items() if axis not in of_others for word in words[1:]
    }


def test_a_word_that_no_axis_has_is_refused():
    with pytest.raises(ValueError, match=r"body must be one of .*, got 'wrong'"):
        Behaviour(body="wrong")


@pytest.mark.parametrize(
    ("behaviour", "nothing", "size", "sha256"),
    [
        (HONEST, "honest", "honest", "honest"),
        (Behaviour(status="whole"), "honest", "honest", "honest"),
        (Behaviour(status="503"), "detectable", "detectable", "detectable"),
        # Whoever was told a wrong total by the first answer has nothing else to compare it with.
        (Behaviour(content_range="a smaller total"), "only by hash", "honest", "honest"),
        (Behaviour(body="zeros"), "only by hash", "only by hash", "detectable"),
        (Behaviour(body="empty"), "only by hash", "detectable", "detectable"),
        (Behaviour(redirect="login"), "detectable", "detectable", "detectable"),
        (Behaviour(body="error JSON", names="half"), "detectable", "detectable", "detectable"),
        (Behaviour(body="pointer", type="data"), "detectable", "detectable", "detectable"),
        (Behaviour(timing="late", type="text"), "honest", "honest", "honest"),
        # Strong validators tell versions apart; without any nobody can.
        (Behaviour(body="replaced"), "honest", "honest", "honest"),
        (Behaviour(body="replaced", validator="none"), "only by hash", "only by hash", "honest"),
        (Behaviour(status="503", turn="recovers 1"), "honest", "honest", "honest"),
        (Behaviour(status="503", turn="breaks 1"), "honest", "honest", "honest"),
        (Behaviour(encoding="stored"), "detectable", "detectable", "detectable"),
    ],
    ids=lambda value: value.key if isinstance(value, Behaviour) else value,
)
def test_what_can_be_told(behaviour, nothing, size, sha256):
    for known, word in (
        (Known(), nothing),
        (Known(n_bytes=True), size),
        (Known(sha256=True), sha256),
        (Known(n_bytes=True, sha256=True), sha256),
    ):
        assert expectation(behaviour, known) is Expectation(word), known


def fetched(server, path, **headers):
    with connected(server) as connection:
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as found:
            return found.status, dict(found.getheaders()), found.read()


def connected(server, **how):
    kind = http.client.HTTPSConnection if how else http.client.HTTPConnection
    return closing(kind("127.0.0.1", server.port, timeout=20, **how))


@pytest.fixture
def site():
    return Site({"/f": EXAMPLE, "/a b#": EXAMPLE})


def test_an_honest_file_comes_whole_and_in_parts_over_one_connection(site):
    n = len(EXAMPLE.data)
    with misbehaving_server(site) as server, connected(server) as connection:
        connection.request("GET", "/a%20b%23")
        assert connection.getresponse().read() == EXAMPLE.data
        connection.request("GET", "/f", headers={"Range": "bytes=5-9"})
        found = connection.getresponse()
        assert (found.status, found.read()) == (206, EXAMPLE.data[5:10])
        assert found.getheader("Content-Range") == f"bytes 5-9/{n}"
        connection.request("HEAD", "/f")
        found = connection.getresponse()
        assert (found.getheader("Content-Length"), found.read()) == (str(n), b"")
        connection.request("GET", "/f", headers={"Range": f"bytes={n}-"})
        found = connection.getresponse()
        assert (found.status, found.getheader("Content-Range")) == (416, f"bytes */{n}")
        found.read()
        connection.request("GET", "/no")
        assert connection.getresponse().status == 404
    assert site.sent_bytes["/f"] == 5
    assert site.n_requests == {"/a b#": 1, "/f": 3, "/no": 1}
    assert site.requests[1] == ("GET /f", "bytes=5-9")


def test_what_recovers_is_bad_for_as_many_requests_and_counts_begin_again(site):
    site.behave({"/f": Behaviour(status="404", turn="recovers 1")})
    with misbehaving_server(site) as server:
        assert [fetched(server, "/f")[0] for _ in range(3)] == [404, 200, 200]
        site.behave({"/f": Behaviour(status="404", turn="breaks 1")})
        assert [fetched(server, "/f")[0] for _ in range(3)] == [200, 404, 404]


@pytest.mark.parametrize("body", ["right", "page", "endless", "compressed"])
def test_each_body_goes_out_as_it_was_judged(site, body):
    behaviour = Behaviour(body=body)
    site.behave({"/f": behaviour})
    expected = answer(behaviour, EXAMPLE, Request("/f"), ELSEWHERE)
    with (
        misbehaving_server(site) as server,
        socket.create_connection(("127.0.0.1", server.port)) as connection,
    ):
        connection.sendall(b"GET /f HTTP/1.1\r\nConnection: close\r\n\r\n")
        came = b""
        while len(came) < 100_000 and (data := connection.recv(65536)):
            came += data
    head, _, payload = came.partition(b"\r\n\r\n")
    assert payload[: len(expected.payload)] == expected.payload
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert (len(payload) > 90_000) == (body == "endless")


@pytest.mark.parametrize(
    ("behaviour", "media_type", "begins"),
    [
        (Behaviour(body="error JSON"), "application/json", b'{"error": '),
        (Behaviour(body="error XML", type="data"), "application/octet-stream", b"<?xml"),
        (Behaviour(body="error text"), "text/plain", b"Access denied"),
        (Behaviour(body="pointer"), "text/plain", b"version https://git-lfs"),
        (Behaviour(body="page", type="text"), "text/plain", b"<!DOCTYPE html>"),
        (Behaviour(type="text"), "text/plain", EXAMPLE.data),
    ],
    ids=lambda value: value.key if isinstance(value, Behaviour) else "",
)
def test_documents_come_under_their_types_or_others(site, behaviour, media_type, begins):
    site.behave({"/f": behaviour})
    with misbehaving_server(site) as server:
        status, headers, data = fetched(server, "/f")
        again = fetched(server, "/f", Range="bytes=0-0")
    assert (status, headers["Content-Type"], data[: len(begins)]) == (200, media_type, begins)
    assert again[0] == 206
    assert again[1]["Content-Range"] == f"bytes 0-0/{len(data)}"


def test_what_comes_late_comes_at_once_then(site, monkeypatch):
    monkeypatch.setattr("judges.misbehaving_server.LATE_S", 0.05)
    site.behave({"/f": Behaviour(timing="late", redirect="301")})
    with misbehaving_server(site) as server:
        assert fetched(server, "/f")[0] == 301
        assert fetched(server, "/moved/f")[2] == EXAMPLE.data


@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [
        (Behaviour(timing="reset"), ConnectionResetError),
        (Behaviour(timing="closed"), http.client.RemoteDisconnected),
        (Behaviour(timing="noise"), http.client.BadStatusLine),
        (Behaviour(timing="silent"), http.client.RemoteDisconnected),
        (Behaviour(timing="stall"), http.client.IncompleteRead),
        (Behaviour(timing="endless head"), http.client.LineTooLong),
        (Behaviour(timing="endless headers"), http.client.HTTPException),
        (Behaviour(body="short"), http.client.IncompleteRead),
        (Behaviour(length="too large"), http.client.IncompleteRead),
        (Behaviour(length="chunked without end"), http.client.IncompleteRead),
    ],
    ids=lambda value: value.key if isinstance(value, Behaviour) else "",
)
def test_what_never_ends_well_does_not(site, behaviour, failure):
    site.behave({"/f": behaviour})
    with misbehaving_server(site, patience_s=0.1) as server, pytest.raises(failure):
        fetched(server, "/f")


@pytest.mark.parametrize(
    ("word", "where"),
    [
        ("308", "/moved/f"),
        ("login", "/login/ranges"),
        ("elsewhere", "https://elsewhere.example/moved/f"),
        ("insecure", "http://elsewhere.example/moved/f"),
        ("another scheme", "file:///etc/hostname"),
        ("nowhere", None),
    ],
)
def test_where_redirects_lead(site, word, where):
    site.elsewhere = ELSEWHERE
    site.behave({"/f": Behaviour(redirect=word)})
    with misbehaving_server(site) as server:
        status, headers, _ = fetched(server, "/f")
        assert (status // 100, headers.get("Location")) == (3, where)
        if where and where.startswith("/"):
            status, headers, data = fetched(server, where, Range="bytes=0-0")
            assert (status, len(data)) == (206, 1)
            assert ("html" in headers["Content-Type"]) == (word == "login")


def test_it_speaks_tls(site, tmp_path):
    certificate, key = make_certificate("W", "127.0.0.1")
    (tmp_path / "both.pem").write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    trusting = ssl.create_default_context(cadata=certificate.decode())
    trusting.check_hostname = False
    with misbehaving_server(site, tls=context) as server:
        assert server.url.startswith("https://")
        with connected(server, context=trusting) as connection:
            connection.request("GET", "/f")
            assert connection.getresponse().read() == EXAMPLE.data
