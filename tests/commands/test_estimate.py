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
