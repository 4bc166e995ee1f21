"""The rules of samples, at every seam: files, tables made by hand, folders of measurements."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from measurement.test_perfsonar import document, run

import datacollect as dc
from datacollect.errors import DatacollectWarning
from datacollect.measurement.sample_rules import RULES, ruled
from datacollect.measurement.sample_store import COLUMNS
from datacollect.measurement.samples import read_samples
from datacollect.measuring.results.samples_to_problem import problem_of_samples

if TYPE_CHECKING:
    from pathlib import Path

# 12:00 UTC on the first of May 2024.
NOON_S = 1_714_564_800.0
DAY_S = 86_400.0


def table(*rows: tuple[str, str, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["from", "to", "time_s", "bandwidth_bytes_per_s"])


def by_csv(samples: pd.DataFrame, folder: Path) -> tuple[list[float], tuple[str, ...]]:
    """Read them from a file."""
    samples.to_csv(folder / "samples.csv", index=False)
    with pytest.warns(DatacollectWarning):
        found = read_samples(folder / "samples.csv")
    return found["bandwidth_bytes_per_s"].tolist(), found.attrs["notes"]


def by_estimate(samples: pd.DataFrame, _folder: Path) -> tuple[list[float], tuple[str, ...]]:
    """Estimate from a table made by hand: the quantiles 0, 0.5 and 1 are its samples, of three."""
    with pytest.warns(DatacollectWarning):
        found = dc.estimate(samples)
    return [float(found["n_samples"].sum())], found.attrs["notes"]


def by_store(samples: pd.DataFrame, _folder: Path) -> tuple[list[float], tuple[str, ...]]:
    """Make a problem of a folder of measurements."""
    rows = [{**row, "tool": "tcp", "ended": "done"} for row in samples.to_dict("records")]
    stored = pd.DataFrame(rows, columns=list(COLUMNS))
    found = problem_of_samples(stored, "D")
    return found.samples["bandwidth_bytes_per_s"].tolist(), found.notes


READERS = (by_csv, by_estimate, by_store)


@pytest.mark.parametrize("read", READERS)
def test_a_sample_of_2031_is_named_and_left_out(read: Any, tmp_path: Path) -> None:
    ahead_s = 1_925_000_000.0  # in 2031
    samples = table(("S", "D", NOON_S, 7.0), ("S", "D", ahead_s, 1.0), ("K", "D", NOON_S, 5.0))
    kept, notes = read(samples, tmp_path)
    assert sorted(kept) in ([5.0, 7.0], [2.0])
    [note] = [note for note in notes if "lies ahead" in note]
    assert "1 sample of 1 link (S -> D), the last of 2031-01-01" in note


@pytest.mark.parametrize("read", READERS)
def test_equal_rows_of_one_instant_count_once(read: Any, tmp_path: Path) -> None:
    row = ("S", "D", NOON_S, 7.0)
    later, other = ("S", "D", NOON_S + 1, 7.0), ("S", "D", NOON_S, 7.5)
    kept, notes = read(table(row, row, later, other, row), tmp_path)
    assert sorted(kept) in ([7.0, 7.0, 7.5], [3.0])
    [note] = [note for note in notes if "same instant" in note]
    assert note.startswith("2 rows equal to another one of the same instant count once: 1 link (S")


def test_samples_without_times_all_count() -> None:
    """Of second 0 are those without times: two tests may have measured the same."""
    row = ("S", "D", 0.0, 7.0)
    assert dc.estimate(table(row, row))["n_samples"].tolist() == [2]


def test_rows_that_differ_in_any_column_are_tests_of_their_own() -> None:
    row = ("S", "D", NOON_S, 7.0)
    samples = table(row, row, row).assign(site=["a", "b", "a"], more=[[1], [1], [1]])
    with pytest.warns(DatacollectWarning, match="1 row equal to another one"):
        assert dc.estimate(samples)["n_samples"].tolist() == [2]


@pytest.mark.parametrize("read", READERS)
def test_equal_addresses_are_one_host(read: Any, tmp_path: Path) -> None:
    samples = table(
        ("10.0.0.1", "D", NOON_S, 7.0),
        ("::ffff:10.0.0.1", "D", NOON_S + 1, 7.5),
        ("[2001:db8::1]", "D", NOON_S, 5.0),
        ("2001:DB8:0:0::1", "D", NOON_S + 2, 5.5),
        ("2001:db8::1", "[2001:db8::1]", NOON_S, 9.0),
    )
    kept, notes = read(samples, tmp_path)
    assert sorted(kept) in ([5.0, 5.5, 7.0, 7.5], [4.0])
    assert any("2 addresses in several spellings, each one host" in note for note in notes)
    assert any("a host's tests to itself: 1 sample of 2001:db8::1" in note for note in notes)


@pytest.mark.parametrize("other", ["Lyon.example", "lyon.example.", "lyon.example:5201"])
@pytest.mark.parametrize("read", READERS)
def test_names_that_nearly_agree_are_noted(read: Any, other: str, tmp_path: Path) -> None:
    samples = table(("lyon.example", "D", NOON_S, 7.0), (other, "D", NOON_S, 7.5))
    kept, notes = read(samples, tmp_path)
    assert sorted(kept) in ([7.0, 7.5], [2.0])
    [note] = [note for note in notes if "differ by case" in note]
    assert note.startswith("1 group of names")
    assert "write one name for one host" in note


@pytest.mark.parametrize("time_s", [1_795_377_600_000.0, 1.8e15, 1e300])
def test_milliseconds_are_refused_by_name(time_s: float, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"from,to,time_s,bandwidth_bytes_per_s\nS,D,{time_s},1\n")
    with pytest.raises(
        dc.ProblemError, match=r"line 2: time_s must be seconds .* divide milliseco"
    ):
        read_samples(tmp_path / "a.csv")
    with pytest.raises(dc.ProblemError, match=r"row 0: time_s must be seconds .* divide milliseco"):
        dc.estimate(table(("S", "D", time_s, 1.0)))
    # The remedy.
    divided = table(("S", "D", 1_795_377_600_000.0 / 1000 - 9e7, 1.0))
    assert dc.estimate(divided)["n_samples"].tolist() == [1]


def test_who_held_a_test_back_is_said() -> None:
    row = {"from": "S", "to": "D", "time_s": NOON_S, "tool": "tcp", "ended": "done"}
    rows = [
        {**row, "time_s": NOON_S + i, "bandwidth_bytes_per_s": 5.0, "limited_by": cause}
        for i, cause in enumerate(("receiver", "network", "rate of the agent", "receiver"))
    ]
    notes = problem_of_samples(pd.DataFrame(rows, columns=list(COLUMNS)), "D").notes
    assert [note for note in notes if "held back" in note] == [
        (
            "2 samples of 1 link (S -> D) held back by the receiver, not by the link, which may be "
            "faster; give the receiver larger windows (--window)"
        ),
        (
            "1 sample of 1 link (S -> D) held back by the rate of the agent, not by the link, "
            "which may be faster; raise rate of the agent's [measure]"
        ),
    ]


def test_rules_say_nothing_of_what_complies_and_change_nothing_twice() -> None:
    samples = table(("S", "D", NOON_S, 7.0), ("K", "D", NOON_S, 7.0), ("S", "D", -5.0, 7.0))
    found = ruled(samples, now_s=NOON_S + 1)
    assert (len(found.samples), found.notes) == (3, ())
    messy = table(*[("10.0.0.1", "D", NOON_S, 7.0), ("::ffff:a00:1", "D", NOON_S, 7.0)] * 2)
    once = ruled(messy, now_s=NOON_S)
    assert len(once.samples) == 1
    assert ruled(once.samples, now_s=NOON_S).notes == ()
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_times_are_held_against_the_present() -> None:
    samples = table(("S", "D", NOON_S, 7.0), ("S", "D", NOON_S + 1.5 * DAY_S, 8.0))
    assert len(ruled(samples, now_s=NOON_S).samples) == 1
    assert len(ruled(samples, now_s=NOON_S + DAY_S).samples) == 2


# What only readers know -----------------------------------------------------------------------


def read_tree(folder: Path, tree: object) -> pd.DataFrame:
    path = folder / "archive.json"
    path.write_text(json.dumps(tree))
    return read_samples(path)


@pytest.mark.parametrize("unknown", [{"sent": None}, {"lost": None}, {"sent": 9, "lost": None}])
def test_losses_that_nobody_knows_leave_no_rate_of_arrival(
    unknown: dict[str, Any], tmp_path: Path
) -> None:
    tree = run(udp=True)
    tree["result"]["summary"]["summary"] |= {"sent": 100, "lost": 0} | unknown
    with pytest.raises(dc.ProblemError, match=r"packets .* are unknown: the rate is the sender's"):
        read_tree(tmp_path, tree)


def test_a_run_without_a_result_failed(tmp_path: Path) -> None:
    with pytest.raises(dc.ProblemError, match="the test failed: it has no result, got null"):
        read_tree(tmp_path, run() | {"result": None})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"timed_out": True}, "its time ran out"),
        ({"terminated_early": True}, "it ended early"),
        ({"_shards": {"total": 5, "failed": 2}}, "2 of its shards failed"),
        ({"hits": {"total": {"value": 12, "relation": "eq"}}}, "it holds 1 of 12 documents"),
        ({"hits": {"total": {"value": 1, "relation": "gte"}}}, "it holds 1 of 1 or more documents"),
        ({"hits": {"total": 2}}, "it holds 1 of 2 documents"),
    ],
)
def test_an_answer_that_says_that_it_is_cut_is_not_taken_for_whole(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    hits = {"total": 1, "hits": [{"_source": document()}]} | changes.get("hits", {})
    with pytest.warns(DatacollectWarning, match=f"the answer is cut: {said}; ask for all of it"):
        assert len(read_tree(tmp_path, changes | {"hits": hits})) == 1


def test_an_answer_without_documents_is_no_empty_table(tmp_path: Path) -> None:
    with pytest.raises(dc.ProblemError, match="the answer holds no document"):
        read_tree(tmp_path, {"hits": {"total": 0, "hits": []}})


@pytest.mark.parametrize(
    "header",
    [
        "from,to,time_s,bandwidth_mbit_per_s",
        "src,dst,received_bps",
        "sep=;\nfrom;to;time;bandwidth_bit_per_s",
    ],
)
def test_a_header_alone_is_no_empty_table(header: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(header + "\n")
    with pytest.raises(dc.ProblemError, match="has a header and no rows: nothing was measured"):
        read_samples(tmp_path / "a.csv")


def iperf3(**start: Any) -> dict[str, Any]:
    """8 Mbit/s in two streams over 100 ms."""
    streams = [{"sender": {"mean_rtt": 100_000}}] * 2
    received = {"seconds": 10.0, "bytes": 10_000_000, "bits_per_second": 8e6}
    return {
        "start": {
            "connected": [{"local_host": "a", "remote_host": "b"}],
            "timestamp": {"timesecs": int(NOON_S)},
            "test_start": {"num_streams": 2, "protocol": "TCP", **start.pop("test_start", {})},
            **start,
        },
        "end": {"streams": streams, "sum_received": received},
    }


@pytest.mark.parametrize(
    ("start", "option"),
    [
        # 4 Mbit/s for each of two streams.
        ({"test_start": {"fqrate": 4_000_000}}, "--fq-rate"),
        ({"fq_rate": 4_100_000}, "--fq-rate"),
        ({"test_start": {"target_bitrate": 4_000_000}}, "-b"),
        # 1 MB/s over 0.1 s are 100 kB under way: all of two windows of 100 kB, of which half are
        # for the kernel.
        ({"sock_bufsize": 100_000}, "-w"),
        ({"sock_bufsize": 250_000}, ""),
        ({"test_start": {"fqrate": 40_000_000}}, ""),
        ({}, ""),
    ],
)
def test_what_the_tester_limited_is_said(start: Any, option: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(iperf3(**start)))
    if not option:
        assert read_samples(tmp_path / "a.json").attrs["notes"] == ()
        return
    with pytest.warns(DatacollectWarning, match=rf"set for it \({option}\), so .* may be faster"):
        assert read_samples(tmp_path / "a.json")["bandwidth_bytes_per_s"].tolist() == [1e6]


def test_names_by_address_are_found_however_addresses_are_written(tmp_path: Path) -> None:
    tree = iperf3()
    tree["start"]["connected"] = [{"local_host": "::ffff:10.0.0.1", "remote_host": "2001:DB8::1"}]
    (tmp_path / "a.json").write_text(json.dumps(tree))
    names = {"10.0.0.1": "lyon", "2001:db8:0::1": "geneva"}
    found = dc.samples_from_iperf3(tmp_path / "a.json", names)
    assert found[["from", "to"]].values.tolist() == [["lyon", "geneva"]]


def test_link_tables_name_hosts_by_equal_addresses(tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_bytes_per_s\n::ffff:10.0.0.1,D,5\n")
    tree = {
        "destination": "D",
        "bandwidth_csv": "grid.csv",
        "hosts": {"10.0.0.1": {"backlog_bytes": 10}, "D": {}},
    }
    assert dc.direct(dc.Problem.from_dict(tree, tmp_path)).makespan_s == 2.0
    twice = "from,to,bandwidth_bytes_per_s\n::ffff:10.0.0.1,D,5\n10.0.0.1,D,7\n"
    (tmp_path / "grid.csv").write_text(twice)
    with pytest.raises(dc.ProblemError, match="given twice"):
        dc.Problem.from_dict(tree, tmp_path)


@pytest.mark.parametrize(
    ("column", "hint"),
    [
        ("bandwidth (Mbit/s)", "did you mean 'bandwidth_mbit_per_s'"),
        ("bandwidth [Gbps]", "did you mean 'bandwidth_gbit_per_s'"),
        ("bandwidth", "_per_s', by its unit?"),
        ("bandwidth (MB/s)", ""),
        ("Bandwidth_Mbps", "did you mean 'bandwidth_mbit_per_s'"),
    ],
)
def test_hints_know_units_or_say_none(column: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"from,to,time,{column}\nS,D,2024-05-01,100\n")
    with pytest.raises(dc.ProblemError) as refused:
        read_samples(tmp_path / "a.csv")
    assert hint in str(refused.value)
    assert hint or "did you mean" not in str(refused.value)
