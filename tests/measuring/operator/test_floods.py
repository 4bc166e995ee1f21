"""One host and several at once, over real sockets."""

from __future__ import annotations

import json
import time
from threading import Thread

import pytest
from instances.measuring import OPERATOR, entry_of, star

from datacollect.errors import ProblemError
from datacollect.measuring.operator.flood_tests import flooded_host, measure_flood
from datacollect.measuring.operator.pair_tests import measure_pair
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.net.agent_entries import AgentEntry

SHORT = TcpSettings(streams=1, seconds=0.5, most_bytes=20_000_000)


def flooded(agents, *pairs, settings=SHORT, **more):
    entries = [(entry_of(agents[tail]), entry_of(agents[head])) for tail, head in pairs]
    return measure_flood(entries, OPERATOR, settings, **more)


def used_bytes(folder, name) -> int:
    rows = json.loads((folder / name / f"{name}.measured").read_text())
    return sum(n_bytes for _, _, n_bytes in rows)


def test_a_host_sends_to_all_at_once_and_never_above_its_rate(tmp_path):
    """3 MB/s for all three together, by the agent of S; each end counts what it got."""
    with star(tmp_path, S={"rate": 3_000_000}) as agents:
        rows = flooded(agents, "SD", "SE", "SF")
        assert [row["ended"] for row in rows] == ["done"] * 3
        assert [row["to"] for row in rows] == ["D", "E", "F"]
        assert {row["concurrency"] for row in rows} == {2}
        assert {row["tool"] for row in rows} == {"flood"}
        assert {row["limited_by"] for row in rows} <= {"rate of the agent", "network"}
        assert 0 < sum(row["bytes"] for row in rows) < 3e6
        (settings,) = {row["settings"] for row in rows}
        assert json.loads(settings)["host"] == "S"
        for row in rows:
            assert row["bytes"] * 0.99 - 10_000 < used_bytes(tmp_path, row["to"]) < 2e6


@pytest.mark.slow
def test_all_begin_together_and_say_what_they_had_together(tmp_path):
    """One connection or eight: no data flow before all connections of all are there.

    They last so long that they are beside each other though one is held up.
    """
    with star(tmp_path, S={"rate": 3_000_000}) as agents:
        few, many = (TcpSettings(streams=n, seconds=5.0, most_bytes=20_000_000) for n in (1, 8))
        rows = flooded(agents, "SD", "SE", settings=[few, many])
    assert [row["ended"] for row in rows] == ["done"] * 2
    (lasted_s,) = {row["duration_s"] for row in rows}
    (together,) = {json.loads(row["settings"])["together_bytes_per_s"] for row in rows}
    assert lasted_s > 0
    assert together > 0


def test_tests_are_under_the_rate_of_the_agent_too(tmp_path):
    """2 MB/s for all that passes S, in [limits]: [measure] has no rate."""
    with star(tmp_path, limits={"S": "[limits]\nrate = 2_000_000"}) as agents:
        rows = flooded(agents, "SD", "SE", "SF")
    assert [row["ended"] for row in rows] == ["done"] * 3
    assert 0 < sum(row["bytes"] for row in rows) < 2.2e6


@pytest.mark.slow
def test_a_test_that_arrives_is_under_the_rate_of_the_agent_too(tmp_path):
    """D takes no more than 1 MB/s, of whomever."""
    settings = TcpSettings(1, 1.0)
    with star(tmp_path, limits={"D": "[limits]\nrate = 1_000_000"}) as agents:
        rows = flooded(agents, "SD", "ED", "FD", settings=settings)
    assert sum(row["bytes"] for row in rows) < 2.5e6


def test_a_host_receives_from_all_at_once(tmp_path):
    settings = TcpSettings(1, 5.0, 400_000)
    with star(tmp_path) as agents:
        rows = flooded(agents, "SD", "ED", "FD", settings=settings)
        assert [row["ended"] for row in rows] == ["done"] * 3
        assert json.loads(rows[0]["settings"])["host"] == "D"
        assert used_bytes(tmp_path, "D") == 1_200_000
        # Hosts are free again.
        assert {row["ended"] for row in flooded(agents, "SD", "SE", settings=settings)} == {"done"}


def test_one_that_lies_or_fails_costs_its_own_row_only(tmp_path):
    def lying(exchange):
        while exchange.read():
            pass
        exchange.answer(200, [], json.dumps({"received_bytes": 1}).encode())

    settings = TcpSettings(1, 5.0, 1_000_000)
    with star(tmp_path, E={"change": {"/measure/received": lying}}) as agents:
        rows = flooded(agents, "SD", "SE", "SF", settings=settings)
        assert [row["ended"] == "done" for row in rows] == [True, False, True]
        assert "E has counted 1" in rows[1]["ended"]
        assert "bandwidth_bytes_per_s" not in rows[1]


def test_nothing_is_sent_where_one_of_them_is_away_or_refuses(tmp_path):
    with star(tmp_path, E={"bytes_per_hour": 1000}) as agents:
        rows = flooded(agents, "SD", "SE")
        assert all("E: refuses: the test may take 20000000 bytes" in row["ended"] for row in rows)
        gone = AgentEntry("G", ("127.0.0.1", 1), "sha256:" + "0" * 64)
        by, to = entry_of(agents["S"]), entry_of(agents["D"])
        rows = measure_flood([(by, to), (by, gone)], OPERATOR, SHORT)
        assert all(row["ended"].startswith("G: 127.0.0.1:1: cannot") for row in rows)
        assert not (tmp_path / "S/S.measured").exists()


@pytest.mark.slow
def test_a_flood_waits_for_the_test_of_another_operator(tmp_path):
    """F sends to E for a while: nobody of the flood begins before that is over."""
    slow, lines, others = TcpSettings(1, 6.0, 10**8), [], []
    with star(tmp_path, F={"rate": 4_000_000}) as agents:

        def other():
            others.append(
                measure_pair(entry_of(agents["F"]), entry_of(agents["E"]), OPERATOR, slow)
            )

        busy = Thread(target=other)
        busy.start()
        while not (tmp_path / "E/E.measured").exists():
            time.sleep(0.01)
        rows = flooded(agents, "SD", "SE", report=lines.append)
        busy.join()
        assert [row["ended"] for row in (*rows, *others)] == ["done"] * 3
        assert rows[0]["time_s"] > others[0]["time_s"] + 5.5
        assert lines[0].startswith("E is in another test")


@pytest.mark.parametrize(
    "pairs",
    [[], [("S", "D")], [("S", "D"), ("E", "F")], [("S", "D"), ("S", "E"), ("F", "E")]],
)
def test_a_flood_has_one_host_in_all_pairs(pairs):
    with pytest.raises(ProblemError, match="a flood has one host that sends to at least two"):
        flooded_host(pairs)
