"""Build the distributions that need less: ``datacollect-agent`` and ``datacollect-collector``.

    python packaging/build.py FOLDER [--collector | --deb | --pyz [PEX'S OPTIONS]]

For a host's agent it writes ``FOLDER/datacollect_agent-VERSION-py3-none-any.whl`` and, by pex,
``FOLDER/datacollect-agent.pyz``, in which all that it needs lies too. The wheel holds the program's
module and all that it imports, found by reading the sources, so that nobody keeps a list. What it
is called, its version and the versions of what it needs are those of `setup.cfg`.

With ``--deb`` it writes the agent's Debian package, too: see `debian.py` beside this file.

With ``--collector`` it writes the wheel ``datacollect_collector-…`` instead: all of the package,
which asks for what a pull needs alone. Whatever needs more is an extra, and says so when called.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from configparser import ConfigParser
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

from debian import build_deb

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "datacollect"
PROGRAM = "datacollect-agent"
ENTRY = "datacollect.agent_alone"

# Whose packages the agent alone has, too, as far as it imports them.
AGENT_EXTRA = "metrics"

DESCRIPTION = """\
The agent of a host in a datacollect collection: serves its folder over TLS, and relays for others.
It is part of the package `datacollect`; where that is installed, this is not needed.
"""

PROJECT = """\
[build-system]
requires = {requires}
build-backend = "setuptools.build_meta"

[project]
name = "{program}"
version = "{version}"
description = "The agent of a host in a datacollect collection"
readme = "README.md"
requires-python = "{python}"
license = "{licence}"
license-files = ["LICENSE"]
dependencies = {needed}

[project.scripts]
{program} = "{entry}:main"

[tool.setuptools]
packages = {packages}
include-package-data = false
"""


COLLECTOR = "datacollect-collector"
# What pulls, plans for them and `status` need of what `setup.cfg` lists; the solver that takes the
# least room, from an extra there. All else is the collector's extra `full`.
PULLED_WITH = {"apsw", "blake3", "cryptography", "h11", "numpy", "rich", "typer", "tzdata"}
SOLVER_EXTRA = "fast"
# Extras of the package that are of use where it is not developed.
USERS_EXTRAS = ("report", "metrics", "topohub", "ns3", "dask")

COLLECTOR_DESCRIPTION = """\
The package `datacollect` for hosts that collect: `datacollect pull` and `status` work, and plans
without shared bottlenecks. What needs more names the package that is missing; the extra `full`
brings all. Where `datacollect` is installed, this is not needed.
"""


def path_of(module: str) -> Path | None:
    """Return the source of a module of ours, by its full name."""
    stem = REPOSITORY.joinpath(*module.split("."))
    paths = (stem.with_suffix(".py"), stem / "__init__.py")
    return next((path for path in paths if path.is_file()), None)


def imported(path: Path) -> set[str]:
    """Return what a source needs when it runs: names for types alone do not count."""
    return {
        name for node in ast.iter_child_nodes(ast.parse(path.read_text())) for name in _in(node)
    }


def _in(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        # What follows `import` is a module, or a name within one.
        inner = {f"{node.module}.{alias.name}" for alias in node.names}
        return {str(node.module), *inner}
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return set()
    # What a source can do without, and says so: a host that takes uploads installs the package.
    if isinstance(node, ast.Try) and any(_is_of_imports(each) for each in node.handlers):
        return {name for each in node.handlers for name in _in(each)}
    return {name for child in ast.iter_child_nodes(node) for name in _in(child)}


def _is_of_imports(handler: ast.ExceptHandler) -> bool:
    return handler.type is not None and ast.unparse(handler.type) == "ImportError"


def closure(entry: str = ENTRY) -> tuple[dict[str, Path], set[str]]:
    """Return our modules that a module needs, itself too, and the packages of others."""
    modules: dict[str, Path] = {}
    others: set[str] = set()
    wanted = {entry}
    while wanted:
        name = wanted.pop()
        path = path_of(name)
        if not name.startswith(f"{PACKAGE}.") and name != PACKAGE:
            others.add(name.partition(".")[0])
        elif path is not None and name not in modules:
            modules[name] = path
            wanted |= imported(path)
            wanted.add(name.rpartition(".")[0] or PACKAGE)
    return modules, others - set(sys.stdlib_module_names)


def stage(folder: Path) -> None:
    """Write the sources of the distribution."""
    modules, others = closure()
    for path in modules.values():
        target = folder / path.relative_to(REPOSITORY)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    shutil.copyfile(REPOSITORY / "LICENSE", folder / "LICENSE")
    (folder / "README.md").write_text(DESCRIPTION)
    packages = sorted(name for name, path in modules.items() if path.name == "__init__.py")
    (folder / "pyproject.toml").write_text(project(others, packages))


def project(others: set[str], packages: list[str]) -> str:
    """Return the project's file, from what `setup.cfg` says."""
    config = ConfigParser()
    config.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    metadata, options = config["metadata"], config["options"]
    extra = config["options.extras_require"][AGENT_EXTRA]
    needed = requirements(options["install_requires"]) | requirements(extra)
    build = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    return PROJECT.format(
        requires=re.search(r"requires = (\[[^]]*\])", build)[1],  # type: ignore[index]
        program=PROGRAM,
        version=metadata["version"],
        python=options["python_requires"],
        licence=metadata["license_expression"],
        needed=json.dumps(
            [line for line, name in needed.items() if name.replace("-", "_") in others]
        ),
        entry=ENTRY,
        packages=json.dumps(packages),
    )


def requirements(listed: str) -> dict[str, str]:
    """Return the lines of a list of requirements, each with the name of its package."""
    lines = [line for line in listed.splitlines() if line[:1].isalpha()]
    return {line: re.match(r"[\w.-]+", line)[0] for line in lines}  # type: ignore[index]


def stage_collector(folder: Path) -> None:
    """Write the sources of the collector's distribution."""
    config = ConfigParser(interpolation=None)
    config.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    options, extras = config["options"], config["options.extras_require"]
    for line in options["package_dir"].split("\n")[1:]:
        # Not through the links to solvers and topologies: they lie beside it.
        shutil.copytree(
            REPOSITORY / line.split(" = ")[1],
            folder / line.split(" = ")[1],
            ignore=_left_out,
        )
    required = requirements(options["install_requires"])
    pulled_with = [line for line, name in required.items() if name in PULLED_WITH]
    config["metadata"]["name"] = COLLECTOR
    options["install_requires"] = "\n".join([*pulled_with, *requirements(extras[SOLVER_EXTRA])])
    full = "\n".join(line for line in required if line not in pulled_with)
    config["options.extras_require"] = {name: extras[name] for name in USERS_EXTRAS}
    config["options.extras_require"]["full"] = full
    for name in config.sections():
        if not name.startswith(("metadata", "options")):
            config.remove_section(name)  # of tools that check the sources
    with (folder / "setup.cfg").open("w", encoding="utf-8") as file:
        config.write(file)
    for name in ("LICENSE", "pyproject.toml"):
        shutil.copyfile(REPOSITORY / name, folder / name)
    (folder / "README.md").write_text(COLLECTOR_DESCRIPTION)


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Return what of a folder belongs to no package: what tools have left, and links."""
    tools = {"__pycache__", "node_modules"}
    return {name for name in names if name in tools or Path(folder, name).is_symlink()}


def build_wheel(folder: Path, write_sources: Callable[[Path], None] = stage) -> Path:
    """Build a wheel of the sources that a function writes, in a folder; return its path."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    with tempfile.TemporaryDirectory() as source, tempfile.TemporaryDirectory() as built:
        write_sources(Path(source))
        subprocess.run([*pip, "--wheel-dir", built, source], check=True)
        (wheel,) = Path(built).iterdir()
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, folder))


def build_pyz(wheel: Path, options: list[str]) -> None:
    """Build the file in which all that the agent needs lies, beside the wheel."""
    file = wheel.with_name(f"{PROGRAM}.pyz")
    pex = [sys.executable, "-m", "pex", str(wheel), "--script", PROGRAM, "--output-file", str(file)]
    subprocess.run([*pex, *options], check=True)


def main() -> None:
    """Build the wheel and, if asked to, the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where they are written")
    parser.add_argument("--pyz", nargs=argparse.REMAINDER, metavar="OPTION", help="options of pex")
    parser.add_argument("--collector", action="store_true", help="the collector's wheel instead")
    parser.add_argument("--deb", action="store_true", help="the agent's Debian package, too")
    given = parser.parse_args()
    if given.collector:
        build_wheel(given.folder.resolve(), stage_collector)
        return
    wheel = build_wheel(given.folder.resolve())
    if given.pyz is not None:
        build_pyz(wheel, given.pyz)
    if given.deb:
        build_deb(wheel)


if __name__ == "__main__":
    main()
