"""The page that follows measurements: what it is told, and how it looks while tests run."""

from __future__ import annotations

import json

import pytest
from instances.watched_pages import wait_until

from datacollect.measurement.sample_store import write_part
from datacollect.measuring.page import watch_feed
from datacollect.measuring.page.watch_feed import WatchFeed
from datacollect.measuring.plan.current_tests import running_test
from datacollect.pictures import live_page
from datacollect.pictures.live_views import live_page as page_of_view

MBIT_BYTES = 125_000.0
ODD = "<a href='https://x.example'>go</a><img src=x onerror=alert(1)>"
READINGS = [
    {"at_s": float(t), "interfaces": {"eth0": [250_000 * t, 0], "idle0": [7, 7], ODD: [t, t]}}
    for t in range(0, 120, 2)
]


def a_row(tail, time_s, **more):
    return {"from": tail, "to": "D", "time_s": time_s, "tool": "tcp", "ended": "done", **more}


def rate(tail, time_s, mbit):
    return a_row(tail, time_s, bandwidth_bytes_per_s=mbit * MBIT_BYTES, streams=1)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(watch_feed, "LEAST_S", 0.0)
    monkeypatch.setattr(watch_feed, "TIMES", 0.0)
    monkeypatch.setattr(live_page, "LOOK_S", 0.05)


@pytest.fixture
def hosts():
    """What is known of interfaces; tests may change it."""
    return {"this host": (READINGS, ""), "S": ([], "S: refuses: it tells nothing")}


@pytest.fixture
def feed(tmp_path, hosts):
    return WatchFeed(tmp_path, lambda: hosts, {})


def news(feed, told):
    text = feed.news(told)
    return None if text is None else json.loads(text)


def test_a_page_is_told_all_and_then_what_is_new(feed, tmp_path, hosts):
    told = {}
    first = news(feed, told)
    assert (first["facts"], first["tests"], first["charts"]) == ("No tests so far.", [], [])
    assert news(feed, told) is None
    write_part(tmp_path, "1", [rate("S", 60.0, 8.0)])
    write_part(tmp_path, "2", [rate("K", 60.0, 9.0)])
    assert {link["name"] for link in news(feed, told)["links"]} == {"S → D", "K → D"}
    write_part(tmp_path, "3", [rate("S", 120.0, 7.0)])
    new = news(feed, told)
    # Of the links only the one that has a new test.
    [link] = new["links"]
    assert (link["name"], link["rates"][0]["y"]) == ("S → D", [8.0, 7.0])
    assert "hosts" not in new
    hosts["S"] = ([], "")
    assert news(feed, told).keys() == {"hosts"}
    # Who opens the page now is told all.
    assert news(feed, {}).keys() == {"facts", "tests", "hosts", "charts", "links"}


def test_tests_that_run_are_told_until_they_end(feed, tmp_path):
    told = {}
    feed.news(told)
    with running_test(tmp_path, "tcp", [("S", "D")], "streams 4"):
        [test] = news(feed, told)["tests"]
        assert (test["tool"], test["links"], test["about"]) == ("tcp", "S → D", "streams 4")
        assert news(feed, told) is None
    assert news(feed, told) == {"tests": []}


def test_interfaces_that_carried_nothing_are_left_out(feed):
    lines = news(feed, {})["hosts"]["this host"]["lines"]
    received, sent, *_ = lines
    assert (received["name"], received["y"][-1]) == ("eth0 received", 2.0)
    assert received["x"][0] == -116.0
    assert set(sent["y"]) == {0.0}
    assert not [line for line in lines if "idle0" in line["name"]]
    assert not [line for line in lines if "<" in line["name"]]


def test_parts_are_read_once_and_damaged_ones_are_named(feed, tmp_path, monkeypatch):
    write_part(tmp_path, "1", [rate("S", 60.0, 8.0)])
    (tmp_path / "2.parquet").write_bytes(b"PAR1")
    assert news(feed, {})["facts"].endswith("Damaged and left out: 2.parquet.")
    read = []
    original = type(tmp_path).read_bytes
    monkeypatch.setattr(
        type(tmp_path), "read_bytes", lambda path: read.append(path.name) or original(path)
    )
    write_part(tmp_path, "3", [rate("S", 60.0, 8.0)])
    assert "2 tests of 1 link" in news(feed, {})["facts"]
    assert read == ["3.parquet"]


# In a browser --------------------------------------------------------------------------------


@pytest.fixture
def page_at(feed, browser):
    """Return a function that opens the page; in the end nobody may have complained."""
    complaints, pages = [], []

    def opened(width=1280, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        pages.append(page)
        page.set_default_timeout(300_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(server.url)
        page.wait_for_selector("body[data-ready=yes]")
        return page

    with page_of_view("measurements", f"Measurements: {ODD}", feed.news, 0) as server:
        opened.url = server.url
        yield opened
        for page in pages:
            page.close()
    assert complaints == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_follows_what_is_measured(page_at, tmp_path, width, scheme):
    page = page_at(width, scheme)
    assert "Connected" in page.locator("#state").inner_text()
    with running_test(tmp_path, "tcp", [(ODD, "D")], "streams 4"):
        page.get_by_text(f"tcp {ODD} → D (streams 4), since").wait_for()
    page.get_by_text("No test runs.").wait_for()
    write_part(tmp_path, "1", [rate("S", 60.0, 8.0), rate(ODD, 60.0, 1.0)])
    routes = {"S": ["8.0.0.1", "10.0.0.1"], ODD: ["8.0.0.1"]}
    write_part(
        tmp_path,
        "2",
        [a_row(by, 70.0, tool="trace", routers=json.dumps(route)) for by, route in routes.items()],
    )
    page.get_by_text("4 tests of 2 links").wait_for()
    # What is chosen stays chosen when more is measured.
    page.select_option("#link", "S → D")
    write_part(tmp_path, "3", [rate("S", 120.0, 7.0), rate("K", 120.0, 7.0)])
    wait_until(page, "document.querySelectorAll('#rates .scatterlayer .point').length >= 2")
    assert page.locator("#link").input_value() == "S → D"
    assert page.locator("#link option").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}[scheme]
    # Text on it, that of charts included, has the other one.
    words = page.evaluate("document.querySelector('#rates .gtitle').style.fill")
    assert words == {"light": "rgb(34, 34, 34)", "dark": "rgb(230, 232, 235)"}[scheme]
    assert page.evaluate("document.querySelectorAll('img, main a, .legend a').length") == 0
    page.screenshot(path=tmp_path / "page.png", full_page=True)


@pytest.mark.slow
def test_all_that_can_be_chosen_is_chosen_by_the_keyboard(page_at, tmp_path):
    write_part(tmp_path, "1", [rate("S", 60.0, 8.0), rate("K", 60.0, 8.0)])
    write_part(tmp_path, "2", [a_row("S", 70.0, tool="trace", routers='["8.0.0.1"]')])
    page = page_at()
    page.get_by_label("Mbit/s").wait_for()
    for name, key, value in (
        ("#host", "ArrowDown", "S"),
        ("#link", "ArrowDown", "S → D"),
        ("fieldset input:checked", "ArrowLeft", "provider"),
    ):
        until = f"document.activeElement.matches('{name}')"
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate(until):
                break
        assert page.evaluate(until), name
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.value") == value
    assert "it tells nothing" in page.locator("#why").inner_text()
    page.get_by_text("8.0.0.0/16", exact=True).wait_for()
    wait_until(page, "document.querySelector('#rates .gtitle').textContent.startsWith('S → D')")


@pytest.mark.slow
def test_another_scheme_is_drawn_at_once(page_at, tmp_path):
    write_part(tmp_path, "1", [rate("S", 60.0, 8.0)])
    page = page_at()
    page.locator("#rates .gtitle").wait_for()
    page.emulate_media(color_scheme="dark")
    fill = "document.querySelector('#rates .gtitle').style.fill"
    wait_until(page, f"{fill} === 'rgb(230, 232, 235)'")


@pytest.mark.slow
def test_without_the_token_nothing_is_shown_and_the_remedy_is(page_at, browser):
    page = browser.new_page()
    page.goto(page_at.url.partition("#")[0])
    page.get_by_text("what follows # lets you in").wait_for()
    assert page.locator("#facts").inner_text() == ""
    page.close()


@pytest.mark.slow
def test_a_page_whose_program_has_ended_says_so(feed, browser):
    page = browser.new_page()
    with page_of_view("measurements", "x", feed.news, 0) as server:
        page.goto(server.url)
        page.get_by_text("Connected").wait_for()
    page.get_by_text("what is shown is older").wait_for()
    page.close()
