"""Remedies that install something name what exists, wherever the package came from."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from configparser import ConfigParser
from importlib import metadata
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest
from conftest import REPOSITORY
from instances.installed_packages import without_package
from judges.imports import read_modules

from datacollect import installation
from datacollect.errors import DatacollectError
from datacollect.installation import command_for_extra, command_for_package, installed_version


def fake(monkeypatch, tree, requires=("plotly>=6.0; extra == 'report'", "ortools>=9.15")):
    """Have the metadata of the installation be these, as pip would have written them."""

    class Distribution:
        def read_text(self, name):
            assert name == "direct_url.json"
            return None if tree is None else json.dumps(tree)

    monkeypatch.setattr(installation.metadata, "distributions", lambda **_: [Distribution()])
    monkeypatch.setattr(installation.metadata, "requires", lambda _: list(requires))


def arguments(command):
    """Return what a command hands to ``pip install``."""
    words = shlex.split(command)
    return words[words.index("install") + 1 :]


def test_of_a_clone_the_folder_is_named(monkeypatch, tmp_path):
    clone = tmp_path / "a clone"
    clone.mkdir()
    fake(monkeypatch, {"url": clone.as_uri(), "dir_info": {}})
    assert arguments(command_for_extra("report")) == [f"{clone}[report]"]
    fake(monkeypatch, {"url": clone.as_uri(), "dir_info": {"editable": True}})
    assert arguments(command_for_extra("report")) == ["--editable", f"{clone}[report]"]


def test_of_a_wheel_the_file_is_named(monkeypatch, tmp_path):
    wheel = tmp_path / "datacollect-0.1.0-py3-none-any.whl"
    wheel.touch()
    fake(monkeypatch, {"url": wheel.as_uri(), "archive_info": {}})
    assert arguments(command_for_extra("report")) == [f"{wheel}[report]"]


@pytest.mark.parametrize(
    "tree",
    [
        None,
        {"url": "file:///gone/with/the/clone", "dir_info": {}},
        {"url": "https://example.org/datacollect.git", "vcs_info": {"vcs": "git"}},
    ],
    ids=["index", "gone", "elsewhere"],
)
def test_where_the_source_is_gone_what_an_extra_consists_of_is_named(monkeypatch, tmp_path, tree):
    fake(monkeypatch, tree)
    monkeypatch.setattr(installation, "__file__", str(tmp_path / "site" / "x" / "installation.py"))
    assert arguments(command_for_extra("report")) == ["plotly>=6.0"]


def test_packages_come_in_versions_that_fit(monkeypatch):
    fake(monkeypatch, None, ["PuLP<4,>=2.9"])
    assert arguments(command_for_package("pulp")) == ["PuLP<4,>=2.9"]
    assert arguments(command_for_package("other")) == ["other"]


@pytest.mark.parametrize("name", installation.DISTRIBUTIONS)
def test_a_part_of_the_package_knows_its_version_and_what_it_can_use(monkeypatch, name):
    """The collector alone and the agent alone are distributions of their own."""

    def distributions(**asked):
        return [object()] if asked["name"] == name else []

    monkeypatch.setattr(installation.metadata, "distributions", distributions)
    monkeypatch.setattr(installation.metadata, "version", {name: "0.1.0"}.__getitem__)
    requires = {name: ['ortools>=9.15; extra == "full"']}
    monkeypatch.setattr(installation.metadata, "requires", requires.__getitem__)
    assert installed_version() == "0.1.0"
    assert arguments(command_for_package("ortools")) == ["ortools>=9.15"]


def test_of_a_folder_that_nobody_installed_no_version_is_known(monkeypatch):
    def version(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation.metadata, "distributions", lambda **_: [])
    monkeypatch.setattr(installation.metadata, "version", version)
    assert installed_version() is None


def test_the_pip_is_the_one_of_this_python(monkeypatch, tmp_path):
    for name in ("ours", "others"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pip").touch(mode=0o755)
    python = str(tmp_path / "ours" / "python")
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setenv("PATH", str(tmp_path / "ours"))
    assert command_for_package("other") == "pip install other"
    monkeypatch.setenv("PATH", str(tmp_path / "others"))
    assert command_for_package("other") == f"{python} -m pip install other"


def test_without_pip_uv_is_named_or_how_pip_comes(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", "/our env/bin/python")
    monkeypatch.setattr(installation, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    python = "'/our env/bin/python'"
    then = f"{python} -m pip install other"
    assert command_for_package("other") == f"{python} -m ensurepip && {then}"
    (tmp_path / "uv").touch(mode=0o755)
    assert command_for_package("other") == f"uv pip install --python {python} other"


def test_no_other_place_makes_such_a_command():
    pattern = re.compile(r"pip install|-m pip\b|pip3 install")
    places = {module for module, text in read_modules().items() if pattern.search(text)}
    # A docstring names a package of the public index; an example is run from anywhere, by itself.
    assert places == {"topologies.topohub", "examples.upload_server"}


# Extras of users; those of developers come in by `make`.
OF_USERS = (
    *("fast", "topohub", "ns3", "dask", "bistro", "postgresql", "measure", "metrics", "report"),
)


def extras():
    """Return what setup.cfg has, by extra."""
    parser = ConfigParser()
    parser.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    return {
        name: {line for line in text.split("\n") if line and not line.startswith("#")}
        for name, text in parser["options.extras_require"].items()
    }


def test_one_extra_is_all_that_users_may_want_but_the_packet_simulator():
    found = extras()
    wanted = set().union(*(found[name] for name in OF_USERS if name != "ns3"))
    assert found["all"] == wanted


def test_the_readme_has_a_table_of_the_extras():
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert {row for row in rows if row in extras()} == {*OF_USERS, "all"}


def test_nobody_is_told_to_fetch_the_package_from_an_index():
    """An index would give a stranger's `datacollect[…]`, or nothing: nobody has published it."""
    pages = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")]
    texts = {str(page): page.read_text(encoding="utf-8") for page in pages} | read_modules()
    named = re.compile(r"(?<![./])\bdatacollect\[[a-z]|pip install '?datacollect")
    assert [place for place, text in texts.items() if named.search(text)] == []


def test_a_part_of_the_package_has_no_extras_and_names_a_clone(monkeypatch, tmp_path):
    """The agent's wheel is still there, and ``agent.whl[bistro]`` would install nothing more."""
    wheel = tmp_path / "datacollect_agent-0.1.0-py3-none-any.whl"
    wheel.touch()
    fake(monkeypatch, {"url": wheel.as_uri(), "archive_info": {}}, ["h11>=0.16"])
    assert arguments(command_for_extra("bistro")) == ["/path/of/clone[bistro]"]


# Each place where something may be missing, and how it comes to say so.
def no_ns3(monkeypatch):
    from datacollect.simulation.ns3 import process

    monkeypatch.setattr(process.importlib.util, "find_spec", lambda _: None)
    process.check_installed()


def another_ns3(monkeypatch):
    from datacollect.simulation.ns3 import process

    monkeypatch.setattr(process.importlib.util, "find_spec", lambda _: True)
    monkeypatch.setattr(process.metadata, "version", lambda _: "3.43")
    process.check_installed()


def no_dask(monkeypatch):
    from datacollect.study.workers import DaskCluster

    monkeypatch.setitem(sys.modules, "distributed", None)
    DaskCluster("tcp://127.0.0.1:1")


def no_topohub(monkeypatch):
    from datacollect.topologies.topohub import from_topohub

    monkeypatch.setitem(sys.modules, "topohub", None)
    from_topohub("topozoo/Abilene", rate_bytes_per_s=5.0)


def no_pylmcf(monkeypatch):
    from datacollect.solvers.choice import load_flow_solver

    monkeypatch.delitem(sys.modules, "datacollect.solvers.lemon", raising=False)
    monkeypatch.setitem(sys.modules, "pylmcf", None)
    load_flow_solver("lemon")


def no_solver(monkeypatch):
    from datacollect.solvers import choice

    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda _: None)
    choice.load_flow_solver("auto")


def no_plotly(monkeypatch):
    from datacollect.measuring.page import watch

    monkeypatch.setattr(watch, "plotly_script", lambda: None)
    watch._plotly()


def no_jc(monkeypatch):
    from datacollect.measurement.routes import require_jc

    without_package(monkeypatch, "jc")
    require_jc()


def no_pyrage(monkeypatch):
    from datacollect.transfer.agent.handlers import handlers_of

    class Unloadable(ModuleType):
        def __getattr__(self, name):
            raise ModuleNotFoundError("No module named 'pyrage'", name="pyrage")

    name = "datacollect.bistro.upload_server.server"
    monkeypatch.setitem(sys.modules, name, Unloadable(name))
    monkeypatch.delitem(sys.modules, "datacollect.bistro.upload_server.handlers", raising=False)
    handlers_of("accept")


def no_cbc(monkeypatch):
    from datacollect.solvers import cbc

    monkeypatch.setattr(cbc.shutil, "which", lambda _: None)
    cbc._cbc_path()


def no_prometheus(monkeypatch):
    from datacollect.net.metrics import MetricsServer

    without_package(monkeypatch, "prometheus_client")
    MetricsServer(("127.0.0.1", 0), list, "--metrics 0")


MISSING = [no_ns3, another_ns3, no_dask, no_topohub, no_pylmcf, no_solver, no_cbc, no_plotly, no_jc]
MISSING += [no_pyrage, no_prometheus]


def remedy_of(missing):
    """Return what pip is to install, as the message says it."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(DatacollectError) as failure:
        missing(patch)
    (command,) = re.findall(
        r"[^ ]*pip install (?:--editable )?(?:'[^']+'|[^' ]+)", str(failure.value)
    )
    return arguments(command)


@pytest.mark.parametrize("missing", MISSING)
def test_each_remedy_names_a_clone_and_its_extra_or_a_package_that_we_require(missing):
    *options, target = remedy_of(missing)
    path, bracket, extra = target.removesuffix("]").partition("[")
    if bracket:
        assert options in ([], ["--editable"])
        assert "name = datacollect\n" in (Path(path) / "setup.cfg").read_text(encoding="utf-8")
        assert extra in metadata.metadata("datacollect").get_all("Provides-Extra")
    else:
        assert not options
        assert target in {line.partition(";")[0] for line in metadata.requires("datacollect")}


@pytest.mark.slow
def test_pip_takes_each_remedy():
    """In one dry run, without what the packages need in turn."""
    remedies = chain.from_iterable(map(remedy_of, MISSING))
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet"]
    done = subprocess.run(
        [*command, *remedies], check=False, capture_output=True, text=True, cwd=os.sep
    )
    assert done.returncode == 0, done.stderr
