"""Lists of setup.cfg against the files that exist: a wheel misses whatever they do not name."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

import pytest
from judges.imports import packages_imported

REPOSITORY = Path(__file__).resolve().parents[1]

CONFIG = ConfigParser()
CONFIG.read(REPOSITORY / "setup.cfg", encoding="utf-8")
LISTED = set(CONFIG["options"]["packages"].split())
FOLDERS = dict(line.split(" = ") for line in CONFIG["options"]["package_dir"].strip().splitlines())


# What the page is built from: no wheel has it.
BUILT_FROM = REPOSITORY / "datacollect" / "bistro" / "page" / "src"


def files_of_packages() -> list[tuple[str, Path]]:
    """Return every file of ours with the package that it lies in."""
    # rglob does not follow links: what lies behind them is found where it lies.
    return [
        (".".join([package, *path.relative_to(REPOSITORY / folder).parts[:-1]]), path)
        for package, folder in FOLDERS.items()
        for path in sorted((REPOSITORY / folder).rglob("*"))
        if path.is_file()
        and not {"__pycache__", "node_modules"} & {*path.parts}
        and not path.is_relative_to(BUILT_FROM)
    ]


FILES = files_of_packages()


def test_every_package_is_listed():
    assert {package for package, path in FILES if path.suffix == ".py"} == LISTED


def test_every_package_has_an_init():
    assert {package for package, path in FILES if path.name == "__init__.py"} == LISTED


def listed_package_of(name: str) -> str:
    """Return the package that files of a folder belong to; the folder may lie below it."""
    while name not in LISTED:
        name = name.rpartition(".")[0]
    return name


@pytest.mark.parametrize(
    ("package", "path"),
    [
        pytest.param(listed_package_of(package), path, id=f"{package}/{path.name}")
        for package, path in FILES
        if path.suffix != ".py"
    ],
)
def test_every_file_that_is_no_module_is_listed(package, path):
    patterns = CONFIG["options.package_data"].get(package, "").split(", ")
    assert any(path.match(pattern) for pattern in patterns if pattern), (
        f"setup.cfg: add {path.name} to {package} in options.package_data"
    )


def test_all_that_is_required_is_imported():
    """What nothing imports, users would install for nothing."""
    lines = CONFIG["options"]["install_requires"].splitlines()
    required = {found[0].lower() for line in lines if (found := re.match(r"[\w.-]+", line))}
    imported = {name.lower() for name in set().union(*packages_imported().values())}
    # The standard library reads time zones from it, where the system has none.
    assert required - imported == {"tzdata"}
