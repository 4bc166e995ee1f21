"""The page of a schedule: what it holds, how large it is, and that it works in a browser."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from conftest import BROWSER_MS
from instances.plotted import relayed, schedule_of, star
from instances.watched_pages import wait_until

import datacollect as dc
from datacollect.pictures import moves, page
from datacollect.pictures.page import plot_page
from datacollect.pictures.words import ORDER


def data_of(html: str) -> dict:
    """Return what a page says to its script."""
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL).group(1))


def flows_of(tree: dict) -> dict:
    names = [host["name"] for host in tree["hosts"]]
    return {
        (flow["source"], names[flow["from"]], names[flow["to"]]): flow["rates"]
        for flow in tree["flows"]
    }


# What it holds


def test_flows_say_who_sends_what_to_whom_when():
    """Rates as in the instance, over the stretches 0-10 s (number 0) and 10-20 s (number 1)."""
    tree = data_of(plot_page(*relayed()))
    assert tree["edges_s"] == [0, 10, 20]
    assert flows_of(tree) == {
        ("S1", "S1", "D"): [0, 100, 1, 0],
        ("S2", "S2", "D"): [0, 50],
        ("S2", "S2", "K"): [0, 100, 1, 0],
        ("S2", "K", "D"): [1, 100],
    }
    # 150 bytes/s arrive, then 150 again.
    assert tree["collected_bytes"] == [0, 1500, 3000]
    assert {host["name"]: host["kind"] for host in tree["hosts"]} == {
        "D": "destination",
        "K": "relay",
        "S1": "source",
        "S2": "source",
    }
    stored = next(host["stored"] for host in tree["hosts"] if host["name"] == "K")
    assert stored == [0, 0, 10, 1000, 20, 0]
    assert tree["notes"] == [ORDER]


def test_bands_are_those_of_the_picture():
    tree = data_of(plot_page(*relayed()))
    assert [band["name"] for band in tree["bands"]] == ["S1", "S2", "K", "D"]
    sends = {(area["series"], area["peer"]): area["rates"] for area in tree["bands"][1]["sends"]}
    assert sends == {(1, "D"): [0, 50], (1, "K"): [0, 100, 1, 0]}
    assert tree["bands"][2]["stored"] == [0, 0, 10, 1000, 20, 0]
    assert "stores ≤ 1 kB" in tree["bands"][2]["words"]


def test_clocks_that_change_are_in_the_page():
    """From 1:00 on 25 October 2026, two hours before clocks go back, a plan of six hours."""
    problem, schedule = relayed()
    tree = problem.to_dict() | {"start": "2026-10-25T01:00:00+02:00", "timezone": "Europe/Zurich"}
    problem = dc.Problem.from_dict(tree)
    longer = schedule.replace(makespan_s=6 * 3600.0, problem_sha256=problem.sha256)
    clock = data_of(plot_page(problem, longer))["clock"]
    assert clock == {
        "epoch_s": 1792882800.0,
        "offsets": [[0, 7200], [7200, 3600]],
        "zone": "Europe/Zurich",
    }


def test_names_cannot_break_out():
    names = ["</script><script>alert(1)</script>", "<!--", "\"'&<b>", "D</title>"]
    problem = dc.Problem.from_hosts(
        [*(dc.Host(name, 10) for name in names[:-1]), dc.Host(names[-1])],
        [dc.Link(name, names[-1], 5.0) for name in names[:-1]],
        names[-1],
    )
    html = plot_page(problem, dc.direct(problem))
    assert html.count("<script") == html.count("</script>") == 2
    assert "<!--" not in html
    assert html.count("</title>") == 1
    found = {host["name"] for host in data_of(html)["hosts"]}
    assert found == set(names)


def test_the_page_asks_for_nothing_elsewhere():
    html = plot_page(*relayed())
    assert "default-src 'none'" in html
    assert not re.search(r"""(src|href)=["'](?!data:)""", html)
    assert re.findall(r"https?://[\w./]+", html) == ["http://www.w3.org/2000/svg"]


# How large it is


def test_large_plans_are_cut_to_what_a_page_can_show_and_say_so(monkeypatch):
    """Of 40 sources 10 hosts and 5 flows are kept; all bytes still count as collected."""
    monkeypatch.setattr(moves, "MOST_HOSTS", 10)
    monkeypatch.setattr(moves, "MOST_FLOWS", 5)
    tree = data_of(plot_page(*star(40)))
    assert len(tree["hosts"]) == 10
    assert [host["kind"] for host in tree["hosts"]].count("destination") == 1
    assert {flow["source"] for flow in tree["flows"]} == {f"s{i}" for i in range(35, 40)}
    assert tree["collected_bytes"][-1] == pytest.approx(1000 * 40 * 41 / 2)
    said = " ".join(tree["notes"])
    assert "the 25 busiest of 41 hosts" in said
    assert "the 10 busiest of 41 hosts" in said
    assert "Of 41 flows" in said


def test_many_changes_become_means(monkeypatch):
    """3000 transfers with pauses: rates are means over as few stretches as keep the page small."""
    monkeypatch.setattr(page, "MOST_CHANGES", 1000)
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 3000), dc.Host("D")], [dc.Link("S", "D", 10)], "D"
    )
    rows = [(0, 0, i, 1, 0.2 * i, 0.2 * i + 0.1) for i in range(3000)]
    tree = data_of(plot_page(problem, schedule_of(problem, [("S", "D")], rows)))
    changes = [flow["rates"] for flow in tree["flows"]]
    assert sum(map(len, changes)) / 2 <= 1000
    assert len(tree["edges_s"]) >= page.FEWEST_INSTANTS
    assert any("Rates are means over" in note for note in tree["notes"])
    assert tree["collected_bytes"][-1] == pytest.approx(3000)


@pytest.mark.slow
def test_a_plan_of_a_thousand_hosts_fits_in_few_megabytes():
    """1000 hosts, 100 000 transfers: each host sends its bytes in 100 pieces at changing rates."""
    n, pieces = 1000, 100
    names = [f"h{i}" for i in range(n)]
    hosts = [dc.Host(name, 100 * 5050) for name in names] + [dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, [dc.Link(name, "D", 1e6) for name in names], "D")
    offsets = np.cumsum([0, *(100 * (k + 1) for k in range(pieces - 1))])
    piece = np.arange(n * pieces) % pieces
    rows = np.column_stack(
        [
            np.repeat(np.arange(n), pieces),
            np.zeros(n * pieces),
            offsets[piece],
            100 * (piece + 1),
            piece,
            piece + 1,
        ]
    )
    html = plot_page(problem, schedule_of(problem, [(name, "D") for name in names], rows))
    assert len(html) < 4_000_000
    assert "more than 20,000 transfers" in " ".join(data_of(html)["notes"])


@pytest.mark.slow
@pytest.mark.parametrize("case", ["nothing", "a byte", "most bytes", "late"])
def test_whatever_can_be_planned_has_a_page_and_a_picture(case, tmp_path):
    n_bytes, release_s = {
        "nothing": (0, 0),
        "a byte": (1, 0),
        "most bytes": (2**62 - 1, 0),
        "late": (1000, 1e9),
    }[case]
    problem = dc.Problem.from_hosts(
        [dc.Host("S", n_bytes, release_s=release_s), dc.Host("D")], [dc.Link("S", "D", 1e9)], "D"
    )
    for plan in (dc.direct(problem), dc.coordinated(problem)):
        tree = data_of(plot_page(problem, plan))
        assert len(tree["flows"]) == (n_bytes > 0)
        assert tree["collected_bytes"][-1] == pytest.approx(n_bytes, rel=1e-6)
        dc.save_plot(problem, plan, tmp_path / "plan.svg")


# In a browser


@pytest.fixture
def opened(browser, tmp_path):
    """Open a plan's page; what its console says, and whom it asks, is looked at in the end."""
    complaints, asked = [], []

    def opened_page(problem, schedule, width=1280):
        (tmp_path / "plan.html").write_text(plot_page(problem, schedule), encoding="utf-8")
        shown = browser.new_page(viewport={"width": width, "height": 900})
        shown.set_default_timeout(BROWSER_MS)
        shown.on("console", lambda message: complaints.append(message.text))
        shown.on("pageerror", lambda error: complaints.append(str(error)))
        shown.on("dialog", lambda dialog: complaints.append(dialog.message))
        shown.on("request", lambda request: asked.append(request.url))
        shown.goto((tmp_path / "plan.html").as_uri())
        shown.wait_for_selector("body[data-ready=yes]")
        return shown

    yield opened_page
    assert complaints == []
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}


def cells(shown, table: str) -> list[list[str]]:
    return shown.evaluate(
        """id => [...document.querySelectorAll(`#${id} tbody tr`)].map(
            row => [...row.cells].map(cell => cell.textContent))""",
        table,
    )


def view(shown) -> list[float]:
    return shown.evaluate(
        "(({from, to}) => [Number(from), Number(to)])(document.getElementById('chart').dataset)"
    )


def arrows(shown) -> list:
    """Return who sends to whom in the drawing, and how wide the arrows are."""
    return shown.evaluate(
        """() => [...document.querySelectorAll("#graph .arrow")].map(arrow => [
            DATA.hosts[arrow.dataset.from].name, DATA.hosts[arrow.dataset.to].name,
            Number(arrow.querySelector("path:nth-child(2)").getAttribute("stroke-width"))])"""
    )


@pytest.mark.slow
def test_the_cursor_shows_who_sends_what_to_whom(opened):
    """At 5 s and at 10 s, with the slider, the buttons and the keyboard; 8 bits are a byte."""
    shown = opened(*relayed())
    assert "At 0 s: 0 B of 3 kB collected, 1.2 kbit/s arriving" in shown.inner_text("#instant")
    slider = shown.locator("#time")
    slider.evaluate("s => { s.value = 250; s.dispatchEvent(new Event('input')); }")
    assert "At 5 s: 750 B of 3 kB" in shown.inner_text("#instant")
    assert sorted(cells(shown, "flows")) == [
        ["S1", "D", "S1", "800 bit/s"],
        ["S2", "D", "S2", "400 bit/s"],
        ["S2", "K", "S2", "800 bit/s"],
    ]
    assert cells(shown, "stored") == [["K", "500 B"]]
    assert sorted(arrows(shown)) == [["S1", "D", 11], ["S2", "D", 5.5], ["S2", "K", 11]]
    shown.get_by_label("Next change").click()
    assert "At 10 s: 1.5 kB of 3 kB" in shown.inner_text("#instant")
    assert sorted(cells(shown, "flows")) == [
        ["K", "D", "S2", "800 bit/s"],
        ["S2", "D", "S2", "400 bit/s"],
    ]
    assert sorted(arrows(shown)) == [["K", "D", 11], ["S2", "D", 5.5]]
    slider.press("End")
    assert "At 20 s: 3 kB of 3 kB" in shown.inner_text("#instant")
    slider.press("ArrowLeft")
    assert "At 19.98 s" in shown.inner_text("#instant")


@pytest.mark.slow
def test_time_is_zoomed_with_wheel_drag_keys_and_buttons_and_has_exact_values(opened):
    shown = opened(*relayed())
    chart = shown.locator("#chart")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    left, width = box["x"] + 10, box["width"] - 22
    y = shown.evaluate("document.querySelector('.area').getBoundingClientRect().y") + 10

    # What lies under the pointer at 5 s: the first band is that of S1.
    shown.mouse.move(left + width / 4, y)
    hint = shown.inner_text("#hint")
    assert "S1: has 1 kB; sends ≤ 800 bit/s" in hint
    assert "sends data of S1 to D: 800 bit/s from 0 s to 10 s" in hint

    # The wheel zooms around the pointer: 5 s stays where it is.
    shown.mouse.wheel(0, -100)
    wait_until(shown, "document.getElementById('chart').dataset.to < 20")
    assert view(shown) == pytest.approx([1, 17], abs=0.05)

    # Keys, and buttons.
    chart.press("0")
    assert view(shown) == [0, 20]
    chart.press("+")
    assert view(shown) == [5, 15]
    chart.press("ArrowRight")
    assert view(shown) == [7.5, 17.5]
    shown.get_by_label("Zoom out").click()
    assert view(shown) == [0, 20]

    # A drag shows what it spans, a double click all, a click sets the cursor.
    y = chart.bounding_box()["y"] + 60
    shown.mouse.move(left + width * 0.5, y)
    shown.mouse.down()
    shown.mouse.move(left + width * 0.6, y)
    shown.mouse.move(left + width * 0.75, y)
    shown.mouse.up()
    assert view(shown) == pytest.approx([10, 15], abs=0.05)
    shown.mouse.dblclick(left + width / 2, y)
    assert view(shown) == [0, 20]
    shown.mouse.click(left + width * 0.25, y)
    assert re.match(r"At (5|4\.9\d+|5\.0\d+) s", shown.inner_text("#instant"))


@pytest.mark.slow
def test_a_phone_shows_a_map_of_hosts_with_hostile_names(opened):
    """390 pixels wide, nothing beside them; the map has north up and east to the right."""
    evil = "</script><img src=x onerror=alert(1)>\"'" + "W" * 60
    problem = dc.Problem.from_hosts(
        [
            dc.Host("D", latitude=0, longitude=0),
            dc.Host(evil, 1000, latitude=10, longitude=-10),
            dc.Host("حاسوب", 1000, latitude=-10, longitude=10),
        ],
        [dc.Link(evil, "D", 100), dc.Link("حاسوب", "D", 100)],
        "D",
    )
    shown = opened(problem, dc.direct(problem), width=390)
    assert shown.evaluate("document.documentElement.scrollWidth") == 390
    assert shown.get_by_role("heading", name="Map of hosts").is_visible()
    places = shown.evaluate(
        """() => [...document.querySelectorAll("#graph .host")].map(host => {
            const box = host.getBoundingClientRect(); return [box.x, box.y]; })"""
    )
    destination, north_west, south_east = places
    assert north_west[0] < destination[0] < south_east[0]
    assert north_west[1] < destination[1] < south_east[1]
    assert [row[0] for row in cells(shown, "flows")] == [evil, "حاسوب"]
    assert shown.locator("img").count() == 0


@pytest.mark.slow
def test_nothing_to_move_is_a_page_too(opened):
    problem = dc.Problem.from_hosts([dc.Host("S"), dc.Host("D")], [dc.Link("S", "D", 1)], "D")
    shown = opened(problem, dc.direct(problem))
    assert shown.inner_text("h1") == "Nothing to move to D"
