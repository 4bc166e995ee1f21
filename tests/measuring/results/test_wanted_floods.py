"""Floods that advice and problem files name: carried out as they say, they settle what they ask."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise

import pandas as pd
import pytest

import datacollect as dc
from datacollect.measurement.sample_store import COLUMNS
from datacollect.measuring.results.samples_to_problem import problem_of_samples
from datacollect.measuring.results.unknown import text_of, tree_of, unknown_of
from datacollect.measuring.results.wanted_floods import WantedFlood

NOW_S = 1_767_571_200.0  # 5 January 2026, 0 h UTC
# Bytes per second of each link alone: S's, as in the example alps, and two ways on.
RATES = {("S", "D"): 5.1e6, ("S", "K"): 12.1e6, ("S", "L"): 25.4e6}
RATES |= {("K", "D"): 12e6, ("L", "D"): 25e6}


def alone_by_tests():
    row = {"time_s": NOW_S, "tool": "tcp", "ended": "done", "streams": 4, "duration_s": 10.0}
    return [
        row | {"from": tail, "to": head, "bandwidth_bytes_per_s": rate}
        for (tail, head), rate in RATES.items()
    ]


def of_command(words, option):
    return [after for word, after in pairwise(words) if word == option]


def carried_out(command, number, most_bytes_per_s):
    """Return the rows of a flood as its command line has it go, over links that share one line."""
    words = shlex.split(command)
    pairs = [(a, b) for a in of_command(words, "--from") for b in of_command(words, "--to")]
    (host,) = {*pairs[0]}.intersection(*({*pair} for pair in pairs))
    (seconds,), (most_bytes,) = of_command(words, "--seconds"), of_command(words, "--bytes")
    total = sum(RATES[pair] for pair in pairs)
    part = min(1.0, most_bytes_per_s / total)
    settings = json.dumps({"host": host, "flood": str(number)})
    row = {"time_s": NOW_S + number, "tool": "flood", "settings": settings, "ended": "done"}
    row |= {"concurrency": len(pairs) - 1, "streams": int(*of_command(words, "--streams"))}
    rows = []
    for tail, head in pairs:
        rate = part * RATES[tail, head]
        lasts_s = min(float(seconds), int(most_bytes) / rate)
        rates = {"bandwidth_bytes_per_s": rate, "duration_s": lasts_s}
        rows.append(row | {"from": tail, "to": head} | rates)
    return rows


def problem_of(rows):
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return problem_of_samples(table, "D", backlog_bytes={"S": 10**10}, now_s=NOW_S + 99.0)


@pytest.mark.parametrize("most_bytes_per_s", [1e9, 26e6])
def test_the_floods_that_advice_names_settle_what_relays_lean_on(most_bytes_per_s):
    """Links alone add up to 42.6 MB/s; all at once carry that, or what a line of 26 MB/s does."""
    rows = alone_by_tests()
    found = problem_of(rows)
    advice = dc.advise(dc.Problem.from_dict(found.tree))
    floods = [command for command in advice.measure if " flood " in command]
    assert floods
    for number, command in enumerate(floods):
        rows += carried_out(command, number, most_bytes_per_s)
    found = problem_of(rows)
    assert not any("shows no limit" in text for text in found.notes)
    host = found.tree["hosts"]["S"]
    if most_bytes_per_s > 42.6e6:
        assert host["shown_uplink_bytes_per_s"] == pytest.approx(42.6e6)
    else:
        assert host["uplink_bytes_per_s"] == pytest.approx(26e6, rel=0.03)
    after = dc.advise(dc.Problem.from_dict(found.tree))
    assert not any(" flood " in command for command in after.measure)


def test_advice_and_problem_files_name_the_same_floods():
    rows = alone_by_tests()
    found = problem_of(rows)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    unknown = unknown_of(found, table, RATES.__contains__)
    named = [tree_of(leaning, "hosts.toml")["command"] for leaning in unknown.leanings]
    assert named
    advice = dc.advise(dc.Problem.from_dict(found.tree))
    assert sorted(named) == sorted(each for each in advice.measure if " flood " in each)


def test_what_a_flood_takes_at_most_is_what_its_command_takes():
    """S → D carries 1 MB/s and S → K 100 MB/s; the command gives each as many bytes as K's."""
    rates = {("S", "D"): 1e6, ("S", "K"): 1e8}
    flood = WantedFlood("S", "uplink_bytes_per_s", tuple(rates), rates, "")
    words = shlex.split(flood.test.command("hosts.toml"))
    assert flood.test.most_bytes == 2 * int(*of_command(words, "--bytes")) == 1_250_000_002


def test_problem_files_say_what_the_command_takes():
    rows = alone_by_tests()
    found = problem_of(rows)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    leaning = unknown_of(found, table, RATES.__contains__).leanings[0]
    tree = tree_of(leaning, "hosts.toml")
    each = int(*of_command(shlex.split(tree["command"]), "--bytes"))
    assert tree["most_bytes"] == len(tree["links"]) * each
    # Three links into D, each with a quarter more than 25 MB/s carry in 5 s.
    assert "for at most 468.8 MB and 5 s" in text_of(leaning)
