"""Links that share a wire, from tests of two of them together and alone."""

from __future__ import annotations

import json
from itertools import combinations

import pandas as pd
import pytest

from datacollect.measurement.sample_store import COLUMNS
from datacollect.measuring.results.samples_to_problem import problem_of_samples
from datacollect.measuring.results.shared_links import SHARED, FoundWire, compared

LINKS = [("a1", "b1"), ("a2", "b2"), ("a3", "b3"), ("a4", "b4")]
ONE, TWO, THREE, FOUR = LINKS


def comparison(links, rate, at_once, runs=3, time_s=0.0):
    """Rows of two links that get `rate` each alone, and `at_once` each together."""
    return [
        {
            "from": tail,
            "to": head,
            "time_s": time_s + run,
            "tool": SHARED,
            "ended": "done",
            "settings": json.dumps(
                {"links": links, "run": f"{links}-{time_s}-{run}", "together": together}
            ),
            "bandwidth_bytes_per_s": at_once if together else rate,
        }
        for run in range(runs)
        for together in (False, True)
        for tail, head in links
    ]


def table(rows):
    return pd.DataFrame(rows, columns=list(COLUMNS))


def test_links_that_share_with_the_same_one_share_with_each_other():
    """Half together: 4 of 4 + 4; three links on one wire are found by two comparisons."""
    rows = comparison([ONE, TWO], 4.0, 2.0) + comparison([ONE, THREE], 4.0, 2.0)
    rows += comparison([ONE, FOUR], 4.0, 4.0)
    assert compared(table(rows)).wires() == [FoundWire((ONE, TWO, THREE), 4.0, 6, 6)]


def test_the_newest_three_tests_count_and_fewer_tell_nothing():
    shared, apart = comparison([ONE, TWO], 4.0, 2.0), comparison([ONE, TWO], 4.0, 4.0, time_s=10.0)
    assert compared(table(shared[:8])).decided == {}
    assert len(compared(table(shared)).wires()) == 1
    assert compared(table(shared + apart)).wires() == []


@pytest.mark.parametrize(
    "spoil",
    [
        {"ended": "nothing has arrived"},
        {"settings": None},
        {"settings": '{"links": [1, 2], "run": "x"}'},
        {"settings": '{"links": [["a1", "b1"]], "run": "x"}'},
        {"bandwidth_bytes_per_s": 0.0},
    ],
)
def test_a_run_that_lacks_a_test_does_not_count(spoil):
    rows = comparison([ONE, TWO], 4.0, 2.0)
    assert compared(table([*rows[:-1], rows[-1] | spoil])).decided == {}


def groups_found(truth, candidates, tried=frozenset()):
    """Compare links as asked until all is told; return the wires and how many comparisons."""
    rows, n = [], 0
    while (both := compared(table(rows)).next_comparison(candidates, tried)) is not None:
        shared = any({*both} <= {*wire} for wire in truth)
        rows += comparison(list(both), 4.0, 2.0 if shared else 4.0, time_s=10.0 * n)
        n += 1
    return compared(table(rows)), n


def test_each_link_is_compared_with_one_of_each_wire():
    """Two wires of two links: four of six comparisons tell all."""
    found, n = groups_found([(ONE, THREE), (TWO, FOUR)], [frozenset(LINKS)])
    assert [wire.links for wire in found.wires()] == [(ONE, THREE), (TWO, FOUR)]
    assert n == 4
    assert sorted(map(sorted, found.possible_wires([frozenset(LINKS)]))) == [
        [ONE, THREE],
        [TWO, FOUR],
    ]


def test_links_with_a_host_in_common_are_never_compared():
    """They are never tested at a time anyway; a third that shares with both joins them."""
    same = ("a1", "b9")
    assert compared(table([])).next_comparison([frozenset({ONE, same})]) is None
    found, n = groups_found([(ONE, same, TWO)], [frozenset({ONE, same, TWO})])
    assert (n, found.wires()[0].links) == (2, (ONE, same, TWO))


def test_what_was_tried_without_result_is_not_tried_again():
    tried = {frozenset(both) for both in combinations(LINKS, 2)}
    assert compared(table([])).next_comparison([frozenset(LINKS)], tried) is None


def test_what_may_share_is_all_until_tests_say_otherwise():
    """Apart from each other are ONE and TWO alone: THREE may be on the wire of either."""
    said = compared(table(comparison([ONE, TWO], 4.0, 4.0)))
    assert said.possible_wires([frozenset({ONE, TWO})]) == []
    assert said.possible_wires([frozenset({ONE, TWO, THREE})]) == [frozenset({ONE, TWO, THREE})]
    assert said.possible_wires([frozenset({THREE, FOUR})]) == [frozenset({THREE, FOUR})]


def test_a_problem_file_has_the_wire_and_links_keep_their_own_rates():
    """Comparisons are no tests of links: rates are those of tcp alone."""
    tested = [
        {"from": tail, "to": head, "time_s": 0.0, "tool": "tcp", "ended": "done"}
        | {"bandwidth_bytes_per_s": 5.0}
        for tail, head in (ONE, TWO)
    ]
    found = problem_of_samples(table(tested + comparison([ONE, TWO], 4.0, 2.0)), "b1")
    assert [link["bandwidth_bytes_per_s"] for link in found.tree["links"]] == [5.0, 5.0]
    row = {"name": "wire-1", "bandwidth_bytes_per_s": 4.0, "links": [[*ONE], [*TWO]]}
    assert found.tree["shared"] == [row]
    assert [(wire.held, wire.n_tests) for wire in found.wires] == [(3, 3)]
    # A wire that somebody has written down stays as it is written.
    known = {"name": "sea", "bandwidth_bytes_per_s": 9.0, "links": [[*ONE], [*TWO]]}
    rows = table(tested + comparison([ONE, TWO], 4.0, 2.0))
    assert [
        row["name"] for row in problem_of_samples(rows, "b1", shared=[known]).tree["shared"]
    ] == ["sea"]
