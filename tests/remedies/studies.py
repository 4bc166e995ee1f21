"""Remedies about sweeps, and about reports of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
import tempfile
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from conftest import NO_DASK, REPOSITORY
from instances.made_sweeps import write_sweep
from remedies.trying import Example, call, in_new_folder, told, without

from datacollect.bistro.auditor.workers import workers_of
from datacollect.study.report.hooks import load_hook
from datacollect.study.report.own import require_over
from datacollect.study.workers import DaskCluster

JUDGE = "def judge(sweeps): ...\n"


def hook(place, **files):
    """Load who judges, from a file or a module; it is forgotten again."""

    def load():
        with in_new_folder(**files), mock.patch.dict(sys.modules):
            load_hook(place)

    return load


def axis(name, labels=("a", "b"), paired=True):
    return SimpleNamespace(name=name, labels=labels, paired=paired)


def over(name, label):
    """Compare a sweep of a method, whose rates are other networks, with a label of an axis."""
    sweep = SimpleNamespace(axes=[axis("method"), axis("rate", paired=False)])
    return lambda: require_over([sweep], {name: label})


# Folders of sweeps -------------------------------------------------------------------------------

LINE = """
topology = { kind = "line", n_nodes = 2, rate_bytes_per_s = 1e6 }
hosts = { destination = { at = "N1" }, sources = [{ name = "S", at = "N0" }] }
backlog = { least_bytes = 1_000_000, most_bytes = 9_000_000 }
"""
EXPERIMENT = """
scenario = "line.toml"
engine = "fluid"
seeds = { least = 2, most = 2 }
[[axes]]
name = "rate"
key = "topology.rate_bytes_per_s"
values = [4e5, 1e6]
"""
OF_DATA = """
scenario = "s.toml"
engine = "fluid"
seeds = { least = 1, most = 1 }
[[axes]]
name = "problem"
values = [{ label = "a", set = { "problem" = "{data}/p.toml" } }]
"""
OF_PROBLEM = 'problem = "p.toml"\n'
PROBLEM = """
destination = "D"
[hosts.D]
[hosts.S]
backlog_bytes = 1000
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 100.0
"""
SWEEP = "sweep e.toml --workers 0"


def swept(*lines, **files):
    """Run commands, and what changes files between them; return what the last one says."""

    def run():
        files_too = {"line_toml": LINE, "e_toml": EXPERIMENT} | files
        with (
            in_new_folder(**files_too) as folder,
            mock.patch("datacollect.study.report.report.picture_bytes", return_value=b""),
        ):
            for line in lines:
                said = line(folder) if callable(line) else call(line)
            return said

    return run


def cut_short(folder):
    file = folder / "out/experiment.json"
    file.write_text(file.read_text()[:-20])


def without_axes(folder):
    file = folder / "out/experiment.json"
    tree = json.loads(file.read_text())
    del tree["axes"]
    file.write_text(json.dumps(tree))


def of_another_axis(folder):
    file = folder / "e.toml"
    file.write_text(file.read_text().replace('"rate"', '"speed"'))


def verdicts(is_given):
    """Report a sweep of the paper; then, in a clone, as the report says."""

    def run():
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(REPOSITORY):
            one = {"flows": ["60"], "ratio": ["1:1"], "udp": ["5 %"]}
            write_sweep(Path(folder, "figure3"), only=one)
            with (
                mock.patch.dict(os.environ, COLUMNS="400"),
                mock.patch("datacollect.study.report.report.picture_bytes", return_value=b""),
                mock.patch.dict(sys.modules),
            ):
                said = call(f"report {folder}/figure3")
                if not is_given:
                    return said
                command = r"in a clone of datacollect: datacollect (report \S+ \S+ \S+)"
                return call(*re.findall(command, said))

    return run


# Workers -----------------------------------------------------------------------------------------


def failing(error=None):
    """Sweep where a worker fails, or does not."""

    def run():
        job = mock.patch("datacollect.study.workers.work", side_effect=error)
        with job if error else contextlib.nullcontext():
            return swept(f"{SWEEP} -o out")()

    return run


@contextlib.contextmanager
def scheduler(n_workers):
    """Yield the address of a Dask scheduler in this process, with workers as a command says."""
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    with distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address=None,
    ) as cluster:
        yield cluster.scheduler_address


def taken_by_dask(said):
    """Look whether Dask has the commands, with the options, that a text names; return the text."""
    commands = [shlex.split(text) for text in re.findall(r"`(dask [^`]*)`", said)]
    assert commands
    for dask, name, *arguments in commands:
        (point,) = entry_points(group="dask_cli", name=name)
        point.load().make_context(dask, arguments)
    return said


def asked_of_dask(n_workers, ask):
    """Return what is said of a scheduler, which has workers or has none."""

    def run():
        with scheduler(n_workers) as address:
            said = told(lambda: ask(address))
        return said if n_workers else taken_by_dask(said)

    return run


def waiting_sweep(address):
    with mock.patch("datacollect.study.workers.ALONE_S", 0.0):
        pool = DaskCluster(address)
        try:
            return pool.trouble()
        finally:
            pool.close()


def audited(address, within_s=0.5):
    with (
        mock.patch("datacollect.bistro.auditor.workers.DASK_TIMEOUT_S", within_s),
        workers_of(0, address) as workers,
    ):
        return list(workers.each(abs, [(-1,)]))


def at_a_closed_port():
    pytest.importorskip("distributed", reason=NO_DASK)
    with mock.patch("datacollect.net.dask_scheduler.DASK_TIMEOUT_S", 0.2):
        return taken_by_dask(told(lambda: DaskCluster("tcp://127.0.0.1:1")))


def audited_by_processes():
    with workers_of(0, None) as workers:
        return list(workers.each(abs, [(-1,)]))


EXAMPLES = [
    Example("no such folder, file or module; {}", hook("no_such"), hook("own.py", own_py=JUDGE)),
    Example("there is no file {}; {}", hook("gone.py"), hook("gone.py", gone_py=JUDGE)),
    Example(
        "{} is not Python source; {}", hook("own.txt", own_txt=JUDGE), hook("own.py", own_py=JUDGE)
    ),
    Example(
        "line {}: {}; correct it", hook("own.py", own_py="1 +* 2\n"), hook("own.py", own_py=JUDGE)
    ),
    Example(
        "a module is called {} already, from {}; rename one of them",
        hook("json.py", json_py=JUDGE),
        hook("our_json.py", our_json_py=JUDGE),
    ),
    Example(
        "no axis is called {}; of the paired axes {}", over("methods", "a"), over("method", "a")
    ),
    Example(
        "cannot be compared seed for seed; of the paired axes {}",
        over("rate", "a"),
        over("method", "a"),
    ),
    Example(
        "needs the folder of data; name it with --data",
        swept(f"{SWEEP} -o out", e_toml=OF_DATA, s_toml=OF_PROBLEM, p_toml=PROBLEM),
        swept(f"{SWEEP} -o out --data .", e_toml=OF_DATA, s_toml=OF_PROBLEM, p_toml=PROBLEM),
    ),
    Example(
        "or sweep into another folder, with --reuse {}",
        swept(f"{SWEEP} -o out", of_another_axis, f"{SWEEP} -o out"),
        swept(f"{SWEEP} -o out", of_another_axis, f"{SWEEP} -o new --reuse out"),
    ),
    Example(
        "cannot be read as JSON; is it cut short? Sweep into another folder",
        swept(f"{SWEEP} -o out", cut_short, "report out"),
        swept(f"{SWEEP} -o out", cut_short, f"{SWEEP} -o new", "report new"),
    ),
    Example(
        "missing; name a folder that `datacollect sweep` made",
        swept(f"{SWEEP} -o out", without_axes, "report out"),
        swept(f"{SWEEP} -o out", "report out"),
    ),
    Example(
        "seeds too few or too far apart to bound it from below; add --seeds",
        swept(f"{SWEEP} -o out", "report out"),
        swept(f"{SWEEP} -o out --seeds 12", "report out"),
    ),
    Example("in a clone of datacollect: {command}", verdicts(False), verdicts(True)),
    Example(
        "a worker failed: {}: {}; is datacollect installed on the worker?",
        failing(ModuleNotFoundError("No module named 'datacollect'")),
        failing(),
    ),
    Example(
        "use --workers",
        without("distributed", lambda: DaskCluster("tcp://127.0.0.1:1")),
        swept(f"{SWEEP} -o out"),
        module="study.workers",
    ),
    Example(
        "use --workers",
        without("distributed", lambda: audited("tcp://127.0.0.1:1")),
        audited_by_processes,
        module="bistro.auditor.workers",
    ),
    Example(
        "start one with `dask scheduler`, workers with `dask worker ADDRESS --nthreads 1`",
        at_a_closed_port,
        asked_of_dask(1, waiting_sweep),
    ),
    Example(
        "the sweep waits; start workers with `dask worker {} --nthreads 1`",
        asked_of_dask(0, waiting_sweep),
        asked_of_dask(1, waiting_sweep),
    ),
    Example(
        "has no workers; start some with `dask worker {} --nthreads 1`",
        asked_of_dask(0, audited),
        asked_of_dask(1, partial(audited, within_s=60)),
    ),
]
