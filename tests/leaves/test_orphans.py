"""Children end with a parent that is killed, whatever they do: each that lives for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import NO_PROC
from instances.children import children_of, command_of, is_told

from datacollect import orphans

WITHIN_S = 300.0
TESTS = Path(__file__).resolve().parents[1]

# Each child is at work, or waits for some.
POOL = """
import os, signal, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

BUSY = "sum(range(10**12))"  # it keeps Python's lock

def begin(what):
    if what == "opener":
        from datacollect.bistro.destination.opening import _begin
        _begin(None)
    else:
        from datacollect.bistro.auditor.workers import _begin
        _begin()

def work(text):
    print(os.getpid(), flush=True)
    eval(text)

if __name__ == "__main__":
    with ProcessPoolExecutor(2, get_context("spawn"), begin, (sys.argv[1],)) as pool:
        [*pool.map(work, [BUSY if sys.argv[2] == "busy" else "0"])]
        time.sleep(600)
"""

SOLVER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from test_time_limited_flow import slow_problem
from datacollect.solvers.limited import TimeLimitedFlow
network, supply = slow_problem()
print(flush=True)
TimeLimitedFlow("networkx", time.monotonic() + 600).min_cost_flow(network, supply)
"""

PROGRAM = """
import sys
from pathlib import Path
from datacollect.orphans import run_program
print("", flush=True)
run_program(["sleep", "600"], Path("."), None)
"""


def wait_until(condition):
    end_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end_s, "waited long"
        time.sleep(0.05)


def begun(script, *arguments):
    process = subprocess.Popen(
        [sys.executable, str(script), *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline()
    return process


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason=NO_PROC)
@pytest.mark.parametrize(
    ("code", "arguments", "named"),
    [
        (POOL, ["opener", "idle"], "spawn_main"),
        (POOL, ["opener", "busy"], "spawn_main"),
        (POOL, ["auditor", "busy"], "spawn_main"),
        (SOLVER, [str(TESTS / "solvers")], "solvers.served"),
        (PROGRAM, [], "sleep 600"),
    ],
)
def test_it_ends_with_a_parent_that_is_killed(tmp_path, code, arguments, named):
    script = tmp_path / "parent.py"
    script.write_text(code)
    with begun(script, *arguments) as process:
        try:

            def children():
                return [each for each in children_of(process.pid) if named in command_of(each)]

            # Who is killed between starting a program and asking the kernel leaves it behind.
            wait_until(lambda: any(map(is_told, children())))
            found = children()
        finally:
            process.kill()
    wait_until(lambda: not any(map(command_of, found)))


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_it_ends_where_the_parent_has_ended_before_it_looks(platform):
    """And where the kernel sends no signal, by a thread."""
    theirs, ours = os.pipe()
    code = (
        "import sys, time; from datacollect import orphans; sys.platform = sys.argv[2]; "
        "orphans.end_when_closed(int(sys.argv[1])); print(flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code]

    def child():
        return subprocess.Popen(
            [*command, str(theirs), platform], pass_fds=[theirs], stdout=subprocess.PIPE
        )

    with child() as waiting:
        assert waiting.stdout.readline()
        os.close(ours)
        ends = {"linux": (-signal.SIGIO, orphans.ORPHANED), "darwin": (orphans.ORPHANED,)}
        assert waiting.wait(WITHIN_S) in ends[platform]
    with child() as late:
        assert late.stdout.read() == b""
        assert late.wait(WITHIN_S) == orphans.ORPHANED
    os.close(theirs)
