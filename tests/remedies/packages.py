"""Remedies that name a package, or an extra: the command installs what was missing."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
from contextlib import redirect_stderr
from importlib import import_module, metadata
from types import ModuleType
from unittest import mock

import pytest
from instances.events import event_of
from instances.installed_packages import forget_packages, install_package
from instances.made_sweeps import write_sweep
from measuring.results.test_changed_links import USUAL, series
from remedies.trying import Example, call, in_new_folder, told, until, without

from datacollect.bistro.destination.databases import open_database
from datacollect.bistro.formats.receipt import tokens
from datacollect.bistro.organiser.sheet import Card, sheet_html
from datacollect.commands.ending import exit_code_of
from datacollect.exports.formats import EXPORTS
from datacollect.files.registry import own_entry
from datacollect.leaving import _run as leave
from datacollect.measurement.routes import require_jc
from datacollect.measuring.commands.problem import _note_changes
from datacollect.measuring.page import watch
from datacollect.measuring.results.changed_links import bandwidth_changes
from datacollect.net.metrics import MetricsServer
from datacollect.simulation.ns3.process import NS3_VERSION, check_installed
from datacollect.solvers import cbc
from datacollect.solvers.choice import load_flow_solver
from datacollect.study.workers import DaskCluster
from datacollect.topologies.topohub import from_topohub
from datacollect.transfer.agent.handlers import handlers_of


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


def drawn_sheet():
    sheet_html(event_of(), [Card("Ann", "", "https://page.example/#t=x")])


def told_metrics():
    with MetricsServer(("127.0.0.1", 0), list, "--metrics 0"):
        pass


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


class Unloadable(ModuleType):
    """A module that needs what is not installed."""

    def __getattr__(self, name):
        raise ModuleNotFoundError("No module named 'pyrage'", name="pyrage")


def without_pyrage():
    name = "datacollect.bistro.upload_server.server"
    with mock.patch.dict(sys.modules, {name: Unloadable(name)}):
        sys.modules.pop("datacollect.bistro.upload_server.handlers", None)
        handlers_of("accept")


def uploading():
    return own_entry("name", "upload", "datacollect.bistro.person.upload:upload")


def in_the_core_alone():
    gone = {"datacollect.bistro.person.upload": None, "datacollect.bistro.person": None}
    with mock.patch.dict(sys.modules, gone):
        uploading()


def noted_changes():
    """Say that a bandwidth has changed."""
    said = io.StringIO()
    found = bandwidth_changes(series("S", [*USUAL, *[5.0] * 9]))
    rows = [vars(each) | {"from": each.tail, "to": each.head} for each in found]
    with redirect_stderr(said):
        _note_changes({"changes": rows})
    return said.getvalue()


def without_ruptures():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ruptures", None)
        return noted_changes()


def reported():
    with (
        in_new_folder() as folder,
        mock.patch("datacollect.study.report.report.picture_bytes", return_value=b""),
    ):
        write_sweep(folder / "figure3", only={"flows": ["60"], "ratio": ["1:1"], "udp": ["5 %"]})
        return call("report figure3")


def without_plotly():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "plotly", None)
        return reported()


def with_a_package(is_uninstalled):
    """List all exports where a package brings one of a name of ours, or did so before."""

    def run():
        with in_new_folder() as folder, mock.patch.object(sys, "path", [str(folder), *sys.path]):
            points = {EXPORTS.group: {"csv": "string:digits"}}
            install_package(folder, "bad-one", points, {})
            if is_uninstalled:
                shutil.rmtree(folder / "bad_one-1.0.dist-info")
            forget_packages()
            EXPORTS.names()

    def run_and_forget():
        try:
            run()
        finally:
            forget_packages()

    return run_and_forget


def loaded(error=None):
    """Load a program, which may have too little memory; return what is said."""

    def load():
        if error is not None:
            raise error
        return lambda: sys.exit(0)

    said = io.StringIO()
    with redirect_stderr(said), pytest.raises(SystemExit):
        leave(load)
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
        "segno",
        "QR codes need segno: {command}",
        without("segno", drawn_sheet),
        drawn_sheet,
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
        "prometheus-client",
        "prometheus-client is not installed, which writes metrics: {command_for_extra}",
        without("prometheus_client", told_metrics),
        told_metrics,
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
    installs(
        "pyrage",
        "is not installed, which {} needs: {command_for_extra}",
        without_pyrage,
        lambda: handlers_of("accept"),
    ),
    installs("pyrage", "needs the whole package: {command}", in_the_core_alone, uploading),
    installs(
        "ruptures",
        "note: the package ruptures would confirm these changes: {command_for_extra}",
        without_ruptures,
        noted_changes,
    ),
    installs("plotly", "none; for one: {command_for_extra}", without_plotly, reported),
    Example(
        "a name that datacollect itself has; uninstall the package, or have it renamed",
        with_a_package(False),
        with_a_package(True),
    ),
    Example(
        "error: datacollect cannot be loaded: {} {}; {}",
        lambda: loaded(MemoryError()),
        loaded,
    ),
]
