"""A wheel, built from a source distribution, has all that the commands need.

The checkout has more: what `setup.cfg` forgets to list is missing in the wheel only. `make release`
runs commands of the wheel where nothing else is.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tomllib
import venv
from pathlib import Path

import pytest
from conftest import REPOSITORY
from instances.command_line import output_of
from instances.made_sweeps import SMALL, gains, write_sweep
from judges.imports import FOLDERS

NOT_SOURCE = (".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info", "build")

# Imports every module, says where the package lies and what lies in it.
INVENTORY = """
import importlib, json, pathlib, pkgutil, datacollect
for module in pkgutil.walk_packages(datacollect.__path__, "datacollect."):
    if module.name != "datacollect.__main__":
        importlib.import_module(module.name)
folder = pathlib.Path(datacollect.__file__).parent
files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
names = [str(path.relative_to(folder)) for path in files]
print(json.dumps({"folder": str(folder), "files": names}))
"""
BUILD = "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """A new environment with the wheel; what it depends on is what this Python has."""
    folder = tmp_path_factory.mktemp("wheel")
    environment, dist, source = folder / "environment", folder / "dist", folder / "source"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    shutil.copytree(REPOSITORY, source, symlinks=True, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    build = tomllib.loads((source / "pyproject.toml").read_text())["build-system"]
    assert build["build-backend"] == "setuptools.build_meta"
    output_of(python, "-m", "pip", "install", "--quiet", *build["requires"])
    output_of(python, "-c", BUILD, "build_sdist", dist, cwd=source)
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        # Python 3.11.2, which Debian 12 has, knows no filters.
        known = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(folder / "unpacked", **known)
    (unpacked,) = (folder / "unpacked").iterdir()
    output_of(python, "-c", BUILD, "build_wheel", dist, cwd=unpacked)
    (wheel,) = dist.glob("*.whl")
    output_of(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    # As --system-site-packages does, but from this environment, which may be one itself. Editable
    # installations in it stay out: what a .pth file adds is not searched for others.
    (packages,) = environment.glob("lib/python*/site-packages")
    here = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "dependencies.pth").write_text("\n".join(here) + "\n")
    return environment


@pytest.fixture
def call(environment, tmp_path, monkeypatch):
    """Run a command of the environment in an empty folder."""
    for name in ("PYTHONPATH", "PYTHONHOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    folder = tmp_path / "empty"
    folder.mkdir()

    def call(program, *arguments):
        return output_of(environment / "bin" / program, *arguments, cwd=folder)

    return call


@pytest.mark.slow
def test_the_wheel_has_every_module_and_every_file_beside_them(call, environment):
    found = json.loads(call("python", "-c", INVENTORY))
    assert Path(found["folder"]).is_relative_to(environment)
    beside = {
        prefix.replace(".", "/") + str(path.relative_to(REPOSITORY / folder))
        for prefix, folder in FOLDERS.items()
        for path in (REPOSITORY / folder).rglob("*")
        if path.is_file() and not {"__pycache__", "node_modules"} & {*path.parts}
    }
    # The page is built of them.
    beside = {file for file in beside if not file.startswith("bistro/page/src/")}
    assert set(found["files"]) == beside
    kinds = {Path(file).suffix or file for file in beside}
    assert kinds >= {".py", ".h", ".toml", ".csv", ".css", ".js"}
    assert "py.typed" in found["files"]


@pytest.mark.slow
def test_a_report_of_the_paper_s_sweep_has_its_tables_and_names_what_judges_it(
    call, tmp_path, monkeypatch
):
    """The study's claims are no part of the package; a clone has them beside it."""
    monkeypatch.setenv("COLUMNS", "400")
    write_sweep(tmp_path / "empty" / "figure3", "figure3", gains, only=SMALL)
    told = call("datacollect", "report", "figure3")
    assert "over direct" in told
    (line,) = (line for line in told.splitlines() if line.startswith("verdicts "))
    command = "datacollect report figure3 --verdicts experiments/paper"
    assert " ".join(line.split()) == f"verdicts in a clone of datacollect: {command}"
    shutil.rmtree(tmp_path / "empty" / "figure3" / "report")
    hook = REPOSITORY / "experiments" / "paper"
    told = call("datacollect", "report", "figure3", "--verdicts", hook)
    assert "C1     direct" in told
