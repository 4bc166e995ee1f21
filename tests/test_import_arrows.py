"""Imports are declared, modules have names that say something, wings are named once.

Which rooms may import which stands in `setup.cfg`, `[importlinter]`; `make lint` judges.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from configparser import ConfigParser
from importlib.metadata import packages_distributions

import pytest
from judges.imports import REPOSITORY, packages_imported, read_modules

CONFIG = ConfigParser()
CONFIG.read(REPOSITORY / "setup.cfg", encoding="utf-8")

# Extras of `setup.cfg` that nobody has who only uses the package.
OF_DEVELOPERS = {"test", "agent", "mutants", "lint", "docs", "dev"}

# Rooms in whose folders at most so many modules lie: more are several ideas, each a folder's worth.
CROWDED = ("control", "flow", "methods", "transfer")
MOST_MODULES = 16

# Who may name what lies in a wing: the registry of ours, and the program that packs one.
NAMING_WINGS = {"wings", "agent_alone"}


def test_no_folder_is_crowded():
    modules = Counter(
        name.rpartition(".")[0] for name in read_modules() if not _is_folder(name) and "." in name
    )
    crowded = {
        folder: n
        for folder, n in modules.items()
        if folder.partition(".")[0] in CROWDED and n > MOST_MODULES
    }
    assert not crowded, "make a folder of those that belong together"


def _is_folder(name: str) -> bool:
    return any(other.startswith(f"{name}.") for other in read_modules())


def test_modules_are_called_after_what_they_hold():
    """Half the package measures, and anything may be a helper: such names say nothing."""
    empty = {"measure", "utils", "common", "helpers", "misc"}
    called = [name for name in read_modules() if name.rpartition(".")[2] in empty]
    assert not called, "name them after their content"


def test_the_core_names_wings_in_one_place():
    """Also in texts and strings, which the linter of imports does not read."""
    named = re.compile(r"datacollect\.(bistro|feeds|measuring)\b")
    naming = {
        module
        for module, source in read_modules().items()
        if module.partition(".")[0] not in ("bistro", "feeds", "measuring") and named.search(source)
    }
    assert naming == NAMING_WINGS


def test_each_room_has_a_storey():
    """The layers are exhaustive: a room that is none of them is refused by the linter."""
    contracts = [CONFIG[name] for name in CONFIG.sections() if name.startswith("importlinter:")]
    layers = [each for each in contracts if each["type"] == "layers"]
    found = {each["containers"] for each in layers if each.get("exhaustive") == "True"}
    assert {
        "datacollect",
        "datacollect.bistro",
        "datacollect.feeds",
        "datacollect.measuring",
    } <= found


@pytest.mark.slow
def test_every_package_imported_is_a_declared_dependency():
    extras = CONFIG["options.extras_require"]
    of_users = "".join(extras[name] for name in extras if name not in OF_DEVELOPERS)
    declared = CONFIG["options"]["install_requires"] + of_users
    names = {_canonical(line) for line in declared.splitlines() if line and line[0].isalpha()}
    distributions = packages_distributions()
    for module, packages in packages_imported().items():
        for package in packages - {"datacollect", *sys.stdlib_module_names}:
            candidates = {_canonical(name) for name in distributions.get(package, [package])}
            assert candidates & names, (
                f"{module} imports {package}, which no dependency in setup.cfg provides"
            )


def _canonical(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement).group().lower().replace("_", "-")


def test_all_folders_are_read():
    rooms = {name.partition(".")[0] for name in read_modules()}
    assert {
        "flow",
        "methods",
        "solvers",
        "topologies",
        "examples",
        "bistro",
        "feeds",
        "measuring",
    } <= rooms
