"""The pull as a service of systemd, and its timer."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NO_SYSTEMD, REPOSITORY

from datacollect.commands.main import run

UNITS = REPOSITORY / "packaging" / "systemd"
SERVICE, TIMER = "datacollect-pull@.service", "datacollect-pull@.timer"
PROGRAM = "/opt/datacollect/bin/datacollect"


@pytest.fixture
def installed(tmp_path):
    """The folder of both, with a program that is there on this machine."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip(NO_SYSTEMD)
    text = (UNITS / SERVICE).read_text(encoding="utf-8")
    assert f"\nExecStart={PROGRAM} pull " in text
    (tmp_path / SERVICE).write_text(
        text.replace(f"ExecStart={PROGRAM}", f'ExecStart="{sys.executable}"')
    )
    shutil.copy(UNITS / TIMER, tmp_path)
    return tmp_path


def analyze(folder, *arguments):
    return subprocess.run(
        ["systemd-analyze", *arguments], check=False, capture_output=True, text=True, cwd=folder
    )


def test_systemd_takes_the_service_and_its_timer(installed):
    done = analyze(installed, "verify", f"./{SERVICE}", f"./{TIMER}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("unit", [SERVICE, "datacollect-agent.service"])
def test_it_is_exposed_to_little(installed, unit):
    """2.0 of 10, as systemd counts; the agent beside it as well."""
    if not (installed / unit).exists():
        text = (UNITS / unit).read_text(encoding="utf-8")
        (installed / unit).write_text(
            re.sub("ExecStart=[^ ]*", f'ExecStart="{sys.executable}"', text)
        )
    done = analyze(
        installed, "security", "--offline=true", "--threshold=20", "--no-pager", f"./{unit}"
    )
    if "Unknown" in done.stderr or "unrecognized" in done.stderr:  # before version 250
        pytest.skip(NO_SYSTEMD)
    assert done.returncode == 0, done.stdout
    [level] = re.findall(r"Overall exposure level for .*: ([0-9.]+)", done.stdout)
    assert float(level) <= 2.0


def test_the_key_is_read_where_systemd_puts_it_and_its_words_are_ours(tmp_path, capsys):
    """The collection file names the credential; the options of the unit are those of `pull`."""
    text = (UNITS / SERVICE).read_text(encoding="utf-8")
    [(name, source)] = re.findall(r"^LoadCredential=(\S+):(\S+)$", text, re.MULTILINE)
    assert source == "/etc/datacollect/%i/collector.key"
    [place] = re.findall(r'key = "(.*)"', text)
    assert Path(place) == Path("/run/credentials/datacollect-pull@night.service") / name
    assert run(["pull", "--help"]) == 0
    assert "--metrics" in capsys.readouterr().out
    assert "OPTIONS=--metrics" in text
