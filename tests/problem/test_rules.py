"""Every rule of problems is named when it is broken, with the value received."""

from __future__ import annotations

import math

import numpy as np
import pytest
from instances.three_hosts import from_hosts, small

import datacollect as dc
from datacollect.problem.hosts import Held, Host, SharedBottleneck


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ("S", "", "D")}, "a host's name must be text and not empty, got ''"),
        ({"names": ("S", 5, "D")}, "a host's name must be text and not empty, got 5"),
        ({"names": ("S", "S", "D")}, "host 'S': name given twice; names must be unique"),
        ({"destination": "E"}, "destination must be one of the hosts, got 'E'"),
        ({"names": ("S", "lyon", "D"), "destination": "Lyon"}, "did you mean 'lyon'?"),
        ({"backlog_bytes": [10, 0]}, "one number per host (3), got shape (2,)"),
        ({"backlog_bytes": [-1, 0, 0]}, "host 'S': backlog_bytes must be >= 0 and finite, got -1"),
        ({"backlog_bytes": [math.inf, 0, 0]}, "'S': backlog_bytes must be >= 0 and finite, got in"),
        ({"backlog_bytes": [1, math.nan, 0]}, "'K': backlog_bytes must be a number, got nan"),
        ({"backlog_bytes": [1, 1.5, 0]}, "host 'K': backlog_bytes must be whole, got 1.5; round"),
        (
            {"backlog_bytes": np.array([1, "x", 0], dtype=object)},
            "backlog_bytes[1] must be a whole number of bytes >= 0, got 'x'",
        ),
        ({"backlog_bytes": np.array([True, False, True])}, "must be a number, got True"),
        ({"backlog_bytes": [2**61, 2**61, 0]}, f"below 2**62 bytes, got {2**62}; plan in parts"),
        ({"release_s": [0, -1, 0]}, "host 'K': release_s must be >= 0 and finite, got -1"),
        ({"release_s": [0, 0, math.inf]}, "'D': release_s must be >= 0 and finite, got inf"),
        ({"release_s": [math.nan, 0, 0]}, "'S': release_s must be >= 0 and finite, got nan"),
        ({"release_s": [0, 0]}, "release_s must be a number or one number per host (3), got"),
        ({"storage_bytes": [0, -1, 0]}, "'K': storage_bytes must be >= 0, got -1; leave it out"),
        ({"storage_bytes": [0, 2.5, 0]}, "'K': storage_bytes must be whole, got 2.5; round it"),
        ({"uplink_bytes_per_s": [0, math.nan, 0]}, "uplink_bytes_per_s must be >= 0, got nan"),
        ({"downlink_bytes_per_s": -2.0}, "'S': downlink_bytes_per_s must be >= 0, got -2"),
        ({"periods_s": []}, "periods_s must list the starts of periods, the first 0, got []"),
        ({"periods_s": [1.0]}, "periods_s must list the starts of periods, the first 0, got [1.0]"),
        ({"periods_s": [0.0, 5.0, 5.0]}, "periods_s must be finite and increase, got 5 then 5"),
        ({"periods_s": [0.0, math.inf]}, "periods_s must be finite and increase, got 0 then inf"),
        ({"periods_s": [0.0, math.nan, 2.0]}, "must be finite and increase, got 0 then nan"),
        ({"bandwidth_bytes_per_s": [[4.0, 1.0]]}, "(1 periods, 3 links), got (1, 2)"),
        ({"periods_s": [0.0, 1.0]}, "(2 periods, 3 links), got (1, 3)"),
        ({"link_to": [1, 2]}, "link_from and link_to must have one entry per link, got 3 and 2"),
        ({"bandwidth_bytes_per_s": [[4, -1, 2]]}, "'S' -> 'D': bandwidth_bytes_per_s must be >= 0"),
        ({"bandwidth_bytes_per_s": [[4, 1, math.inf]]}, "finite, got inf; use 0 for no capacity"),
        ({"link_from": [0, 0, 0], "link_to": [1, 2, 2]}, "link 'S' -> 'D': given twice; keep one"),
        ({"link_to": [0, 2, 2]}, "link 'S' -> 'S': a link must join two different hosts; remove"),
        ({"link_to": [1, 2, 3]}, "links must join hosts 0 ... 2, got index 3"),
        ({"link_to": [1, 2, -1]}, "links must join hosts 0 ... 2, got index -1"),
        ({"price_per_gb": [0.1, -0.1, 0]}, "'S' -> 'D': price_per_gb must be >= 0 and finite, got"),
        ({"price_per_gb": [0.1, math.nan, 0]}, "price_per_gb must be >= 0 and finite, got nan"),
    ],
)
def test_each_rule_is_named_with_the_value_received(changes, message):
    as_arrays = {
        key: np.array(value) if isinstance(value, list) else value for key, value in changes.items()
    }
    with pytest.raises(dc.ProblemError) as caught:
        small(**as_arrays)
    assert message in str(caught.value)


def test_a_bad_number_of_a_forecast_names_its_period():
    with pytest.raises(dc.ProblemError, match=r"'K' -> 'D': .* got nan in period 1; use 0"):
        from_hosts(text="S -> K 4 4, K -> D 2 nan", periods_s=[0.0, 1.0])


@pytest.mark.parametrize(
    ("bottlenecks", "message"),
    [
        ([("w", 1.0, [("S", "D")]), ("w", 2.0, [("K", "D")])], "'w': name given 2 times"),
        ([("w", -1.0, [("S", "D")])], "shared bottleneck 'w': bandwidth_bytes_per_s must be >= 0"),
        ([("w", math.inf, [("S", "D")])], "must be >= 0 and finite, got inf"),
        ([("w", math.nan, [("S", "D")])], "must be >= 0 and finite, got nan"),
        ([("w", 1.0, [])], "shared bottleneck 'w': links must not be empty"),
        ([("w", 1.0, [("S", "E")])], "shared bottleneck 'w': unknown host 'E'"),
        ([("w", 1.0, [("D", "S")])], "there is no link 'D' -> 'S'; add it to links"),
        ([("w", 1.0, [("S", "D"), ("S", "D")])], "link 'S' -> 'D' given 2 times"),
    ],
)
def test_rules_of_shared_bottlenecks(bottlenecks, message):
    with pytest.raises(dc.ProblemError) as caught:
        from_hosts(shared=[SharedBottleneck(*bottleneck) for bottleneck in bottlenecks])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ([("E", "S", 0, 1)], "held data of 'S' at 'E': unknown host 'E'"),
        ([("K", "E", 0, 1)], "held data of 'E' at 'K': unknown host 'E'"),
        ([("K", "S", 8, 3)], "within the backlog of 10 bytes, got offset_bytes = 8, bytes = 3"),
        ([("K", "S", -1, 3)], "got offset_bytes = -1, bytes = 3"),
        ([("K", "S", 3, -1)], "got offset_bytes = 3, bytes = -1"),
        ([("K", "S", 0.5, 1)], "bytes must be whole numbers, got 0.5 and 1"),
        ([("K", "S", 0, True)], "n_bytes must be a number, got True"),
        ([("K", "S", 0, 1.5)], "bytes must be whole numbers, got 0 and 1.5"),
        ([("K", "S", 0, "1")], "n_bytes must be a whole number of bytes >= 0, got '1'"),
        ([("K", "S", 0, 3), ("D", "S", 2, 3)], "byte 2 lies at 'K' and at 'D'; name one holder"),
        ([("K", "S", 0, 6)], "host 'K': it holds 6 bytes of others' data, storage_bytes is 5"),
        ([("K", "S", 0, 3), ("K", "S", 3, 3)], "host 'K': it holds 6 bytes of others' data"),
    ],
)
def test_rules_of_held_data(held, message):
    with pytest.raises(dc.ProblemError) as caught:
        from_hosts(
            [Host("S", 10), Host("K", storage_bytes=5), Host("D")],
            held=[Held(*one) for one in held],
        )
    assert message in str(caught.value)


def test_held_data_may_touch_fill_the_storage_and_lie_anywhere():
    problem = from_hosts(
        [Host("S", 10), Host("K", storage_bytes=5), Host("D", storage_bytes=0)],
        held=[
            Held("K", "S", 0, 5),
            Held("D", "S", 5, 4),
            Held("S", "S", 9, 1),
            Held("K", "S", 2, 0),
        ],
    )
    assert problem.total_bytes == 6
