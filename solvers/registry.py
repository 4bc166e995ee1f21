"""Registry of solvers: their names, and where each lives; imports none of them.

A new solver is a file of its own and its lines here; help, files, messages and tests take its name
from these.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

# Who computes: of flows, or of linear programs too, in the order in which help shows them. A test
# compares the names with the tables.
Solver: TypeAlias = Literal["auto", "ortools", "networkx", "pulp", "lemon"]


class Backend(NamedTuple):
    """Location of a solver: imported on first use only.

    Attributes
    ----------
    module : str
        Of this folder.
    class_name : str
    package : str
        What it needs.
    takes_large_networks : bool
        Whether it soon finds cheapest flows on time-expanded graphs of all links, so that choosing
        some of them beforehand would take longer.
    restarts : str
        The class that finds cheapest flows on one network over and over, each from where the last
        one ended; empty: there is none.
    """

    module: str
    class_name: str
    package: str
    takes_large_networks: bool = False
    restarts: str = ""


# Fastest first, as measured for maximum flows on full meshes.
FLOW_BACKENDS = {
    "ortools": Backend("ortools", "OrToolsFlow", "ortools"),
    "lemon": Backend(
        "lemon", "LemonFlow", "pylmcf", takes_large_networks=True, restarts="LemonRestarts"
    ),
    "networkx": Backend("networkx", "NetworkxFlow", "networkx"),
    "pulp": Backend("pulp", "PulpFlow", "pulp"),
}
# Fastest first for cheapest flows.
MIN_COST_ORDER = ("lemon", "ortools", "networkx", "pulp")

# Fastest first.
LINEAR_BACKENDS = {
    "ortools": Backend("glop", "Glop", "ortools"),
    "pulp": Backend("pulp", "PulpCbc", "pulp"),
}
# The names that linear solvers give themselves.
LINEAR_ALIASES = {"glop": "ortools", "cbc": "pulp"}


def preferred_packages() -> tuple[str, ...]:
    """Return the packages of the fastest solvers, by which plans are made where nobody chooses.

    >>> preferred_packages()
    ('ortools', 'pylmcf')
    """
    fastest = (
        next(iter(FLOW_BACKENDS.values())),
        FLOW_BACKENDS[MIN_COST_ORDER[0]],
        next(iter(LINEAR_BACKENDS.values())),
    )
    return tuple(dict.fromkeys(backend.package for backend in fastest))
