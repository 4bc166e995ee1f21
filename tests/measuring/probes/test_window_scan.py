"""The fewest connections that get most of a path's rate."""

from __future__ import annotations

import pytest

from datacollect.measuring.probes.window_scan import Cell, choose


def cells(*rows):
    return [Cell(*row) for row in rows]


@pytest.mark.parametrize(
    ("rows", "chosen", "part"),
    [
        # One connection alone gets all: nobody needs a second.
        ([(1, None, 10.0), (2, None, 10.5)], (1, None), 10 / 10.5),
        # 80 % is enough, 79 % is not.
        ([(1, None, 79.0), (2, None, 80.0), (4, None, 100.0)], (2, None), 0.8),
        # Fewer connections count before smaller windows.
        ([(1, 4_000_000, 90.0), (4, 64_000, 100.0)], (1, 4_000_000), 0.9),
        # Of windows that are as good the kernel's own, then the smallest; not the fastest.
        ([(1, 16_000, 85.0), (1, None, 82.0), (1, 64_000, 100.0)], (1, None), 0.82),
        ([(1, 64_000, 100.0), (1, 16_000, 85.0), (1, None, 20.0)], (1, 16_000), 0.85),
        # The most may be in the middle: sixteen do worse than four.
        ([(1, None, 50.0), (4, None, 100.0), (16, None, 70.0)], (4, None), 1.0),
        ([(8, None, 5.0), (1, None, 0.0)], (8, None), 1.0),
    ],
)
def test_the_fewest_connections_with_most_of_the_rate(rows, chosen, part):
    found = choose(cells(*rows))
    assert (found.chosen.streams, found.chosen.window_bytes) == chosen
    assert found.part == pytest.approx(part)


def test_nothing_is_chosen_where_nothing_came():
    assert choose([]) is None
    assert choose(cells((1, None, 0.0))) is None
