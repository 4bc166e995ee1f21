"""Flow solvers in a child process that a deadline kills."""

import gc
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import datacollect
from datacollect.errors import InfeasibleError, ProblemError, SolverError, TimeLimitError
from datacollect.solvers import limited
from datacollect.solvers.choice import load_flow_solver
from datacollect.solvers.limited import TimeLimitedFlow
from datacollect.solvers.networks import FlowNetwork

SMALL = FlowNetwork(2, np.array([0]), np.array([1]), np.array([5]), np.array([1]))


def slow_problem():
    """32 hosts over 100 slots, 102 400 arcs: 6 s for networkx where it was written."""
    random = np.random.default_rng(0)
    n_hosts, n_slots = 32, 100
    sender, receiver = np.divmod(np.arange(n_hosts**2), n_hosts)
    slot = np.repeat(np.arange(n_slots), n_hosts**2)
    tail = slot * n_hosts + np.tile(sender, n_slots)
    head = (slot + 1) * n_hosts + np.tile(receiver, n_slots)
    keeps = sender == receiver
    per_slot = np.where(keeps, 10**9, random.integers(10**5, 10**6, n_hosts**2))
    cost = np.where(np.tile(keeps, n_slots), 0, 1 + slot)
    supply = np.zeros(n_hosts * (n_slots + 1), dtype=np.int64)
    # At least 10**5 units a slot from each host straight to host 0: 10**7 in 100 slots.
    supply[1:9] = 10**7
    supply[n_slots * n_hosts] = -supply.sum()
    return FlowNetwork(len(supply), tail, head, np.tile(per_slot, n_slots), cost), supply


def test_the_slow_problem_has_a_solution():
    """Or else the tests below would wait for an exception that comes early."""
    network, supply = slow_problem()
    flow = load_flow_solver("auto").min_cost_flow(network, supply)
    arriving = flow[network.head == len(supply) - 32].sum()
    assert arriving == 8 * 10**7


def test_a_slow_solve_ends_at_the_deadline():
    solver = TimeLimitedFlow("networkx", time.monotonic() + 60)
    assert solver.max_flow(SMALL, 0, 1).tolist() == [5]
    child = solver._idle[0]
    network, supply = slow_problem()
    start_s = time.monotonic()
    solver._stop_at_s = start_s + 0.3
    with pytest.raises(TimeLimitError, match="networkx: the time limit passed"):
        solver.min_cost_flow(network, supply)
    assert 0.3 <= time.monotonic() - start_s < 20
    assert child._process.returncode is not None


def test_a_passed_stop_at_starts_nothing():
    solver = TimeLimitedFlow("ortools", time.monotonic() - 1)
    with pytest.raises(TimeLimitError, match="before max_flow started"):
        solver.max_flow(SMALL, 0, 1)
    assert solver._idle == []


def test_a_deadline_during_start_up_ends_it():
    """Python itself takes longer than a millisecond to start."""
    solver = TimeLimitedFlow("ortools", time.monotonic() + 0.001)
    with pytest.raises(TimeLimitError):
        solver.max_flow(SMALL, 0, 1)


def test_other_threads_run_on_meanwhile():
    """OR-Tools and LEMON hold the interpreter lock for as long as they work."""
    network, supply = slow_problem()
    solver = TimeLimitedFlow("networkx", time.monotonic() + 0.6)
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.02):
            ticks.append(time.monotonic())

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        with pytest.raises(TimeLimitError):
            solver.min_cost_flow(network, supply)
    finally:
        done.set()
        ticker.join()
    assert len(ticks) >= 5


def test_one_child_serves_one_call_after_another():
    solver = TimeLimitedFlow("ortools", time.monotonic() + 60)
    solver.max_flow(SMALL, 0, 1)
    (child,) = solver._idle
    for _ in range(3):
        solver.max_flow(SMALL, 0, 1)
    assert solver._idle == [child]


def test_errors_keep_their_type_and_message_and_the_child_lives_on():
    solver = load_flow_solver("ortools", time_limit_s=60)
    for _ in range(2):
        with pytest.raises(InfeasibleError, match="no flow meets the supplies") as failure:
            solver.min_cost_flow(SMALL, np.array([6, -6]))
        assert failure.value.hosts == ()
    with pytest.raises(ProblemError, match="got node 1 for both"):
        solver.max_flow(SMALL, 1, 1)
    assert solver.max_flow(SMALL, 0, 1).tolist() == [5]


def test_a_child_that_dies_is_a_solver_error_with_its_last_words(monkeypatch):
    dying = ("-c", "import os, sys; print('out of luck', file=sys.stderr); sys.exit(7)")
    monkeypatch.setattr(limited, "_CHILD_COMMAND", dying)
    solver = TimeLimitedFlow("ortools", time.monotonic() + 60)
    with pytest.raises(SolverError, match=r"exit code 7.*out of luck") as failure:
        solver.max_flow(SMALL, 0, 1)
    assert not isinstance(failure.value, TimeLimitError)


def test_children_end_with_the_solver():
    solver = TimeLimitedFlow("ortools", time.monotonic() + 60)
    solver.max_flow(SMALL, 0, 1)
    process = solver._idle[0]._process
    assert process.poll() is None
    del solver
    gc.collect()
    assert process.returncode is not None


@pytest.mark.slow
def test_what_the_child_started_dies_with_it(tmp_path, monkeypatch):
    """CBC runs as a child of the child. Here that is a process that writes for a minute."""
    signs_of_life = tmp_path / "signs of life"
    writer = (
        "import sys, time\n"
        "for _ in range(3000):\n"
        "    with open(sys.argv[1], 'a') as file: file.write('.')\n"
        "    time.sleep(0.02)\n"
    )
    starter = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', *sys.argv[1:]])"
    command = ("-c", starter, writer, str(signs_of_life))
    monkeypatch.setattr(limited, "_CHILD_COMMAND", command)
    start_s = time.monotonic()
    solver = TimeLimitedFlow("pulp", start_s + 4.0)
    with pytest.raises(TimeLimitError):
        solver.max_flow(SMALL, 0, 1)
    assert time.monotonic() - start_s < 40
    size = signs_of_life.stat().st_size
    assert size > 0
    time.sleep(0.2)
    assert signs_of_life.stat().st_size == size


def test_the_child_imports_what_this_process_would(tmp_path, monkeypatch):
    """A module that only this process's sys.path leads to stands in for LEMON."""
    (tmp_path / "pylmcf.py").write_text("def Graph(*_): raise RuntimeError('the stand-in')\n")
    monkeypatch.syspath_prepend(tmp_path)
    solver = TimeLimitedFlow("lemon", time.monotonic() + 60)
    with pytest.raises(RuntimeError, match="the stand-in"):
        solver.max_flow(SMALL, 0, 1)


@pytest.mark.slow
def test_a_script_without_main_guard_in_any_folder(tmp_path):
    """Started from a folder whose pickle.py must not be taken for the standard module.

    A child that ran the script again, as `multiprocessing` does, would print twice.
    """
    (tmp_path / "scripts").mkdir()
    (tmp_path / "pickle.py").write_text("raise ImportError('wrong module')\n")
    script = tmp_path / "scripts" / "plan.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(datacollect.__file__).parents[1])!r})\n"
        "import threading\n"
        "import numpy as np\n"
        "from datacollect.solvers.choice import load_flow_solver\n"
        "from datacollect.solvers.networks import FlowNetwork\n"
        "network = FlowNetwork(2, np.array([0]), np.array([1]), np.array([5]))\n"
        "solver = load_flow_solver('ortools', time_limit_s=60)\n"
        "answers = []\n"
        "solve = lambda: answers.append(solver.max_flow(network, 0, 1).tolist())\n"
        "threads = [threading.Thread(target=solve) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(answers)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[[5], [5]]\n", "")


def test_the_name_is_that_of_the_solver_that_answers():
    assert load_flow_solver("lemon", time_limit_s=9).name == "lemon"
    assert load_flow_solver("auto", time_limit_s=9).name == load_flow_solver("auto").name


@pytest.mark.parametrize("time_limit_s", [0, -1.0, float("nan")])
def test_a_limit_must_be_positive(time_limit_s):
    with pytest.raises(ProblemError, match="time_limit_s must be > 0, got"):
        load_flow_solver("ortools", time_limit_s=time_limit_s)


def test_an_infinite_limit_is_none():
    assert not isinstance(load_flow_solver("ortools", float("inf")), TimeLimitedFlow)
