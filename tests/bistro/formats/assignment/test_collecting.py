"""From receipts to what is to be collected."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pandas as pd
import pytest

import datacollect as dc
from datacollect.errors import ProblemError

problem_of = dc.bistro.problem_of
NETWORK = dc.Problem.from_matrix(
    ["a", "b", "D"], [[0, 1.0, 2.0], [1.0, 0, 1.0], [0, 0, 0]], [7, 7, 0], "D"
)


def receipts(*rows, **more):
    return pd.DataFrame(rows, columns=["bistro", "bytes", "time_s"]).assign(**more)


def backlog(problem):
    return dict(zip(problem.names, problem.backlog_bytes.tolist(), strict=True))


def test_bytes_are_added_up_for_each_bistro():
    found = problem_of(receipts(("a", 3, 0), ("b", 5, 0), ("a", 4, 0)), NETWORK)
    assert backlog(found) == {"a": 7, "b": 5, "D": 0}
    assert found.release_s.tolist() == [0, 0, 0]
    assert found.destination == "D"


def test_no_receipts_leave_nothing_to_collect():
    assert backlog(problem_of(receipts(), NETWORK)) == {"a": 0, "b": 0, "D": 0}


def test_what_comes_later_is_waited_for():
    rows = receipts(("a", 3, 111), ("b", 5, 130), ("a", 4, 117))
    assert problem_of(rows, NETWORK, now_s=110).release_s.tolist() == [7, 20, 0]
    assert problem_of(rows, NETWORK, now_s=200).release_s.tolist() == [0, 0, 0]


def test_what_is_there_does_not_wait_for_what_comes():
    """a sends 95 bytes at 1 + 9 bytes/s, with b's 20 to D at 1 + 4: 23 s. At 50 s 5 come: 1 s."""
    network = dc.Problem.from_matrix(
        ["a", "b", "D"], [[0, 9.0, 1.0], [9.0, 0, 4.0], [0, 0, 0]], [0, 0, 0], "D"
    )
    rows = receipts(("a", 95, 10), ("b", 20, 0), ("a", 5, 60))
    found = problem_of(rows, network, now_s=10)
    assert backlog(found) == {"a": 5, "b": 20, "D": 0, "a (now)": 95}
    assert found.held == (dc.Held("a", "a (now)", 0, 95),)
    assert found.release_s.tolist() == [50, 0, 0, 0]
    assert 51 <= dc.coordinated(found).makespan_s < 51.2
    # Limited storage holds nothing apart: all 100 of a wait.
    limited = problem_of(rows, network.replace(storage_bytes=[50, 50, np.inf]), now_s=10)
    assert backlog(limited) == {"a": 100, "b": 20, "D": 0}
    assert dc.coordinated(limited).makespan_s >= 70


def test_what_a_network_says_of_hosts_stays():
    network = NETWORK.replace(
        uplink_bytes_per_s=[2.0, np.inf, np.inf],
        most_connections=[3, 4, np.inf],
        latitude=[1.0, 2.0, 3.0],
        longitude=[1.0, 2.0, 3.0],
    )
    found = problem_of(receipts(("a", 3, 1), ("a", 4, 9)), network, now_s=5)
    assert found.uplink_bytes_per_s.tolist() == [[2.0, np.inf, np.inf, np.inf]]
    assert found.most_connections.tolist() == [3, 4, np.inf, np.inf]
    assert found.latitude[:3].tolist() == [1.0, 2.0, 3.0]


def test_of_copies_one_is_collected_where_it_is_gone_sooner():
    """a sends 3 bytes/s over its links and b 2: the copy of 6 goes to a, then that of 4 to b."""
    rows = receipts(("a", 6, 0), ("b", 6, 0), ("a", 4, 0), ("b", 4, 0), entry=list("xxyy"))
    assert backlog(problem_of(rows, NETWORK)) == {"a": 6, "b": 4, "D": 0}
    alone = receipts(("a", 6, 0), ("a", 6, 0), ("b", 5, 0), entry=["x", "x", None])
    assert backlog(problem_of(alone, NETWORK)) == {"a": 6, "b": 5, "D": 0}


def test_copies_end_near_the_best_choice():
    """Graham (1969): the largest first, each where it is done soonest; here against all choices."""
    rng = random.Random(3)
    rates = {"a": 3.0, "b": 2.0}
    for _ in range(50):
        alone = [(rng.choice("ab"), rng.randint(0, 9)) for _ in range(3)]
        sizes = [rng.randint(1, 20) for _ in range(5)]
        rows = [(name, n, 0) for name, n in alone]
        rows += [(name, n, 0) for n in sizes for name in "ab"]
        entries = [*range(3), *(i for i in range(10, 15) for _ in "ab")]
        found = backlog(problem_of(receipts(*rows, entry=entries), NETWORK))
        assert sum(found.values()) == sum(n for _, n in alone) + sum(sizes)

        def time_s(put):
            return max(put[name] / rate for name, rate in rates.items())

        best_s = min(
            time_s(
                {
                    name: sum(
                        n for at, n in [*alone, *zip(places, sizes, strict=True)] if at == name
                    )
                    for name in "ab"
                }
            )
            for places in itertools.product("ab", repeat=5)
        )
        assert best_s <= time_s(found) <= 1.5 * best_s


def test_a_million_receipts():
    rng = np.random.default_rng(0)
    n = 1_000_000
    frame = pd.DataFrame(
        {
            "bistro": rng.choice(["a", "b"], n),
            "bytes": rng.integers(1, 200_000, n),
            "time_s": rng.integers(0, 1000, n),
        }
    )
    found = backlog(problem_of(frame, NETWORK, now_s=500))
    assert found["a"] + found["a (now)"] == frame["bytes"][frame["bistro"] == "a"].sum()
    assert sum(found.values()) == frame["bytes"].sum()


def test_tables_of_files_are_taken_as_pandas_reads_them(tmp_path):
    rows = receipts(("a", 3, 0), ("b", 5, 1))
    rows.to_csv(tmp_path / "receipts.csv", index=False)
    rows.to_parquet(tmp_path / "receipts.parquet")
    for read in (
        pd.read_csv(tmp_path / "receipts.csv"),
        pd.read_parquet(tmp_path / "receipts.parquet"),
        pd.read_csv(tmp_path / "receipts.csv").convert_dtypes(),
        rows.astype({"bistro": "category", "bytes": "float64"}),
    ):
        assert backlog(problem_of(read, NETWORK)) == {"a": 3, "b": 5, "D": 0}


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (receipts(("A", 1, 0)), "did you mean 'a'"),
        (receipts(("D", 1, 0)), "is the destination"),
        (receipts((None, 1, 0)), "row 0 names no bistro"),
        (receipts(("a", -1, 0)), "whole numbers of 0 or more, got -1 in row 0"),
        (receipts(("a", 0.5, 0)), "whole numbers of 0 or more, got 0.5"),
        (receipts(("a", float("nan"), 0)), "bytes must be a number"),
        (receipts(("a", 1, float("inf"))), "time_s must be a number"),
        (receipts(("a", 2.0**62, 0)), "whole numbers"),
        (receipts(("a", 2.0**61, 0), ("a", 2.0**61, 0)), "below"),
        (receipts(("a", "1 GB", 0)), "pandas.to_numeric"),
        (receipts(("a", 1, 0)).rename(columns={"bytes": "size"}), "lacks bytes"),
    ],
)
def test_what_makes_no_sense_is_refused(frame, words):
    with pytest.raises(ProblemError, match=words):
        problem_of(frame, NETWORK)


def test_remedies_work():
    frame = receipts(("a", "3", 0), ("b", "5", 1))
    fixed = frame.assign(bytes=pd.to_numeric(frame["bytes"]))
    assert backlog(problem_of(fixed, NETWORK)) == {"a": 3, "b": 5, "D": 0}
    renamed = receipts(("a", 3, 0)).rename(columns={"bytes": "size"})
    again = renamed.rename(columns={"size": "bytes"})
    assert backlog(problem_of(again, NETWORK)) == {"a": 3, "b": 0, "D": 0}


def test_a_copy_at_a_host_that_sends_nothing_is_left_there():
    """Even one of nothing: 0 bytes at no speed are no time that compares with others."""
    network = NETWORK.replace(bandwidth_bytes_per_s=[[0.0, 0.0, 1.0, 1.0]])
    rows = receipts(("a", 4, 0), ("b", 4, 0), ("a", 9, 0), ("b", 9, 0), entry=list("xxyy"))
    assert backlog(problem_of(rows, network)) == {"a": 0, "b": 13, "D": 0}
