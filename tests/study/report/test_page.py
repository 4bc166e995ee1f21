"""The page of a report in a browser: it draws, answers, and shows the numbers of the files."""

from __future__ import annotations

from instances.made_sweeps import cells_in

import datacollect as dc


def test_the_page_draws_answers_clicks_and_shows_the_numbers_of_the_files(sweep_folder, browser):
    folder = dc.report(sweep_folder).folder
    page, complaints = browser.new_page(), []
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

    # A run: by its link, and by a click on a point.
    page.get_by_text("Single runs: schedule and storage").click()
    page.locator("button[data-run]").first.click()
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
