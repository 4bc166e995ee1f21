"""Controllers that scripts define: the worker loads the script as its caller did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from instances.ns3_networks import needs_ns3

pytestmark = needs_ns3

SCRIPT = """
import sys

import pytest
from instances.ns3_networks import tree
from instances.tiny_controllers import Straight
from datacollect.simulation.ns3.engine import simulate_ns3

STREAMS = int(sys.argv[1])


class Own(Straight):
    def start(self):
        assert self.streams == STREAMS
        return super().start()


if __name__ == "__main__":
    network = tree([("S", "D")])
    run = simulate_ns3(network, {"S": 20_000}, "D", Own({"S": 20_000}, "D", STREAMS), warm_up_s=0)
    print(run.complete, len(run.connections))
"""


@pytest.mark.slow
def test_scripts_that_read_their_arguments_as_they_are_imported(tmp_path):
    script = tmp_path / "own.py"
    script.write_text(SCRIPT)
    tests = Path(__file__).parents[2]
    told = subprocess.run(
        [sys.executable, str(script), "3"],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": str(tests)},
        check=False,
    )
    assert told.stdout.split() == ["True", "3"], told.stderr
