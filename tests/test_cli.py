"""The command line: what it prints where, and its exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import datacollect as dc
from datacollect.cli import run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder with the example of the paper's Figure 1 in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["example", "figure1"]) == 0
    return tmp_path


@pytest.fixture
def call(capsys):
    """Run a command; return exit code, standard output and standard error."""

    def call(*arguments):
        capsys.readouterr()
        code = run(arguments)
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def planned(here, call):
    """`figure1.toml` with its pipelined plan in `plan.json`."""
    assert call("plan", "figure1.toml", "--chunk", "0.01", "-o", "plan.json")[0] == 0
    return here


def start(*arguments, **options):
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "datacollect.cli", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, **options)


def strict_json(text):
    """Parse one JSON object, refusing what JSON lacks."""

    def refuse(constant):
        pytest.fail(f"{constant} is not JSON")

    tree = json.loads(text, parse_constant=refuse)
    assert isinstance(tree, dict)
    return tree


def edited(path, edit):
    tree = json.loads(path.read_text())
    edit(tree)
    path.write_text(json.dumps(tree))


def problem_without(place, here):
    """Cut all that leads out of a host of figure1."""
    problem = dc.Problem.from_file(here / "figure1.toml").to_dict()
    problem["links"] = [link for link in problem["links"] if link["from"] != place]
    del problem["shared"]
    (here / "cut.json").write_text(json.dumps(problem))
    return "cut.json"


# Plan ---------------------------------------------------------------------------------------

PLAN_KEYS = {
    "method",
    "makespan_s",
    "lower_bound_s",
    "bottleneck",
    "n_transfers",
    "n_routes",
    "plan_time_s",
    "peak_storage_bytes",
}


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
    assert (code, err) == (0, "")
    for line in (
        "method        coordinated, store-and-forward in slots of 0.5 s",
        "makespan      1.5 s",
        "lower bound   1 s (the makespan is 1.5 × the lower bound)",
        "saved to      my plan.json",
        "next: datacollect check figure1.toml 'my plan.json'",
        "      datacollect plot figure1.toml 'my plan.json' -o 'my plan.png'",
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


def test_plan_reads_standard_input(here):
    done = start("plan", "-", "--json", input=(here / "figure1.toml").read_text())
    assert (done.returncode, done.stderr) == (0, "")
    assert strict_json(done.stdout)["lower_bound_s"] == pytest.approx(1.0)


def test_options_that_mean_nothing_are_noted(here, call):
    code, _, err = call("plan", "figure1.toml", "--method", "direct", "--slot", "1")
    assert code == 0
    assert err == "note: --slot and --chunk mean nothing to direct, which has no relays\n"


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


# Compare ------------------------------------------------------------------------------------


def test_compare_of_figure1(here, call):
    code, out, err = call("compare", "figure1.toml", "--json")
    assert (code, err) == (0, "")
    answer = strict_json(out)
    assert answer["lower_bound_s"] == pytest.approx(1.0)
    assert list(answer["methods"]) == ["direct", "best-path", "coordinated"]
    for name, values in answer["methods"].items():
        assert values["method"] == name
        assert set(values) >= PLAN_KEYS
    assert answer["methods"]["direct"]["makespan_s"] == pytest.approx(2.0)


def test_compare_shows_a_row_per_method_and_what_binds(here, call):
    _, out, _ = call("compare", "figure1.toml", "--slot", "0.5")
    rows = {line.split("  ")[0]: re.split(r"  +", line) for line in out.splitlines()}
    assert rows["direct"][1:4] == ["2 s", "2.000", "1.00×"]
    assert rows["coordinated"][1:4] == ["1.5 s", "1.500", "1.33×"]
    assert rows["lower bound"][1] == "1 s"
    assert "'N1 to D'" in out.rpartition("lower bound")[2]


def test_compare_says_why_a_method_has_no_plan(here, call):
    tree = {
        "destination": "D",
        "hosts": {"S": {"backlog_bytes": 10}, "K": {}, "D": {}},
        "links": [
            {"from": "S", "to": "K", "bandwidth_bytes_per_s": 5.0},
            {"from": "K", "to": "D", "bandwidth_bytes_per_s": 5.0},
        ],
    }
    (here / "relay.json").write_text(json.dumps(tree))
    code, out, _ = call("compare", "relay.json")
    assert code == 0
    assert re.search(r"^direct +–", out, re.MULTILINE)
    assert re.search(r"^direct: no usable link from 'S'", out, re.MULTILINE)
    code, out, _ = call("compare", "relay.json", "--json")
    assert code == 0
    assert "no usable link" in strict_json(out)["methods"]["direct"]["error"]
    assert strict_json(out)["methods"]["direct"]["makespan_s"] is None


# Check, pulls, plot -------------------------------------------------------------------------


def test_check_accepts_what_plan_wrote(planned, call):
    code, out, err = call("check", "figure1.toml", "plan.json")
    assert (code, err) == (0, "")
    assert out == "valid: coordinated, makespan 1.01 s (1.01 × the lower bound)\n"


def test_check_names_the_broken_rule(planned, call):
    def halve(tree):
        tree["transfers"][0]["finish_s"] /= 2

    edited(planned / "plan.json", halve)
    code, out, err = call("check", "figure1.toml", "plan.json")
    assert (code, out) == (1, "")
    assert err.startswith("error: plan.json: invalid: ")
    # S1 sends 1 MB to K in 1 s over a link of 1 MB/s; in half the time that needs twice as much.
    assert "link 'S1' -> 'K'" in err
    assert "2000000 bytes/s" in err


def test_schedule_of_another_problem_is_noted(planned, call):
    text = (planned / "figure1.toml").read_text().replace("2_000_000.0", "3_000_000.0")
    (planned / "figure1.toml").write_text(text)
    code, _, err = call("check", "figure1.toml", "plan.json")
    assert code == 0
    assert err.startswith("note: this schedule was made for another problem")


def test_pulls_add_up_to_the_backlog(planned, call):
    code, out, err = call("pulls", "figure1.toml", "plan.json", "--json")
    assert (code, err) == (0, "")
    pulls = strict_json(out)["pulls"]
    assert sum(pull["bytes"] for pull in pulls if pull["host"] == "D") == 2_000_000
    relayed = [pull for pull in pulls if pull["host"] == "K"]
    assert {pull["forward_to"] for pull in relayed} == {"D"}
    assert {pull["slot"] for pull in pulls} == {None}


def test_pulls_of_one_host(planned, call):
    code, out, _ = call("pulls", "figure1.toml", "plan.json", "--host", "K")
    assert code == 0
    assert out.splitlines()[0] == "K requests"
    assert "D requests" not in out
    code, out, _ = call("pulls", "figure1.toml", "plan.json", "--host", "S1")
    assert (code, out) == (0, "S1 requests nothing\n")


def test_pulls_of_nobody(planned, call):
    code, out, err = call("pulls", "figure1.toml", "plan.json", "--host", "SS1")
    assert (code, out) == (2, "")
    assert "figure1.toml has no host 'SS1'; did you mean 'S1'?" in err


def test_plot_writes_a_picture(planned, call):
    code, out, err = call("plot", "figure1.toml", "plan.json", "-o", "plan.png")
    assert (code, out, err) == (0, "", "saved to plan.png\n")
    assert (planned / "plan.png").read_bytes().startswith(b"\x89PNG")


# Examples, schema, estimates ----------------------------------------------------------------


def test_example_is_overwritten_only_by_force(here, call):
    (here / "figure1.toml").write_text("mine")
    assert call("example", "figure1")[0] == 2
    assert (here / "figure1.toml").read_text() == "mine"
    assert call("example", "figure1", "--force")[0] == 0
    assert "destination" in (here / "figure1.toml").read_text()


def test_example_goes_where_it_is_to_go(here, call):
    (here / "sub").mkdir()
    code, out, err = call("example", "upload", "-o", "sub")
    assert (code, out) == (0, "")
    assert "saved to sub/upload.csv" in err
    assert call("compare", "sub/upload.toml", "--json")[0] == 0


def test_schema_is_what_the_library_says(here, call):
    from datacollect.schema import problem_schema

    code, out, _ = call("schema")
    assert code == 0
    assert strict_json(out) == problem_schema()
    assert call("schema", "-o", "schema.json")[0] == 0
    assert json.loads((here / "schema.json").read_text()) == problem_schema()


SAMPLES = """\
from,to,time_s,bandwidth_bytes_per_s
"Paris, Texas",D,0,1000000
"Paris, Texas",D,60,2000000
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], 1_100_000.0),  # 0.1 · 2 MB/s + 0.9 · 1 MB/s
        (["--a", "0.5"], 1_500_000.0),
        (["--how", "last"], 2_000_000.0),
        (["--how", "quantile", "--quantile", "0.5"], 1_500_000.0),
    ],
)
def test_estimate_makes_a_csv_for_a_problem(options, expected, here, call):
    (here / "samples.csv").write_text(SAMPLES)
    code, out, err = call("estimate", "samples.csv", *options)
    assert (code, err) == (0, "1 links from 2 samples\n")
    (here / "grid.csv").write_text(out)
    text = 'destination = "D"\nbandwidth_csv = "grid.csv"\n[hosts."Paris, Texas"]\n[hosts.D]\n'
    (here / "p.toml").write_text(text)
    problem = dc.Problem.from_file("p.toml")
    assert problem.bandwidth_bytes_per_s.tolist() == [[pytest.approx(expected)]]


def iperf3_output(local, remote, rate_bit_per_s):
    return {
        "start": {
            "connected": [{"local_host": local, "remote_host": remote}],
            "timestamp": {"timesecs": 1_700_000_000},
            "test_start": {"num_streams": 1, "reverse": 0},
        },
        "end": {
            "sum_received": {"seconds": 8.0, "bytes": 10**6, "bits_per_second": rate_bit_per_s}
        },
    }


def test_estimate_reads_a_folder_of_iperf3_output(here, call):
    (here / "probes").mkdir()
    for i, rate in enumerate([8e6, 16e6]):
        path = here / "probes" / f"{i}.json"
        path.write_text(json.dumps(iperf3_output("10.0.0.1", "10.0.0.2", rate)))
    names = ["--name", "10.0.0.1=lyon", "--name", "10.0.0.2=geneva"]
    code, _, _ = call("estimate", "probes", "--how", "median", *names, "-o", "grid.csv")
    assert code == 0
    lines = (here / "grid.csv").read_text().splitlines()
    assert lines == ["from,to,bandwidth_bytes_per_s", "lyon,geneva,1500000.0"]
