"""The choice of a solver."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import datacollect
from datacollect.errors import ProblemError, SolverUnavailableError
from datacollect.solvers import choice as flow_module
from datacollect.solvers.auto import AutoFlow
from datacollect.solvers.choice import (
    auto_flow_name,
    available_flow_solvers,
    available_linear_solvers,
    load_flow_solver,
    load_linear_solver,
)
from datacollect.solvers.networks import FlowNetwork

BACKEND_PACKAGES = ["ortools", "networkx", "pulp", "pylmcf", "scipy"]


class TestLoading:
    @pytest.mark.parametrize("name", ["ortools", "networkx", "pulp"])
    def test_flow_solvers_by_name(self, name):
        assert load_flow_solver(name).name == name
        assert name in available_flow_solvers()

    @pytest.mark.parametrize(
        ("name", "solver"),
        [
            ("auto", "glop"),
            ("ortools", "glop"),
            ("glop", "glop"),
            ("pulp", "cbc"),
            ("cbc", "cbc"),
        ],
    )
    def test_linear_solvers_by_name(self, name, solver):
        assert load_linear_solver(name).name == solver
        assert available_linear_solvers() == ("ortools", "pulp")

    @pytest.mark.parametrize("name", ["lemon", "networkx"])
    def test_flow_solvers_do_not_solve_linear_programs(self, name):
        with pytest.raises(
            SolverUnavailableError,
            match=f"solver '{name}' solves network flows only; this problem has shared bottlenecks,"
            " which need a linear program: choose 'ortools' or 'pulp'",
        ):
            load_linear_solver(name)

    @pytest.mark.parametrize("load", [load_flow_solver, load_linear_solver])
    def test_unknown_names_get_a_hint_and_the_list(self, load):
        with pytest.raises(
            ProblemError, match=r"'ortool'; did you mean 'ortools'\? \(known: auto, "
        ):
            load("ortool")
        with pytest.raises(ProblemError, match=r"solver 'gurobi' \(known: auto, ortools, lemon, "):
            load("gurobi")

    def test_glop_is_no_flow_solver(self):
        with pytest.raises(ProblemError, match="unknown flow solver 'glop'"):
            load_flow_solver("glop")


def without(monkeypatch, *packages):
    """Let the packages look as if they were not installed."""
    for package in packages:
        for loaded in [name for name in sys.modules if name.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, loaded)
        monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if name.startswith("datacollect.solvers.")]:
        monkeypatch.delitem(sys.modules, name)


class Stub:
    """A solver that answers with its own name."""

    def __init__(self, name):
        self.name = name

    def max_flow(self, network, source, sink):
        return f"max_flow by {self.name}"

    def min_cost_flow(self, network, supply):
        return f"min_cost_flow by {self.name}"


def test_auto_flow_asks_each_solver_for_its_own_task():
    solver = AutoFlow(Stub("a"), Stub("b"))
    network = FlowNetwork(2, np.array([0]), np.array([1]), np.array([5]), np.array([1]))
    assert solver.max_flow(network, 0, 1) == "max_flow by a"
    assert solver.min_cost_flow(network, np.array([1, -1])) == "min_cost_flow by b"
    assert solver.name == "a+b"
    assert AutoFlow(Stub("a"), Stub("a")).name == "a"


class TestMissingPackages:
    @pytest.mark.parametrize(
        ("name", "package", "command"),
        [
            ("lemon", "pylmcf", "install 'pylmcf>=1.3'"),
            ("networkx", "networkx", "install 'networkx>=3.3'"),
            # Not the newest: it brings no CBC along.
            ("pulp", "pulp", "install 'PuLP<4,>=2.9'"),
        ],
    )
    def test_the_message_holds_the_command(self, monkeypatch, name, package, command):
        without(monkeypatch, package)
        assert name not in available_flow_solvers()
        with pytest.raises(SolverUnavailableError) as failure:
            load_flow_solver(name)
        assert f"solver '{name}' needs the package {package}" in str(failure.value)
        said = str(failure.value).partition("install it with: ")[2]
        assert said.endswith(f"pip {command}")

    @pytest.mark.parametrize(
        ("missing", "name"),
        [
            (["pylmcf"], "ortools"),
            (["ortools"], "lemon"),
            (["pylmcf", "ortools"], "networkx"),
            (["pylmcf", "ortools", "networkx"], "pulp"),
        ],
    )
    def test_auto_makes_do_with_what_is_there(self, monkeypatch, missing, name):
        if name not in available_flow_solvers():
            pytest.skip(f"solver {name!r} is not installed")
        monkeypatch.setattr(flow_module.importlib.util, "find_spec", lambda p: p not in missing)
        assert auto_flow_name() == name
        assert load_flow_solver("auto").name == name

    def test_auto_uses_the_faster_solver_for_each_task(self):
        expected = "ortools+lemon" if "lemon" in available_flow_solvers() else "ortools"
        assert load_flow_solver("auto").name == auto_flow_name() == expected

    def test_linear_auto_makes_do_with_cbc(self, monkeypatch):
        monkeypatch.setattr(flow_module.importlib.util, "find_spec", lambda p: p != "ortools")
        assert load_linear_solver("auto").name == "cbc"


@pytest.mark.slow
def test_backends_are_imported_on_first_use_only():
    """`datacollect --help` must not wait for solvers."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(datacollect.__file__).parents[1])!r})\n"
        "from datacollect.solvers import choice\n"
        "choice.available_flow_solvers(), choice.available_linear_solvers()\n"
        "choice.auto_flow_name()\n"
        f"print([name for name in {BACKEND_PACKAGES} if name in sys.modules])\n"
        "choice.load_flow_solver('ortools')\n"
        f"print([name for name in {BACKEND_PACKAGES} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n['ortools']\n", done.stderr
