"""The module map: who may import whom. It keeps judges apart from what they judge.

Imports count wherever they stand: at the top, inside functions, under ``TYPE_CHECKING``. What
`load_flow_solver` imports by name does not: that a solver is chosen at run time is its purpose.
"""

from __future__ import annotations

import ast
import re
import sys
from configparser import ConfigParser
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

BASICS = "errors units"
PROBLEM = f"{BASICS} hosts problem"
DATA = f"{PROBLEM} schedule"
FLUID = (
    f"{DATA} flow budget pools preference restricted_flow layered quickest cheapest routes "
    "path_tables bottleneck arc_pricing savings shared_flow two_hops fluid"
)
MODELS = f"{FLUID} fairshare pipeline slots timegraph arrival_bounds arrival_curve"
PLANNING = f"{MODELS} measures methods"
EDGES = "check pulls estimates samples schema frames graphs files"

# Each module, or package with all in it, and what of ours it may import. From bottom to top: no
# row names a later one. To place a new module, add a row below everything that it needs.
MAY_IMPORT = {
    "errors": "",
    "units": "",
    "hosts": BASICS,
    "validation": f"{BASICS} hosts",
    "problem": f"{BASICS} hosts validation",
    "schedule": PROBLEM,
    # What a schedule tells about itself, and its judge.
    "measures": DATA,
    "check": f"{DATA} measures",
    "pulls": DATA,
    # Edges: measurements, files and tables of others.
    "iperf3": BASICS,
    "samples": f"{PROBLEM} iperf3",
    "estimates": f"{PROBLEM} samples iperf3",
    "graphs": PROBLEM,
    "frames": f"{PROBLEM} samples graphs",
    "kinds": BASICS,
    "fields": f"{BASICS} kinds",
    "documents": f"{BASICS} kinds",
    "link_table": f"{PROBLEM} samples kinds documents",
    "schedule_files": f"{DATA} kinds fields documents",
    "files": f"{DATA} samples kinds fields documents link_table schedule_files",
    "progress": f"{DATA} measures",
    "progress_files": f"{DATA} kinds fields documents link_table files progress",
    # Flows, and what solves them.
    "flow": BASICS,
    "solvers": "errors flow",
    "budget": f"{BASICS} flow",
    # The fluid model.
    "pools": PROBLEM,
    "preference": PROBLEM,
    "restricted_flow": f"{BASICS} flow",
    "layered": f"{PROBLEM} pools",
    "quickest": f"{PROBLEM} flow restricted_flow pools layered",
    "cheapest": f"{PROBLEM} flow restricted_flow preference pools layered quickest",
    "routes": f"{PROBLEM} pools layered",
    "path_tables": f"{PROBLEM} flow pools layered routes",
    "bottleneck": f"{DATA} pools layered quickest",
    "arc_pricing": f"{BASICS} flow budget",
    "savings": f"{PROBLEM} flow pools layered quickest",
    "shared_flow": f"{DATA} flow budget preference pools layered quickest routes bottleneck "
    "arc_pricing savings",
    "two_hops": f"{DATA} flow budget pools layered quickest bottleneck routes",
    "fluid": f"{DATA} flow budget preference pools layered quickest cheapest bottleneck routes "
    "arc_pricing savings shared_flow two_hops",
    "arrival_bounds": f"{PROBLEM} flow budget pools layered quickest",
    "arrival_curve": f"{FLUID} arrival_bounds",
    "pipeline": FLUID,
    # Slots, shares.
    "slots": f"{FLUID} pipeline",
    "timegraph": f"{FLUID} pipeline slots",
    "fairshare": BASICS,
    # Methods.
    "methods": f"{MODELS} measures",
    "comparison": PLANNING,
    # Why, and at what price.
    "resources": PROBLEM,
    "relaxations": f"{MODELS} resources",
    "full_capacities": f"{DATA} measures resources",
    "plan_limits": f"{DATA} resources full_capacities",
    "plan_relaxations": f"{PLANNING} resources relaxations full_capacities plan_limits",
    "excess": f"{PLANNING} full_capacities plan_relaxations",
    "source_explanation": f"{FLUID} measures full_capacities plan_limits",
    "explanation": f"{PLANNING} relaxations full_capacities plan_limits plan_relaxations excess "
    "source_explanation",
    "explanation_text": f"{DATA} bottleneck resources relaxations plan_limits plan_relaxations "
    "source_explanation explanation",
    "money_front": PLANNING,
    # Planning anew.
    "other_links": f"{PROBLEM} restricted_flow pools layered",
    "link_prices": f"{PROBLEM} layered arc_pricing other_links",
    "earliest_end": f"{FLUID} other_links link_prices",
    "stable_flow": f"{FLUID} measures other_links link_prices earliest_end",
    "stable_slots": f"{PLANNING} other_links earliest_end stable_flow",
    "replanning": f"{PLANNING} progress earliest_end stable_flow stable_slots",
    # Carrying a schedule out.
    "byteranges": "",
    "control": DATA,
    "controllers": f"{DATA} byteranges control progress",
    "simulation": f"{DATA} byteranges measures check fairshare control controllers",
    "topologies": BASICS,
    # Scenarios: what a file says, what it builds, how it is carried out.
    "scenario_kinds": f"{BASICS} kinds",
    "topology_fields": f"{BASICS} kinds scenario_kinds topologies",
    "scenario_fields": f"{BASICS} kinds scenario_kinds topology_fields",
    "scenario": f"{BASICS} kinds documents scenario_fields",
    "experiment_fields": f"{BASICS} kinds scenario_kinds scenario_fields",
    "schema": f"{BASICS} kinds fields scenario_kinds topology_fields scenario_fields "
    "experiment_fields",
    "placement": f"{PROBLEM} kinds topologies scenario",
    "background": f"{PROBLEM} kinds topologies scenario simulation placement",
    "setting": f"{PROBLEM} link_table topologies scenario simulation placement background",
    "shared_wires": f"{PROBLEM} fairshare topologies simulation scenario setting",
    "probing": f"{PROBLEM} estimates link_table documents simulation scenario setting shared_wires",
    "planning": f"{PLANNING} control controllers progress replanning",
    "harness": f"{PLANNING} comparison control simulation scenario_fields scenario setting probing "
    "planning",
    "run_files": f"{DATA} documents simulation harness",
    # The top: the command line, and what only it and the package's front import.
    "picture": f"{DATA} measures",
    "plot": f"{DATA} measures picture",
    # Experiments: what a file says, a run as a row, the folder, who carries runs out.
    "grid_problems": f"{PROBLEM} documents",
    "run_rows": f"{DATA} simulation harness run_files",
    "experiment": f"{BASICS} kinds documents experiment_fields grid_problems scenario run_rows",
    "intervals": "",
    "run_store": f"{BASICS} documents experiment run_files run_rows",
    "sweep_jobs": f"{BASICS} experiment harness scenario setting run_rows run_store",
    "sweep_pools": f"{BASICS} sweep_jobs",
    "sweep_plan": f"{BASICS} experiment intervals sweep_jobs",
    "sweeping": f"{BASICS} experiment harness run_store sweep_jobs sweep_plan sweep_pools",
    # Reports: what sweeps have left, as numbers, verdicts, pictures and a page.
    "sweep_folders": f"{BASICS} experiment_fields run_rows run_store",
    "report_tables": f"{BASICS} intervals sweep_folders",
    "report_across": f"{BASICS} intervals report_tables sweep_folders",
    "paper_runs": f"{BASICS} report_tables sweep_folders",
    "verdicts": "intervals",
    "judging": "intervals report_tables paper_runs verdicts",
    "report_figures": f"{BASICS} report_tables",
    "report_cells": "",
    "report_page": f"{BASICS} report_cells report_tables report_figures sweep_folders",
    "examples": "",
    "claims": f"{PLANNING} examples intervals sweep_folders report_tables paper_runs "
    "verdicts judging",
    "reporting": f"{BASICS} documents claims report_across report_cells report_tables "
    "report_figures report_page sweep_folders",
    "console": BASICS,
    "options": f"{BASICS} console",
    "answers": f"{DATA} comparison console",
    "explain_command": f"{DATA} console options explanation files",
    "front_command": f"{DATA} console options documents money_front files",
    "sweep_command": f"{BASICS} console options sweeping",
    "report_command": f"{BASICS} verdicts console reporting",
    "simulate_command": f"{DATA} console options simulation harness probing run_files",
    "replan_command": f"{DATA} comparison console documents files options answers progress "
    "measures progress_files replanning",
    "__init__": f"{PLANNING} {EDGES} progress replanning comparison explanation money_front "
    "scenario harness simulation experiment sweeping reporting plot",
    "cli": f"{PLANNING} {EDGES} comparison scenario simulation sweep_command report_command plot "
    "examples console options answers documents simulate_command replan_command explain_command "
    "front_command __init__",
    "__main__": "cli",
}

# Exceptions: arrows that point up, inside functions or for types only.
SHORT_CUTS = {
    "problem": "files frames",  # methods that lead there: Problem.from_file
    "schedule": "check files measures plot pulls",
    "progress": "progress_files",  # Progress.from_file
    "explanation": "explanation_text",  # Explanation.text
    "flow": "solvers",  # loads them
}

# Whoever judges plans knows no planner, no solver, nor the module that loads solvers.
JUDGES = ("schedule", "check", "measures", "control", "simulation")
JUDGED = {"flow", "methods", "solvers"}


def imports_of(source: str, modules: set[str]) -> dict[str, bool]:
    """Return the modules of ours that `source` imports, and whether it does so when loaded.

    A name that `datacollect` itself offers counts as ``__init__``.
    """
    tree = ast.parse(source)
    not_when_loaded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    found: dict[str, bool] = {}
    for node in ast.walk(tree):
        for name in _names_imported(node, modules):
            found[name] = found.get(name, False) or id(node) not in not_when_loaded
    return found


def _names_imported(node: ast.AST, modules: set[str]) -> list[str]:
    if isinstance(node, ast.Import):
        paths = [alias.name.split(".") for alias in node.names]
        return [".".join(rest) or "__init__" for top, *rest in paths if top == "datacollect"]
    if not isinstance(node, ast.ImportFrom):
        return []
    assert node.level == 0, f"line {node.lineno}: relative import; name the module in full"
    top, *home = node.module.split(".")
    if top != "datacollect":
        return []
    # What follows `import` is a module or a name within one.
    inner = {".".join([*home, alias.name]) for alias in node.names}
    names = sorted(inner & modules)
    if inner - modules:
        names.append(".".join(home) or "__init__")
    return names


def row_of(module: str) -> str:
    """Return the row of the map that a module belongs to: its first name."""
    return module.partition(".")[0]


def read_modules() -> dict[str, str]:
    """Return the source of every module of the package by its name within the package."""
    folders = {"": "datacollect", "solvers.": "solvers", "topologies.": "topologies"}
    sources = {}
    for prefix, folder in folders.items():
        # rglob does not follow links: solvers and topologies are read once, where they lie.
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            name = prefix + ".".join(path.relative_to(REPOSITORY / folder).with_suffix("").parts)
            sources[name.removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return sources


SOURCES = read_modules()
IMPORTS = {module: imports_of(source, set(SOURCES)) for module, source in SOURCES.items()}


@pytest.mark.parametrize("module", SOURCES)
def test_module_imports_only_what_the_map_allows(module):
    row = row_of(module)
    assert row in MAY_IMPORT, (
        f"module {module!r} is not in the map: add it to MAY_IMPORT in {Path(__file__).name}, "
        "below all that it imports, and to the map in CONTRIBUTING.md"
    )
    allowed = {row, *MAY_IMPORT[row].split()}
    short_cuts = set(SHORT_CUTS.get(row, "").split())
    for imported, when_loaded in IMPORTS[module].items():
        target = row_of(imported)
        assert target in allowed or (target in short_cuts and not when_loaded), (
            f"{module} imports {imported}, but may import only {sorted(allowed - {row})}"
            + (f", and inside functions or for types {sorted(short_cuts)}" if short_cuts else "")
            + ": move the code, or change the map with a reason"
        )


def test_the_map_runs_from_bottom_to_top():
    # Short cuts are left out: nothing is loaded through them, so they close no circle.
    graph = {row: allowed.split() for row, allowed in MAY_IMPORT.items()}
    unknown = {name for names in graph.values() for name in names} - set(graph)
    assert not unknown, f"the map allows modules that have no row: {sorted(unknown)}"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"the map allows a circle: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("judge", JUDGES)
def test_judges_never_reach_what_they_judge(judge):
    # By any chain of imports, short cuts included.
    reached, found = set(), {judge}
    while found:
        row = found.pop()
        reached.add(row)
        for module, imports in IMPORTS.items():
            if row_of(module) == row:
                found |= {row_of(imported) for imported in imports} - reached
    assert not reached & JUDGED


def test_every_package_imported_is_a_declared_dependency():
    config = ConfigParser()
    config.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    extras = config["options.extras_require"]
    declared = config["options"]["install_requires"] + extras["fast"] + extras["dask"]
    names = {_canonical(line) for line in declared.splitlines() if line and line[0].isalpha()}
    distributions = packages_distributions()
    for module, source in SOURCES.items():
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
import datacollect.flow
from datacollect import Problem, errors
from datacollect.schedule import Schedule
from datacollect.methods.direct import direct
import numpy
if TYPE_CHECKING:
    from datacollect import units
class A:
    def f(self):
        from datacollect.solvers import ortools
"""


def test_imports_are_seen_wherever_they_stand():
    modules = {"flow", "errors", "schedule", "methods", "methods.direct", "units", "solvers"}
    assert imports_of(EXAMPLE, modules) == {
        "flow": True,
        "__init__": True,
        "errors": True,
        "schedule": True,
        "methods.direct": True,
        "units": False,
        "solvers": False,
    }


def test_relative_imports_are_refused():
    with pytest.raises(AssertionError, match="relative import"):
        imports_of("from .flow import FlowNetwork", {"flow"})


def test_all_folders_are_read():
    assert {"__init__", "flow", "methods", "solvers", "topologies"} <= set(SOURCES)
