"""The tables of the adaptive method's page, from a few runs made up by hand."""

import math

import pandas as pd
import pytest

METHODS = ("direct as many as coordinated", "coordinated", "adaptive")


@pytest.fixture
def tables(scripts):
    return scripts("adaptive_tables")


@pytest.fixture
def texts(scripts):
    return scripts("adaptive_texts")


def test_ratios_are_of_the_same_seed_and_their_means_geometric(tables, texts):
    """Over coordinated 1/2 and 1/8, in the mean 1/4; over direct 1 and 1/4, in the mean 1/2."""
    times = {101: (10.0, 20.0, 10.0), 102: (8.0, 16.0, 2.0)}
    rows = [
        {"seed": seed, "setting": "60 flows 1:1", "method": method, "makespan_s": time_s}
        for seed, of_seed in times.items()
        for method, time_s in zip(METHODS, of_seed, strict=True)
    ]
    found = tables.ratios(pd.DataFrame(rows))
    assert found["method"].tolist() == ["adaptive"]
    assert found["over_coordinated"].tolist() == [0.25]
    assert found["over_as_many"].tolist() == [0.5]
    assert found["over_as_many_low"][0] < 0.5 < found["over_as_many_high"][0]
    text = texts.ratios_text(found.astype(str))
    assert "| 2 | 0.25 [" in text
    assert "✓ 0.45" in text
    # A seed that lacks a method counts for none.
    found = tables.ratios(pd.DataFrame(rows[:-1]))
    assert found["n"].tolist() == [1]
    assert math.isnan(found["over_as_many_low"][0])


def test_a_reference_is_compared_in_the_same_run(tables, texts):
    """Adaptive takes 4/3 and 3 times the reference, in the mean twice; it half of coordinated."""
    rows = [
        (101, "coordinated", 12.0, None),
        (102, "coordinated", 6.0, None),
        (101, "direct as many as coordinated", 6.0, None),
        (102, "direct as many as coordinated", 3.0, None),
        (101, "adaptive", 8.0, 6.0),
        (102, "adaptive", 9.0, 3.0),
    ]
    runs = pd.DataFrame(rows, columns=["seed", "method", "makespan_s", "reference_s"])
    found = tables.reference(runs.assign(setting="none", retransmissions=runs["seed"] - 100.0))
    assert found["over_reference"].tolist() == [2.0]
    assert found["most"].tolist() == [3.0]
    assert found["reference_over_coordinated"].tolist() == [0.5]
    assert found["reference_over_as_many"].tolist() == [1.0]
    assert found["sent_again"].tolist() == [2]
    assert "| adaptive | none | 2 | 2.0 [" in texts.reference_text(found)


def test_coverage_counts_who_lies_within_the_range(tables, texts):
    """3 of 4 lie within 8 to 12 s; a run without a prediction counts for none."""
    rows = [(10.0 + n, 8.0, 12.0) for n in range(4)] + [(9.0, None, None)]
    names = "makespan_s predicted_low_s predicted_high_s"
    found = tables.coverage(pd.DataFrame(rows, columns=names.split()).assign(method="direct"))
    row = found.loc[0]
    assert (row["runs"], row["within"], row["sooner"], row["later"]) == (4, 3, 0, 1)
    # Clopper and Pearson, 3 of 4, from tables.
    assert (row["part_low"], row["part_high"]) == (0.194, 0.994)
    assert "| direct | 4 | 3 | 0 | 1 | [0.194, 0.994] |" in texts.coverage_text(found)


def test_the_frontier_has_what_others_keep_in_the_same_seed(tables):
    """They have 6 of direct's 8, and 3 of its 4: three quarters."""
    rows = [
        (101, "direct", 40.0, 8.0, 0.2, 40e6, 7),
        (102, "direct", 60.0, 4.0, 0.2, 60e6, 7),
        (101, "adaptive", 20.0, 6.0, 0.4, 40e6, 20),
        (102, "adaptive", 30.0, 3.0, 0.4, 60e6, 22),
    ]
    names = "seed method makespan_s tcp_during_bytes_per_s tcp_loss tcp_lost_bytes connections"
    runs = pd.DataFrame(rows, columns=names.split()).assign(setting="20 flows 1:1")
    found = tables.frontier(runs).set_index("method")
    assert found["makespan_s"].to_dict() == {"direct": 50.0, "adaptive": 25.0}
    assert found["kept_over_direct"].to_dict() == {"direct": 1.0, "adaptive": 0.75}
    assert found["lost_mb"].to_dict() == {"direct": 50.0, "adaptive": 50.0}
    assert found["connections"].to_dict() == {"direct": 7.0, "adaptive": 21.0}


def test_families_compare_with_the_best_other_of_each_setting(tables, texts):
    """Under load direct is the best other, 8 s and 16 s; with nobody else coordinated, 4 s."""
    times = {
        "figures: 60 flows": {
            "direct as many as coordinated": (8.0, 16.0),
            "coordinated": (20.0, 20.0),
            "best-path": (40.0, 40.0),
            "adaptive": (4.0, 8.0),
            "adaptive, chains alone": (8.0, 16.0),
        },
        "figures: none": {
            "direct as many as coordinated": (8.0, 8.0),
            "coordinated": (4.0, 4.0),
            "best-path": (8.0, 8.0),
            "adaptive": (8.0, 8.0),
            "adaptive, chains alone": (4.0, 4.0),
        },
    }
    runs = pd.DataFrame(
        {"seed": 101 + i, "setting": setting, "method": method, "makespan_s": time_s}
        for setting, of_setting in times.items()
        for method, both in of_setting.items()
        for i, time_s in enumerate(both)
    )
    found = tables.settings(runs)
    assert found["setting"].tolist() == ["60 flows", "none"] * 2
    assert found["best_other"].tolist() == ["direct as many as coordinated", "coordinated"] * 2
    assert found["over_best"].tolist() == [0.5, 2.0, 1.0, 1.0]
    families = tables.means(runs).set_index("method")
    assert families["mean"].to_dict() == {"adaptive": 1.0, "adaptive, chains alone": 1.0}
    assert families["behind"].to_dict() == {"adaptive": 1, "adaptive, chains alone": 0}
    assert families.loc["adaptive", "worst_setting"] == "none"
    assert "| 2.0 [2.0, 2.0] ✗ |" in texts.settings_text(found)


def test_errors_are_judged_against_right_estimates_of_the_same_seed(tables):
    """Twice and half as long, in the mean as long."""
    methods = (*tables.ADAPTIVE, tables.COORDINATED, tables.AS_MANY, tables.BEST_PATH)
    times = {"errors: none, 1:3": (10.0, 10.0), "errors: +70 %, 1:3": (20.0, 5.0)}
    runs = pd.DataFrame(
        {"seed": 101 + i, "setting": setting, "method": method, "makespan_s": time_s}
        for setting, both in times.items()
        for method in methods
        for i, time_s in enumerate(both)
    )
    found = tables.errors(runs)
    assert found["method"].tolist() == [*tables.ADAPTIVE, tables.COORDINATED, tables.BEST_PATH]
    assert found["over_right"].tolist() == [1.0] * 4
    assert found["estimates"].unique().tolist() == ["+70 %, 1:3"]


def test_errors_either_way_count_together_seed_by_seed(tables):
    """Over-estimated they take 2 and 8 times as long, under-estimated 1/2 both: 1 and 2."""
    times = {
        "errors: none, 1:3": (10.0, 10.0),
        "errors: +70 %, 1:3": (20.0, 80.0),
        "errors: -70 %, 1:3": (5.0, 5.0),
    }
    runs = pd.DataFrame(
        {"seed": 101 + i, "setting": setting, "method": "adaptive", "makespan_s": time_s}
        for setting, both in times.items()
        for i, time_s in enumerate(both)
    )
    last = tables.errors(runs).iloc[-1]
    assert (last["estimates"], last["seeds"]) == ("+70 %, 1:3 and -70 %, 1:3", 2)
    assert last["over_right"] == round(2**0.5, 3)
