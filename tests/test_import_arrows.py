"""The arrows of the house: which room may import from which. It keeps judges apart from planners.

`CONTRIBUTING.md` draws the rooms; `judges.imports` says what counts as an import.
"""

from __future__ import annotations

import ast
import re
import sys
from configparser import ConfigParser
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions

import pytest
from judges.imports import (
    FRONT,
    REPOSITORY,
    ROOT,
    imports_of,
    imports_of_all,
    read_modules,
    room_of,
)

# Extras of `setup.cfg` that nobody has who only uses the package.
OF_DEVELOPERS = {"test", "agent", "mutants", "lint", "docs", "dev"}

# Each room, a folder of the package, and the rooms that it imports from. From bottom to top: no
# row names a later one. Modules that lie in no folder are the root, leaves that anyone may use.
PLANS = "root problem schedule"
MAY_IMPORT = {
    ROOT: "",
    "examples": "",
    "problem": "root",
    "solvers": "root",
    "topologies": "root",
    "net": "root",
    "schedule": "root problem",
    "exports": PLANS,
    "measurement": "root problem",
    "flow": f"{PLANS} solvers",
    "control": PLANS,
    "methods": f"{PLANS} solvers flow control",
    "simulation": "root problem control",
    "transfer": f"{PLANS} control methods net",
    "explanation": f"{PLANS} solvers flow methods",
    "pictures": f"{PLANS} explanation transfer",
    "scenario": f"{PLANS} measurement topologies methods simulation",
    "study": f"{PLANS} examples methods simulation scenario",
    "commands": (
        f"{PLANS} examples exports measurement methods explanation pictures simulation scenario "
        "study transfer net"
    ),
    FRONT: f"{PLANS} measurement flow methods explanation pictures scenario study transfer",
}

# The same for rooms within a room: no row names a later one, so no folders import each other in a
# circle. A room's own modules, beside the folders within it, have a row with a dot in the end.
WITHIN = {
    "transfer.": "",
    "transfer.protocol": "",
    "transfer.agent": "transfer.protocol",
    "transfer.store": "transfer.protocol",
    "transfer.sources.agent": "transfer.protocol",
    "transfer.sources.web": "transfer.protocol transfer.sources.agent",
    "transfer.sources.": "transfer.protocol transfer.sources.agent transfer.sources.web",
    "transfer.pull": ("transfer.protocol transfer.store transfer.sources.agent transfer.sources."),
}

# Whoever judges plans knows no planner and no solver.
JUDGES = ("schedule", "control", "simulation")
JUDGED = {"solvers", "flow", "methods"}


def arrows() -> dict[str, set[str]]:
    """Return for every room those that its modules import from, itself left out."""
    found = {room: set() for room in MAY_IMPORT}
    for module, imported in imports_of_all().items():
        found[room_of(module)] |= {room_of(other) for other in imported} - {room_of(module)}
    return found


def test_every_room_has_a_row():
    unknown = {room_of(module) for module in read_modules()} - MAY_IMPORT.keys()
    assert not unknown, "add a row to MAY_IMPORT for each, below all that it imports"


@pytest.mark.parametrize("module", sorted(read_modules()))
def test_module_imports_only_what_its_room_may(module):
    room = room_of(module)
    allowed = {room, *MAY_IMPORT.get(room, "").split()}
    for imported in sorted(imports_of_all()[module]):
        assert room_of(imported) in allowed, (
            f"{module} imports {imported}, but {room} may import only {sorted(allowed - {room})}: "
            "move the code, or change the map with a reason"
        )


def inner_room_of(module: str) -> str:
    """Return the folder within `transfer` that a module lies in, by its row in `WITHIN`."""
    folder = module if f"{module}." in WITHIN or module in WITHIN else module.rpartition(".")[0]
    return folder if folder in WITHIN else f"{folder}."


def inner_arrows() -> dict[str, set[str]]:
    """Return for every folder within `transfer` those that its modules import from."""
    found: dict[str, set[str]] = {room: set() for room in WITHIN}
    for module, imported in imports_of_all().items():
        if room_of(module) == "transfer":
            inside = {inner_room_of(other) for other in imported if room_of(other) == "transfer"}
            found[inner_room_of(module)] |= inside - {inner_room_of(module)}
    return found


@pytest.mark.parametrize("room", WITHIN)
def test_rooms_within_import_what_they_may_and_nothing_else(room):
    assert inner_arrows()[room] == set(WITHIN[room].split())


def test_the_map_within_runs_from_bottom_to_top():
    below: set[str] = set()
    for room, allowed in WITHIN.items():
        assert set(allowed.split()) <= below, f"{room} may import what stands below it in the map"
        below.add(room)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_no_room_may_import_what_it_does_not(room):
    needless = set(MAY_IMPORT[room].split()) - arrows()[room]
    assert not needless, f"nothing in {room} imports them: take them out of its row in MAY_IMPORT"


def test_the_map_runs_from_bottom_to_top():
    below: set[str] = set()
    for room, allowed in MAY_IMPORT.items():
        later = set(allowed.split()) - below
        assert not later, f"{room} may import {sorted(later)}, which stand below it in the map"
        below.add(room)


def test_no_circle_of_imports():
    # Wherever they stand: in functions, and for types only, too.
    graph = {module: imports - {module} for module, imports in imports_of_all().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("judge", JUDGES)
def test_judges_never_reach_what_they_judge(judge):
    reached, found = set(), {judge}
    while found:
        room = found.pop()
        reached.add(room)
        found |= arrows()[room] - reached
    assert not reached & JUDGED


def test_every_package_imported_is_a_declared_dependency():
    config = ConfigParser()
    config.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    extras = config["options.extras_require"]
    of_users = "".join(extras[name] for name in extras if name not in OF_DEVELOPERS)
    declared = config["options"]["install_requires"] + of_users
    names = {_canonical(line) for line in declared.splitlines() if line and line[0].isalpha()}
    distributions = packages_distributions()
    for module, source in read_modules().items():
        for package in _packages_imported(source) - {"datacollect", *sys.stdlib_module_names}:
            candidates = {_canonical(name) for name in distributions.get(package, [package])}
            assert candidates & names, (
                f"{module} imports {package}, which no dependency in setup.cfg provides"
            )


def _packages_imported(source: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def _canonical(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement).group().lower().replace("_", "-")


# The test of the test: what it does not see it cannot forbid.

EXAMPLE = """
import datacollect.solvers.choice
from datacollect import Problem, errors
from datacollect.schedule.schedule import Schedule
from datacollect.methods.direct import direct
import numpy
if TYPE_CHECKING:
    from datacollect import units
class A:
    def f(self):
        from datacollect.solvers import ortools
"""


def test_imports_are_seen_wherever_they_stand():
    modules = {
        "solvers.choice",
        "errors",
        "schedule.schedule",
        "methods",
        "methods.direct",
        "units",
        "solvers",
    }
    # `solvers` is what `from datacollect.solvers import ortools` imports: no module is called so.
    assert imports_of(EXAMPLE, modules) == {*modules, "__init__"} - {"methods"}


def test_relative_imports_are_refused():
    with pytest.raises(AssertionError, match="relative import"):
        imports_of("from .flow import FlowNetwork", {"flow"})


def test_all_folders_are_read():
    rooms = {room_of(module) for module in read_modules()}
    assert {ROOT, FRONT, "flow", "methods", "solvers", "topologies", "examples"} <= rooms
    assert (room_of("__main__"), room_of("errors"), room_of("flow")) == ("commands", ROOT, "flow")
