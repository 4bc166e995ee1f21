"""Remedies that name a package, or an extra: the command installs what was missing."""

from __future__ import annotations

import io
import re
import shlex
import sys
from contextlib import redirect_stderr
from importlib import import_module, metadata
from types import ModuleType
from unittest import mock

from remedies.trying import Example, told, until, without

from datacollect.bistro.destination.databases import open_database
from datacollect.bistro.formats.receipt import tokens
from datacollect.commands.ending import exit_code_of
from datacollect.measurement.routes import require_jc
from datacollect.measuring.page import watch
from datacollect.simulation.ns3.process import NS3_VERSION, check_installed
from datacollect.solvers import cbc
from datacollect.solvers.choice import load_flow_solver
from datacollect.study.workers import DaskCluster
from datacollect.topologies.topohub import from_topohub


def patched(target, value, provoke):
    """Return what runs with something else in a place."""

    def run_so():
        with mock.patch(target, value):
            return provoke()

    return run_so


def installed_by(message):
    """Return the distributions that the command in a message installs, beside our own."""
    (command,) = re.findall(r"pip install ((?:--editable )?(?:'[^']+'|[^' ]+))", message)
    target = shlex.split(command)[-1]
    lines = [target]
    if target.endswith("]"):
        extra = target.removesuffix("]").rpartition("[")[2]
        lines = [
            line
            for line in metadata.requires("datacollect")
            if re.search(f"extra == ['\"]{extra}['\"]", line)
        ]
    return {re.match(r"[\w-]+", line)[0].lower().replace("_", "-") for line in lines}


def installs(distribution, says, lacking, provoke):
    """Return the example of a package that is missing, and is there again."""

    def with_it():
        assert distribution in installed_by(told(lacking))
        return provoke()

    return Example(says, lacking, with_it)


def at_a_closed_port():
    with mock.patch("datacollect.net.dask_scheduler.DASK_TIMEOUT_S", 0.2):
        DaskCluster("tcp://127.0.0.1:1")


def in_topohub():
    return from_topohub("gabriel/2/0", rate_bytes_per_s=5.0)


def with_a_topohub():
    """Read from what answers as the package does."""
    nodes = [{"id": i, "name": f"R{i}", "pos": [float(i), 0.0]} for i in range(2)]
    tree = {"nodes": nodes, "edges": [{"source": 0, "target": 1, "dist": 1.0}]}
    package = ModuleType("topohub")
    package.get = {"gabriel/2/0": tree}.get
    with mock.patch.dict(sys.modules, {"topohub": package}):
        return in_topohub()


def nothing_found(provoke):
    return patched("importlib.util.find_spec", lambda *_: None, provoke)


def with_version_of_ns3(version):
    """Look for ns-3 as where that version of it is installed, whether or not one is."""
    with (
        mock.patch("importlib.util.find_spec", return_value=object()),
        mock.patch.object(metadata, "version", return_value=version),
    ):
        check_installed()


def with_our_ns3():
    with_version_of_ns3(NS3_VERSION)


def in_postgres():
    open_database("postgresql://127.0.0.1:1/none?connect_timeout=1", "", "tests")


LEMON = without("pylmcf", lambda: load_flow_solver("lemon"))


def without_lemon():
    with mock.patch.dict(sys.modules):
        sys.modules.pop("datacollect.solvers.lemon", None)
        return LEMON()


def complained_of(error):
    """Return what a command says of an error that nobody has caught."""
    said = io.StringIO()
    with redirect_stderr(said):
        exit_code_of(error)
    return said.getvalue()


EXAMPLES = [
    installs(
        "pandas",
        "which is not installed; install it: {command}",
        lambda: complained_of(ModuleNotFoundError("No module named 'pandas'", name="pandas")),
        lambda: import_module("pandas"),
    ),
    installs(
        "ns3",
        "ns-3 is not installed: {command_for_extra}",
        nothing_found(check_installed),
        with_our_ns3,
    ),
    installs(
        "ns3",
        "versions differ in their results: {command_for_extra}",
        lambda: with_version_of_ns3("3.43"),
        with_our_ns3,
    ),
    installs(
        "distributed",
        "Dask is not installed: {command_for_extra}",
        without("distributed", at_a_closed_port),
        until("no Dask scheduler answers at", at_a_closed_port),
    ),
    installs(
        "topohub",
        "the package topohub is not installed ({}); install it with: {command_for_package}",
        without("topohub", in_topohub),
        with_a_topohub,
    ),
    installs(
        "pylmcf",
        "needs the package {}, which is not installed; install it with: {command}",
        without_lemon,
        lambda: load_flow_solver("lemon"),
    ),
    installs(
        "ortools",
        "no flow solver is installed: {command}",
        nothing_found(lambda: load_flow_solver("auto")),
        lambda: load_flow_solver("auto"),
    ),
    installs(
        "pulp",
        "which PuLP 3 brings along and PuLP 4 does not; install it with: {command_for_package}",
        patched("datacollect.solvers.cbc.shutil.which", lambda _: None, cbc._cbc_path),
        cbc._cbc_path,
    ),
    installs(
        "plotly",
        "the page needs plotly: {command_for_extra}",
        patched("datacollect.measuring.page.watch.plotly_script", lambda: None, watch._plotly),
        watch._plotly,
    ),
    installs(
        "jc",
        "which reads what traceroute says, is not installed: {command_for_extra}",
        without("jc", require_jc),
        require_jc,
    ),
    installs(
        "psycopg",
        "a register in PostgreSQL needs psycopg: {command}",
        without("psycopg", in_postgres),
        until("connection failed", in_postgres),
    ),
    installs(
        "rfc3161-client",
        "cannot be judged here; install what does it: {command}",
        without("rfc3161_client", lambda: tokens.query_of(b"message")),
        lambda: tokens.query_of(b"message"),
    ),
]
