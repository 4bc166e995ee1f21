"""Reports of made-up sweeps: their tables, pictures and page; and folders that are none."""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import struct

import pandas as pd
import pytest
from conftest import NO_CHROMIUM
from made_sweeps import EXPERIMENTS, write_sweep

import datacollect as dc
from datacollect.cli import run
from datacollect.report_across import across_table
from datacollect.report_tables import panels_of, prediction_table, summary_table
from datacollect.sweep_folders import read_sweeps

SMALL = {"flows": ["0", "60"], "ratio": ["1:1", "2:1"], "udp": ["5 %"]}


def makespans(labels):
    """Direct takes twice coordinated's time, and 40 connections make up for half of that."""
    method = labels["method"]
    return {
        "makespan_s": {"direct": 200.0, "direct-as-many": 100.0}.get(method, 100.0),
        "connections": 40 if method in ("coordinated", "direct-as-many") else 7,
        "storage_mean": 1.5 if method == "best-path" else 1.0,
    }


@pytest.fixture
def sweep_folder(tmp_path):
    write_sweep(tmp_path / "sweep", "figure3", makespans, only=SMALL, documents=True, noise=0.02)
    return tmp_path / "sweep"


def rows_of(file):
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


# Tables -----------------------------------------------------------------------------------------


def test_ratios_are_formed_run_for_run(tmp_path):
    write_sweep(tmp_path / "a", "figure3", makespans, only=SMALL, noise=0.0)
    (sweep,) = read_sweeps(tmp_path)
    table = summary_table(sweep).set_index(["method", "flows", "ratio"])
    row = table.loc[("direct", "60", "1:1")]
    assert (row["over_coordinated"], row["over_coordinated_low"]) == pytest.approx((2.0, 2.0))
    assert row["connections"] == 7
    assert row["seeds"] == 6
    # Seeds 1 to 6 take 1 to 6 % longer: 103.5 % on average.
    assert row["makespan_s"] == pytest.approx(207.0)
    row = table.loc[("coordinated", "60", "1:1")]
    assert (row["over_as_many"], row["over_direct"]) == pytest.approx((1.0, 0.5))
    assert table.loc[("direct", "60", "1:1")].isna()["over_as_many"]


def test_each_has_the_reference_of_as_many_connections_that_is_meant_for_it(tmp_path):
    """Two lanes compare with direct as many as two lanes, best-path with as many as best-path."""

    def truth(labels):
        n = {"coordinated, 2 lanes": 80, "direct as many as coordinated, 2 lanes": 40}
        return {"makespan_s": float(n.get(labels["method"], 100))}

    write_sweep(tmp_path / "a", "streams", truth, only={"ratio": ["1:1"]}, noise=0.0)
    (sweep,) = read_sweeps(tmp_path)
    table = summary_table(sweep)
    ratios = table[table["flows"] == "60"].set_index("method")["over_as_many"]
    assert ratios["coordinated, 2 lanes"] == pytest.approx(2.0)
    assert ratios["coordinated"] == ratios["best-path, 4 lanes"] == pytest.approx(1.0)
    assert ratios.isna()["direct, 8 each"]


def test_variants_of_coordinated_are_compared_with_the_first(tmp_path):
    def truth(labels):
        return {"makespan_s": 300.0 if labels["execution"].startswith("slots of 50 s") else 100.0}

    write_sweep(tmp_path / "a", "execution", truth, only={"ratio": ["1:1"]}, noise=0.0)
    (sweep,) = read_sweeps(tmp_path)
    table = summary_table(sweep)
    ratios = table[table["flows"] == "60"].set_index("execution")["over_coordinated"]
    assert ratios["slots of 50 s, planned times"] == pytest.approx(3.0)
    assert ratios["pipelined"] == pytest.approx(1.0)


def test_under_wrong_estimates_methods_are_compared_under_the_same(tmp_path):
    def truth(labels):
        factor = 2.0 if labels["error"] == "+70 %" else 1.0
        return {"makespan_s": 100.0 * factor * (3.0 if labels["method"] == "best-path" else 1.0)}

    only = {"flows": ["60"], "ratio": ["1:3"]}
    write_sweep(tmp_path / "a", "figure4", truth, only=only, noise=0.0)
    (sweep,) = read_sweeps(tmp_path)
    table = summary_table(sweep).set_index(["method", "error"])
    assert table.loc[("best-path", "+70 %"), "over_coordinated"] == pytest.approx(3.0)


def test_over_all_settings_each_counts_alike(tmp_path):
    """Direct takes 2, 4, 2 and 4 times coordinated's time: the geometric mean is 8 ** 0.5."""

    def truth(labels):
        factor = {"0": 2.0, "60": 4.0}[labels["flows"]]
        return {"makespan_s": 100.0 * (factor if labels["method"] == "direct" else 1.0)}

    write_sweep(tmp_path / "a", "figure3", truth, only=SMALL, noise=0.0)
    (sweep,) = read_sweeps(tmp_path)
    table = across_table(sweep).set_index("method")
    row = table.loc["direct"]
    assert row["over_coordinated"] == pytest.approx(8**0.5)
    # Student's t of four logarithms, log 2 apart two by two: 3.182 * log(2) / 12 ** 0.5.
    assert row["over_coordinated_high"] == pytest.approx(8**0.5 * 2 ** (3.1824 / 12**0.5), 1e-4)
    assert (row["over_coordinated_smallest"], row["over_coordinated_largest"]) == (2.0, 4.0)
    assert (row["over_coordinated_settings"], row["over_coordinated_slower"]) == (4, 4)
    assert table.loc["coordinated", "over_direct_faster"] == 4
    assert table.loc["best-path", "over_coordinated"] == pytest.approx(1.0)


def test_one_setting_has_no_table_over_all(tmp_path):
    write_sweep(
        tmp_path / "a", "figure3", makespans, only={**SMALL, "flows": ["0"], "ratio": ["1:1"]}
    )
    (sweep,) = read_sweeps(tmp_path)
    assert across_table(sweep).empty


@pytest.mark.parametrize(("connections", "is_equal"), [(40, True), (43, True), (45, False)])
def test_as_many_means_within_a_tenth(tmp_path, connections, is_equal):
    """Re-planned plans open more than direct was given: then there is nothing to compare with."""

    def truth(labels):
        n = {"coordinated": connections, "direct-as-many": 40}.get(labels["method"], 7)
        return {"connections": n}

    write_sweep(tmp_path / "a", "figure3", truth, only=SMALL)
    (sweep,) = read_sweeps(tmp_path)
    table = summary_table(sweep).set_index(["method", "flows", "ratio"])
    assert table["over_as_many"].notna()["coordinated", "60", "2:1"] == is_equal
    # Best-path has as many as plain direct here.
    assert table["over_as_many"].notna()["best-path", "60", "2:1"]


def test_the_command_that_adds_seeds_can_be_typed(tmp_path, cloud_grids):
    sweep = EXPERIMENTS / "drift.toml"
    part = {"links": ["full"], "planned": ["january"]}
    dc.sweep(sweep, tmp_path / "a b", workers=0, data=cloud_grids, seeds_most=2, only=part)
    found = dc.report(tmp_path / "a b")
    facts = {row["fact"]: row["value"] for row in rows_of(found.folder / "sweeps.csv")}
    command = facts["to add or tighten"]
    assert " --scale 1 --seeds 4 --only planned=january --only links=full " in command
    words = shlex.split(command.replace("DATA", str(cloud_grids)))
    assert words[:5] == ["datacollect", "sweep", str(sweep), "-o", str(tmp_path / "a b")]
    assert run([*words[1:], "--workers", "0"]) == 0
    assert len(pd.read_parquet(tmp_path / "a b" / "results.parquet")) == 3 * 4


def test_predictions_that_are_off_name_the_wire(tmp_path):
    def truth(labels):
        return {"predicted_s": 104.0 if labels["method"] == "direct" else 40.0}

    write_sweep(tmp_path / "a", "figure3", truth, only=SMALL)
    (sweep,) = read_sweeps(tmp_path)
    table = prediction_table(sweep).set_index(["method", "flows", "ratio"])
    assert not table.loc[("direct", "60", "2:1"), "is_off"]
    row = table.loc[("coordinated", "60", "2:1")]
    assert row["is_off"]
    assert (row["busiest_wire"], row["busiest_share"]) == ("B0 -> A0", 1.0)
    assert row["predicted_over_measured"] == pytest.approx(0.4, rel=0.05)
    ratios = summary_table(sweep).set_index(["method", "flows", "ratio"])["over_as_many"]
    assert row["over_as_many"] == ratios["coordinated", "60", "2:1"] > 0


def test_a_series_that_was_run_once_for_all_is_in_every_panel(tmp_path):
    """Direct plans on no estimates: its runs at 0 % are shown where estimates are wrong, too."""
    write_sweep(tmp_path / "a", "figure4", only={"flows": ["60"], "error": ["0 %", "+70 %"]})
    tree = json.loads((tmp_path / "a" / "experiment.json").read_text())
    assert len(tree["panels"]) > 2
    (sweep,) = read_sweeps(tmp_path)
    by_label = {panel.label: panel.points for panel in panels_of(sweep) if panel.label in "ad"}
    wrong, right = (by_label[label].set_index("series") for label in "ad")
    assert set(wrong.index) == {"direct", "direct-as-many", "best-path", "coordinated"}
    assert wrong.loc["direct", "run"] == right.loc["direct", "run"]
    assert wrong.loc["coordinated", "run"] != right.loc["coordinated", "run"]


def test_what_a_panel_leaves_open_is_not_mixed(tmp_path):
    folder = tmp_path / "a"
    write_sweep(folder, "figure3", only=SMALL)
    tree = json.loads((folder / "experiment.json").read_text())
    tree["panels"] = [{**tree["panels"][0], "where": {}}]
    (folder / "experiment.json").write_text(json.dumps(tree))
    (sweep,) = read_sweeps(folder)
    assert [panel.title for panel in panels_of(sweep)] == ["(a) ratio 1:1", "(a) ratio 2:1"]


def test_without_panels_methods_are_drawn(tmp_path):
    folder = tmp_path / "a"
    write_sweep(folder, "figure3", only=SMALL)
    tree = json.loads((folder / "experiment.json").read_text())
    (folder / "experiment.json").write_text(json.dumps({**tree, "panels": []}))
    (sweep,) = read_sweeps(folder)
    assert {panel.series for panel in panels_of(sweep)} == {"method"}


def test_runs_that_did_not_end_are_counted_and_not_averaged(tmp_path):
    def truth(labels):
        return {"makespan_s": float("nan"), "complete": False} if labels["ratio"] == "2:1" else {}

    write_sweep(tmp_path / "a", "figure3", truth, only=SMALL)
    (sweep,) = read_sweeps(tmp_path)
    table = summary_table(sweep).set_index(["method", "flows", "ratio"])
    row = table.loc[("direct", "60", "2:1")]
    assert (row["seeds"], row["incomplete"]) == (0, 6)
    assert pd.isna(row["makespan_s"])
    assert all(panel.where["ratio"] == "1:1" for panel in panels_of(sweep))


# Files ------------------------------------------------------------------------------------------


def test_a_report_has_pictures_tables_and_a_page(sweep_folder):
    found = dc.report(sweep_folder)
    assert found.folder == sweep_folder / "report"
    assert set(found.files) == {file.name for file in found.folder.iterdir()}
    assert set(found.files) == {
        "claims.csv",
        "figure3.csv",
        "figure3.png",
        "figure3.svg",
        "figure3_across.csv",
        "figure3_prediction.csv",
        "figure3_runs.csv",
        "figure3_summary.csv",
        "index.html",
        "sweeps.csv",
    }
    data = (found.folder / "figure3.png").read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert width > 800
    assert height > 300
    svg = (found.folder / "figure3.svg").read_text(encoding="utf-8")
    assert all(label in svg for label in ("direct-as-many", "coordinated", "makespan, s"))
    assert len(rows_of(found.folder / "figure3_runs.csv")) == found.n_runs == 96


def test_the_same_sweep_gives_the_same_files(sweep_folder, tmp_path):
    first = dc.report(sweep_folder, tmp_path / "first")
    again = dc.report(sweep_folder, tmp_path / "again")
    for name in first.files:
        assert (first.folder / name).read_bytes() == (again.folder / name).read_bytes(), name


def test_several_sweeps_of_one_name_do_not_overwrite_each_other(tmp_path):
    for scale in (0.1, 1.0):
        write_sweep(tmp_path / f"at {scale:g}", "figure3", makespans, only=SMALL, scale=scale)
    found = dc.report(tmp_path)
    assert {"at_0.1.png", "at_1.png"} <= set(found.files)
    assert {row["sweep"] for row in rows_of(found.folder / "sweeps.csv")} == {"at 0.1", "at 1"}


def test_runs_that_the_table_lacks_are_read_from_their_files(sweep_folder):
    """A sweep that was killed: no table of all yet, one file cut short."""
    whole = dc.report(sweep_folder).claims
    table = pd.read_parquet(sweep_folder / "results.parquet")
    table.iloc[:50].to_parquet(sweep_folder / "results.parquet", index=False)
    found = dc.report(sweep_folder)
    assert (found.n_runs, found.n_unreadable) == (96, 0)
    pd.testing.assert_frame_equal(found.claims, whole)
    broken = sweep_folder / "runs" / f"{table['key'].iloc[90]}.json"
    broken.write_text(broken.read_text()[:100])
    found = dc.report(sweep_folder)
    assert (found.n_runs, found.n_unreadable) == (95, 1)


def test_a_real_sweep_has_a_report(tmp_path):
    experiment = dc.Experiment.from_dict(
        {
            "engine": "fluid",
            "seeds": {"least": 3, "batch": 3},
            "axes": [
                {"name": "rate", "key": "topology.rate_bytes_per_s", "values": [1e5, 1e6]},
                {
                    "name": "method",
                    "key": "method.name",
                    "paired": True,
                    "values": ["direct", "coordinated"],
                },
            ],
        },
        scenario={
            "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6},
            "hosts": {
                "destination": {"at": "N0"},
                "sources": [{"at": "N1", "backlog_bytes": 1_000_000}],
            },
        },
    )
    dc.sweep(experiment, tmp_path, workers=0)
    found = dc.report(tmp_path)
    rows = rows_of(found.folder / "experiment_summary.csv")
    assert len(rows) == 4
    assert {row["seeds"] for row in rows} == {"3"}
    # 1 MB at 0.1 MB/s takes 10 s, and a little for headers.
    (slow,) = (r for r in rows if (r["rate"], r["method"]) == ("100000", "direct"))
    assert 10 < float(slow["makespan_s"]) < 11


def test_the_command_prints_verdicts_and_where_the_page_is(sweep_folder, capsys):
    assert run(["report", str(sweep_folder), "-o", str(sweep_folder / "out")]) == 0
    text = capsys.readouterr().out
    assert "C1     direct" in text
    assert "holds" in text
    assert str(sweep_folder / "out" / "index.html") in text


# Folders that are none --------------------------------------------------------------------------


def broken_json(folder):
    (folder / "experiment.json").write_text('{"format": "datacoll')


def another_format(folder):
    (folder / "experiment.json").write_text('{"format": "datacollect-problem/1"}')


def without_axes(folder):
    tree = '{"format": "datacollect-experiment/1", "name": "x", "engine": "fluid"}'
    (folder / "experiment.json").write_text(tree)


def without_runs(folder):
    write_sweep(folder / "a", "figure3", only=SMALL, seeds=0)


def something_else(folder):
    (folder / "letter.txt").write_text("Dear")


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda _: None, "the folder is empty"),
        (something_else, "no experiment.json in it"),
        (broken_json, "cannot be read as JSON; is it cut short?"),
        (another_format, "format must be 'datacollect-experiment/1', got 'datacollect-problem/1'"),
        (without_axes, "scenario, axes, panels, sha256 missing"),
        (without_runs, "no run is finished"),
        (shutil.rmtree, "no such folder"),
    ],
)
def test_what_is_no_sweep_is_refused_with_a_remedy(tmp_path, capsys, prepare, message):
    folder = tmp_path / "given"
    folder.mkdir()
    prepare(folder)
    assert run(["report", str(folder)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert str(folder) in error
    assert not (folder / "report").exists()


def test_an_output_that_cannot_be_made_is_named(sweep_folder, capsys):
    (sweep_folder / "taken").write_text("")
    assert run(["report", str(sweep_folder), "-o", str(sweep_folder / "taken" / "x")]) == 2
    assert "the folder of the report cannot be made" in capsys.readouterr().err


# The page ---------------------------------------------------------------------------------------


@pytest.fixture
def browser():
    """Headless Chromium."""
    named = os.environ.get("DATACOLLECT_CHROMIUM")
    path = named or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip(NO_CHROMIUM)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Containers have no namespaces for its sandbox; the page is our own.
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


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
    rows = rows_of(folder / "figure3.csv")
    assert drawn == {
        (f"({r['panel']}) {r['where']}", r["series"], r["x"]): float(r["mean"]) for r in rows
    }
    assert len(drawn) == 16

    # Tables: the cells of the CSV.
    for file in ("figure3_summary.csv", "figure3_prediction.csv"):
        details = page.locator(f"details[data-file='{file}']")
        details.locator("summary").click()
        cells = details.locator("tbody").evaluate(
            """body => [...body.rows].map(row => Object.fromEntries(
                [...row.cells].map(cell => [cell.dataset.column, cell.dataset.value])))"""
        )
        rows = rows_of(folder / file)
        assert len(cells) == len(rows) > 0
        for shown, row in zip(cells, rows, strict=True):
            assert shown == {column: row[column] for column in shown}
        assert {"makespan_s", "connections"} <= set(cells[0])

    # A claim's row says why.
    claim = page.locator("#claims tr.claim").first
    why = page.locator("#claims tr.why").first
    assert not why.is_visible()
    claim.click()
    assert rows_of(folder / "claims.csv")[0]["why"] in why.inner_text()
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
