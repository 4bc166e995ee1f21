"""The page of measurements in a browser: lines broken where tests failed, and names as text."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest
from instances.watched_pages import wait_until

from datacollect.errors import ProblemError
from datacollect.measurement.sample_store import COLUMNS
from datacollect.measuring.page.watch import watch_html

BASE_S = 1_767_571_200.0  # 5 January 2026, 0 h UTC
MBIT_BYTES = 125_000.0
ODD = "<a href='https://x.example'>go</a><img src=x onerror=alert(1)></script>"


def row(tail, head, minute, **more):
    said = {"from": tail, "to": head, "time_s": BASE_S + 60 * minute, "tool": "tcp"}
    return {**said, "ended": "done", **more}


def rate(tail, minute, mbit, **more):
    return row(tail, "D", minute, bandwidth_bytes_per_s=mbit * MBIT_BYTES, streams=1, **more)


def a_table():
    """S is halved after 30 minutes, and one test of its fails; three links have probes, too."""
    rates = [9.0, 10.0, 11.0] * 10 + [5.0] * 9
    rows = [rate("S", i, each) for i, each in enumerate(rates)]
    rows.append(row("S", "D", 10.5, streams=1, ended="the connection was lost"))
    for i, tail in enumerate(("K", "L", ODD)):
        rows += [rate(tail, 0, i + 1.0), rate(tail, 0, 2 * (i + 1.0), tool="pairs")]
    rows += [row("S", "D", i, tool="ping", rtt_s=0.01) for i in (0, 2)]
    rows.append(row("S", "D", 1, tool="ping", ended="no answer"))
    for tail, routers in (("S", ["8.8.8.1", None, "8.8.8.2"]), ("K", ["8.8.8.2"])):
        rows.append(row(tail, "D", 0, tool="trace", routers=json.dumps(routers)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


@pytest.fixture(scope="module")
def text():
    return watch_html(f"Measurements: {ODD}", a_table())


@pytest.fixture(scope="module")
def tree(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text)[1])


def test_lines_break_where_tests_failed_and_changes_are_marked(tree):
    [link] = [each for each in tree["links"] if each["name"] == "S → D"]
    line, average, changed = link["rates"]
    assert line["name"] == "tcp, 1 stream"
    assert line["y"][10:13] == [10.0, None, 11.0]
    assert line["x"][11] == "2026-01-05 00:10:30"
    assert average["y"][:2] == [9.0, pytest.approx(0.1 * 10 + 0.9 * 9)]
    assert len(average["y"]) == len(line["y"]) - 1
    assert changed["x"] == ["2026-01-05 00:31:00"]
    assert link["rtt"][0]["y"] == [10.0, None, 10.0]


def chart(tree, words):
    [found] = [each for each in tree["charts"] if words in each["title"]]
    return found["data"]


def test_routers_have_the_median_of_links_that_cross_them(tree):
    """The router of both has S's median of 10 and K's of 1.5 (of its test and its probe)."""
    _, routers, hosts = chart(tree, "Routers")
    assert sorted(hosts["text"]) == ["D", "K", "S"]
    colour = {
        text.split("<br>")[0]: value
        for text, value in zip(routers["text"], routers["marker"]["color"], strict=True)
    }
    assert colour == {"router 8.8.8.1": 10.0, "router 8.8.8.2": pytest.approx((10 + 1.5) / 2)}


def test_probes_stand_against_tests_with_their_line(tree):
    points, line = chart(tree, "packet pairs")
    assert list(zip(points["x"], points["y"], strict=True)) == [(6, 3), (2, 1), (4, 2)]
    assert line["name"] == "0.5 x, R² 1.00"
    assert line["y"] == [0, pytest.approx(3)]


def test_all_rates_are_counted_and_the_link_that_fails_most_is_first(tree):
    counted = {series["name"]: sum(series["y"]) for series in chart(tree, "How often")}
    assert counted == {"tcp": 42, "pairs": 3}
    [bars] = chart(tree, "went well")
    assert bars["y"][0] == "S → D"
    assert bars["x"][0] == pytest.approx(100 * 42 / 44, abs=0.1)


def test_without_traces_probes_or_rates_their_charts_are_left_out():
    text = watch_html(
        "x", pd.DataFrame([row("S", "D", 0, tool="ping", rtt_s=0.1)], columns=list(COLUMNS))
    )
    tree = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert [each["title"].partition(":")[0] for each in tree["charts"]] == ["Tests that went well"]


def test_without_plotly_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr("datacollect.measuring.page.watch.plotly_script", lambda: None)
    with pytest.raises(ProblemError, match=r"pip install .*\[measure\]"):
        watch_html("x", a_table())


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_draws_on_screens_of_both_widths_and_names_run_nothing(
    width, text, browser, tmp_path
):
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    page, complaints = browser.new_page(viewport={"width": width, "height": 800}), []
    page.set_default_timeout(300_000)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("body[data-ready=yes]")
    assert page.evaluate("document.querySelectorAll('.chart .main-svg').length") > 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.select_option("#link", "S → D")
    wait_until(page, "document.querySelector('#rates .gtitle').textContent.startsWith('S → D')")
    page.select_option("#link", f"{ODD} → D")
    wait_until(page, "document.querySelector('#rates .gtitle').textContent.startsWith('<a href')")
    found = "document.querySelectorAll('img, .gtitle a, .legend a, .ytick a').length"
    assert page.evaluate(found) == 0
    assert complaints == []
    page.close()
