"""Use of hosts and links by a schedule, against answers derived by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from instances.hand_made import PIPELINE, direct, plan
from instances.random_schedules import cases
from judges.contract_check import judge

from datacollect.schedule.data.use import (
    link_use,
    peak_storage_bytes,
    source_completion_s,
    storage,
)


def rows_of(table):
    return list(table.itertuples(index=False, name=None))


def test_stored_bytes_rise_rest_and_fall():
    """K receives 100 bytes/s in [0, 6] and sends as much in [1, 7]: a chunk of 100 bytes."""
    schedule = plan(PIPELINE, chunk_s=1.0)
    assert list(storage(schedule)) == ["host", "time_s", "stored_bytes"]
    assert rows_of(storage(schedule)) == [
        ("K", 0.0, 0.0),
        ("K", 1.0, 100.0),
        ("K", 6.0, 100.0),
        ("K", 7.0, 0.0),
    ]
    assert peak_storage_bytes(schedule) == {"K": 100}


def test_curve_begins_at_time_0():
    schedule = plan([(*row[:5], row[5] + 3.0, row[6] + 3.0) for row in PIPELINE])
    assert rows_of(storage(schedule))[:2] == [("K", 0.0, 0.0), ("K", 3.0, 0.0)]


def test_data_at_their_own_source_or_at_the_destination_are_not_stored():
    """S's data return to S; K stores 10 bytes, T's part of them passes S: 5 bytes."""
    rows = [
        ("S", "S K S D", 0, 0, 5, 0.0, 1.0),
        ("S", "S K S D", 1, 0, 5, 1.0, 2.0),
        ("S", "S K S D", 2, 0, 5, 2.0, 3.0),
        ("T", "T K S D", 0, 0, 5, 0.0, 1.0),
        ("T", "T K S D", 1, 0, 5, 1.0, 2.0),
        ("T", "T K S D", 2, 0, 5, 2.0, 3.0),
    ]
    assert peak_storage_bytes(plan(rows)) == {"K": 10, "S": 5}


def test_held_data_are_stored_from_time_0():
    """K holds 60 bytes of S, sends them in [4, 10], receives 20 in [2, 4], sends these last."""
    rows = [
        ("S", "K D", 0, 20, 60, 4.0, 10.0),
        ("S", "S K D", 0, 0, 20, 2.0, 4.0),
        ("S", "S K D", 1, 0, 20, 10.0, 12.0),
    ]
    assert rows_of(storage(plan(rows))) == [
        ("K", 0.0, 60.0),
        ("K", 2.0, 60.0),
        ("K", 4.0, 80.0),
        ("K", 10.0, 20.0),
        ("K", 12.0, 0.0),
    ]
    assert peak_storage_bytes(plan(rows)) == {"K": 80}


def test_cut_through_stores_nothing():
    rows = [("S", "S K D", hop, 0, 700, 0.1, 0.8) for hop in range(2)]
    assert peak_storage_bytes(plan(rows)) == {}
    assert rows_of(storage(plan(rows))) == []


def test_fractions_of_bytes_are_rounded_up():
    """10 bytes arrive in [0, 3], 4 leave from 1 on: 10/3 bytes at 1 s, 6 at 3 s, less between."""
    rows = [
        ("S", "S K D", 0, 0, 10, 0.0, 3.0),
        ("S", "S K D", 1, 0, 10, 1.0, 4.0),
    ]
    assert peak_storage_bytes(plan(rows)) == {"K": 4}
    assert storage(plan(rows))["stored_bytes"].tolist() == pytest.approx([0, 10 / 3, 10 / 3, 0])


def test_rounding_errors_are_not_rounded_up():
    """100 bytes, wherever the pipeline begins; computed from instants, 1e-14 more or less."""
    for begin_s in (0.1, 0.7, 1.3):
        rows = [("S", "S K D", hop, 0, 600, begin_s + hop, begin_s + hop + 6) for hop in range(2)]
        assert peak_storage_bytes(plan(rows)) == {"K": 100}


def test_what_rests_is_whole():
    """Rates of 1/3 and 1/7 bytes/s leave no trace once all has arrived."""
    rows = [
        ("S", "S K D", 0, 0, 1, 0.1, 3.1),
        ("S", "S K D", 0, 1, 1, 0.2, 7.2),
        ("S", "S K D", 0, 2, 10**15, 0.3, 0.7),
        ("S", "S K D", 1, 0, 10**15 + 2, 8.0, 9.0),
    ]
    curve = storage(plan(rows)).set_index("time_s")["stored_bytes"]
    assert curve[7.2] == curve[8.0] == 10**15 + 2
    assert curve[9.0] == 0.0
    assert peak_storage_bytes(plan(rows)) == {"K": 10**15 + 2}


@pytest.mark.slow
@given(cases())
def test_storage_at_any_instant_is_what_came_minus_what_went(case):
    problem, schedule = case
    # What leaves before it arrives has no amount.
    without_limits = problem.replace(release_s=[0.0] * 4)
    assume("causality" not in (judge(without_limits.to_dict(), schedule.to_dict()) or ""))
    table, transfers = storage(schedule), schedule.transfers
    for host in "STK":
        curve = table[table["host"] == host]
        for instant in np.linspace(0.0, transfers["finish_s"].max(), 12).tolist():
            expected = _stored(transfers, host, Fraction(instant))
            shown = np.interp(instant, curve["time_s"], curve["stored_bytes"]) if len(curve) else 0
            assert shown == pytest.approx(float(expected), abs=1e-6)


def _stored(transfers, host, instant):
    """Exactly, one transfer after the other."""
    total = Fraction(0)
    for row in transfers[transfers["source"] != host].to_dict("records"):
        start, finish = Fraction(row["start_s"]), Fraction(row["finish_s"])
        moved = row["bytes"] * min(max((instant - start) / (finish - start), 0), 1)
        total += moved * ((row["to"] == host) - (row["from"] == host))
        if row["from"] == host and row["hop"] == 0:
            total += row["bytes"]
    return total


def test_link_use_merges_transfers_of_one_rate_and_adds_routes():
    """S -> K: 10 bytes/s in [0, 2] in two pieces, 15 in [2, 3] with T's, 5 till 4, none till 6."""
    rows = [
        ("S", "S K D", 0, 0, 10, 0.0, 1.0),
        ("S", "S K D", 0, 10, 10, 1.0, 2.0),
        ("S", "S K D", 0, 20, 10, 2.0, 3.0),
        ("T", "S K D", 0, 0, 10, 2.0, 4.0),
        ("S", "S K D", 0, 30, 5, 6.0, 7.0),
        ("S", "S D", 0, 35, 7, 0.0, 7.0),
    ]
    table = link_use(plan(rows))
    assert list(table) == ["from", "to", "start_s", "finish_s", "bytes_per_s"]
    expected = [
        ("S", "K", 0.0, 2.0, 10.0),
        ("S", "K", 2.0, 3.0, 15.0),
        ("S", "K", 3.0, 4.0, 5.0),
        ("S", "K", 6.0, 7.0, 5.0),
        ("S", "D", 0.0, 7.0, 1.0),
    ]
    assert rows_of(table) == expected


def test_link_use_shows_no_slivers_where_instants_are_rounded():
    """0.1 + 0.2 > 0.3: the two transfers follow each other."""
    table = link_use(direct((10, 0.2, 0.1 + 0.2), (10, 0.3, 0.4)))
    assert len(table) == 1
    assert (table["start_s"][0], table["finish_s"][0]) == (0.2, 0.4)
    assert table["bytes_per_s"][0] == pytest.approx(100.0)


@given(cases())
def test_link_use_carries_all_bytes(case):
    _, schedule = case
    used = link_use(schedule)
    carried = (used["bytes_per_s"] * (used["finish_s"] - used["start_s"])).groupby(
        [used["from"], used["to"]]
    )
    expected = schedule.transfers.groupby(["from", "to"])["bytes"].sum()
    assert carried.sum().to_dict() == pytest.approx(expected.to_dict())


def test_source_is_complete_when_its_last_byte_is_at_the_destination():
    rows = [
        ("T", "T K D", 0, 0, 10, 0.0, 9.0),
        ("T", "T K D", 1, 0, 10, 1.0, 10.0),
        ("S", "S D", 0, 0, 10, 0.0, 4.0),
        ("S", "S K D", 0, 10, 1, 0.0, 1.0),
        ("S", "S K D", 1, 10, 1, 1.0, 5.0),
    ]
    assert source_completion_s(plan(rows)) == {"T": 10.0, "S": 5.0}


def test_empty_schedule_has_empty_answers():
    nothing = plan([])
    assert rows_of(storage(nothing)) == rows_of(link_use(nothing)) == []
    assert peak_storage_bytes(nothing) == source_completion_s(nothing) == {}
