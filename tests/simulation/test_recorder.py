"""The recorder, told by hand what an engine saw."""

import math

import pytest

from datacollect.simulation.recorder import Recorder


def curve(run, host):
    rows = run.storage[run.storage["host"] == host]
    return rows[["time_s", "own_bytes", "others_bytes"]].to_numpy().tolist()


def relayed():
    """S sends 10 bytes to K from 0 to 2 s, K on to D from 1 to 3 s."""
    seen = Recorder({"S": 10}, "D")
    seen.put("S", "S", 0.0, 10)
    seen.asked(7, ("S", "K"), 0.0)
    seen.asked(8, ("K", "D"), 0.5)
    seen.opened(7, 0.0)
    seen.moved(7, "S", 0.0, 2.0, 10)
    seen.moved(8, "S", 1.0, 3.0, 10)
    seen.collected("S", 3.0, 10)
    return seen


def test_storage_follows_what_comes_and_goes():
    """K gains 5 bytes/s until 1 s, keeps 5 until 2 s, and is empty at 3 s."""
    run = relayed().finish(engine="fluid")
    assert curve(run, "S") == [[0.0, 10.0, 0.0], [2.0, 0.0, 0.0]]
    assert curve(run, "K") == [[0, 0, 0], [1, 0, 5], [2, 0, 5], [3, 0, 0]]
    assert curve(run, "D") == [[0, 0, 0], [1, 0, 0], [3, 0, 10]]
    assert run.peak_storage_bytes().loc["K", "others_bytes"] == 5
    assert (run.complete, run.makespan_s, run.source_finish_s) == (True, 3.0, {"S": 3.0})


def test_connections_and_routes_are_logged():
    seen = relayed()
    seen.stalled(7)
    seen.closed(8, 4.0)
    seen.connections[7].retransmissions = 3
    run = seen.finish(engine="ns3", events=5, cpu_s=0.5, settings={"seed": 1})
    first, second = run.connections.to_dict("records")
    assert (first["first_byte_s"], first["last_byte_s"], first["bytes"]) == (0.0, 2.0, 10)
    assert (first["stalls"], first["retransmissions"]) == (1, 3)
    assert math.isnan(first["closed_s"])
    assert math.isnan(second["opened_s"])
    assert (second["asked_s"], second["closed_s"]) == (0.5, 4.0)
    assert run.routes.to_numpy().tolist() == [["S", "S", "K", 10], ["S", "K", "D", 10]]


def test_duplicates_are_sent_but_not_stored():
    seen = relayed()
    seen.moved(8, "S", 3.0, 4.0, 10, stored_bytes=0, freed_bytes=0)
    seen.collected("S", 4.0, 0)
    run = seen.finish(engine="fluid")
    assert run.collected_bytes == 10
    assert run.makespan_s == 3.0
    assert curve(run, "D")[-1] == [4.0, 0.0, 10.0]
    assert run.routes["bytes"].tolist() == [10, 20]


def test_data_that_appear_are_a_jump():
    seen = Recorder({"S": 10}, "D")
    seen.put("S", "S", 2.0, 10)
    run = seen.finish(engine="fluid")
    assert curve(run, "S") == [[0, 0, 0], [2, 0, 0], [2, 10, 0]]


def test_lost_host_stores_nothing_from_then_on():
    seen = Recorder({"S": 10}, "D")
    seen.put("S", "S", 0.0, 10)
    seen.asked(0, ("S", "K"), 0.0)
    seen.moved(0, "S", 0.0, 2.0, 8)
    seen.lost("K", 3.0)
    run = seen.finish(engine="fluid")
    assert curve(run, "K") == [[0, 0, 0], [2, 0, 8], [3, 0, 8], [3, 0, 0]]


def test_what_has_not_come_leaves_the_run_incomplete():
    seen = Recorder({"S": 10, "T": 5}, "D")
    seen.collected("T", 1.0, 5)
    seen.collected("S", 2.0, 9)
    run = seen.finish(engine="fluid")
    assert not run.complete
    assert math.isnan(run.makespan_s)
    assert run.collected_bytes == 14
    assert run.source_finish_s["T"] == 1.0
    assert math.isnan(run.source_finish_s["S"])


def test_nothing_to_collect_is_complete_at_once():
    run = Recorder({"S": 0}, "D").finish(engine="fluid")
    assert (run.complete, run.makespan_s, run.collected_bytes) == (True, 0.0, 0)


@pytest.mark.parametrize("n", [1, 1000])
def test_many_moves_leave_no_rounding_behind(n):
    """A third of a byte per move in and out again: nothing stays."""
    seen = Recorder({"S": 10}, "D")
    seen.asked(0, ("S", "K"), 0.0)
    seen.asked(1, ("K", "D"), 0.0)
    for i in range(n):
        seen.moved(0, "S", i * 0.1, (i + 1) * 0.1, 1 / 3)
        seen.moved(1, "S", i * 0.1, (i + 1) * 0.1, 1 / 3)
    run = seen.finish(engine="fluid")
    assert run.peak_storage_bytes().loc["K", "others_bytes"] == 0
