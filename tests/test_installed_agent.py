"""The agent alone: a wheel in an environment of its own, a service; files arrive."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import venv
from contextlib import contextmanager

import pytest
from conftest import NO_SYSTEMD, REPOSITORY
from instances.agents import received, write_agent
from instances.command_line import output_of
from instances.ports import free_port
from instances.tunnels import counting, service, tunnel_table

from datacollect import agent_alone
from datacollect.net.keys import new_private_key, write_private_key
from datacollect.net.tls import fingerprint_of_file
from datacollect.transfer.pull.run import pull
from datacollect.transfer.tunnel.tunnel import tunnel

PACKAGING = REPOSITORY / "packaging"
UNITS = PACKAGING / "systemd"
WAIT_S = 300
MOST_BYTES = 25_000_000
# Ours, the four that it needs, and what these need: the last before Python 3.12 alone.
PACKAGES = {
    *("datacollect-agent", "h11", "blake3", "cryptography", "cffi", "pycparser"),
    "prometheus-client",
    *(["typing-extensions"] if sys.version_info < (3, 12) else []),
}


# What is imported ---------------------------------------------------------------------------


@pytest.mark.slow
def test_it_imports_what_three_packages_offer_and_nothing_heavy():
    """In a process of its own: what has been imported here stays."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "import datacollect.agent_alone, datacollect.net.tickets\n"
        "import datacollect.transfer.agent.run, datacollect.transfer.agent.config.setting_up\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    loaded = set(output_of(sys.executable, "-c", code).split()) - set(sys.stdlib_module_names)
    assert {"datacollect"} <= loaded <= {"datacollect", "h11", "blake3", "cryptography"}


def test_both_programs_take_the_same_options(capsys):
    with pytest.raises(SystemExit):
        agent_alone.run(["init", "--help"])
    alone = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    from datacollect.commands.main import run as run_all

    run_all(["agent", "init", "--help"])
    assert alone == set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


def test_keys_and_an_agent_are_made_as_by_the_other_program(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    assert agent_alone.run(["keys", "new", "k"]) == 0
    public = capsys.readouterr().out.strip()
    assert agent_alone.run(["keys", "show", "k"]) == 0
    assert capsys.readouterr().out.strip() == public
    init = ["init", "--name", "S1", "--serve", "data", "--collector", public]
    assert agent_alone.run([*init, "--address", "s1.example"]) == 0
    said = capsys.readouterr()
    printed = fingerprint_of_file(tmp_path / "S1.cert.pem")
    assert said.out == f"S1 https://s1.example:7443 {printed}\n"
    assert "start the agent with: datacollect-agent S1.toml" in said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["gone.toml"], "gone.toml: no such file"), (["keys", "show", "gone"], "gone: no such file")],
)
def test_what_is_wrong_is_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert agent_alone.run(arguments) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.splitlines()) == ("", [said.err.strip()])
    assert message in said.err


@pytest.mark.slow
def test_its_wheel_needs_four_packages():
    """One for metrics alone. A host that takes uploads has the whole package; no relay needs it."""
    code = "import build; modules, others = build.closure(); print(*others, *modules)"
    needed = set(output_of(sys.executable, "-c", code, cwd=PACKAGING).split())
    others = {name for name in needed if name.partition(".")[0] != "datacollect"}
    assert others == {"h11", "blake3", "cryptography", "prometheus_client"}
    assert not [name for name in needed if name.startswith("datacollect.bistro")]


# Built and started --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built by the environment that runs the tests; the one file is tried by `make release`."""
    folder = tmp_path_factory.mktemp("agent")
    output_of(sys.executable, PACKAGING / "build.py", folder)
    return next(folder.iterdir())


@contextmanager
def serving(folder, *program, to=""):
    """Run a program as an agent without any environment; yield the line that introduces it.

    `to`: where tunnels lead, as a service named echo; nowhere if empty.
    """
    place = f"127.0.0.1:{free_port()}"
    key = new_private_key()
    write_private_key(folder / "collector.key", key)
    (folder / "data").mkdir()
    (folder / "data" / "file").write_bytes(bytes(range(256)) * 5000)
    init = ("init", "--name", "S1", "--serve", "data", "--collector", key.public)
    line = output_of(*program, *init, "--listen", place, cwd=folder, env={})
    if to:
        with (folder / "S1.toml").open("a") as file:
            file.write(tunnel_table({"echo": to}, [key.public]))
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [*map(str, program), "S1.toml", "--json"],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=folder,
            env={},
            text=True,
        ) as process,
    ):
        try:
            facts = json.loads(process.stdout.readline())
            assert line.split() == [facts["name"], facts["url"], facts["fingerprint"]]
            yield line
            process.terminate()
            assert process.wait(WAIT_S) == 0
        finally:
            process.kill()


def require_all_arrives(folder, line):
    """Collect from the agent that a line introduces: it is asked who it is, and for its files."""
    _, url, fingerprint = line.split()
    (folder / "collection.toml").write_text(
        'format = "datacollect-collection/1"\ndestination = "D"\nkey = "collector.key"\n'
        f'[agents.S1]\nurl = "{url}"\nfingerprint = "{fingerprint}"\n'
    )
    answer = pull(folder / "collection.toml", folder / "got")
    assert answer.complete
    assert (folder / "got/S1/file").read_bytes() == (folder / "data/file").read_bytes()


def require_refused_uploads(folder, program):
    """What takes uploads is not in the wheel; whoever asks for it is told where it is."""
    (folder / "event.toml").write_text("")
    write_private_key(folder / "receipts.key", new_private_key())
    accept = (
        '[accept]\nevent = "event.toml"\nfolder = "up"\nbytes = 1\nreceipt_key = "receipts.key"'
    )
    write_agent(folder, "A", more=accept)
    done = subprocess.run(
        [program, "A.toml"], check=False, capture_output=True, text=True, cwd=folder, env={}
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "/path/of/clone[bistro]" in done.stderr


@pytest.mark.slow
def test_the_wheel_alone_serves_and_is_small(wheel, tmp_path):
    alone = tmp_path / "alone"
    venv.create(alone, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", alone / "bin" / "python"]
    output_of(*pip, "install", "--quiet", "--no-compile", wheel)
    listed = json.loads(output_of(*pip, "list", "--format", "json"))
    assert {each["name"].replace("_", "-") for each in listed} == PACKAGES
    (packages,) = alone.glob("lib/python*/site-packages")
    assert sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()) < MOST_BYTES
    program = alone / "bin" / "datacollect-agent"
    with service(counting) as place, serving(tmp_path, program, to=place) as line:
        require_all_arrives(tmp_path, line)
        with tunnel(tmp_path / "collection.toml", "S1:echo") as opened:
            opened.socket.shutdown(socket.SHUT_WR)
            assert received(opened.socket) == b"hello\ngot 0"
    require_refused_uploads(tmp_path, alone / "bin" / "datacollect-agent")


@pytest.mark.parametrize(
    ("unit", "program"),
    [
        ("datacollect-agent", "/usr/local/bin/datacollect-agent"),
        ("datacollect-bistro", "/opt/datacollect/bin/datacollect"),
        ("datacollect-mirror", "/opt/datacollect/bin/datacollect"),
        ("datacollect-quickstart", "/opt/datacollect/bin/datacollect"),
        ("datacollect-timestamp", "/opt/datacollect/bin/datacollect"),
        ("datacollect-witness", "/opt/datacollect/bin/datacollect"),
    ],
)
def test_systemd_takes_the_service(tmp_path, unit, program):
    if shutil.which("systemd-analyze") is None:
        pytest.skip(NO_SYSTEMD)
    text = (UNITS / f"{unit}.service").read_text(encoding="utf-8")
    # The program has to be there, which it is where it is installed.
    assert f"\nExecStart={program} " in text
    file = tmp_path / f"{unit}.service"
    file.write_text(text.replace(f"ExecStart={program}", f'ExecStart="{sys.executable}"'))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_packet_pairs_ask_of_the_unit_permits_the_scheduler_and_nothing_else(tmp_path):
    """Of `@resources` systemd names the first call that is permitted; there are more after it."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip(NO_SYSTEMD)
    page = (REPOSITORY / "docs" / "measuring" / "packets.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)
    unit = (UNITS / "datacollect-agent.service").read_text(encoding="utf-8")
    file = tmp_path / "datacollect-agent.service"
    file.write_text(re.sub("ExecStart=.*", f'ExecStart="{sys.executable}"', unit))
    before = exposures(file)
    (tmp_path / f"{file.name}.d").mkdir()
    (tmp_path / f"{file.name}.d" / "override.conf").write_text(lines)
    after = exposures(file)
    assert before.keys() == after.keys()
    changed = {name: after[name] for name in after if after[name] != before[name]}
    assert changed.keys() == {"RestrictRealtime=", "SystemCallFilter=~@resources"}
    assert "sched_setscheduler is allowed" in changed["SystemCallFilter=~@resources"]
    assert "LimitRTPRIO=1\n" in lines


def exposures(file) -> dict[str, str]:
    """Return what systemd says of each way in which a unit may do less."""
    command = ["systemd-analyze", "security", "--offline=true", "--json=short", str(file)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    # Before version 250 it reads no units that are not loaded.
    if not done.stdout:
        pytest.skip(NO_SYSTEMD)
    return {row["name"]: row["description"] for row in json.loads(done.stdout)}
