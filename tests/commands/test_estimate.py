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
        ([], 1_100_000.0),  # 0.1 · 2 MB/s + 0.9 · 1 MB/s
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
