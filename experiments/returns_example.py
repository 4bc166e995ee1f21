"""Write the shipped example of the paper's motivating size.

    python experiments/returns_example.py

The core paper (C.-F. Chou, Y.-C. Wan, W. C. Cheng, L. Golubchik, S. Khuller, "A Performance Study
of a Large-Scale Data Collection Problem", WCW 2002) begins with the day on which taxes are due: 100
million returns of about 100 KB, uploaded to servers near to those who file them, and then to be
collected at one place. Here a hundred servers hold a million each. Bandwidths are synthetic: what
single paths over a wide area get, log-normal, in whole Mbit/s, from a seed that stands here. The
files go to datacollect/examples; a test makes them again and compares.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[1] / "datacollect" / "examples"

SEED = 20020415  # the day that returns were due in the paper's year
N_SERVERS = 100
RETURNS, RETURN_BYTES = 100_000_000, 100_000
MEDIAN_MBIT_PER_S, SPREAD = 60.0, 0.8
UPLINK_BYTES_PER_S, DOWNLINK_BYTES_PER_S = 62_500_000, 2_500_000_000

HEAD = """\
# The paper's motivating size: 100 million tax returns of 100 KB.
#
#   datacollect compare returns.toml
#   datacollect plan returns.toml -o returns.json
#   datacollect explain returns.toml returns.json
#
# A hundred upload servers hold a million returns each, 10^11 bytes, on the evening of the day on
# which they are due; one destination collects them all. Directly it waits a day for the slowest
# path; coordinated, relays bring all in three hours. Bandwidths are synthetic (log-normal, from a
# seed: experiments/returns_example.py), in Mbit/s, in returns.csv. Servers send at most 500 Mbit/s
# in all, the destination takes 20 Gbit/s. The example is from C.-F. Chou, Y.-C. Wan, W. C. Cheng,
# L. Golubchik, S. Khuller, "A Performance Study of a Large-Scale Data Collection Problem", WCW
# 2002.

destination = "irs"
bandwidth_csv = "returns.csv"

[hosts.irs]
downlink_bytes_per_s = {downlink}
"""
SERVER = """
[hosts.{name}]
backlog_bytes = {backlog}
uplink_bytes_per_s = {uplink}
"""


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=EXAMPLES)
    options = parser.parse_args()
    for name, text in example_texts().items():
        (options.output / name).write_text(text, encoding="utf-8")


def example_texts() -> dict[str, str]:
    """Return the texts of the files by name."""
    backlog = RETURNS * RETURN_BYTES // N_SERVERS
    names = [f"s{i:02}" for i in range(N_SERVERS)]
    problem = HEAD.format(downlink=DOWNLINK_BYTES_PER_S) + "".join(
        SERVER.format(name=name, backlog=backlog, uplink=UPLINK_BYTES_PER_S) for name in names
    )
    random = np.random.default_rng(SEED)
    mbit_per_s = MEDIAN_MBIT_PER_S * random.lognormal(0.0, SPREAD, (N_SERVERS, N_SERVERS + 1))
    heads = [*names, "irs"]
    lines = [
        f"{a},{b},{max(1, round(mbit_per_s[i, j]))}"
        for i, a in enumerate(names)
        for j, b in enumerate(heads)
        if a != b
    ]
    table = "\n".join(["from,to,bandwidth_mbit_per_s", *lines, ""])
    return {"returns.toml": problem, "returns.csv": table}


if __name__ == "__main__":
    main()
