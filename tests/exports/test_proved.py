"""Exported scripts append what is proved, and name all else: wrong bytes are never done."""

from __future__ import annotations

import base64
import ssl
import threading
import time
from dataclasses import replace

import pytest
import trustme
from conftest import need
from instances.exported_scripts import N_BYTES, Scripts, data_of
from instances.odd_server import Answer, odd_server, part_of

DATA = data_of("f")
PAGE = Answer(200, b"<html>Sign in</html>" * 100, {"Content-Type": "text/html"})


def honest(request):
    return part_of(DATA, request, ETag='"1"')


def login_page(request):
    return PAGE


def login_page_behind_a_redirect(request):
    """With ranges, as some sites send it."""
    if request.path == "/f":
        return Answer(302, b"moved", {"Location": "/login"})
    return part_of(data_of("login"), request, Content_Type="text/html; charset=utf-8")


def error_behind_a_redirect(request):
    """Of the file's own length."""
    if request.path == "/f":
        return Answer(302, b"moved", {"Location": "/sorry"})
    return part_of(data_of("error"), request, Content_Type="application/problem+json")


def other_total(request):
    return part_of(DATA + b"more", request)


def packed(request):
    return part_of(DATA, request, Content_Encoding="gzip")


def cut_too_early(request):
    """What it says and what it sends are not the same."""
    return replace(part_of(DATA, request), n_stated=N_BYTES // 4, body=DATA[: N_BYTES // 4])


def without_permission(request):
    return Answer(403)


REFUSED = [
    (login_page, "2000 bytes by now, the plan was made for 200000"),
    (login_page_behind_a_redirect, "text/html after a redirect: a login page?"),
    (error_behind_a_redirect, "application/problem+json after a redirect: a login page?"),
    (other_total, "the file has 200004 bytes by now, the plan was made for 200000"),
    (packed, "Content-Encoding gzip: these are not the bytes of the file"),
    (cut_too_early, "contradicts bytes"),
    (without_permission, "status 403: credentials are missing"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "why"), REFUSED)
@pytest.mark.parametrize("n_ranges", [1, 2])
def test_what_an_answer_does_not_prove_is_named_and_nothing_of_it_stays(
    tmp_path, answer, why, n_ranges
):
    scripts = Scripts(tmp_path, n_ranges=n_ranges)
    with odd_server(answer) as server:
        scripts.write(server.url)
        code, said = scripts.start()
        assert code == 1
        assert why in said or (answer is cut_too_early and n_ranges == 1)
        assert "something is missing; the same command continues" in said
        assert scripts.is_missing()
        # Then it is a good server: the same command continues.
        server.answer = honest
        assert scripts.start() == (0, "D: done\n")
    assert scripts.has_arrived()


def test_a_server_that_sends_other_ranges_is_asked_for_whole_files(tmp_path):
    def first_bytes(request):
        return part_of(DATA, replace(request, first=request.first and 0))

    scripts = Scripts(tmp_path)
    with odd_server(first_bytes) as server:
        scripts.write(server.url)
        code, said = scripts.start()
    assert code == 0
    assert "S/f: its server sent bytes 0-199999/200000 for bytes 100000-199999" in said
    assert "the whole file is fetched" in said
    assert scripts.has_arrived()


def test_units_of_ranges_are_the_same_in_any_case(tmp_path):
    """RFC 9110, 14.1."""

    def shouting(request):
        found = part_of(DATA, request, ETag='"1"')
        headers = {key: each.replace("bytes", "Bytes") for key, each in found.headers.items()}
        return replace(found, headers=headers)

    scripts = Scripts(tmp_path)
    with odd_server(shouting) as server:
        scripts.write(server.url)
        assert scripts.start() == (0, "D: done\n")
        assert all(request.first is not None for request in server.requests)
    assert scripts.has_arrived()


def test_a_server_without_ranges_gives_whole_files_once(tmp_path):
    """Two ask for a half each, and hang up; one of them gets all of it."""
    scripts = Scripts(tmp_path)
    with odd_server(lambda _: Answer(200, DATA)) as server:
        scripts.write(server.url)
        code, said = scripts.start()
        assert len(server.requests) <= 3
    assert (code, "its server knows no byte ranges; the whole file is fetched" in said) == (0, True)
    assert scripts.has_arrived()


def test_a_lane_asks_no_more_once_another_has_brought_the_file(tmp_path):
    """One waits for an answer to its half, until the whole file counts instead."""
    scripts = Scripts(tmp_path)
    place, both_ask = tmp_path / "into/S/f", threading.Event()

    def answer(request):
        if request.first:
            both_ask.set()
            for _ in range(2500):
                if place.exists():
                    break
                time.sleep(0.02)
        elif request.first == 0:
            assert both_ask.wait(60)
        return Answer(200, DATA)

    with odd_server(answer) as server:
        scripts.write(server.url)
        assert scripts.start()[0] == 0
        assert [request.first for request in server.requests] in (
            [0, N_BYTES // 2, None],
            [N_BYTES // 2, 0, None],
        )
    assert scripts.has_arrived()


def test_two_versions_of_a_file_are_never_mixed(tmp_path):
    """Each answer is of another version; each of its own length would be right."""
    versions = iter(range(100))

    def other_each_time(request):
        n = next(versions)
        return part_of(data_of(f"version {n}"), request, ETag=f'"v{n}"')

    scripts = Scripts(tmp_path)
    with odd_server(other_each_time) as server:
        scripts.write(server.url)
        code, said = scripts.start()
        assert code == 1
        assert "the file has changed at its server: its first bytes were of ETag" in said
        assert scripts.is_missing()
        # What is left is of a version that the server has no more: it is given up once.
        server.answer = honest
        code, said = scripts.start()
    assert (code, "what came of it in an earlier start is given up" in said) == (0, True)
    assert scripts.has_arrived()


@pytest.mark.parametrize("kind", ["curl", "aria2"])
def test_what_never_ends_is_ended(tmp_path, kind):
    need(kind)
    scripts = Scripts(tmp_path, kind, n_ranges=1)
    with odd_server(lambda _: Answer(200, DATA, is_endless=True)) as server:
        scripts.write(server.url)
        code, said = scripts.start()
        # What lies in buffers of connections was sent, too.
        assert server.sent_bytes < 3 * N_BYTES + 3 * 6_000_000
    assert code == 1
    assert "gave up after 1 tries" in said
    assert scripts.is_missing()


def test_what_was_cut_short_goes_on_where_it_was(tmp_path):
    """Each answer ends in its middle, with its connection."""

    def halves(request):
        answer = part_of(DATA, request, ETag='"1"')
        half = (
            answer.body[: (len(answer.body) + 1) // 2] if len(answer.body) > 9999 else answer.body
        )
        return replace(answer, body=half, n_stated=len(answer.body))

    scripts = Scripts(tmp_path)
    with odd_server(halves) as server:
        scripts.write(server.url)
        code, said = scripts.start(DATACOLLECT_TRIES="9")
        assert server.sent_bytes == N_BYTES
    assert (code, scripts.has_arrived()) == (0, True), said


@pytest.mark.slow
def test_a_server_that_asks_to_wait_is_waited_for(tmp_path):
    turns = iter([Answer(429, headers={"Retry-After": "1"}), Answer(503)])
    scripts = Scripts(tmp_path, n_ranges=1)
    with odd_server(lambda request: next(turns, None) or honest(request)) as server:
        scripts.write(server.url)
        assert scripts.start()[0] == 0
        assert len(server.requests) == 3
        server.answer = lambda _: Answer(429, headers={"Retry-After": "86400"})
        (tmp_path / "into/S/f").unlink()
        code, said = scripts.start()
    assert code == 1
    assert "status 429, and asks to wait for 86400 s" in said


def test_nothing_is_taken_from_a_users_curlrc_but_credentials_are_from_netrc(tmp_path):
    known = "Basic " + base64.b64encode(b"me:secret").decode()

    def guarded(request):
        if request.headers.get("Authorization") != known:
            return Answer(401, headers={"WWW-Authenticate": "Basic"})
        assert request.headers["User-Agent"] == "from an options file"
        return honest(request)

    (tmp_path / ".curlrc").write_text("compressed\noutput = elsewhere\ninsecure\n")
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / "options").write_text('user-agent = "from an options file"\n')
    scripts = Scripts(tmp_path)
    with odd_server(guarded) as server:
        scripts.write(server.url)
        ended = scripts.start(DATACOLLECT_CURL_OPTIONS=str(tmp_path / "options"))
    assert (ended[0], scripts.has_arrived()) == (0, True), ended[1]
    assert not list(tmp_path.rglob("elsewhere"))


def test_https_is_never_led_on_to_http(tmp_path):
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    (tmp_path / "options").write_text(f'cacert = "{tmp_path}/ca.pem"\n')
    scripts = Scripts(tmp_path, n_ranges=1)
    with odd_server(honest) as plain, odd_server(honest, tls=tls) as server:
        scripts.write(server.url)
        options = {"DATACOLLECT_CURL_OPTIONS": str(tmp_path / "options")}
        server.answer = lambda _: Answer(302, headers={"Location": plain.url + "/f"})
        code, said = scripts.start(**options)
        assert (code, scripts.is_missing(), plain.requests) == (1, True, []), said
        server.answer = honest
        assert scripts.start(**options)[0] == 0
    assert scripts.has_arrived()
