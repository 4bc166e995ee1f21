"""Problems: every way to build one, every rule, and what a problem answers."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hand_made import links

import datacollect as dc
from datacollect.problem import Held, Host, Link, Parcel, Problem, SharedBottleneck


def small(**changes) -> Problem:
    """S (10 bytes) -> K -> D, and S -> D; hosts 0, 1, 2; changed by columns."""
    columns = {
        "names": ("S", "K", "D"),
        "destination": "D",
        "backlog_bytes": np.array([10, 0, 0]),
        "release_s": np.zeros(3),
        "storage_bytes": np.full(3, np.inf),
        "uplink_bytes_per_s": np.full(3, np.inf),
        "downlink_bytes_per_s": np.full(3, np.inf),
        "link_from": np.array([0, 0, 1], dtype=np.int32),
        "link_to": np.array([1, 2, 2], dtype=np.int32),
        "bandwidth_bytes_per_s": np.array([[4.0, 1.0, 2.0]]),
    }
    return Problem(**(columns | changes))


def from_hosts(hosts=None, text="S -> K 4, S -> D 1, K -> D 2", destination="D", **options):
    hosts = hosts or [Host("S", 10), Host("K"), Host("D")]
    return Problem.from_hosts(hosts, links(text), destination, **options)


MATRIX = [[0, 4.0, 1.0], [0, 0, 2.0], [0, 0, 0]]


def from_matrix(matrix=MATRIX, backlog_bytes=(10, 0, 0), names=("S", "K", "D"), **options):
    return Problem.from_matrix(names, matrix, backlog_bytes, "D", **options)


def ends_and_rates(problem: Problem) -> list[tuple[str, str, list[float]]]:
    names, rates = problem.names, problem.bandwidth_bytes_per_s.T.tolist()
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    return [(names[a], names[b], rate) for (a, b), rate in zip(ends, rates, strict=True)]


# Construction ----------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [small, from_hosts, from_matrix])
def test_every_way_to_build_holds_the_same(build):
    problem = build()
    assert problem.names == ("S", "K", "D")
    assert (problem.n_hosts, problem.n_links, problem.n_periods) == (3, 3, 1)
    assert problem.backlog_bytes.tolist() == [10, 0, 0]
    assert problem.total_bytes == 10
    assert problem.sources == ("S",)
    assert problem.destination_index == 2
    assert problem.host_index == {"S": 0, "K": 1, "D": 2}
    assert ends_and_rates(problem) == [("S", "K", [4]), ("S", "D", [1]), ("K", "D", [2])]
    assert problem.price_per_gb is None
    assert problem.storage_bytes.tolist() == [math.inf] * 3
    assert problem.sha256 == small().sha256
    assert repr(problem) == "<Problem: 3 hosts, 3 links, 1 sources, 10 bytes to 'D'>"


def test_host_attributes_arrive_in_their_columns():
    host = Host("S", 10, 1.5, 20, 3.0, 4.0)
    problem = from_hosts([host, Host("K"), Host("D")])
    columns = ("backlog_bytes", "release_s", "storage_bytes")
    columns += ("uplink_bytes_per_s", "downlink_bytes_per_s")
    assert [getattr(problem, name)[0] for name in columns] == [10, 1.5, 20, 3.0, 4.0]
    assert [getattr(problem, name)[1] for name in columns] == [0, 0.0, *[math.inf] * 3]


def test_one_number_stands_for_all_hosts_of_a_matrix():
    problem = from_matrix(release_s=2.0, storage_bytes=[1, 2, 3], uplink_bytes_per_s=5)
    assert problem.release_s.tolist() == [2.0, 2.0, 2.0]
    assert problem.storage_bytes.tolist() == [1, 2, 3]
    assert problem.uplink_bytes_per_s.tolist() == [5.0, 5.0, 5.0]
    assert problem.downlink_bytes_per_s.tolist() == [math.inf] * 3


def test_links_come_in_any_order_with_their_rates_and_prices():
    given = [Link("K", "D", 2.0, 0.5), Link("S", "D", 1.0), Link("S", "K", 4.0, 0.25)]
    problem = Problem.from_hosts([Host("S", 10), Host("K"), Host("D")], given, "D")
    assert ends_and_rates(problem) == [("S", "K", [4]), ("S", "D", [1]), ("K", "D", [2])]
    assert problem.price_per_gb.tolist() == [0.25, 0.0, 0.5]


def test_a_matrix_ignores_its_diagonal_and_zeros_are_no_links():
    matrix = np.array(MATRIX)
    matrix[1, 1], matrix[2, 2] = math.nan, 7.0
    assert from_matrix(matrix).sha256 == from_matrix().sha256
    assert from_matrix([[5.0]], [3], ["D"]).n_links == 0


def test_a_link_given_with_zero_stays_a_link():
    assert from_hosts(text="S -> D 0, S -> K 1").n_links == 2


def test_forecasts_have_a_row_per_period():
    """A pair that is 0 in one period only is a link; a constant one holds in all periods."""
    by_hosts = from_hosts(text="S -> K 4 0, S -> D 1, K -> D 2 3", periods_s=[0.0, 60.0])
    second = [[0, 0, 1.0], [0, 0, 3.0], [0, 0, 0]]
    by_matrix = from_matrix([MATRIX, second], periods_s=[0, 60])
    for problem in (by_hosts, by_matrix):
        assert problem.n_periods == 2
        assert problem.bandwidth_bytes_per_s.tolist() == [[4, 1, 2], [0, 1, 3]]
    assert by_hosts.sha256 == by_matrix.sha256


def test_a_full_mesh_of_many_hosts_lists_all_pairs():
    n = 40
    rates = np.arange(n * n, dtype=float).reshape(n, n) + 1
    problem = Problem.from_matrix([f"h{i}" for i in range(n)], rates, [1] * n, "h7")
    assert problem.n_links == n * (n - 1)
    assert problem.link_from.dtype == problem.link_to.dtype == np.int32
    i = problem.link_indices(3, 5).item()
    assert (problem.link_from[i], problem.link_to[i]) == (3, 5)
    assert problem.bandwidth_bytes_per_s[0, i] == rates[3, 5]


def test_replace_validates_anew():
    assert small().replace(backlog_bytes=np.array([7, 0, 0])).total_bytes == 7
    with pytest.raises(dc.ProblemError, match="backlog_bytes must be >= 0"):
        small().replace(backlog_bytes=np.array([-7, 0, 0]))


# What stays as it is ---------------------------------------------------------------------------


def test_arrays_and_attributes_cannot_be_changed():
    problem = from_matrix([MATRIX, MATRIX], periods_s=[0, 1])
    for field in dataclasses.fields(problem):
        value = getattr(problem, field.name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(problem, field.name, value)


def test_what_a_matrix_was_built_from_may_change_later():
    matrix, backlog, storage = np.array(MATRIX), np.array([10, 0, 0]), np.array([1.0, 2.0, 3.0])
    problem = from_matrix(matrix, backlog, storage_bytes=storage)
    matrix[:], backlog[:], storage[:] = 9.0, 9, 9.0
    assert ends_and_rates(problem) == [("S", "K", [4]), ("S", "D", [1]), ("K", "D", [2])]
    assert problem.backlog_bytes.tolist() == [10, 0, 0]
    assert problem.storage_bytes.tolist() == [1, 2, 3]


def test_problems_are_compared_by_identity_and_can_be_keys():
    assert small() != small()
    assert len({small(), small()}) == 2


# Rules -----------------------------------------------------------------------------------------


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
        ({"backlog_bytes": np.array([1, "x", 0], dtype=object)}, "must be a number, got 'x'"),
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


def test_links_that_do_not_fit_together_are_refused():
    with pytest.raises(dc.ProblemError, match="a link's from: unknown host 'SS'"):
        from_hosts(text="SS -> D 1")
    with pytest.raises(
        dc.ProblemError, match=r"a link's to: unknown host 'lion'; did you mean 'lyon"
    ):
        from_hosts([Host("S"), Host("lyon"), Host("D")], text="S -> lion 1")
    with pytest.raises(dc.ProblemError, match=r"'S' -> 'D': .* one number per period \(1\), got 2"):
        from_hosts(text="S -> D 1 2")
    with pytest.raises(dc.ProblemError, match=r"shape \(3, 3\) for 3 names, .*, got \(1, 2, 2\)"):
        from_matrix([[0, 1], [1, 0]])
    with pytest.raises(dc.ProblemError, match=r"\(2, 3, 3\) with 2 period\(s\), got \(1, 3, 3\)"):
        from_matrix(periods_s=[0, 1])


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
        ([("K", "S", 0, True)], "bytes must be whole numbers, got 0 and True"),
        ([("K", "S", 0, "1")], "bytes must be whole numbers, got 0 and '1'"),
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


# Questions -------------------------------------------------------------------------------------


def test_parcels_are_what_lies_where_and_has_yet_to_move():
    """Of S's bytes 3 to 4 lie at K, 6 at D (collected); K has 2 of its own; D's are there."""
    problem = from_hosts(
        [Host("S", 10, release_s=2.0), Host("K", 2), Host("D", 99)],
        held=[Held("D", "S", 6, 1), Held("K", "S", 3, 2)],
    )
    assert problem.parcels == (
        Parcel(0, 0, 0, 3, 2.0),
        Parcel(0, 0, 5, 1, 2.0),
        Parcel(0, 0, 7, 3, 2.0),
        Parcel(1, 0, 3, 2, 0.0),
        Parcel(1, 1, 0, 2, 0.0),
    )
    assert problem.total_bytes == 11
    assert problem.sources == ("S", "K")


def test_what_is_held_altogether_leaves_nothing_at_the_source():
    problem = from_hosts(held=[Held("K", "S", 0, 10)])
    assert problem.parcels == (Parcel(1, 0, 0, 10, 0.0),)
    assert problem.sources == ("S",)
    everything_collected = from_hosts(held=[Held("D", "S", 0, 10)])
    assert everything_collected.parcels == ()
    assert everything_collected.sources == ()


def test_data_held_at_their_own_source_are_as_if_not_named():
    """They wait for the source's release like the rest."""
    problem = from_hosts(
        [Host("S", 10, release_s=2.0), Host("K"), Host("D")], held=[Held("S", "S", 2, 3)]
    )
    assert problem.parcels == (Parcel(0, 0, 0, 10, 2.0),)


def test_links_are_found_by_their_ends():
    problem = small()
    assert problem.link_indices([0, 0, 1, 1, 2], [1, 2, 2, 0, 2]).tolist() == [0, 1, 2, -1, -1]
    assert problem.link_indices(1, 2).item() == 2
    assert problem.link_indices([[0, 2]], [[2, 1]]).tolist() == [[1, -1]]
    assert problem.link_indices([], []).tolist() == []


def test_a_problem_without_links_finds_none():
    assert Problem.from_hosts([Host("D")], [], "D").link_indices([0], [0]).tolist() == [-1]


def test_shared_bottlenecks_know_their_links():
    problem = from_hosts(shared=[SharedBottleneck("w", 1.0, [("K", "D"), ("S", "K")])])
    assert [links.tolist() for links in problem.shared_links] == [[2, 0]]


# The hash --------------------------------------------------------------------------------------


def test_any_change_of_content_changes_the_hash():
    wire = SharedBottleneck("w", 1.0, [("S", "D")])
    held = Held("K", "S", 0, 1)
    variants = [
        small(),
        small(names=("S", "L", "D")),
        small(destination="K"),
        small(backlog_bytes=np.array([11, 0, 0])),
        small(backlog_bytes=np.array([0, 10, 0])),
        small(release_s=np.array([1.0, 0, 0])),
        small(storage_bytes=np.array([1.0, 0, 0])),
        small(uplink_bytes_per_s=np.array([1.0, 0, 0])),
        small(downlink_bytes_per_s=np.array([1.0, 0, 0])),
        small(link_to=np.array([1, 2, 0], dtype=np.int32)),
        small(bandwidth_bytes_per_s=np.array([[4.0, 1.0, 3.0]])),
        small(bandwidth_bytes_per_s=np.full((2, 3), 4.0), periods_s=np.array([0.0, 1.0])),
        small(bandwidth_bytes_per_s=np.full((2, 3), 4.0), periods_s=np.array([0.0, 2.0])),
        small(price_per_gb=np.array([0.1, 0, 0])),
        small(shared=(wire,)),
        small(shared=(dataclasses.replace(wire, bandwidth_bytes_per_s=2.0),)),
        small(held=(held,)),
        small(held=(dataclasses.replace(held, offset_bytes=1),)),
    ]
    assert len({problem.sha256 for problem in variants}) == len(variants)


def test_the_hash_does_not_depend_on_how_a_problem_was_written():
    """numpy's types, the order of links, of held data, of a bottleneck's links: all the same."""
    hosts = [Host("S", 10), Host("K"), Host("D")]
    plain = Problem.from_hosts(
        hosts,
        links("S -> K 4, S -> D 1, K -> D 2"),
        "D",
        shared=[SharedBottleneck("w", 3.0, [("S", "D"), ("K", "D")])],
        held=[Held("K", "S", 0, 1), Held("K", "S", 5, 2)],
    )
    other = Problem.from_matrix(
        np.array(["S", "K", "D"]),
        np.array(MATRIX, dtype=np.float32),
        np.array([10.0, 0.0, 0.0]),
        "D",
        shared=[SharedBottleneck(np.str_("w"), 3, [["K", np.str_("D")], ("S", "D")])],
        held=[Held("K", "S", np.int64(5), np.int32(2)), Held(np.str_("K"), "S", 0, 1)],
    )
    assert other.sha256 == plain.sha256
    bandwidth = np.float64(3)
    again = plain.replace(shared=[SharedBottleneck("w", bandwidth, plain.shared[0].links)])
    assert again.sha256 == plain.sha256
    free = small(price_per_gb=np.zeros(3))
    assert free.price_per_gb is None
    assert free.sha256 == small().sha256


CHANGES = [
    {"names": ("S", "D", "K")},
    {"destination": "K"},
    {"backlog_bytes": np.array([12, 3, 0])},
    {"release_s": np.array([4.0, 0, 0])},
    {"storage_bytes": np.array([np.inf, 7.0, np.inf])},
    {"link_from": np.array([1, 0, 0], dtype=np.int32), "link_to": np.array([2, 1, 2])},
    {"bandwidth_bytes_per_s": np.array([[7.0, 8.0, 9.0]])},
    {"bandwidth_bytes_per_s": np.ones((2, 3)), "periods_s": np.array([0.0, 3.0])},
    {"price_per_gb": np.array([0.0, 1.0, 2.0])},
    {"shared": (SharedBottleneck("x", 2.0, [("K", "D")]),)},
    {"held": (Held("K", "S", 2, 4),)},
]


@pytest.mark.parametrize("changes", CHANGES, ids="+".join)
def test_a_copy_forgets_what_its_changes_touch(changes):
    """All that is computed once is as if the copy had been built from nothing."""
    wire = SharedBottleneck("w", 3.0, [("S", "D"), ("S", "K")])
    problem = small(shared=(wire,), held=(Held("K", "S", 0, 3),))
    if "names" in changes or "link_from" in changes:
        problem = problem.replace(shared=())  # its links would be others
    remembered = ("sha256", "parcels", "total_bytes", "sources", "destination_index", "host_index")
    for name in remembered:
        assert getattr(problem, name)
    copy = problem.replace(**changes)
    afresh = dataclasses.replace(problem, **changes)
    for name in remembered:
        assert getattr(copy, name) == getattr(afresh, name)
    assert copy.sha256 != problem.sha256
    for one, other in zip(copy.shared_links, afresh.shared_links, strict=True):
        assert one.tolist() == other.tolist()
    every = copy.link_indices(copy.link_from, copy.link_to)
    assert every.tolist() == [0, 1, 2]
    for column, other in zip(copy.held_columns, afresh.held_columns, strict=True):
        assert column.tolist() == other.tolist()
    assert ends_and_rates(copy) == ends_and_rates(afresh)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"destination": "X"}, "destination must be one of the hosts, got 'X'"),
        ({"release_s": [-1.0, 0, 0]}, "release_s must be >= 0 and finite, got -1"),
        ({"storage_bytes": [1.5, 0, 0]}, "storage_bytes must be whole, got 1.5"),
        ({"bandwidth_bytes_per_s": [[1.0, -1.0, 1.0]]}, "bandwidth_bytes_per_s must be >= 0"),
        ({"backlog_bytes": [2, 0, 0]}, "the range must lie within the backlog of 2 bytes"),
        ({"shared": [SharedBottleneck("x", 1.0, [("D", "K")])]}, "there is no link 'D' -> 'K'"),
        ({"link_from": [0, 1, 1], "link_to": [1, 2, 0]}, "there is no link 'S' -> 'D'"),
    ],
)
def test_a_copy_is_refused_as_the_problem_would_be(changes, message):
    wire = SharedBottleneck("w", 3.0, [("S", "D")])
    problem = small(shared=(wire,), held=(Held("K", "S", 0, 3),))
    changes = {
        key: np.array(v) if isinstance(v[0], int | float) else v for key, v in changes.items()
    }
    for build in (problem.replace, lambda **new: dataclasses.replace(problem, **new)):
        with pytest.raises(dc.ProblemError, match=message):
            build(**changes)


def test_a_copy_has_no_attributes_of_its_own():
    with pytest.raises(
        TypeError, match="no attribute 'backlog_byte'; did you mean 'backlog_bytes'"
    ):
        small().replace(backlog_byte=np.zeros(3))


def test_writing_to_an_array_that_was_passed_changes_nothing():
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    faster = np.array([[7.0]])
    changed = problem.replace(bandwidth_bytes_per_s=faster)
    faster[0, 0] = 9.0
    assert changed.bandwidth_bytes_per_s.tolist() == [[7.0]]


def test_text_for_rates_is_refused():
    hosts = [dc.Host("S", 1), dc.Host("D")]
    with pytest.raises(dc.ProblemError, match=r"bandwidth_bytes_per_s must be a number.*'fast'"):
        dc.Problem.from_hosts(hosts, [dc.Link("S", "D", "fast")], "D")
    wire = dc.SharedBottleneck("wire", "slow", [("S", "D")])
    with pytest.raises(dc.ProblemError, match=r"bandwidth_bytes_per_s must be a number.*'slow'"):
        dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 1.0)], "D", shared=[wire])
