"""Numbers in the study's sentences: each has a name, and says what the results say."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
RESULTS = REPOSITORY / "experiments" / "results" / "study"
TABLES = sorted((DOCS / "tables").glob("study_*.md"))
USED = re.compile(r"\{\{ (?P<group>\w+)\.(?P<name>\w+) \}\}")
INCLUDED = re.compile(r"^```\{include\} (?:\.\./)?tables/(?P<file>\S+)$", re.MULTILINE)


@pytest.fixture
def numbers(scripts):
    return scripts("study_numbers")


def test_numbers_are_what_the_results_say_and_stand_on_pages(numbers):
    made = numbers.numbers(RESULTS)
    written = json.loads(numbers.NUMBERS.read_text(encoding="utf-8"))
    assert written == made, "run python experiments/study_numbers.py"
    pages = [*DOCS.glob("*.md"), *DOCS.glob("*/*.md")]
    used = {found.groups() for page in pages for found in USED.finditer(page.read_text())}
    assert used == {(group, name) for group, names in made.items() for name in names}


@pytest.mark.parametrize("file", TABLES, ids=lambda file: file.stem)
def test_every_table_is_of_runs_and_says_what_they_say(file, scripts):
    tables = scripts("study_tables")
    text = file.read_text(encoding="utf-8")
    assert tables.table_of(tables.NAMED.match(text)["name"], RESULTS)
    assert tables.filled(text, RESULTS) == text, "run python experiments/study_tables.py"


def test_every_table_is_included_once_and_every_included_one_is_there():
    pages = [*DOCS.glob("*.md"), *DOCS.glob("*/*.md")]
    included = [found["file"] for page in pages for found in INCLUDED.finditer(page.read_text())]
    assert sorted(included) == sorted(file.name for file in (DOCS / "tables").glob("*.md"))


def test_the_front_page_says_what_the_results_say(numbers):
    """README.md is read as it is, so its numbers have no names."""
    world = (
        '"method=the paper\'s: slots of 10 s at planned times" '
        '"where=ns-3, scale 0.1, probes of 5 MB, mean"'
    )
    direct = [numbers.value_of(f"claims value claim={c} part=direct {world}") for c in ("C1", "C2")]
    as_many = [
        numbers.value_of(f"figure3_paper.summary over_coordinated method=direct-as-many ratio={r}")
        for r in ("1:1", "2:1")
    ]
    readme = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    for sentence in (
        f"takes {direct[0]} times as long as coordinated under equal load and {direct[1]} times",
        f"takes {as_many[0]} of coordinated's time under equal load, {as_many[1]} under 2:1.",
    ):
        assert sentence in readme


# What judges, and makes intervals.
JUDGES = (
    "datacollect.numbers.intervals",
    "datacollect.study.report.setting_runs",
    "datacollect.study.report.tables",
    "paper.verdicts",
    "paper.claims_of_costs",
    "paper.claims_of_example",
)


def test_the_page_on_method_states_every_number_that_judges(numbers):
    """All constants but the seed of the random numbers, which decides nothing."""
    text = (DOCS / "study_method.md").read_text(encoding="utf-8")
    rules = tomllib.loads(numbers.SOURCES.read_text(encoding="utf-8"))["rule"]
    stated = [source for name, source in rules.items() if f"{{{{ rule.{name} }}}}" in text]
    judging = [
        f"{name}.{constant}"
        for name in JUDGES
        for constant, value in vars(importlib.import_module(name)).items()
        if constant.isupper() and type(value) in (int, float)
    ]
    assert "paper.verdicts.PAPER_PRECISION" in judging
    missing = [one for one in judging if not any(one in source.split() for source in stated)]
    assert missing == ["datacollect.numbers.intervals.SEED"]


def test_the_page_on_method_has_a_rule_for_every_claim(scripts):
    text = (DOCS / "study_method.md").read_text(encoding="utf-8")
    rules = text.partition("### Claim by claim")[2].partition("###")[0]
    judged = set(pd.read_csv(RESULTS / "claims.csv")["claim"])
    assert set(re.findall(r"\bC\d+\b", rules)) == judged == set(scripts("study_texts").IN_WORDS)


def test_a_sweep_that_was_not_run_has_no_numbers(numbers, tmp_path):
    with pytest.raises(ValueError, match=r"'a\.own over_base': a_own\.csv is not there"):
        numbers.value_of("a.own over_base", tmp_path)


def test_a_number_of_runs_that_are_no_more_is_named_once_tables_are_written(
    scripts, tmp_path, monkeypatch
):
    """Tables are written again; the sentence has to be rewritten by somebody."""
    report, docs = tmp_path / "report", tmp_path / "docs"
    table = docs / "tables" / "study_sweeps.md"
    report.mkdir()
    table.parent.mkdir(parents=True)
    (report / "claims.csv").write_text("claim,part,method,where,value\nC1,,,,2.7\n")
    (report / "sweeps.csv").write_text("sweep,fact,value\na,runs,6\na,to add or tighten,command\n")
    table.write_text("<!-- table: sweeps -->\nold\n")
    arguments = [report, "--docs", docs, "--results", tmp_path / "results"]
    monkeypatch.setattr("sys.argv", ["study_tables.py", *map(str, arguments)])
    with pytest.raises(SystemExit, match=r"no such row in claims.csv; rewrite the sentence"):
        scripts("study_tables").main()
    assert "| a | 6 |" in table.read_text()


def test_what_was_published_stays_until_its_world_is_reported_anew(scripts, tmp_path):
    """Of ours with large probes C1 is new; with small ones it stays, and C2 was run by nobody."""
    new, old = tmp_path / "new", tmp_path / "claims.csv"
    new.mkdir()
    head = "claim,part,where,method,value\n"
    (new / "claims.csv").write_text(f"{head}C1,,large,ours,3\nC2,,,,\nC1,,large,theirs,4\n")
    old.write_text(f"{head}C2,,,,\nC1,,large,ours,2\nC1,,small,ours,1\nC10,,small,ours,5\n")
    scripts("study_tables").keep(new / "claims.csv", tmp_path)
    rows = "C1,,large,ours,3 C1,,large,theirs,4 C1,,small,ours,1 C2,,,, C10,,small,ours,5"
    assert old.read_text().split("\n")[1:-1] == rows.split()
    scripts("study_tables").keep(new / "claims.csv", tmp_path)
    assert old.read_text().count("\n") == 6


def test_published_tables_lie_in_one_file_each_as_it_was_written(scripts, tmp_path):
    """Also one that takes another's place; what is read most has a file of its own."""
    tables = scripts("published_tables")
    wanted = {"b_own.csv": "a,b\n1,\n", "a_across.csv": "x\n-- y --z\n", "c.csv": "q\n"}
    for name, text in {"b_own.csv": "old\n", **wanted, "sweeps.csv": "s\n"}.items():
        tables.keep(tmp_path, name, text)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["sweeps.csv", "tables.txt"]
    assert tables.texts_in(tmp_path) == wanted
    assert list(tables.texts_in(tmp_path)) == ["a_across.csv", "b_own.csv", "c.csv"]
    assert tables.read(tmp_path, "sweeps.csv").columns.tolist() == ["s"]
    assert tables.read(tmp_path, "d.csv") is None


def test_the_study_has_few_files():
    """Each sweep one of rows and one of measurements at most."""
    results = RESULTS.parent
    assert sum(file.is_file() for file in results.rglob("*")) <= 80


def test_claims_stand_side_by_side_by_the_paper_s_method_and_ours(scripts):
    """Probes of the paper's size count before small ones, whatever the seeds."""
    row = {"claim": "C3", "part": "", "verdict": "holds", "is_settled": "yes", "seeds": "2"}
    numbers = {"value": "1.5", "low": "1.4", "high": "1.6"}
    found = {**row, **numbers, "method": "ours: pipelined", "where": "probes of 5 MB, mean"}
    small = {**found, "where": "probes of 0.5 MB, ewma", "seeds": "9", "verdict": "differs"}
    table = scripts("study_texts").side_by_side(pd.DataFrame([small, found]))
    assert table.splitlines()[-1] == (
        "| C3: under 1:1 direct and best-path are alike | – | **holds**, 1.5 [1.4, 1.6], 2 seeds |"
    )


def test_claims_without_a_coordinated_plan_stand_once(scripts):
    """C3 compares direct with best-path: the paper's method and ours share those runs."""
    row = {"claim": "C3", "part": "", "verdict": "holds", "is_settled": "yes", "seeds": "2"}
    row |= {"value": "1.1", "low": "1", "high": "1.2", "where": "ns-3", "connections": "7 and 12"}
    row |= {"statement": "alike", "paper": "1", "setting": "1:1", "why": "within 20 %"}
    both = [
        {
            **row,
            "method": "the paper's: slots of 10 s at planned times",
            "equal_connections": "0.6",
        },
        {**row, "method": "ours: pipelined", "equal_connections": "0.8"},
    ]
    texts = scripts("study_texts")
    assert texts.side_by_side(pd.DataFrame(both)).splitlines()[-1].endswith("| the same runs |")
    lines = texts.claims(pd.DataFrame(both)).splitlines()[2:]
    assert len(lines) == 1
    assert lines[0].startswith("| C3 | alike | 1 | either | 1.1 [1, 1.2] (ns-3; 1:1; 2 seeds; ")
    assert "0.6" not in lines[0]
    both[1] |= {"value": "1.2"}
    assert len(texts.claims(pd.DataFrame(both)).splitlines()) == 4


def test_claims_that_were_not_run_at_all_have_a_dash(scripts):
    row = {"claim": "C8", "is_settled": "yes", "where": "", "method": ""}
    numbers = {"value": "1.5", "low": "1.4", "high": "1.6", "seeds": "1"}
    one = {**row, **numbers, "part": "coordinated", "verdict": "holds", "method": "ours: pipelined"}
    other = {**row, **dict.fromkeys(numbers, ""), "part": "best-path", "verdict": "not run"}
    table = scripts("study_texts").side_by_side(pd.DataFrame([one, other]))
    assert table.splitlines()[-1].endswith(
        "| – | coordinated: **holds**, 1.5 [1.4, 1.6], 1 seed<br>best-path: – |"
    )


def test_several_rows_give_their_range_and_one_its_interval(numbers, tmp_path):
    """By hand: 1.04 and 1.19 are 4 to 19 % more; 0.8 and 0.9 are 10 to 20 % less."""
    (tmp_path / "x_summary.csv").write_text(
        "method,flows,s,s_low,s_high\na,20,1.04,1,1.1\na,60,1.19,1.1,1.3\nb,20,0.8,,\nb,60,0.9,,\n"
    )
    value = numbers.value_of
    assert value('x.summary s method=a "as=percent more"', tmp_path) == "4 to 19 %"
    assert value('x.summary s method=b "as=percent less"', tmp_path) == "10 to 20 %"
    assert value("x.summary s method=a flows=60 as=interval", tmp_path) == "1.2 [1.1, 1.3]"
    assert value("x.summary s method=a|b flows=20", tmp_path) == "0.8 to 1"
    assert value("x.summary s method=b flows=20 as=inverse", tmp_path) == "1.2"
    assert value('x.summary s method=a "as=three digits"', tmp_path) == "1.04 to 1.19"
    with pytest.raises(ValueError, match=r"no such row in x_summary.csv"):
        value("x.summary s method=c", tmp_path)


def test_readings_are_named_in_words_with_the_verdicts_they_change(scripts):
    found = {"claim": "C1", "part": "direct", "seeds": "8", "value_low": "2.5", "value_high": "3"}
    base = {"where": "fluid engine", "method": "ours: pipelined", "base_value": "1.98"}
    base |= {"base_value_low": "1.9", "base_value_high": "2.1"}
    moved = {"value": "2.75", "verdict": "holds", "base_verdict": "differs", "changes": "yes"}
    alike = {"value": "2", "verdict": "holds", "base_verdict": "holds", "changes": "no"}
    fixed = {"reading": "hosts.seed = 1; backlog.seed = 1"}
    stubs = {"reading": 'hosts.sources = [{"among": "stub", "count": 2, "domain": "A"}]'}
    rows = [found | base | fixed | moved, found | base | stubs | alike]
    changed = "C1 direct: differs → holds (1.98 [1.9, 2.1] → 2.75 [2.5, 3])"
    assert scripts("study_texts").readings(pd.DataFrame(rows)).splitlines()[2:] == [
        f"| fixed places and backlogs | fluid engine | ours: pipelined | 8 | 1 | {changed} |",
        "| sources in stubs | fluid engine | ours: pipelined | 8 | 1 | none |",
    ]


def test_max_min_fair_rates_do_not_stand_among_the_claims(scripts):
    """They are in claims.csv, for readings to stand beside; the paper's means were packets."""
    table = pd.DataFrame({"where": ["ns-3, scale 0.1", "fluid engine, scale 0.1", "planned here"]})
    kept = scripts("study_texts").by_packets(table)
    assert list(kept["where"]) == ["ns-3, scale 0.1", "planned here"]
