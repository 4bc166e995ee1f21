"""The organiser's page: who is let in, what it tells as it changes, and how it looks."""

from __future__ import annotations

import http.client
import json
import socket
import stat
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from bistro.destination.run.test_standing import ALL
from conftest import BROWSER_MS

from datacollect.bistro.destination.run.overview_server import STATIC, TOKEN_FILE, overview_page
from datacollect.bistro.destination.run.standing import LogStanding, write_standing
from datacollect.errors import ProblemError
from datacollect.pictures import live_page
from datacollect.pictures.live_page import MOST_STREAMS


@pytest.fixture
def overview(tmp_path, monkeypatch):
    monkeypatch.setattr(live_page, "LOOK_S", 0.02)
    with overview_page(tmp_path, 0) as made:
        yield made


def asked(overview, path: str, token: str | None = None):
    """Return an answer whose body is still to be read."""
    connection = http.client.HTTPConnection(urlsplit(overview.url).netloc, timeout=120)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    connection.request("GET", path, headers=headers)
    return closing(connection), connection.getresponse()


def told(stream) -> dict:
    """Return the next that a stream tells."""
    line = stream.readline()
    assert line.startswith(b"data: ")
    assert stream.readline() == b"\n"
    return json.loads(line[6:])


def test_it_tells_how_far_the_event_is_each_time_that_it_changes(overview, tmp_path):
    write_standing(ALL, [], tmp_path)
    ends, stream = asked(overview, "/events", urlsplit(overview.url).fragment)
    with ends:
        assert stream.getheader("Content-Type") == "text/event-stream"
        assert told(stream)["collected"] == 2
        write_standing(replace(ALL, collected=3), [], tmp_path)
        assert told(stream)["collected"] == 3
        stream.close()


@pytest.mark.parametrize("token", [None, "", "x", "ä"])
def test_nobody_without_the_token_is_told_anything(overview, token):
    connection = http.client.HTTPConnection(urlsplit(overview.url).netloc, timeout=120)
    with closing(connection):
        connection.putrequest("GET", "/events")
        if token is not None:
            connection.putheader("Authorization", f"Bearer {token}".encode())
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, b"data" in answer.read()) == (401, False)


def test_files_are_served_with_a_strict_policy_and_others_are_not(overview):
    for path in STATIC:
        ends, answer = asked(overview, path)
        with ends:
            assert answer.status == 200
            assert "default-src 'none'" in answer.getheader("Content-Security-Policy")
            assert answer.read()
    for path in ("/../event_run.py", "/overview/index.html", "/events/"):
        ends, answer = asked(overview, path)
        with ends:
            assert answer.status == 404
            answer.read()


def test_its_address_stays_good_after_a_new_start(tmp_path):
    with overview_page(tmp_path, 0) as first:
        parts = urlsplit(first.url)
    path = tmp_path / TOKEN_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with overview_page(tmp_path, 0) as second:
        assert urlsplit(second.url).fragment == parts.fragment


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", ["", "x" * 31, "ä" * 32, None])
def test_a_token_that_is_none_or_that_others_could_read_is_replaced(tmp_path, spoilt):
    with overview_page(tmp_path, 0) as first:
        token = urlsplit(first.url).fragment
    path = tmp_path / TOKEN_FILE
    if spoilt is None:
        path.chmod(0o644)
    else:
        path.write_text(spoilt)
    with overview_page(tmp_path, 0) as second:
        found = urlsplit(second.url).fragment
    assert len(found) == 32
    assert found not in (token, spoilt)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (found, 0o600)


def test_it_listens_on_loopback_alone_and_names_a_port_that_is_taken(overview, tmp_path):
    parts = urlsplit(overview.url)
    assert parts.hostname == "127.0.0.1"
    with pytest.raises(ProblemError, match=f"--page {parts.port}: Address already in use"):
        overview_page(tmp_path, parts.port)


def test_pages_that_stay_open_leave_the_others_alone(overview, tmp_path):
    """Also who connects and says nothing."""
    write_standing(ALL, [], tmp_path)
    token = urlsplit(overview.url).fragment
    with socket.create_connection(("127.0.0.1", urlsplit(overview.url).port)):
        streams = [asked(overview, "/events", token) for _ in range(MOST_STREAMS)]
        for _, stream in streams:
            assert told(stream)["collected"] == 2
        ends, answer = asked(overview, "/events", token)
        with ends:
            assert answer.status == 503
            answer.read()
        for ends, stream in streams:
            stream.close()
            with ends:
                pass


BUSY = replace(
    ALL,
    name="Income tax 2026",
    in_time=10_000,
    collected=7_200,
    waiting=2_100,
    refused=12,
    missing={"timestamp without upload": 31, "receipt without data": 2},
    lies=(("west", "It has signed 2 different batches with the number 7: " + "a" * 500),),
    predicted_s=5400.0,
    logs=(LogStanding("https://log1.example", 9321), LogStanding("https://log2.example", 8100)),
    arrivals=tuple((n * 10, 1 + n * n) for n in range(50)),
    contacts={"north": 1000, "south": 400, "west": None},
    not_here=17,
)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1100, 320])
def test_it_looks_as_it_should(overview, tmp_path, browser, width):
    write_standing(BUSY, [], tmp_path)
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark")
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.set_default_timeout(BROWSER_MS)
    page.goto(overview.url)
    page.get_by_text("as of").wait_for()
    assert page.title() == "Income tax 2026"
    assert "7,200" in page.locator("#counts").inner_text()
    assert "not on this disk as collected\t17" in page.locator("#counts").inner_text()
    assert page.locator("#arrivals .bar").count() == 50
    assert "The rest comes in 1 h 30 min" in page.locator("#plan").inner_text()
    assert "south\tsilent\t\t10 min" in page.locator("#bistros").inner_text()
    assert "west\tsilent\t\tever" in page.locator("#bistros").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    write_standing(replace(BUSY, collected=7_300), [], tmp_path)
    page.get_by_text("7,300").wait_for()
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    page.close()
    assert said == []
