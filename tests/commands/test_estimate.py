"""``datacollect estimate``: from samples to a CSV of bandwidths."""

from __future__ import annotations

import json

import pytest

import datacollect as dc

SAMPLES = """\
from,to,time_s,bandwidth_bytes_per_s
"Paris, Texas",D,0,1000000
"Paris, Texas",D,60,2000000
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--half-life", "1 min"], 5_000_000 / 3),  # weights 1/3 and 2/3
        (["--half-life", "60"], 5_000_000 / 3),
        (["--how", "ewma"], 1_100_000.0),  # 0.1 · 2 MB/s + 0.9 · 1 MB/s
        (["--a", "0.5"], 1_500_000.0),
        (["--how", "last"], 2_000_000.0),
        (["--how", "quantile", "--quantile", "0.5"], 1_500_000.0),
    ],
)
def test_estimate_makes_a_csv_for_a_problem(options, expected, here, call):
    (here / "samples.csv").write_text(SAMPLES)
    code, out, err = call("estimate", "samples.csv", *options)
    assert (code, err) == (0, "1 link from 2 samples\n")
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
    code, _, _ = call("estimate", "probes", "--how", "median", *names, "--times", "-o", "grid.csv")
    assert code == 0
    lines = (here / "grid.csv").read_text().splitlines()
    assert lines == [
        "from,to,bandwidth_bytes_per_s,newest_s",
        "lyon,geneva,1500000.0,1700000000.0",
    ]


def test_a_file_of_names_and_streams_give_a_table_beside_the_csv(here, call):
    """Two tests with one connection a day apart, one with eight: (10 + 2·40) / 3 = 30 Mbit/s."""
    (here / "probes" / "lyon").mkdir(parents=True)
    for i, (day, streams, rate) in enumerate([(0, 1, 10e6), (1, 1, 40e6), (1, 8, 80e6)]):
        tree = iperf3_output("10.0.0.1", "10.0.0.2", rate)
        tree["start"]["timestamp"]["timesecs"] += 86_400 * day
        tree["start"]["test_start"]["num_streams"] = streams
        (here / "probes" / "lyon" / f"{i}.json").write_text(json.dumps(tree))
    (here / "hosts.csv").write_text("address,host\n10.0.0.1,lyon\n10.0.0.2,geneva\n")
    command = ("estimate", "probes", "--names", "hosts.csv", "-o", "grid.csv", "--force")
    code, out, err = call(*command)
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["link", "estimate", "mean", "last", "samples", "kind"],
        [
            *("lyon", "→", "geneva", "30", "Mbit/s", "25", "Mbit/s", "40", "Mbit/s", "2"),
            *("TCP,", "1", "stream"),
        ],
    ]
    assert " ".join(err.split()).count("1 of 'TCP, 8 streams'") == 1
    assert (here / "grid.csv").read_text().splitlines()[1] == "lyon,geneva,3750000.0"
    assert call(*command, "--streams", "8")[0] == 0
    assert (here / "grid.csv").read_text().splitlines()[1] == "lyon,geneva,10000000.0"
    found = json.loads(call(*command, "--json")[1])
    assert found["links"][0]["mean_bytes_per_s"] == 25e6 / 8
    assert found["links"][0]["kind"] == "TCP, 1 stream"
    assert "TCP, 8 streams" in found["notes"][0]


def test_a_half_life_that_is_no_time_is_refused(here, call):
    (here / "samples.csv").write_text(SAMPLES)
    assert call("estimate", "samples.csv", "--half-life", "a day")[0] == 2
    assert call("estimate", "samples.csv", "--half-life", "0")[0] == 2


def test_pairs_measured_in_unlike_ways_are_noted_once(here, call):
    (here / "probes").mkdir()
    for streams, peer in [(1, "10.0.0.2"), (8, "10.0.0.3")]:
        tree = iperf3_output("10.0.0.1", peer, 1e7)
        tree["start"]["test_start"]["num_streams"] = streams
        (here / "probes" / f"{streams}.json").write_text(json.dumps(tree))
    code, _, err = call("estimate", "probes", "-o", "grid.csv")
    assert code == 0
    assert " ".join(err.split()).count("TCP, 8 streams") == err.count("note:") == 1
    assert "DatacollectWarning" not in err


# Problem files ---------------------------------------------------------------------------------

TESTS = """\
from,to,time_s,bandwidth_mbit_per_s
S1,D,0,80
S1,K,0,160
K,D,0,160
"""
TO_D = ("--destination", "D", "--backlog", "S1=1 TB")


def test_from_files_to_a_comparison_without_an_editor(here, call):
    """Direct at 10 MB/s takes 100 000 s; together with the relay's 20 MB/s 33 333 s."""
    (here / "tests").mkdir()
    (here / "tests" / "one.csv").write_text(TESTS)
    code, out, err = call("estimate", "tests", "-o", "problem.toml", *TO_D)
    assert code == 0, err
    assert "S1 → K" in out
    assert "saved to problem.toml" in err
    code, out, _ = call("compare", "problem.toml", "--json")
    assert code == 0
    methods = json.loads(out)["methods"]
    assert methods["direct"]["makespan_s"] == pytest.approx(100_000)
    assert methods["coordinated"]["makespan_s"] == pytest.approx(33_333, rel=2e-3)


@pytest.mark.parametrize("name", ["p.toml", "p.json"])
def test_a_problem_file_says_what_the_samples_say(name, here, call):
    (here / "t.csv").write_text(TESTS)
    assert call("estimate", "t.csv", "-o", name, *TO_D)[0] == 0
    problem = dc.Problem.from_file(name)
    assert problem.destination == "D"
    assert {host: n for host, n in zip(problem.names, problem.backlog_bytes, strict=True) if n} == {
        "S1": 10**12
    }
    links = zip(problem.link_from, problem.link_to, problem.bandwidth_bytes_per_s[0], strict=True)
    assert {(problem.names[a], problem.names[b]): rate for a, b, rate in links} == {
        ("S1", "D"): 1e7,
        ("S1", "K"): 2e7,
        ("K", "D"): 2e7,
    }


def test_a_problem_goes_to_standard_output_and_into_json(here, call):
    (here / "t.csv").write_text(TESTS)
    code, out, err = call("estimate", "t.csv", *TO_D)
    assert code == 0
    (here / "p.toml").write_text(out)
    problem = dc.Problem.from_file("p.toml")
    assert "anything to send" not in err
    tree = json.loads(call("estimate", "t.csv", *TO_D, "--json")[1])
    assert dc.Problem.from_dict(tree["problem"]) == problem
    assert "no host has anything to send" in call("estimate", "t.csv", "--destination", "D")[2]


def test_hours_of_the_day_make_a_problem_with_daily_periods(here, call):
    """8:00 UTC on 1 January 2026 and 20:00; Zurich is an hour ahead."""
    rows = "S1,D,1767254400,80\nS1,D,1767297600,160\n"
    (here / "t.csv").write_text(f"from,to,time_s,bandwidth_mbit_per_s\n{rows}")
    zone = ("--daily", "08:00,20:00", "--timezone", "Europe/Zurich", "--start", "2026-01-03T08:00")
    assert call("estimate", "t.csv", "-o", "p.toml", *TO_D, *zone)[0] == 0
    problem = dc.Problem.from_file("p.toml")
    assert problem.clock.iso(0) == "2026-01-03T08:00:00+01:00"
    assert problem.bandwidth_bytes_per_s[:2].tolist() == [[1e7], [2e7]]
    assert problem.periods_s[:2].tolist() == [0.0, 12 * 3600.0]


def test_a_problem_says_when_its_oldest_bandwidth_was_measured(here, call):
    """The pair's newest samples count: 1 January 2026, 8:00, and an hour later."""
    rows = "S1,D,1767250000,80\nS1,D,1767254400,80\nK,D,1767258000,80\n"
    (here / "t.csv").write_text(f"from,to,time_s,bandwidth_mbit_per_s\n{rows}")
    assert call("estimate", "t.csv", "-o", "p.toml", *TO_D)[0] == 0
    assert dc.Problem.from_file("p.toml").measured_s == 1767254400
    # Seconds since the tests began are no date.
    (here / "t.csv").write_text(TESTS)
    assert call("estimate", "t.csv", "-o", "q.toml", *TO_D)[0] == 0
    assert dc.Problem.from_file("q.toml").measured_s is None


def test_a_problem_may_begin_later(here, call):
    (here / "t.csv").write_text(TESTS)
    zone = ("--timezone", "Europe/Zurich", "--start", "2026-07-03T08:00")
    assert call("estimate", "t.csv", "-o", "p.toml", *TO_D, *zone)[0] == 0
    assert dc.Problem.from_file("p.toml").clock.iso(0) == "2026-07-03T08:00:00+02:00"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("-o", "p.toml"),
            "-o p.toml asks for a problem file; say with --destination",
        ),
        (("--backlog", "S1=1 TB"), "--backlog asks for a problem file"),
        (("-o", "p.csv", *TO_D), "-o must end in .toml or .json, got 'p.csv'"),
        ((*TO_D, "--times"), "--times is for CSV files"),
        (("--destination", "E"), "no host is called 'E'; there are D, K, S1"),
        (("--destination", "D", "--backlog", "S2=1 TB"), "no host is called 'S2'"),
        (("--destination", "D", "--backlog", "S1"), "write it like S1=5000000"),
        (("--destination", "D", "--backlog", "S1=1 Tb"), "may be bits or bytes"),
        ((*TO_D, "--start", "2026-01-03T08:00"), "--start and --timezone go together"),
        ((*TO_D, "--timezone", "Europe/Zurich"), "--timezone belongs to --daily and --start"),
    ],
)
def test_what_fits_no_problem_is_refused(options, said, here, call):
    (here / "t.csv").write_text(TESTS)
    code, _, err = call("estimate", "t.csv", *options)
    assert code == 2
    assert said in " ".join(err.split())
    assert not (here / "p.toml").exists()
