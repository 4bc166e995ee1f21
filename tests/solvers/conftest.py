"""Every test of this folder that asks for a solver runs on all of them."""

import pytest

from datacollect.solvers.choice import available_flow_solvers, load_flow_solver, load_linear_solver
from datacollect.solvers.registry import FLOW_BACKENDS, LINEAR_BACKENDS


@pytest.fixture(scope="session", params=[*FLOW_BACKENDS, "auto", "limited"])
def flow_solver(request):
    """Each flow solver; ``limited`` is OR-Tools in a child process with a minute to spare."""
    if request.param not in ("auto", "limited", *available_flow_solvers()):
        pytest.skip(f"solver {request.param!r} is not installed")
    if request.param == "limited":
        return load_flow_solver("ortools", time_limit_s=60.0)
    return load_flow_solver(request.param)


@pytest.fixture(scope="session", params=LINEAR_BACKENDS)
def linear_solver(request):
    """Each solver of linear programs."""
    return load_linear_solver(request.param)
