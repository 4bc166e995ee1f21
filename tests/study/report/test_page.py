"""The page of a report in a browser: it draws, answers, and shows the numbers of the files."""

from __future__ import annotations

import pytest
from instances import made_hooks
from instances.made_sweeps import cells_in
from instances.small_experiments import SCENARIO, experiment_of
from instances.watched_pages import wait_until

import datacollect as dc

pytestmark = pytest.mark.usefixtures("empty_pictures")

# A busy machine takes long to load a page of some megabytes; what never comes still ends the test.
PATIENCE_MS = 300_000
OVER_DIRECT = "makespan over that of direct (ratio)"


@pytest.mark.slow
def test_the_page_draws_answers_clicks_and_shows_the_numbers_of_the_files(sweep_folder, browser):
    folder = dc.report(sweep_folder, verdicts=made_hooks.judge).folder
    page, complaints = browser.new_page(), []
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    asked = []
    page.on("request", lambda request: asked.append(request.url.partition(":")[0]))
    page.goto((folder / "index.html").as_uri())
    page.wait_for_selector("body[data-ready=yes]")

    # Charts: one per panel, with the means of the CSV.
    page.wait_for_selector(".js-plotly-plot .errorbar")
    charts = page.evaluate(
        """[...document.querySelectorAll(".chart.js-plotly-plot")].flatMap(chart =>
            chart.data.flatMap(trace => trace.y.map((mean, i) =>
                [chart.dataset.panel, trace.name, String(trace.x[i]), mean])))"""
    )
    drawn = {(panel, series, x): mean for panel, series, x, mean in charts}
    rows = cells_in(folder / "figure3.csv")
    assert drawn == {
        (f"({r['panel']}) {r['where']}", r["series"], r["x"]): float(r["mean"]) for r in rows
    }
    assert len(drawn) == 24  # six methods, two panels, two numbers of flows

    # Tables: the cells of the CSV.
    for file in ("figure3_summary.csv", "figure3_prediction.csv"):
        details = page.locator(f"details[data-file='{file}']")
        details.locator("summary").click()
        cells = details.locator("tbody").evaluate(
            """body => [...body.rows].map(row => Object.fromEntries(
                [...row.cells].map(cell => [cell.dataset.column, cell.dataset.value])))"""
        )
        rows = cells_in(folder / file)
        assert len(cells) == len(rows) > 0
        for shown, row in zip(cells, rows, strict=True):
            assert shown == {column: row[column] for column in shown}
        assert {"makespan_s", "connections"} <= set(cells[0])

    # A claim's row says why.
    claim = page.locator("#claims tr.claim").first
    why = page.locator("#claims tr.why").first
    assert not why.is_visible()
    claim.click()
    assert cells_in(folder / "claims.csv")[0]["why"] in why.inner_text()
    assert "[" in claim.inner_text()  # the interval
    assert "✓ holds (not settled)" in claim.inner_text()
    assert "What somebody says" in page.locator("h2").all_inner_texts()
    heads = page.locator("#claims th").all_inner_texts()
    assert heads == ["claim", "somebody says", "ratio", "verdict"]

    # A run: by its link, and by a click on a point.
    page.get_by_text("Single runs: schedule and storage").click()
    page.locator("button[data-run]").first.click()
    page.wait_for_selector("#schedule.js-plotly-plot")
    page.wait_for_selector("#storage.js-plotly-plot")
    links = page.evaluate("document.getElementById('schedule').data.flatMap(t => t.y)")
    assert set(links) == {"S1 → D", "S2 → S1"}
    stored = page.evaluate("document.getElementById('storage').data.map(t => [t.name, t.y])")
    assert stored == [["S1", [0, 5e6, 0]]]
    assert "</script> binds" in page.locator("#run").inner_text()
    page.get_by_text("close", exact=True).click()
    point = page.locator(".chart .scatterlayer .points path").first
    point.scroll_into_view_if_needed()
    point.hover(force=True)
    point.click(force=True)
    page.wait_for_selector("dialog[open]")

    assert complaints == []
    assert set(asked) <= {"file", "data", "blob"}


@pytest.mark.slow
def test_a_sweep_of_ones_own_reads_well_on_a_telephone(tmp_path, browser):
    """390 pixels wide: the page fits, tables have a box of their own, all can be read."""
    scenario = {**SCENARIO, "backlog": {"least_bytes": 4_000_000, "most_bytes": 4_000_000}}
    dc.sweep(experiment_of(scenario=scenario), tmp_path, workers=0)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(PATIENCE_MS)
    page.goto((dc.report(tmp_path).folder / "index.html").as_uri())
    page.wait_for_selector(".js-plotly-plot .xtitle")
    page.wait_for_selector(".js-plotly-plot .ytitle")
    # Own results first, and no claims that were not run.
    assert page.locator("#claims").count() == 0
    assert page.locator(".chance").inner_text().startswith("Nothing is random here: 3 seeds")
    first = page.locator("table").first
    heads = first.locator("th").all_inner_texts()
    assert heads == ["rate, bytes/s", "method", "seeds", "makespan, s", OVER_DIRECT]
    rows = first.locator("tbody tr").all_inner_texts()
    # 4 MB at 0.5 and at 1 MB/s.
    assert [row.split()[-2:] for row in rows] == [["8", "1"], ["8", "1"], ["4", "1"], ["4", "1"]]
    titles = page.evaluate(
        "[...document.querySelectorAll('.xtitle, .ytitle')].map(text => text.textContent)"
    )
    assert titles == ["rate, bytes/s", "makespan, s"]

    for details in page.locator("details[data-file] > summary").all():
        details.click()
    # Tables are made as they are opened: the browser says so a moment later.
    wait_until(page, "document.querySelectorAll('table').length === 4")
    wait_until(page, "document.documentElement.scrollWidth === 390")
    found = page.evaluate(
        """() => {
            const boxes = [...document.querySelectorAll("table")].map(t => t.parentElement);
            const texts = [...document.querySelectorAll("p, td, th, dt, dd, li, summary, text")]
                .filter(e => e.textContent.trim() && e.getClientRects().length);
            return {
                page: document.documentElement.scrollWidth,
                scrolls: boxes.map(box => getComputedStyle(box).overflowX),
                wider: boxes.some(box => box.scrollWidth > box.clientWidth),
                least: Math.min(...texts.map(e => parseFloat(getComputedStyle(e).fontSize))),
            };
        }"""
    )
    assert found["page"] == 390
    assert found["scrolls"] == ["auto"] * 4
    assert found["wider"]  # else the boxes were not needed, nor looked at
    assert found["least"] >= 12
