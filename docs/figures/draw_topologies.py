"""Draw the networks of the page on topologies: `python docs/figures/draw_topologies.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from datacollect.topologies import Topology, paper_152, two_domains

FOLDER = Path(__file__).parent


def main() -> None:
    """Write all figures beside this file."""
    # The same bytes at every run: no random ids.
    mpl.rcParams.update({"svg.hashsalt": "datacollect", "svg.fonttype": "none"})
    paper_152(seed=0).draw(FOLDER / "paper_152.svg")
    smallest().draw(FOLDER / "two_domains.svg")


def smallest() -> Topology:
    """Two domains; three sources on one router, so that one peering wire is crowded."""
    topology = two_domains(hosts_a=("D",), hosts_b=("S1", "K"))
    for host in ("S2", "S3"):
        topology = topology.attach(host, "B0", 1.25e6, 0.005)
    return topology


if __name__ == "__main__":
    main()
