"""The arrows of the house: which room may import from which. It keeps judges apart from planners.

`python tests/draw_house.py` prints the rooms; `judges.imports` says what counts as an import.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from configparser import ConfigParser
from importlib.metadata import packages_distributions

import pytest
from judges.imports import (
    FRONT,
    REPOSITORY,
    ROOT,
    circles,
    circles_of_folders,
    down_to,
    folder_arrows,
    folder_of,
    imports_of,
    imports_of_all,
    read_modules,
    room_of,
)

# Extras of `setup.cfg` that nobody has who only uses the package.
OF_DEVELOPERS = {"test", "agent", "mutants", "lint", "docs", "dev"}

# Each room, a folder of the package, and the rooms that it imports from. From bottom to top: no
# row names a later one. Modules that lie in no folder are the root, leaves that anyone may use.
LEAVES = "root numbers files"
PROBLEMS = f"{LEAVES} problem"
PLANS = f"{PROBLEMS} schedule"
MAY_IMPORT = {
    ROOT: "",
    "numbers": "root",
    "files": "root numbers",
    "examples": "",
    "problem": LEAVES,
    "solvers": LEAVES,
    "topologies": LEAVES,
    "net": "root files",
    "schedule": PROBLEMS,
    "exports": PLANS,
    "flow": f"{PROBLEMS} solvers schedule",
    "control": PLANS,
    "methods": f"{PROBLEMS} solvers schedule flow control",
    "simulation": f"{PROBLEMS} control",
    "transfer": f"{PROBLEMS} net schedule control methods",
    "measurement": f"{PLANS} net methods transfer",
    "bistro": "root numbers files net problem methods transfer",
    "explanation": f"{PROBLEMS} solvers schedule flow methods",
    "pictures": f"{PLANS} measurement transfer explanation",
    "scenario": f"{PROBLEMS} topologies schedule measurement methods simulation",
    "study": f"{LEAVES} problem net solvers schedule methods simulation scenario",
    "commands": (
        f"{LEAVES} examples problem net solvers bistro schedule exports measurement methods "
        "simulation transfer explanation pictures scenario study"
    ),
    FRONT: (
        "root bistro problem schedule measurement flow methods transfer explanation pictures "
        "scenario study"
    ),
}

# The same for folders within a room, from bottom to top: each, and those of its room that its own
# modules import from. The room's own modules, which lie in none of its folders, have a row, too.
WITHIN = {
    "bistro": "",
    "bistro.log": "",
    "bistro.event": "bistro.log",
    "bistro.custody": "bistro.log bistro.event",
    "bistro.receipt": "bistro.log bistro.event bistro.custody",
    "bistro.destination": "bistro.custody bistro.receipt",
    "bistro.assignment": "bistro.log bistro.event",
    "bistro.sealing": "bistro.log",
    "bistro.accepting": "bistro.log bistro.event bistro.receipt bistro.custody",
    "bistro.client": (
        "bistro.log bistro.event bistro.receipt bistro.custody bistro.assignment bistro.sealing "
        "bistro.accepting"
    ),
    "bistro.organiser": "bistro.event bistro.receipt bistro.sealing bistro.client",
    "bistro.audit": "bistro.log bistro.event bistro.receipt bistro.custody bistro.client",
    "bistro.page": "bistro.event bistro.receipt",
    "bistro.witness": "bistro bistro.log",
    "bistro.service": "bistro bistro.log bistro.event bistro.receipt",
    "bistro.store": (
        "bistro.log bistro.event bistro.custody bistro.service bistro.witness bistro.accepting"
    ),
    "bistro.taking": (
        "bistro.log bistro.event bistro.receipt bistro.custody bistro.accepting bistro.client "
        "bistro.store"
    ),
    "bistro.register": (
        "bistro.log bistro.event bistro.receipt bistro.custody bistro.destination bistro.store"
    ),
    "bistro.opening": (
        "bistro.log bistro.event bistro.custody bistro.destination bistro.sealing bistro.register"
    ),
    "bistro.config": "bistro.log bistro.event",
    "bistro.serving": (
        "bistro bistro.log bistro.event bistro.custody bistro.assignment bistro.receipt "
        "bistro.service bistro.store bistro.witness bistro.config"
    ),
    "bistro.running": (
        "bistro.log bistro.event bistro.custody bistro.receipt bistro.assignment bistro.sealing "
        "bistro.client bistro.audit bistro.store bistro.taking bistro.destination bistro.register "
        "bistro.opening bistro.config bistro.serving"
    ),
    "control": "",
    "control.adaptive": "control",
    "control.chained": "control",
    "control.planned": "control",
    "flow.network": "",
    "flow.quickest": "flow.network",
    "flow.routes": "flow.network",
    "flow.shared": "flow.network flow.quickest flow.routes",
    "flow": "flow.network flow.quickest flow.routes flow.shared",
    "measurement.probes": "",
    "measurement.cycle": "measurement.probes",
    "measurement.series": "measurement.probes",
    "measurement": "measurement.cycle measurement.probes measurement.series",
    "measurement.answering": "measurement.cycle measurement.probes",
    "measurement.asking": (
        "measurement measurement.cycle measurement.probes measurement.answering"
    ),
    "measurement.cycling": ("measurement measurement.cycle measurement.probes measurement.asking"),
    "methods.options": "",
    "methods.timing": "methods.options",
    "methods.fair": "methods.timing",
    "methods.finishing": "methods.timing",
    "methods.connections": "methods.options methods.timing methods.fair methods.finishing",
    "methods.slotted": "methods.options methods.timing methods.finishing",
    "methods.coordinated": (
        "methods.options methods.timing methods.fair methods.finishing methods.connections "
        "methods.slotted"
    ),
    "methods.replanning": (
        "methods.options methods.timing methods.finishing methods.slotted methods.coordinated"
    ),
    "methods": (
        "methods.options methods.timing methods.fair methods.finishing methods.connections "
        "methods.coordinated"
    ),
    "methods.controllers": "methods methods.options",
    "schedule.data": "",
    "schedule.check": "schedule.data",
    "schedule": "schedule.data schedule.check",
    "simulation": "",
    "simulation.fluid": "simulation",
    "simulation.ns3": "simulation",
    "study": "",
    "study.report": "study",
    "transfer": "",
    "transfer.rates": "",
    "transfer.protocol": "transfer.rates",
    "transfer.sources.web.core": "transfer.protocol",
    "transfer.agent.config": "transfer.protocol transfer.rates",
    "transfer.pull.core": "transfer.protocol",
    "transfer.sources.agent": "transfer.protocol transfer.rates",
    "transfer.store.folder": "transfer.protocol",
    "transfer.store.state": "transfer.protocol",
    "transfer.agent.core": "transfer.protocol transfer.agent.config",
    "transfer.sources.web": "transfer.protocol transfer.rates transfer.sources.web.core",
    "transfer.store.incoming": "transfer.protocol transfer.store.folder transfer.store.state",
    "transfer.store": (
        "transfer.protocol transfer.store.folder transfer.store.state transfer.store.incoming"
    ),
    "transfer.agent.shell": (
        "transfer.protocol transfer.rates transfer.agent.config transfer.agent.core"
    ),
    "transfer.sources": "transfer.protocol",
    "transfer.agent": "transfer.agent.config transfer.agent.core transfer.agent.shell",
    "transfer.pull.config": "transfer.protocol transfer.rates transfer.sources",
    "transfer.pull": (
        "transfer.protocol transfer.rates transfer.pull.core transfer.sources.agent "
        "transfer.store.folder transfer.store.state transfer.store transfer.sources "
        "transfer.pull.config"
    ),
}

# Rooms in whose folders at most so many modules lie: more are several ideas, each a folder's worth.
CROWDED = ("control", "flow", "methods", "transfer")
MOST_MODULES = 16

# Whoever judges plans knows no planner and no solver.
JUDGES = ("schedule", "control", "simulation")
JUDGED = {"solvers", "flow", "methods"}


def arrows() -> dict[str, set[str]]:
    """Return for every room those that its modules import from, itself left out."""
    return down_to(1, folder_arrows())


def test_every_room_has_a_row():
    found = arrows().keys()
    assert not found - MAY_IMPORT.keys(), (
        "add a row to MAY_IMPORT for each, below all that it imports"
    )
    assert not MAY_IMPORT.keys() - found, "there are no such rooms any more: take their rows away"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_modules_import_only_what_their_room_may(room):
    allowed = {room, *MAY_IMPORT[room].split()}
    found = [
        f"{module} -> {imported}"
        for module in sorted(read_modules())
        if room_of(module) == room
        for imported in sorted(imports_of_all()[module])
        if room_of(imported) not in allowed
    ]
    assert not found, (
        f"{room} may import only {sorted(allowed - {room})}: move the code, or change the map "
        "with a reason"
    )


def arrows_within() -> dict[str, set[str]]:
    """Return for every folder of rooms with several those of its room that it imports from."""
    tops = {folder: folder.partition(".")[0] for folder in folder_arrows()}
    of_room = Counter(tops.values())
    return {
        folder: {other for other in others if tops[other] == tops[folder]}
        for folder, others in folder_arrows().items()
        if of_room[tops[folder]] > 1
    }


def test_every_folder_within_a_room_has_a_row():
    """The room's own modules have one, too, also where they are its docstring alone."""
    found = arrows_within().keys()
    assert not found - WITHIN.keys(), "add a row to WITHIN for each, below all that it imports from"
    assert not WITHIN.keys() - found, "there are no such folders any more: take their rows away"


@pytest.mark.parametrize("folder", WITHIN)
def test_folder_imports_within_its_room_what_it_may_and_nothing_else(folder):
    allowed = {*WITHIN[folder].split()}
    found = arrows_within().get(folder, set())
    assert not found - allowed, (
        f"the row of {folder} in WITHIN does not name what it imports from: move the code, or "
        f"change the row with a reason. {arrows_of_files(folder, found - allowed)}"
    )
    assert not allowed - found, (
        f"nothing in {folder} imports from {sorted(allowed - found)}: take them out of its row in "
        "WITHIN"
    )


def arrows_of_files(folder: str, others: set[str]) -> list[str]:
    """Return which modules of a folder import which ones of others."""
    return sorted(
        f"{module} -> {other}"
        for module, imported in imports_of_all().items()
        for other in imported
        if folder_of(module) == folder and folder_of(other) in others
    )


def test_the_map_within_runs_from_bottom_to_top():
    below: set[str] = set()
    for folder, allowed in WITHIN.items():
        later = set(allowed.split()) - below
        assert not later, f"{folder} may import {sorted(later)}, which stand below it in WITHIN"
        below.add(folder)


def test_no_circle_of_folders_at_any_depth():
    """Folders count with all below them, and without it."""
    assert circles_of_folders(folder_arrows()) == [], "move what leads back to a folder below both"


def test_no_folder_is_crowded():
    modules = Counter(folder_of(module) for module in read_modules() if folder_of(module) != module)
    crowded = {
        folder: n
        for folder, n in modules.items()
        if folder.partition(".")[0] in CROWDED and n > MOST_MODULES
    }
    assert not crowded, "make a folder of those that belong together"


def test_modules_are_called_after_what_they_hold():
    """Half the package measures, and anything may be a helper: such names say nothing."""
    empty = {"measure", "utils", "common", "helpers", "misc"}
    called = [name for name in read_modules() if name.rpartition(".")[2] in empty]
    assert not called, "name them after their content"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_no_room_may_import_what_it_does_not(room):
    needless = set(MAY_IMPORT[room].split()) - arrows().get(room, set())
    assert not needless, f"nothing in {room} imports them: take them out of its row in MAY_IMPORT"


def test_the_map_runs_from_bottom_to_top():
    below: set[str] = set()
    for room, allowed in MAY_IMPORT.items():
        later = set(allowed.split()) - below
        assert not later, f"{room} may import {sorted(later)}, which stand below it in the map"
        below.add(room)


def test_no_circle_of_files():
    # Wherever they stand: in functions, and for types only, too.
    assert circles(imports_of_all()) == [], "modules import each other"


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
