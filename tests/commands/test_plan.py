"""``datacollect plan``: plans, as people and programs are told of them."""

from __future__ import annotations

import json

import pytest
from instances.command_line import PLAN_KEYS, problem_without, start, strict_json

import datacollect as dc


@pytest.mark.parametrize(
    ("options", "method", "makespan_s"),
    [
        (["--chunk", "0.01"], "coordinated", 1.01),
        (["--slot", "0.5"], "coordinated", 1.5),
        (["--method", "direct"], "direct", 2.0),
        (["--method", "direct", "--order", "S2,S1"], "direct", 2.0),
        (["--method", "direct", "--at-a-time", "1", "--time-slot", "0.25"], "direct", 2.0),
        (["--method", "best-path"], "best-path", 2.0),
        (["--solver", "pulp", "--chunk", "0"], "coordinated", 1.0),
    ],
)
def test_plan_of_figure1(options, method, makespan_s, here, call):
    code, out, err = call("plan", "figure1.toml", *options, "--json")
    assert (code, err) == (0, "")
    answer = strict_json(out)
    assert set(answer) >= PLAN_KEYS
    assert answer["method"] == method
    assert answer["makespan_s"] == pytest.approx(makespan_s)
    assert answer["lower_bound_s"] == pytest.approx(1.0)
    assert set(answer["bottleneck"]) == {"kind", "hosts", "text"}
    assert set(answer["bottleneck"]["hosts"]) == {"S1", "S2"}


def test_plan_tells_people_what_it_did_and_what_is_next(here, call):
    code, out, err = call("plan", "figure1.toml", "--slot", "0.5", "-o", "my plan.json")
    assert code == 0
    assert err.splitlines() == [
        "next: datacollect check figure1.toml 'my plan.json'",
        "      datacollect pulls figure1.toml 'my plan.json'",
        "      datacollect plot figure1.toml 'my plan.json' -o 'my plan.png'",
    ]
    for line in (
        "method        coordinated, store-and-forward in slots of 0.5 s",
        "makespan      1.5 s",
        "lower bound   1 s (the makespan is 1.5 × the lower bound)",
        "saved to      my plan.json",
    ):
        assert line in out.splitlines()
    assert "S1 → D" in out
    assert "binds" in out


def test_plan_says_what_it_was_asked_for(here, call):
    asked = ("prefer", "deadline_s")
    for options, expected in (
        ([], ["relay-bytes", None]),
        (["--deadline", "1.5", "--prefer", "storage"], ["storage", 1.5]),
        (["--method", "direct"], [None, None]),
    ):
        _, out, _ = call("plan", "figure1.toml", *options, "--json")
        answer = strict_json(out)
        assert [answer[key] for key in asked] == expected


def test_plan_writes_what_json_says(here, call):
    _, out, _ = call("plan", "figure1.toml", "-o", "plan.json", "--json")
    schedule = dc.Schedule.from_file("plan.json")
    assert schedule.makespan_s == strict_json(out)["makespan_s"]
    schedule.check(dc.Problem.from_file("figure1.toml"))


def test_plan_says_what_it_costs_where_links_have_prices(here, call):
    """2 GB at 1 MB/s directly, or at 0.5 per GB over K at 2: in 1000 s half goes over K.

    In 2000 s none has to.
    """
    hosts = [dc.Host("S", 2 * 10**9), dc.Host("K"), dc.Host("D")]
    links = [
        dc.Link("S", "D", 1e6),
        dc.Link("S", "K", 2e6, price_per_gb=0.5),
        dc.Link("K", "D", 2e6),
    ]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    (here / "priced.json").write_text(json.dumps(problem.to_dict()))
    for deadline, money in (("1000", 0.5), ("2000", 0.0)):
        arguments = ("plan", "priced.json", "--deadline", deadline, "--chunk", "0")
        _, out, _ = call(*arguments, "--json")
        assert strict_json(out)["money"] == pytest.approx(money, abs=1e-6)
        _, out, _ = call(*arguments)
        assert f"money         {money:.4g}, the price of all links" in out.splitlines()
    _, out, _ = call("plan", "figure1.toml", "--json")
    assert "money" not in strict_json(out)


@pytest.mark.slow
def test_plan_reads_standard_input(here):
    done = start("plan", "-", "--json", input=(here / "figure1.toml").read_text())
    assert (done.returncode, done.stderr) == (0, "")
    assert strict_json(done.stdout)["lower_bound_s"] == pytest.approx(1.0)


def test_options_that_mean_nothing_are_noted(here, call):
    code, _, err = call("plan", "figure1.toml", "--method", "direct", "--slot", "1")
    assert code == 0
    assert err == "note: --slot has no meaning for direct, which has no relays\n"


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_no_way_to_the_destination_is_one_and_names_the_host(as_json, here, call):
    code, out, err = call("plan", problem_without("S2", here), *as_json)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert "'S2'" in err
    assert "'S1'" not in err


def test_solver_that_cannot_is_three(here, call):
    # Shared bottlenecks need a linear program; networkx solves flows.
    code, out, err = call("plan", "figure1.toml", "--solver", "networkx")
    assert (code, out) == (3, "")
    assert "networkx" in err


LITTLE_AND_MUCH = """
format = "datacollect-problem/1"
destination = "D"

[hosts.D]
[hosts.A]
backlog_bytes = 1_000_000
[hosts.B]
backlog_bytes = 10

[[links]]
from = "A"
to = "D"
bandwidth_bytes_per_s = 1e5

[[links]]
from = "B"
to = "D"
bandwidth_bytes_per_s = 1e5
"""


@pytest.mark.parametrize(
    ("options", "b_ends_s"),
    [([], 1e-4), (["--finish", "early"], 1e-4), (["--finish", "together"], 10.0)],
)
def test_sources_finish_early_or_together(options, b_ends_s, here, call):
    """A's 10 s bind; B's ten bytes take 0.1 ms, or as long."""
    (here / "problem.toml").write_text(LITTLE_AND_MUCH, encoding="utf-8")
    code, _, err = call("plan", "problem.toml", *options, "-o", "plan.json", "--quiet")
    assert (code, err) == (0, "")
    ends_s = dc.Schedule.from_file(here / "plan.json").source_completion_s()
    assert ends_s == pytest.approx({"A": 10.0, "B": b_ends_s})


def test_finish_is_for_coordinated(here, call):
    code, _, err = call("plan", "figure1.toml", "--method", "direct", "--finish", "early")
    assert code == 2
    assert "--finish is for --method coordinated, got --method direct" in err


def test_a_limit_of_transfers_is_for_coordinated(here, call):
    """figure_1(): a MB each of S1 and S2 at 1 MB/s into D, one after the other."""
    code, out, _ = call("plan", "figure1.toml", "--most-transfers", "1", "--json")
    assert (code, strict_json(out)["makespan_s"]) == (0, pytest.approx(2.0))
    code, _, err = call("plan", "figure1.toml", "--most-transfers", "1", "--method", "direct")
    assert code == 2
    assert "--most-transfers is for --method coordinated" in err


def test_connections_are_shared_out(here, call):
    """The example's twelve are all used; that the plan is valid the judge says."""
    assert call("example", "connections")[0] == 0
    code, out, _ = call("plan", "connections.toml", "--connections", "12", "-o", "plan.json")
    assert code == 0
    assert "12 of 12" in out
    assert call("check", "connections.toml", "plan.json")[0] == 0
    code, out, _ = call("plan", "connections.toml", "--connections", "12", "--json")
    assert strict_json(out)["connections"] == 12


def test_connections_are_for_coordinated(here, call):
    code, _, err = call("plan", "figure1.toml", "--method", "direct", "--connections", "3")
    assert code == 2
    assert "--connections is for --method coordinated" in err
