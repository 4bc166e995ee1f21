"""Installs packages for tests without pip: what `importlib.metadata` sees of an installed one."""

from __future__ import annotations

import builtins
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.commands.brought import COMMANDS, FEED_COMMANDS
from datacollect.exports.formats import EXPORTS
from datacollect.files.file_kinds import FILE_KINDS
from datacollect.measurement.readers import READERS
from datacollect.methods.choice import METHODS
from datacollect.net.key_forms import KEY_FORMS
from datacollect.pictures.live_views import LIVE_VIEWS
from datacollect.transfer.agent.config.tables import AGENT_TABLES
from datacollect.transfer.agent.handlers import AGENT_HANDLERS
from datacollect.transfer.doctor.checks import DOCTOR_CHECKS
from datacollect.transfer.sources.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

# All that other packages may add to.
REGISTRIES = (
    *(
        METHODS,
        EXPORTS,
        READERS,
        KINDS,
        COMMANDS,
        FEED_COMMANDS,
        AGENT_TABLES,
        AGENT_HANDLERS,
        FILE_KINDS,
        KEY_FORMS,
        LIVE_VIEWS,
        DOCTOR_CHECKS,
    ),
)

# A package as its author would write it, which brings one entry for each registry.
EXAMPLE = Path(__file__).parents[1] / "plugins"


def install_package(
    folder: Path,
    name: str,
    points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str],
) -> Path:
    """Write a package into a folder for `sys.path`, and return the folder.

    Parameters
    ----------
    folder : Path
    name : str
        Of the distribution, whose version is 1.0.
    points : mapping
        Entry points by group and name.
    modules : mapping of str to str
        Source texts of modules by their names.
    """
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, values in points.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in values.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)
    return folder


def install_project(source: Path, folder: Path) -> Path:
    """Put the packages of a project into a folder for `sys.path`, as its `pyproject.toml` says."""
    tree = tomllib.loads((source / "pyproject.toml").read_text())
    project = tree["project"]
    install_package(folder, project["name"], project["entry-points"], {})
    for package in tree["tool"]["setuptools"]["packages"]:
        shutil.copytree(source / package, folder / package)
    return folder


def forget_packages() -> None:
    """Have registries look for packages again, and the example be imported again."""
    for registry in REGISTRIES:
        vars(registry).pop("_points", None)
    for name in [name for name in sys.modules if name.startswith("datacollect_example")]:
        del sys.modules[name]


def without_package(monkeypatch, package: str) -> None:
    """Have imports of a package, and of its parts, fail as where it is not installed."""
    real = builtins.__import__

    def importing(name, *rest):
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", importing)
