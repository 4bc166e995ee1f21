"""The command `datacollect sweep`: what it runs, says, and how it ends."""

from __future__ import annotations

import pytest
from conftest import NO_DASK

from datacollect.commands.main import run as run_command


@pytest.fixture
def experiment_file(tmp_path):
    (tmp_path / "line.toml").write_text(
        """
topology = { kind = "line", n_nodes = 2, rate_bytes_per_s = 1e6 }
hosts = { destination = { at = "N1" }, sources = [{ name = "S", at = "N0" }] }
backlog = { least_bytes = 1_000_000, most_bytes = 9_000_000 }
""",
        encoding="utf-8",
    )
    path = tmp_path / "rates.toml"
    path.write_text(
        """
scenario = "line.toml"
engine = "fluid"
seeds = { least = 2 }
[[axes]]
name = "method"
key = "method.name"
paired = true
values = ["direct", "coordinated"]
[[axes]]
name = "rate"
key = "topology.rate_bytes_per_s"
values = [500_000, 1_000_000]
""",
        encoding="utf-8",
    )
    return path


def test_the_command_runs_a_part_and_says_what_is_there(experiment_file, tmp_path, capsys):
    out = str(tmp_path / "out")
    command = ["sweep", str(experiment_file), "-o", out, "--workers", "0", "--only"]
    assert run_command([*command, "rate=500000", "--only", "method=direct"]) == 0
    captured = capsys.readouterr()
    assert "2 in" in captured.out
    assert "1 of 1 finished" in captured.out
    assert "2 runs done, 0 to do" not in captured.out
    assert run_command([*command, "rate=500000,1000000"]) == 0
    assert "8 in" in capsys.readouterr().out


def test_the_command_fails_where_runs_failed(experiment_file, tmp_path, capsys):
    text = experiment_file.read_text()
    experiment_file.write_text(
        text.replace("engine", 'set = {"hosts.destination.at" = "N9"}\nengine')
    )
    command = ["sweep", str(experiment_file), "-o", str(tmp_path / "out"), "--workers", "0"]
    assert run_command(command) == 3
    captured = capsys.readouterr()
    assert "failed    8" in captured.out
    assert "hosts.destination.at" in captured.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "rate"], "--only must be AXIS=LABEL,LABEL, got 'rate'"),
        (["--only", "rat=1"], "did you mean 'rate'"),
        (["--workers", "2", "--dask", "tcp://localhost:1"], "cannot be combined"),
        (["--dask", "tcp://127.0.0.1:1"], "no Dask scheduler answers at 'tcp://127.0.0.1:1'"),
    ],
)
def test_bad_usage_exits_with_2(experiment_file, tmp_path, capsys, options, message, monkeypatch):
    monkeypatch.setattr("datacollect.net.dask_scheduler.DASK_TIMEOUT_S", 1)
    if options[0] == "--dask":
        pytest.importorskip("distributed", reason=NO_DASK)
    command = ["sweep", str(experiment_file), "-o", str(tmp_path / "out"), *options]
    assert run_command(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
