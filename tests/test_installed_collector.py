"""The collector alone: a wheel in an environment of its own, in which pulls come to their end."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import venv
from configparser import ConfigParser
from contextlib import contextmanager

import pytest
from conftest import REPOSITORY
from instances.agents import KEY, running, write_agent
from instances.command_line import output_of

from datacollect.net.keys import write_private_key
from datacollect.net.tls import fingerprint_of_file

BUILD = REPOSITORY / "packaging" / "build.py"
MOST_BYTES = 115_000_000
# What has to be installed to run pulls: packages that bring others with them count with those.
REQUIRED = {"apsw", "blake3", "cryptography", "h11", "numpy", "pylmcf", "rich", "typer", "tzdata"}
# What takes the most room of all that the whole package needs.
LEFT_OUT = {"ortools", "pyarrow", "scipy", "pandas", "pulp", "matplotlib", "networkx"}

LINKS = """
[[links]]
from = "S1"
to = "D"
bandwidth_bytes_per_s = 1e7
"""
SHARED = """
[[shared]]
name = "wire"
bandwidth_bytes_per_s = 5e6
links = [["S1", "D"]]
"""


def run(*command, **options):
    return subprocess.run(
        [*map(str, command)], check=False, capture_output=True, text=True, **options
    )


def test_it_asks_for_what_pulls_need_and_has_the_rest_as_an_extra(tmp_path):
    build = runpy.run_path(str(BUILD))
    build["stage_collector"](tmp_path)
    config = ConfigParser(interpolation=None)
    config.read(tmp_path / "setup.cfg", encoding="utf-8")
    assert set(build["requirements"](config["options"]["install_requires"]).values()) == REQUIRED
    extras = config["options.extras_require"]
    full = {name.lower() for name in build["requirements"](extras["full"]).values()}
    assert full == LEFT_OUT
    modules = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.py")}
    sources = [REPOSITORY / folder for folder in ("datacollect", "solvers", "topologies")]
    assert modules == {
        path.relative_to(REPOSITORY)
        for source in sources
        for path in source.rglob("*.py")
        if not (source / path.relative_to(source).parts[0]).is_symlink()
    }


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """An environment in which the wheel alone was installed, as users do."""
    folder = tmp_path_factory.mktemp("collector")
    output_of(sys.executable, BUILD, folder / "dist", "--collector")
    (wheel,) = (folder / "dist").iterdir()
    venv.create(folder / "alone", with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", folder / "alone" / "bin" / "python"]
    output_of(*pip, "install", "--quiet", "--no-compile", wheel)
    return folder / "alone", pip


@contextmanager
def collection(folder, links):
    """Write a collection of what an agent serves, which runs meanwhile; yield its path."""
    write_private_key(folder / "collector.key", KEY)
    path = write_agent(folder, "S1", serve="data")
    (folder / "data" / "file").write_bytes(bytes(range(256)) * 5000)
    with running(path) as agent:
        (folder / "collection.toml").write_text(
            'format = "datacollect-collection/1"\ndestination = "D"\nkey = "collector.key"\n'
            f'[agents.S1]\nurl = "https://{agent.place}"\n'
            f'fingerprint = "{fingerprint_of_file(folder / "S1.cert.pem")}"\n{links}'
        )
        yield folder / "collection.toml"


@pytest.mark.slow
def test_the_wheel_alone_is_small_and_pulls_by_every_method(alone, tmp_path):
    environment, pip = alone
    program = environment / "bin" / "datacollect"
    (packages,) = environment.glob("lib/python*/site-packages")
    assert sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()) < MOST_BYTES
    listed = {each["name"].lower() for each in json.loads(output_of(*pip, "list", "--format=json"))}
    assert listed >= REQUIRED | {"datacollect-collector"}
    assert not listed & LEFT_OUT
    assert output_of(program, "--version", env={}).startswith("datacollect 0")
    # Rates of links are learned on the way where the file knows none.
    for method, links in [
        *(("direct", ""), ("direct", LINKS), ("adaptive", ""), ("adaptive", LINKS)),
        *(("best-path", LINKS), ("coordinated", LINKS)),
    ]:
        folder = tmp_path / (method + " known" * bool(links))
        folder.mkdir()
        with collection(folder, links) as path:
            said = output_of(
                program, "pull", path, "--into", folder / "got", "--method", method, env={}
            )
        assert "1 file" in said
        assert (folder / "got/S1/file").read_bytes() == (folder / "data/file").read_bytes()
    assert json.loads(output_of(program, "status", folder / "got", "--json"))["complete"]


@pytest.mark.slow
def test_what_needs_more_names_the_package(alone, tmp_path):
    """Shared wires need a linear program, pictures a library that draws."""
    environment, _ = alone
    program = environment / "bin" / "datacollect"
    problem = tmp_path / "problem.toml"
    problem.write_text('destination = "D"\n[hosts.S1]\nbacklog_bytes = 5\n[hosts.D]\n' + LINKS)
    schedule = tmp_path / "plan.json"
    output_of(program, "plan", problem, "-o", schedule)
    picture = run(program, "plot", problem, schedule, "-o", tmp_path / "plan.png")
    problem.write_text(problem.read_text() + SHARED)
    shared = run(program, "plan", problem)
    for done, package in ((picture, "matplotlib"), (shared, "ortools")):
        assert (done.returncode, done.stdout) == (3, "")
        # Where uv is at hand it installs.
        installs = rf"pip install (--python \S+ )?'{package}>="
        assert re.search(rf"needs the package {package}.*{installs}", done.stderr)
