"""The paper's claims in a report: what the command prints, and what it writes."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest
from instances.made_sweeps import EXPERIMENTS, SMALL, cells_in, gains, write_sweep
from instances.small_experiments import experiment_of

import datacollect as dc
from datacollect.commands.main import run
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.known_hooks import is_core_papers
from paper import judge

PUBLISHED = EXPERIMENTS / "results" / "study" / "rows"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The report of a sweep by the command; and what the command prints."""
    folder = tmp_path_factory.mktemp("told")
    write_sweep(folder / "swept", "figure3", gains, only={**SMALL, "flows": ["60"]}, noise=0.02)
    hook = ["--verdicts", str(EXPERIMENTS / "paper")]
    with io.StringIO() as text, redirect_stdout(text):
        assert run(["report", str(folder / "swept"), "-o", str(folder / "out"), *hook]) == 0
        return folder / "out", text.getvalue()


def test_the_command_prints_verdicts(told):
    folder, text = told
    assert "C1     direct" in text
    assert "holds" in text
    assert (folder / "claims.csv").exists()
    assert "readings.csv" not in {file.name for file in folder.iterdir()}


def test_the_command_says_whose_plan_in_which_world_a_verdict_is_about(told):
    """The same claim is judged for the paper's way and for ours: two rows that must differ."""
    folder, text = told
    lines = text.splitlines()
    judged = [r for r in cells_in(folder / "claims.csv") if r["verdict"] != "not run"]
    for where in {row["where"] for row in judged}:
        assert f"{where}:" in lines
    for row in judged:
        whose = row["method"].partition(":")[0]
        assert any(line.startswith(row["claim"]) and whose in line for line in lines), row
    claims = [line.split("  ")[0] + line[5:60] for line in lines if line.startswith("C")]
    assert len(claims) == len(set(claims))


def test_sweeps_that_have_to_do_with_no_claim_have_none(tmp_path):
    """The paper's example is planned by hand: by itself it is no reason to speak of claims."""
    dc.sweep(experiment_of(), tmp_path, workers=0)
    found = judge(read_sweeps(tmp_path))
    assert found.claims.empty
    assert found.tables["readings"].empty
    assert list(found.claims.columns)[:2] == ["claim", "part"]


def test_the_page_says_what_the_paper_says(told):
    folder, _ = told
    page = (folder / "index.html").read_text(encoding="utf-8")
    for words in ("What the paper claims, and what is found", "the paper says", "its number"):
        assert words in page


def test_a_report_without_the_hook_names_it_for_every_published_sweep_that_is_judged():
    """Those that are not the paper's, nor judged: plans on bandwidths between clouds."""
    others = [
        sweep.name for sweep in read_sweeps(PUBLISHED) if not is_core_papers(sweep.tree["scenario"])
    ]
    assert others == ["drift"]
