"""What floods prove of a host, what of a wire, and what they say of nothing."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import datacollect as dc
from datacollect.measurement.sample_store import COLUMNS
from datacollect.measuring.results.samples_to_problem import problem_of_samples
from datacollect.measuring.results.wanted_floods import shown_over_used

NOW_S = 1_767_571_200.0  # 5 January 2026, 0 h UTC
UP, DOWN = "uplink_bytes_per_s", "downlink_bytes_per_s"
LASTING = {"duration_s": 5.0}


def alone_by_tcp(rates, **more):
    """Return a test alone of each link, such as ``{"SD": 5.0}``."""
    row = {"time_s": NOW_S, "tool": "tcp", "ended": "done"}
    return [
        row | {"from": tail, "to": head, "bandwidth_bytes_per_s": rate} | more
        for (tail, head), rate in rates.items()
    ]


def flood(host, rates, number=1, **more):
    """Return the rows of a flood; a text in place of a rate says why it failed."""
    settings = json.dumps({"host": host, "flood": str(number)})
    row = {"time_s": NOW_S + number, "tool": "flood", "settings": settings}
    row |= {"concurrency": len(rates) - 1, **LASTING}
    return [
        row
        | {"from": tail, "to": head}
        | (
            {"ended": rate}
            if isinstance(rate, str)
            else {"ended": "done", "bandwidth_bytes_per_s": rate}
        )
        | more
        for (tail, head), rate in rates.items()
    ]


def problem_of(*rows, **more):
    """Return the problem of all rows; the destination is D."""
    table = pd.DataFrame([row for some in rows for row in some], columns=list(COLUMNS))
    found = problem_of_samples(table, "D", now_s=NOW_S, **more)
    dc.Problem.from_dict(found.tree)
    return found


def of_host(found, host="S"):
    return found.tree["hosts"][host]


def wires(found):
    return [
        ("".join(sorted("".join(link) for link in row["links"])), row["bandwidth_bytes_per_s"])
        for row in found.tree.get("shared", [])
    ]


FOUR = {"SD": 5.0, "SE": 5.0, "SF": 5.0, "SG": 5.0}


def test_a_line_is_proven_where_more_links_get_no_more_than_two():
    """Two of four links get 5 of 10, three get 5 of 15: the fourth is on the same line."""
    two, three = {"SD": 2.5, "SE": 2.5}, {"SD": 1.7, "SE": 1.6, "SF": 1.7}
    found = problem_of(alone_by_tcp(FOUR), flood("S", two), flood("S", three, 2))
    assert of_host(found) == {UP: pytest.approx(5.0)}
    assert wires(found) == []


def test_two_links_of_more_share_a_wire_until_a_third_was_flooded():
    """The others may be on it, too: none of them was told apart."""
    found = problem_of(alone_by_tcp(FOUR), flood("S", {"SD": 2.5, "SE": 2.5}))
    assert UP not in of_host(found)
    assert wires(found) == [("SDSESFSG", 5.0)]
    assert any("whether it is the uplink of S is not known" in note for note in found.notes)


def test_a_wire_of_two_links_leaves_the_third_alone():
    """All three get 10 of 15: what the wire of two and the third carry. The line is above.

    The fourth, which was flooded with none of them, may be on the wire.
    """
    three = {"SD": 2.5, "SE": 2.5, "SF": 5.0}
    found = problem_of(alone_by_tcp(FOUR), flood("S", {"SD": 2.5, "SE": 2.5}), flood("S", three, 2))
    assert of_host(found) == {"shown_uplink_bytes_per_s": 10.0}
    assert wires(found) == [("SDSESG", 5.0)]


def test_all_links_of_a_host_that_get_less_are_its_limit_but_some_are_a_wire():
    """Three get 10 of 15. Where these are all, nothing else goes in; else they share a wire."""
    three = {"SD": 3.3, "ED": 3.3, "FD": 3.4}
    alone = {"SD": 5.0, "ED": 5.0, "FD": 5.0}
    assert of_host(problem_of(alone_by_tcp(alone), flood("D", three)), "D") == {
        DOWN: pytest.approx(10.0)
    }
    found = problem_of(alone_by_tcp(alone | {"GD": 5.0}), flood("D", three))
    assert DOWN not in of_host(found, "D")
    assert wires(found) == [("EDFDSD", pytest.approx(10.0))]


def test_links_that_fill_a_line_alone_have_measured_it_too():
    """4.4 and 4.6 alone, 4.9 at once: 4.6 is no news of a line that carries 6 % more."""
    found = problem_of(alone_by_tcp({"SD": 4.4, "SE": 4.6}), flood("S", {"SD": 2.5, "SE": 2.4}))
    assert of_host(found)[UP] == pytest.approx(4.6)


def test_what_was_shown_is_a_lower_bound_and_no_limit():
    both = {"SD": 4.9, "SE": 4.8}
    found = problem_of(alone_by_tcp({"SD": 5.0, "SE": 5.0}), flood("S", both))
    assert of_host(found) == {"shown_uplink_bytes_per_s": pytest.approx(9.7)}


@pytest.mark.parametrize("more", [{"duration_s": 4.0}, {"duration_s": None}, {"beside_pull": True}])
def test_less_than_five_seconds_or_beside_a_pull_shows_nothing(more):
    both = {"SD": 4.9, "SE": 4.8}
    found = problem_of(alone_by_tcp({"SD": 5.0, "SE": 5.0}), flood("S", both, **more))
    assert of_host(found) == {}


@pytest.mark.parametrize(
    ("rates", "shown"),
    [
        ({"SD": 2.0, "SE": 2.0, "SF": "F: is away"}, None),
        ({"SD": 4.9, "SE": 4.8, "SF": "F: is away"}, 9.7),
        (dict.fromkeys(["SD", "SE", "SF"], "S: is away"), None),
    ],
)
def test_a_flood_that_failed_proves_no_limit_and_is_named(rates, shown):
    """F has vanished between: it may have taken the rest, and what the others got was shown."""
    found = problem_of(alone_by_tcp({"SD": 5.0, "SE": 5.0, "SF": 5.0}), flood("S", rates))
    assert of_host(found) == ({"shown_uplink_bytes_per_s": pytest.approx(shown)} if shown else {})
    assert wires(found) == []
    assert any("shows no limit" in note and "measure it again" in note for note in found.notes)


def test_a_flood_with_hosts_that_the_file_has_no_more_proves_no_limit():
    """X took half of what S has; its row is left out with it."""
    three = {"SD": 2.5, "SE": 2.5, "SX": 5.0}
    alone = {"SD": 5.0, "SE": 5.0, "SX": 5.0}
    found = problem_of(alone_by_tcp(alone), flood("S", three), hosts={"S", "D", "E"})
    assert UP not in of_host(found)
    assert wires(found) == []


def routes(tail, head, routers, time_s):
    row = {"from": tail, "to": head, "tool": "trace", "ended": "done"}
    return [row | {"time_s": time_s, "routers": json.dumps(routers)}]


def test_a_flood_that_is_older_than_a_route_does_not_count():
    """Since then S goes another way to D, as two traces say."""
    both = {"SD": 2.5, "SE": 2.5}
    rows = [
        routes("S", "D", ["8.8.8.8"], NOW_S - 9),
        *(routes("S", "D", ["9.9.9.9"], NOW_S + i) for i in (10, 20)),
    ]
    found = problem_of(alone_by_tcp({"SD": 5.0, "SE": 5.0}), flood("S", both), *rows)
    assert of_host(found) == {}
    assert any("older than the route S → D: measure it again" in note for note in found.notes)


def test_a_newer_flood_that_gets_more_ends_an_old_limit():
    """Of four links two got 5 once; now three get 15."""
    found = problem_of(
        alone_by_tcp(FOUR),
        flood("S", dict.fromkeys(FOUR, 1.2)),
        flood("S", {"SD": 4.9, "SE": 4.9, "SF": 4.9}, 2),
    )
    assert of_host(found) == {"shown_uplink_bytes_per_s": pytest.approx(14.7)}


def test_a_limit_that_a_test_contradicts_counts_and_both_are_shown():
    """At once S sent 5; now E alone gets 8."""
    both = {"SD": 2.5, "SE": 2.5}
    found = problem_of(alone_by_tcp({"SD": 5.0, "SE": 8.0}), flood("S", both))
    assert of_host(found) == {UP: pytest.approx(5.0), "shown_uplink_bytes_per_s": 8.0}
    (note,) = (note for note in found.notes if "the limit counts" in note)
    assert "'S' is limited to uplink_bytes_per_s = 40 bit/s" in note


def test_a_wire_that_is_said_to_carry_less_than_it_has_counts_and_is_named():
    stated = [{"name": "sea", "bandwidth_bytes_per_s": 6.0, "links": [["S", "D"], ["S", "E"]]}]
    both = {"SD": 4.9, "SE": 4.8}
    found = problem_of(alone_by_tcp({"SD": 5.0, "SE": 5.0}), flood("S", both), shared=stated)
    assert wires(found) == [("SDSE", 6.0)]
    assert any(
        "'sea' is said to carry 48 bit/s, though its links had 77.6" in n for n in found.notes
    )


@pytest.mark.parametrize("settings", [None, "[]", '{"host": 5}', '{"host": "Z", "flood": {}}'])
def test_floods_that_no_tool_writes_say_nothing(settings):
    rows = flood("S", {"SD": 2.5, "SE": 2.5}, settings=settings)
    assert of_host(problem_of(alone_by_tcp({"SD": 5.0, "SE": 5.0}), rows)) == {}


def test_links_that_may_share_a_wire_are_on_it_until_they_are_told_apart():
    """R and S share 6 to D. Over K they seem to have a way round it, which nobody has tested.

    A flood of S to D and to E has 9: E is told apart. A link that carries more alone is, too.
    """
    alone = {"RD": 5.0, "SD": 5.0, "TD": 5.0, "SK": 5.0, "SE": 5.0, "RF": 8.0, "KD": 5.0}
    floods = [flood("D", {"RD": 3.0, "SD": 3.0}), flood("S", {"SD": 4.6, "SE": 4.4}, 2)]
    found = problem_of(alone_by_tcp(alone), *floods)
    assert wires(found) == [("RDSDSK", 6.0)]
    assert any("is taken to bind S → K, too" in note for note in found.notes)
    apart = flood("S", {"SD": 4.9, "SK": 4.9}, 3)
    found = problem_of(alone_by_tcp(alone), *floods, apart)
    assert wires(found) == [("RDSD", 6.0)]


def test_what_was_shown_over_other_links_is_not_shown_over_those_of_a_plan():
    """S had 12 over E, F and D; its plan sends over D and E, which had 7 of these."""
    found = problem_of(
        alone_by_tcp({"SD": 4.0, "SE": 3.0, "SF": 5.0, "ED": 9.0}),
        flood("S", {"SD": 4.0, "SE": 3.0, "SF": 5.0}),
        backlog_bytes={"S": 1000},
    )
    problem = dc.Problem.from_dict(found.tree)
    s = problem.host_index["S"]
    assert problem.shown_uplink_bytes_per_s[s] == 12.0
    plan = dc.coordinated(problem)
    used = shown_over_used(problem, plan, found.by_floods.floods)
    assert used.shown_uplink_bytes_per_s[s] == pytest.approx(7.0)
