"""Verdicts under other readings of the paper's text."""

from __future__ import annotations

from instances.made_sweeps import write_sweep

from datacollect.study.report.folders import read_sweeps
from paper.claims import claims_table, findings
from paper.readings import readings_table

GAINS = {"direct": 2.6, "best-path": 2.5}


def truth(labels):
    """With ns-2's TCP direct is as fast as coordinated; with all else it takes 2.6 times."""
    method = labels["method"].removesuffix(", ours")
    slow = labels["reading"] != "ns-2's TCP"
    return {"makespan_s": 100 * (GAINS.get(method, 1.0) if slow else 1.0)}


def test_a_reading_that_changes_a_verdict_says_so(tmp_path):
    only = {"setting": ["1:1"], "reading": ["as in base.toml", "ns-2's TCP", "sources in stubs"]}
    write_sweep(tmp_path / "a", "readings", truth, only=only)
    table = readings_table(read_sweeps(tmp_path))
    rows = table[(table["claim"] == "C1") & (table["part"] == "direct")]
    changes = {
        (row.reading.split(" = ")[0], row.method): (row.base_verdict, row.verdict, row.changes)
        for row in rows.itertuples()
        if "method.first" not in row.reading
    }
    methods = "the paper's: slots of 10 s at planned times", "ours: pipelined"
    assert changes == {
        (place, method): ("holds", verdict, verdict != "holds")
        for method in methods
        for place, verdict in (("hosts.sources", "holds"), ("transport.preset", "differs"))
    }


def test_best_path_that_begins_with_a_relay_stands_beside_what_does_not_ask_for_it(tmp_path):
    """It is as fast as coordinated here: C1 fails for it, and direct's part is what it was."""

    def truth(labels):
        method = labels["method"].removesuffix(", ours")
        return {"makespan_s": 100 * GAINS.get(method, 1.0)}

    only = {"setting": ["1:1"], "reading": ["as in base.toml"]}
    write_sweep(tmp_path / "a", "readings", truth, only=only)
    sweeps = read_sweeps(tmp_path)
    table = readings_table(sweeps)
    rows = table[(table["claim"] == "C1") & (table["method"] == "ours: pipelined")]
    assert set(rows["reading"]) == {'method.first = "relay"'}
    verdicts = dict(zip(rows["part"], rows["verdict"], strict=True))
    assert verdicts == {"direct": "holds", "best-path": "differs"}
    base = findings(sweeps)
    assert {f.verdict for f in base if f.claim == "C1" and f.seeds} == {"holds"}


def test_seeds_that_were_chosen_are_a_reading_and_not_mixed_with_those_drawn(tmp_path):
    """In the ten seeds chosen direct is no slower; the base scenario's verdict stays what it is."""

    def chosen(labels):
        return {"makespan_s": 100.0}

    def drawn(labels):
        return {"makespan_s": 260.0 if labels["method"] == "direct" else 100.0}

    only = {"ratio": ["1:1"]}
    write_sweep(tmp_path / "halves", "halves", chosen, only=only, seeds=10)
    write_sweep(tmp_path / "figure3", "figure3", drawn, only={**only, "udp": ["5 %"]})
    sweeps = read_sweeps(tmp_path)
    table = readings_table(sweeps)
    rows = table[(table["claim"] == "C1") & (table["part"] == "direct")]
    assert set(rows["reading"]) == {"seeds chosen for halves"}
    assert set(rows["changes"]) == {True}
    found = claims_table(findings(sweeps))
    base = found[(found["claim"] == "C1") & (found["part"] == "direct")]
    assert set(base["verdict"]) == {"holds"}
    assert set(base["seeds"]) == {6}


def test_what_the_planner_is_told_is_no_reading_of_the_text(tmp_path):
    """Runs that know of shared wires, or that plan again, stand in worlds of their own."""
    write_sweep(tmp_path / "a", "figure3", only={"flows": ["60"], "udp": ["5 %"]})
    write_sweep(tmp_path / "b", "knowledge", only={"flows": ["60"]})
    assert readings_table(read_sweeps(tmp_path)).empty


def test_without_other_readings_there_is_no_table(tmp_path):
    write_sweep(tmp_path / "a", "figure3", only={"flows": ["60"], "udp": ["5 %"]})
    assert readings_table(read_sweeps(tmp_path)).empty
