"""Every claim judged in made-up worlds of which it is known what they say."""

from __future__ import annotations

import pytest
from instances.made_sweeps import EXPERIMENTS, write_sweep

import datacollect as dc
from datacollect.study.report.folders import read_sweeps
from paper.base import BASE
from paper.claims import claims_table, figure1_findings, findings
from paper.runs import PaperSetting, paper_runs
from paper.worlds import differences

# Makespans over coordinated's, by ratio, as the paper has them or nearly so.
GAINS = {
    "1:1": {"direct": 2.6, "best-path": 2.5},
    "2:1": {"direct": 2.56, "best-path": 1.64},
    "1:3": {"direct": 2.4, "best-path": 1.5},
    "3:1": {"direct": 2.4, "best-path": 1.5},
    "1:20": {"direct": 3.0, "best-path": 1.0},
    "0:60": {"direct": 3.0, "best-path": 1.0},
}
# Under wrong estimates: coordinated and best-path over coordinated with right ones.
WRONG = {
    "+70 %": (1.46, 3.3),
    "+50 %": (1.3, 2.4),
    "+30 %": (1.1, 1.55),
    "-50 %": (1.1, 1.6),
    "-70 %": (1.24, 1.6),
}
PARTS = {
    "C1": {"direct", "best-path"},
    "C2": {"direct", "best-path"},
    "C3": {""},
    "C4": {"2:1", "1:3", "3:1"},
    "C5": {f"{way}, {split}" for way in ("direct", "best-path") for split in ("1:1", "2:1")},
    "C6": {f"{e} %, {s}-sided" for e in ("+70", "-70") for s in ("one", "two")},
    "C7": {"over coordinated", "+70 %", "+30 %"},
    "C8": {"coordinated", "best-path"},
    "C9": {"1:1", "2:1"},
    "C10": {""},
    "C11": {""},
    "C13": {
        f"{turns}, {split}"
        for turns in (*(f"{n} at a time" for n in (1, 2, 4)), "2 at a time in time slots")
        for split in ("1:1", "2:1")
    },
    "C14": {"1:20", "0:60"},
    "C15": {""},
    "C16": {"two-sided", "one-sided"},
}


def plain(method):
    """The paper's method and ours do alike in these worlds, direct in turns as in parallel."""
    return "direct" if method.startswith("direct, ") else method.removesuffix(", ours")


def papers_world(labels):
    """What the paper says."""
    method, error = plain(labels["method"]), labels["error"].removesuffix(", one side")
    factor = GAINS[labels["ratio"]].get(method, 1.0)
    if error in WRONG:
        factor = WRONG[error][method == "best-path"]
    if method == "direct-as-many":
        factor = 0.8
    return {
        "makespan_s": 100 * factor,
        "connections": 40 if method in ("coordinated", "direct-as-many") else 7,
        "storage_mean": {"coordinated": 1.03, "best-path": 1.73}.get(method, 1.0),
        "tcp_during_bytes_per_s": 950_000.0 if method == "coordinated" else 1e6,
    }


def opposite_world(labels):
    """The other way round: detours take longer and store more, wrong estimates help."""
    method, error = plain(labels["method"]), labels["error"]
    factor = {"coordinated": 4.0, "best-path": 2.0, "direct": 1.2}.get(method, 1.0)
    if labels["method"].startswith("direct, "):
        factor = 0.5
    if error != "0 %":
        factor = {"coordinated": 1.5, "best-path": 1.0}[method]
    return {
        "makespan_s": 100 * factor,
        "storage_mean": 2.5 if method == "coordinated" else 1.0,
        "tcp_during_bytes_per_s": 1.2e6 if method == "coordinated" else 1e6,
        "plan_time_s": 100.0,
    }


def weak_world(labels):
    """The same directions, other sizes."""
    method, error = plain(labels["method"]), labels["error"]
    factor = {"coordinated": 1.0, "best-path": 1.2, "direct": 1.3}.get(method, 0.8)
    if error != "0 %":
        factor = {"coordinated": 1.1, "best-path": 1.8}[method]
    return {
        "makespan_s": 100 * factor,
        "storage_mean": {"coordinated": 1.2, "best-path": 1.4}.get(method, 1.0),
        "tcp_during_bytes_per_s": 700_000.0 if method == "coordinated" else 1e6,
        "plan_time_s": 20.0,
    }


FIGURES = ("figure3", "figure4")


def judged(folder, truth, names=(*FIGURES, "directs", "onesided"), **options):
    """Return the table of the paper's claims by its own method, at 60 flows."""
    for name in names:
        write_sweep(folder / name, name, truth, only={"flows": ["60"]}, **options)
    table = claims_table(findings(read_sweeps(folder)))
    return table[table["method"] != "ours: pipelined"]


@pytest.fixture(scope="module")
def papers_table(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("paper"), papers_world)


@pytest.fixture(scope="module")
def exact_table(tmp_path_factory):
    """Without noise: ratios are exact, whatever all runs of a seed share."""
    return judged(tmp_path_factory.mktemp("exact"), papers_world, noise=0.0)


def verdicts(table):
    return {(row.claim, row.part): row.verdict for row in table.itertuples()}


def test_all_claims_and_parts_are_there_once(papers_table):
    table = papers_table[papers_table["claim"] != "C12"]
    found = table.groupby("claim")["part"].agg(list).to_dict()
    assert {claim: sorted(parts) for claim, parts in found.items()} == {
        claim: sorted(parts) for claim, parts in PARTS.items()
    }


def test_in_the_papers_own_world_all_claims_hold(papers_table):
    found = verdicts(papers_table)
    assert set(found.values()) == {"holds"}, found


def test_every_claim_on_methods_is_shown_at_equal_connections(exact_table):
    """Direct with as many takes 0.8: over coordinated's 1.46 with wrong estimates that is 0.55."""
    found = exact_table.set_index(["claim", "part"])
    table = found["equal_connections"]
    assert table["C4", "2:1"] == "0.80 [0.80, 0.80]"
    assert table["C5", "direct, 2:1"] == "0.80 to 0.80"
    assert table["C6", "+70 %, two-sided"] == "0.55 [0.55, 0.55]"
    assert table["C7", "over coordinated"] == "0.55 to 0.73"
    assert table["C7", "+30 %"] == "0.73 [0.73, 0.73]"
    assert table["C8", "coordinated"] == "0.80 to 0.80"
    assert table["C9", "2:1"] == "0.80 [0.80, 0.80]"


def test_in_the_opposite_world_all_are_contradicted(tmp_path):
    found = verdicts(judged(tmp_path, opposite_world))
    # Precision says nothing about methods; the example has no world.
    assert found.pop(("C10", "")) == "holds"
    others = {key: verdict for key, verdict in found.items() if key[0] != "C12"}
    assert set(others.values()) == {"contradicts"}, others


def test_other_sizes_differ_and_are_settled(tmp_path):
    table = judged(tmp_path, weak_world).set_index(["claim", "part"])
    for key in (
        ("C1", "direct"),
        ("C2", "direct"),
        ("C2", "best-path"),
        ("C6", "+70 %, two-sided"),
        ("C7", "+70 %"),
        ("C8", "coordinated"),
        ("C8", "best-path"),
        ("C9", "1:1"),
        ("C11", ""),
    ):
        assert table.loc[key, "verdict"] == "differs", key
        assert table.loc[key, "is_settled"], key
        assert "not settled: " not in table.loc[key, "why"]


def test_noise_leaves_claims_open_and_says_so(tmp_path):
    table = judged(tmp_path, papers_world, FIGURES, seeds=3, noise=1.5).set_index(["claim", "part"])
    for key in (
        ("C1", "direct"),
        ("C2", "direct"),
        ("C3", ""),
        ("C4", "2:1"),
        ("C5", "direct, 1:1"),
    ):
        assert table.loc[key, "verdict"] == "differs", key
        assert not table.loc[key, "is_settled"], key
        assert table.loc[key, "why"].startswith("not settled"), key
    assert table.loc[("C10", ""), "verdict"] == "differs"
    assert "0 of" in table.loc[("C10", ""), "why"]


def test_numbers_are_those_that_were_put_in(exact_table):
    table = exact_table.set_index(["claim", "part"])
    row = table.loc[("C2", "direct")]
    assert (row["value"], row["low"], row["high"]) == pytest.approx((2.56, 2.56, 2.56))
    assert (row["seeds"], row["connections"]) == (6, "7 and 40")
    assert row["equal_connections"] == "0.80 [0.80, 0.80]"
    assert row["setting"] == "2:1, 60 flows, 5 % UDP"
    assert row["where"] == "ns-3, scale 0.1, probes of 5 MB, mean"
    assert row["method"] == "the paper's: slots of 10 s at planned times"
    # The setting furthest from 1 with its own interval; the sentence has the means of all.
    row = table.loc[("C7", "over coordinated")]
    assert (row["value"], row["low"], row["high"]) == pytest.approx((3.3 / 1.46,) * 3)
    assert row["why"].endswith("; furthest from 1 at +70 %; means 1.29 to 2.26")


def test_the_interval_that_is_shown_has_its_own_seeds(tmp_path):
    """60 flows lose most, with six seeds; 20 flows with three do not count beside it."""

    def world(labels):
        lost = plain(labels["method"]) == "coordinated"
        kept = {"20": 0.95, "60": 0.8}[labels["flows"]] if lost else 1.0
        return {"tcp_during_bytes_per_s": 1e6 * kept}

    for flows, seeds in (("20", 3), ("60", 6)):
        only = {"flows": [flows], "ratio": ["2:1"], "udp": ["5 %"]}
        write_sweep(tmp_path / flows, "figure3", world, only=only, seeds=seeds)
    table = claims_table(findings(read_sweeps(tmp_path))).set_index(["claim", "part"])
    for _, row in table.loc[[("C9", "2:1")]].iterrows():
        assert row["why"].endswith("; furthest from 1 at 60 flows; means 0.8 to 0.95")
        assert row["value"] == pytest.approx(0.8)
        assert row["seeds"] == 6


def test_a_claim_that_something_can_happen_shows_what_speaks_most_for_it(tmp_path):
    """At +50 % best-path takes a fourth of direct's time, further from 1 than 1.5 at +70 %."""

    def world(labels):
        factor = {"+70 %": 1.5, "+50 %": 0.25}.get(labels["error"], 1.0)
        return {"makespan_s": 100 * (factor if labels["method"] == "best-path" else 1.0)}

    only = {"error": ["0 %", "+50 %", "+70 %"], "flows": ["60"], "ratio": ["1:3"]}
    write_sweep(tmp_path, "figure4", world, only=only)
    table = claims_table(findings(read_sweeps(tmp_path))).set_index("claim")
    for _, row in table.loc[["C15"]].iterrows():
        assert row["verdict"] == "holds"
        assert row["value"] == pytest.approx(1.5, rel=0.05)
        assert "; speaks most for it at +70 %; means 0.25 to 1.5" in row["why"]


def test_a_single_seed_is_no_verdict(tmp_path):
    table = judged(tmp_path, papers_world, seeds=1)
    row = table.set_index(["claim", "part"]).loc[("C1", "direct")]
    assert (row["verdict"], row["seeds"]) == ("not run", 1)
    assert "single seed" in row["why"]


def test_ours_stands_beside_the_papers_and_is_called_so(tmp_path):
    """Where ours takes half the time, C2 is twice the number for it, and not for the paper's."""

    def truth(labels):
        found = papers_world(labels)
        halved = labels["method"] == "coordinated, ours"
        return found | {"makespan_s": found["makespan_s"] / (1 + halved)}

    write_sweep(tmp_path / "a", "figure3", truth, only={"flows": ["60"]}, noise=0.0)
    table = claims_table(findings(read_sweeps(tmp_path)))
    rows = table[(table["claim"] == "C2") & (table["part"] == "direct")]
    assert rows["method"].tolist() == [
        "the paper's: slots of 10 s at planned times",
        "ours: pipelined",
    ]
    assert rows["value"].tolist() == pytest.approx([2.56, 5.12])
    assert set(rows["where"]) == {"ns-3, scale 0.1, probes of 5 MB, mean"}


def test_slots_of_another_length_are_not_judged(tmp_path):
    """The length that claims are judged at is fixed beforehand, however many others are run."""
    write_sweep(tmp_path / "x", "execution", only={"execution": ["slots of 2 s, planned times"]})
    write_sweep(tmp_path / "y", "slots", only={"execution": ["slots of 50 s"]}, seeds=20)
    table = claims_table(findings(read_sweeps(tmp_path)))
    judged_claims = set(table.loc[table["verdict"] != "not run", "claim"])
    assert judged_claims == {"C12"}


def test_sizes_and_engines_are_judged_apart(tmp_path):
    only = {"flows": ["60"], "ratio": ["1:1"], "udp": ["5 %"]}
    write_sweep(tmp_path / "small", "figure3", papers_world, only=only)
    write_sweep(tmp_path / "full", "figure3", opposite_world, only=only, scale=1.0)
    write_sweep(tmp_path / "fluid", "figure3", weak_world, only=only, engine="fluid")
    table = claims_table(findings(read_sweeps(tmp_path)))
    rows = table[(table["claim"] == "C1") & (table["part"] == "direct")]
    assert rows[["where", "method", "verdict"]].values.tolist() == [
        [f"{where}, probes of 5 MB, mean", method, verdict]
        for where, slots, verdict in (
            ("ns-3, full size", "100 s", "contradicts"),
            ("ns-3, scale 0.1", "10 s", "holds"),
            ("fluid engine, scale 0.1", "10 s", "differs"),
        )
        for method in (f"the paper's: slots of {slots} at planned times", "ours: pipelined")
    ]


def test_probes_of_another_size_are_another_world(tmp_path):
    """More seeds with small probes do not hide the few with the paper's."""
    write_sweep(tmp_path / "a", "probes", lambda _: {}, seeds=2)
    names = [runs.world.words for runs in paper_runs(read_sweeps(tmp_path))]
    assert list(dict.fromkeys(names)) == [
        "ns-3, scale 0.1, probes of 5 MB, mean",
        "ns-3, scale 0.1, probes of 0.5 MB, mean",
    ]


def test_what_the_paper_leaves_open_has_a_name_and_is_not_judged(tmp_path):
    """Seven variants of TCP, with more seeds than the base scenario's NewReno has."""
    write_sweep(tmp_path / "a", "transports", opposite_world, seeds=20)
    write_sweep(tmp_path / "b", "figure3", papers_world, only={"flows": ["20"]})
    worlds = [runs.world for runs in paper_runs(read_sweeps(tmp_path))]
    assert {world.others for world in worlds if not world.is_judged} == {
        (f'transport.variant = "{variant}"',)
        for variant in ("Cubic", "Htcp", "Scalable", "Bic", "HighSpeed", "Bbr")
    }
    judged_runs = [runs for runs in paper_runs(read_sweeps(tmp_path)) if runs.world.is_judged]
    assert [runs.world.is_papers for runs in judged_runs] == [True, False]
    for runs in judged_runs:
        ways = runs.select("direct", PaperSetting("1:1", 20))
        assert len(ways) == 6
        assert (ways["makespan_s"] > 200).all()


def test_the_papers_example_is_planned_not_quoted():
    values = [round(finding.value, 3) for finding in figure1_findings()]
    assert values == [2.0, 3.0, 1.5, 1.001]
    assert {finding.verdict for finding in figure1_findings()} == {"holds"}


def test_engines_of_one_version_each_are_named_without_it(tmp_path):
    """ns-3's runs have a version that those of the fluid engine do not have."""
    for engine, numpy in (("ns3", "2"), ("fluid", "1.9")):
        part = {"flows": ["60"]}
        write_sweep(
            tmp_path / engine, "figure3", papers_world, only=part, engine=engine, numpy=numpy
        )
    table = claims_table(findings(read_sweeps(tmp_path)))
    where = set(table[table["claim"] == "C1"]["where"])
    assert where == {
        f"{engine}, scale 0.1, probes of 5 MB, mean" for engine in ("ns-3", "fluid engine")
    }


def test_runs_of_other_versions_are_not_mixed(tmp_path):
    """Twice the seeds by an older version: each is judged by itself, and says which it is."""
    for name, seeds, truth in (("1.9", 12, papers_world), ("2", 6, opposite_world)):
        part = {"flows": ["60"]}
        write_sweep(tmp_path / name, "figure3", truth, only=part, seeds=seeds, numpy=name)
    table = claims_table(findings(read_sweeps(tmp_path)))
    rows = table[(table["claim"] == "C1") & (table["part"] == "direct")]
    rows = rows[rows["method"] == "ours: pipelined"]
    assert rows[["where", "seeds", "verdict"]].values.tolist() == [
        ["ns-3, scale 0.1, probes of 5 MB, mean, numpy 1.9", 12, "holds"],
        ["ns-3, scale 0.1, probes of 5 MB, mean, numpy 2", 6, "contradicts"],
    ]


def test_incomplete_runs_are_left_out_and_counted(tmp_path):
    def truth(labels):
        return papers_world(labels) | {"complete": labels["method"] != "best-path"}

    write_sweep(tmp_path / "a", "figure3", truth, only={"flows": ["60"], "ratio": ["2:1"]})
    table = claims_table(findings(read_sweeps(tmp_path)))
    table = table[table["method"] != "ours: pipelined"].set_index(["claim", "part"])
    where = "ns-3, scale 0.1, probes of 5 MB, mean, without 18 incomplete runs"
    assert table.loc[("C2", "direct"), "where"] == where
    assert table.loc[("C2", "best-path"), "verdict"] == "not run"


def test_storage_is_a_ratio_of_means_with_the_mean_of_ratios_beside_it(tmp_path):
    """By bytes 1.5 times direct's; each source over its own backlog 2 on average."""

    def truth(labels):
        more = labels["method"] == "best-path"
        return {"storage_bytes": 7.5e6 if more else 5e6, "storage_mean": 2.0 if more else 1.0}

    only = {"flows": ["60"], "ratio": ["1:1"], "udp": ["5 %"]}
    write_sweep(tmp_path / "a", "figure3", truth, only=only)
    table = claims_table(findings(read_sweeps(tmp_path))).set_index(["claim", "part"])
    row = table.loc[("C8", "best-path")].iloc[0]
    assert row["value"] == pytest.approx(1.5)
    assert row["why"].endswith("; means of single sources' ratios 2 to 2")


def test_where_older_runs_kept_no_bytes_storage_is_the_mean_of_ratios_and_says_so(tmp_path):
    def truth(labels):
        more = labels["method"] == "best-path"
        return {"storage_bytes": float("nan"), "storage_mean": 1.7 if more else 1.0}

    only = {"flows": ["60"], "ratio": ["1:1"], "udp": ["5 %"]}
    write_sweep(tmp_path / "a", "figure3", truth, only=only)
    table = claims_table(findings(read_sweeps(tmp_path))).set_index(["claim", "part"])
    row = table.loc[("C8", "best-path")].iloc[0]
    assert row["value"] == pytest.approx(1.7)
    assert "since older runs kept no bytes" in row["why"]


def test_the_base_scenario_is_the_shipped_one():
    """What a name leaves out is what experiments/base.toml says, every default written out."""
    tree = dc.Scenario.from_file(EXPERIMENTS / "base.toml").to_dict()
    assert {table: tree[table] for table in BASE} == BASE
    assert set(tree) - set(BASE) == {"format", "name", "scale", "probe_scale"}
    assert differences(tree) == ()
