"""The page of a pull: what it is told, and how it looks while bytes flow."""

from __future__ import annotations

import json

import pytest
from conftest import BROWSER_MS

import datacollect as dc
from datacollect.pictures import live_page, pull_page
from datacollect.pictures.live_views import live_page as page_of_view
from datacollect.pictures.pull_page import MOST_ROUTES, MOST_STUCK, N_ROWS, PullFeed
from datacollect.transfer.pull.progress.pull_progress import PullProgress
from datacollect.transfer.pull.progress.story import PullStory
from datacollect.transfer.store.history import MOVED

ODD = "<a href='https://x.example'>go</a><img src=x onerror=alert(1)>"
MB = 1_000_000


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(pull_page, "LEAST_S", 0.0)
    monkeypatch.setattr(pull_page, "TIMES", 0.0)
    monkeypatch.setattr(live_page, "LOOK_S", 0.05)


def begun(source="S1"):
    """A story of 100 MB from S1, half by K; 60 s are planned, and after 20 s 30 MB have come."""
    story = PullStory()
    hear = story.hear
    hear(
        {"what": "pull begins", "s": 0.0, "method": "coordinated", "destination": "D"}
        | {"collection": "c1"}
    )
    expected = [[[source], 50 * MB, 0.0, 60.0], [[source, "K"], 50 * MB, 0.0, 60.0]]
    hear(
        {"what": "planned", "s": 0.0, "makespan_s": 60.0, "between_s": [50.0, 90.0]}
        | {"promises": True, "expected": expected}
    )
    for s in range(21):
        routes = [[[source], s * MB], [[source, "K"], s * MB // 2]]
        hear({"what": MOVED, "s": float(s), "routes": routes})
    hear({"what": "session stuck", "s": 12.0, "hosts": [source, "K", "D"], "session": 1})
    story.look(PullProgress(3, 30 * MB, 10, 100 * MB, ("S2",), troubles={source: "no data"}))
    return story


def told(feed, known=None):
    text = feed.news({} if known is None else known)
    return None if text is None else json.loads(text)


def test_it_tells_routes_rates_the_plan_and_who_is_stuck(monkeypatch):
    story = begun()
    monkeypatch.setattr(pull_page.time, "time", lambda: story.begun_s + 20.0)
    seen = told(PullFeed(story))
    assert seen["headline"] == "30 % is there: 30 MB of 100 MB, 3 of 10 files."
    assert seen["stuck"] == [["S1", "no data"], ["S2", "not listed to its end yet"]]
    assert seen["events"] == [["12 s", "S1 → K: connection stuck"]]
    # 1 MB/s and half of it; of each 50 MB were planned.
    assert seen["routes"]["rows"] == [
        ["S1 → D", "8 Mbit/s", "8 Mbit/s", "20 MB", "50 MB"],
        ["S1 → K → D", "4 Mbit/s", "4 Mbit/s", "10 MB", "50 MB"],
    ]
    assert seen["course"]["rows"][-1] == ["20 s", "33.33 MB", "30 MB"]
    assert seen["course"]["rows"][0] == ["0 s", "0 B", "0 B"]
    chart = seen["chart"]
    assert (chart["end_s"], chart["predicted_s"], chart["between_s"]) == (90.0, 60.0, [50.0, 90.0])
    assert chart["planned"][-1][1] == 100 * MB
    assert chart["done"][-1] == [20.0, 30 * MB]
    facts = dict(seen["facts"])
    assert facts["method"] == "coordinated"
    assert " to " in facts["in eight of ten cases"]
    assert seen["ended"] is None


def test_a_page_is_told_what_is_new_and_nothing_where_there_is_nothing(monkeypatch):
    story = begun()
    monkeypatch.setattr(pull_page.time, "time", lambda: story.begun_s + 20.0)
    feed, known = PullFeed(story), {}
    assert told(feed, known)
    assert told(feed, known) is None
    story.given_up["S2"] = "cannot be reached"
    assert told(feed, known).keys() == {"stuck"}


def test_before_anything_is_known_it_says_so():
    seen = told(PullFeed(PullStory()))
    assert seen["headline"] == "Nothing is listed yet."
    assert seen["routes"]["rows"] == []
    assert seen["chart"]["planned"] == []


def test_of_a_thousand_routes_the_busiest_are_shown_and_the_rest_in_one_row():
    story = PullStory()
    story.hear({"what": "pull begins", "s": 0.0, "destination": "D", "collection": "c"})
    for s in (0, 5, 10):
        routes = [[[f"S{n}"], s * n * 1000] for n in range(1000)]
        story.hear({"what": MOVED, "s": float(s), "routes": routes})
    story.look(PullProgress(0, 0, 1, 1, troubles={f"S{n}": "x" for n in range(1000)}))
    seen = told(PullFeed(story))
    rows = seen["routes"]["rows"]
    assert len(rows) == MOST_ROUTES + 1
    assert rows[0][0] == "S999 → D"
    assert rows[-1][0] == "960 others"
    assert len(seen["stuck"]) == MOST_STUCK + 1
    assert len(seen["course"]["rows"]) <= 2 * N_ROWS


def test_the_last_that_it_tells_is_how_it_has_ended():
    story = begun()
    feed, known = PullFeed(story), {}
    told(feed, known)
    story.hear(
        {"what": "pull ends", "s": 70.0, "complete": False, "files": 3, "bytes": 30 * MB}
        | {"routes": [], "refetched": {"corrupt": 5}, "makespan_s": 70.0}
    )
    seen = told(feed, known)
    assert seen["ended"] == "The pull has ended, and some data are not available."
    assert {row[1] for row in seen["routes"]["rows"]} == {"0 bit/s"}
    assert dict(seen["facts"])["received twice"] == "5 B (corrupt)"


# In a browser --------------------------------------------------------------------------------


@pytest.fixture
def opened(browser):
    """Return a function that opens a page at a width; in the end nobody may have complained."""
    complaints, pages = [], []

    def open_at(url, width=1280, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        pages.append(page)
        page.set_default_timeout(BROWSER_MS)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(url)
        page.wait_for_selector("body[data-ready=yes]")
        return page

    yield open_at
    for page in pages:
        page.close()
    assert complaints == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_it_shows_all_of_it_on_screens_of_both_widths(opened, tmp_path, width, scheme):
    story = begun(ODD)
    with page_of_view("pull", f"Pull into {ODD}", PullFeed(story).news, 0) as server:
        page = opened(server.url, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "Connected" in page.locator("#state").inner_text()
        page.get_by_text("30 % is there").wait_for()
        assert page.locator("#chart path.done").get_attribute("d").startswith("M")
        # Names run nothing, and are no links.
        assert page.evaluate("document.querySelectorAll('img, a').length") == 0
        # Tables that a screen reader reads: captions, headings of columns and of rows.
        for name in ("course", "routes"):
            table = page.get_by_role("table", name="Bytes").and_(page.locator(f"#{name}"))
            assert table.get_by_role("columnheader").count() in (3, 5)
            assert table.get_by_role("rowheader").count() >= 2
        assert page.get_by_role("progressbar").get_attribute("aria-label")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}[scheme]
        story.given_up["S9"] = "cannot be reached"
        page.get_by_text("given up: cannot be reached").wait_for()
        page.screenshot(path=tmp_path / f"page{width}.png", full_page=True)
        page.close()  # before it may miss its server


@pytest.mark.slow
def test_it_follows_a_real_pull_to_its_end_and_says_how_that_was(opened, tmp_path, real_pull):
    story, collection = PullStory(), real_pull
    with page_of_view("pull", "Pull", PullFeed(story).news, 0) as server:
        page = opened(server.url)
        answer = dc.pull(
            collection, tmp_path / "into", watch=lambda look: story.look(look()), log=story.hear
        )
        assert answer.complete
        page.get_by_text("The pull has ended: all is there.").wait_for()
        assert "100 % is there" in page.locator("#headline").inner_text()
    # What has ended is not asked for again.
    page.wait_for_timeout(2500)
    assert "all is there" in page.locator("#state").inner_text()


@pytest.fixture
def real_pull(tmp_path):
    from transfer.pull.lying_agent import LyingAgent

    from datacollect.net.keys import new_private_key, write_private_key

    files = {f"{i}": b"x" * 100_000 for i in range(20)}
    agent = LyingAgent("S1", tmp_path, files, slow_s=0.05)
    write_private_key(tmp_path / "key", new_private_key())
    yield {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": str(tmp_path / "key"),
        "agents": {"S1": agent.entry},
        "limits": {"piece_bytes": 65536, "connections": 1},
    }
    agent.stop()
