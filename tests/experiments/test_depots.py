"""Depots beside direct connections: what is expected of them, and what they do in a bed."""

from __future__ import annotations

import json
from dataclasses import replace

import depots
import numpy as np
import pytest


def test_windows_alone_bind_large_files():
    """64 KiB in 122 ms against 64 KiB in 87 ms: 122 / 87 = 1.40 without losses."""
    series = depots.SERIES["ucsd-64k"]
    direct = depots.segment_rate(0.122, series, 0.0)
    assert direct == pytest.approx(65_536 / 0.122)
    assert depots.segment_rate(0.087, series, 0.0) / direct == pytest.approx(1.40, abs=0.003)


def test_a_file_of_one_window_pays_for_the_depots_round_trips():
    """Directly two round trips of 122 ms; over the depot 87 ms and twice 126.5 ms."""
    series = replace(depots.SERIES["ucsd-64k"], loss=0.0)
    direct_s, relayed_s = depots.expected_s(10_000, series)
    assert direct_s == pytest.approx(0.244 + 10_000 * 0.122 / 65_536)
    assert relayed_s == pytest.approx(0.087 + 2 * 0.1265 + 10_000 * 0.087 / 65_536)


def test_losses_are_shared_out_by_round_trips():
    """Of 8 in 10 000 over 122 ms, 39.5 and 87 ms have 39.5 and 87 parts in 122; none back."""
    series = depots.SERIES["ucsd-8m"]
    wires, losses = depots.network(series.route), depots.losses(series)
    found = {
        (wires.node_names[wires.tail[i]], wires.node_names[wires.head[i]]): loss
        for i, loss in losses.items()
    }
    assert found == pytest.approx(
        {("S", "C"): 8e-4, ("S", "K"): 8e-4 * 39.5 / 122, ("K", "C"): 8e-4 * 87 / 122}
    )


def test_the_ratio_is_one_of_means():
    """Rates of 1 and 3 directly, 4 and 4 relayed: 4 over 2."""
    seconds = np.array([[1, 1 / 4], [1 / 3, 1 / 4]])
    ratio, low, high = depots.ratio_of_rates(seconds, np.random.default_rng(1))
    assert ratio == pytest.approx(2)
    assert (low, high) == pytest.approx((4 / 3, 4))


def test_what_was_measured_is_not_measured_again(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    asked = []

    def measured(series, wanted, seed):
        asked.extend(wanted)
        for size, pair in wanted:
            yield {
                "series": series.name,
                "size": size,
                "pair": pair,
                "direct_s": 2.0,
                "relayed_s": 1.0,
            }

    monkeypatch.setattr(depots, "measured", measured)
    series = [depots.SERIES["ucsd-64k"]]
    depots.run(path, series, ["64K"], 2, 1)
    depots.run(path, series, ["64K", "1M"], 3, 1)
    assert sorted(asked) == sorted({(size, n) for size in ("64K", "1M") for n in range(3)})
    assert "| UCSD → UTK, 64 KB | 64K | 3 | 0.262 | 0.524 | 2.00 [2.00–2.00] | 0.86 |" in (
        depots.table(depots.rows_of(path), series)
    )


@pytest.mark.slow
@pytest.mark.usefixtures("beds_possible")
def test_windows_of_64_kb_gain_by_a_depot_as_files_grow(tmp_path):
    """Three sizes, three pairs, real connections: the first pays for the depot, the last gains."""
    path, sizes = tmp_path / "results.jsonl", ("16K", "256K", "1M")
    depots.run(path, [depots.SERIES["ucsd-64k"]], list(sizes), 3, 1)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 9
    median = {
        size: np.median([row["direct_s"] / row["relayed_s"] for row in rows if row["size"] == size])
        for size in sizes
    }
    assert median["16K"] < 1 < median["1M"]
    assert median["16K"] < median["256K"] < median["1M"]
