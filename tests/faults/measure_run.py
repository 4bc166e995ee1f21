"""Fail the n-th call of a test of the network, at whoever asks for it or at either agent.

Run as a script in a process of its own, as `log_run`. Each experiment is a copy of this process
with agents and a command of ``datacollect measure``, of which one call fails. The command must say
what is wrong, by its exit code, in words, and in the rows that it keeps, each there once and whole.
Then, beside the same agents, the same command without a fault: no host may still be held, no agent
be out of service. And once more after all have been started again.

Then either side alone is killed there, whoever asks or the agents: no host stays held, no row is
lost or there twice.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import shim

shim.install()

from faults.copies import DONE, SAID, Trial  # noqa: E402
from faults.time_limits import Late, Waiting, limit_s  # noqa: E402
from instances.agents import RunningAgent, write_agent  # noqa: E402
from instances.measuring import measure_table, write_hosts  # noqa: E402
from instances.ports import free_port  # noqa: E402
from measuring.operator.modelled_wire import ModelledWire  # noqa: E402

from datacollect.commands.main import run as run_command  # noqa: E402
from datacollect.measurement.sample_store import read_parts  # noqa: E402
from datacollect.measuring.agent.handlers import Measuring  # noqa: E402
from datacollect.transfer.agent.config.file import AgentConfig  # noqa: E402
from datacollect.transfer.agent.run import Agent  # noqa: E402

# Each takes part of a second; loopback is above what pairs tell of available bandwidth.
COMMANDS: dict[str, tuple[str, ...]] = {
    "ping": ("--count", "2", "--every", "0.2"),
    "trace": ("--hops", "3"),
    "tcp": ("--streams", "2", "--bytes", "300 kB"),
    "pairs": ("--within", "1", "--seconds", "1"),
    "curve": ("--seconds", "0.2", "--bytes", "300 kB"),
    "scan": ("--streams", "1", "--streams", "2", "--window", "auto", "--bytes", "100 kB"),
    "flood": ("--from", "S", "--bytes", "300 kB"),
    "cycle": ("--tools", "ping,tcp", "--only", "matter"),
}
PATIENCE_S, AGENTS_WITHIN_S = 5.0, 30.0
# What no two processes of one machine share is in the way of none.
TRACEROUTE = """#!/bin/sh
echo 'traceroute to 127.0.0.1 (127.0.0.1), 3 hops max, 60 byte packets'
echo ' 1  127.0.0.1  0.1 ms  0.1 ms'
"""
PING = """#!/bin/sh
echo '64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.1 ms'
echo '64 bytes from 127.0.0.1: icmp_seq=2 ttl=64 time=0.1 ms'
echo '2 packets transmitted, 2 received, 0% packet loss, time 200ms'
"""
# Packets leave loopback sooner than pairs can tell: they pass a wire that is a model.
WIRE_BYTES_PER_S = 625_000.0
# The last one only where a person's file or folder cannot be used.
FAILED_CODES, USELESS = (1, 2, 3), "cannot be "
OPERATOR_ALONE, AGENTS = "operator", "agents"
# Who is killed alone: with these tools, one of each kind.
APART = ("tcp", "cycle")
KEPT = {"cycle.json", "cycle.lock"}


@contextmanager
def agents_of(folder: Path, names: str) -> Iterator[None]:
    """Run the agents of a folder, on free ports, and name them in the file of hosts."""
    with ExitStack() as ended:
        found: dict[str, RunningAgent] = {}
        for name in names:
            places = {other: agent.place for other, agent in found.items()}
            (folder / name).mkdir(exist_ok=True)
            table = measure_table(udp_port=free_port())
            path = write_agent(folder / name, name, connect_to=places, more=table)
            config = AgentConfig.from_file(path)
            records: list[dict] = []
            agent = Agent(
                config,
                lambda line, records=records: records.append(json.loads(line)),
                Measuring(config, lambda _: None).handlers(),
            )
            threading.Thread(target=agent.run, daemon=True).start()
            ended.callback(agent.stop)
            found[name] = RunningAgent(name, agent, records)
        (folder / "operator.key").unlink(missing_ok=True)
        write_hosts(folder, found)
        yield


def prepare(folder: Path) -> None:
    """Lay out what agents keep, and programs that answer at once."""
    (folder / "bin").mkdir()
    for name, text in (("traceroute", TRACEROUTE), ("ping", PING)):
        path = folder / "bin" / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def run(tool: str, folder: Path, generation: int) -> int:
    """Run a command beside agents, with the fault, and again beside the same agents without."""
    os.environ["PATH"] = f"{folder / 'bin'}:/usr/bin:/bin"
    if tool == "pairs":
        ModelledWire(pytest.MonkeyPatch(), WIRE_BYTES_PER_S)
    fault, shim.ARMED.fault = shim.ARMED.fault, None
    with agents_of(folder, "DES" if tool == "flood" else "DS"):
        code = measured(tool, folder, fault)
        if generation == 0 and (again := measured(tool, folder)) != DONE:
            raise Late(f"beside the same agents: {again}")
    if generation == 0:
        (folder / "ended").touch()
    shim.ARMED.fault = fault
    return code


def start_agents(folder: Path, names: str, fault: dict | None = None) -> None:
    """Run agents in a process of their own, until `stop_agents`; with a fault of theirs."""
    (folder / "stop").unlink(missing_ok=True)
    (folder / "hosts.toml").unlink(missing_ok=True)
    (folder / "pid").unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        try:
            with agents_of(folder, names):
                (folder / "pid").write_text(str(os.getpid()))
                shim.ARMED.fault = fault
                while folder.exists() and not (folder / "stop").exists():
                    time.sleep(0.01)
                shim.ARMED.fault = None
            (folder / "agents.counts").write_text(json.dumps(shim.ARMED.counts))
        finally:
            os._exit(0)
    wait_until((folder / "pid").exists, "no agents come")


def are_there(folder: Path) -> bool:
    """Whether the agents of a folder run."""
    try:
        os.kill(int((folder / "pid").read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


def stop_agents(folder: Path) -> None:
    """Let the agents of a folder end, if any runs, and wait for that."""
    (folder / "stop").touch()

    def are_gone() -> bool:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        return not are_there(folder)

    wait_until(are_gone, "the agents do not end")


def wait_until(is_so: Callable[[], bool], why: str) -> None:
    """Wait for something; say why that takes too long."""
    waiting = Waiting(limit_s(AGENTS_WITHIN_S))
    while not is_so():
        if waiting.is_over():
            raise Late(why)
        time.sleep(0.01)


def run_apart(tool: str, killed: str, folder: Path, generation: int) -> int:
    """Run a command beside agents in another process, of which one is killed; then again.

    Agents go on where the command is killed: their hosts must be free for the next one.
    """
    os.environ["PATH"] = f"{folder / 'bin'}:/usr/bin:/bin"
    names = "DES" if tool == "flood" else "DS"
    fault, shim.ARMED.fault = shim.ARMED.fault, None
    theirs = killed == AGENTS
    if not are_there(folder):
        start_agents(folder, names, fault if theirs else None)
    code = measured(tool, folder, None if theirs else fault)
    if theirs and generation == 0:
        stop_agents(folder)
        start_agents(folder, names)
        if (again := measured(tool, folder)) != DONE:
            raise Late(f"beside agents that were started again: {again}")
    if theirs or generation:
        stop_agents(folder)
    if theirs and fault is not None and "record" in fault:
        shim.ARMED.counts.update(json.loads((folder / "agents.counts").read_text()))
    shim.ARMED.fault = fault
    return code


def measured(tool: str, folder: Path, fault: dict | None = None) -> int:
    """Run a command, with a fault; return how that ended."""
    samples = folder / "samples"
    before = rows_of(samples)
    out, err = io.StringIO(), io.StringIO()
    argv = ("measure", tool, str(folder / "hosts.toml"), *COMMANDS[tool])
    argv += ("--patience", f"{limit_s(PATIENCE_S):g}")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        shim.ARMED.fault = fault
        code = run_command([*argv, "-o", str(samples), "--json"])
        shim.ARMED.fault = None
    sys.stderr.write(f"{code} {out.getvalue()}{err.getvalue()}")
    return judged(tool, code, out.getvalue(), err.getvalue(), new_rows(before, rows_of(samples)))


def judged(tool: str, code: int, out: str, err: str, kept: Sequence[dict]) -> int:
    ended = [row["ended"] for row in kept]
    assert all(ended), "a row does not say how its test ended"
    assert "internal error" not in err
    if code == 0:
        assert set(ended) <= {"done"}, f"it calls that done: {ended}"
    else:
        assert code in FAILED_CODES, f"it ended with {code}"
        assert code != 2 or USELESS in err, "it calls that bad input"
        assert "error:" in err or {*ended} - {"done"}, "nobody says why"
    if code in (0, 1) and out:
        said = json.loads(out)
        # A cycle that goes on may have nothing left.
        n_said = said["tests"] if tool == "cycle" else len(said["samples"])
        assert n_said == len(kept), f"it says {n_said} rows and keeps {len(kept)}"
        assert kept or tool == "cycle", "it has tested nothing"
    return DONE if code == 0 else SAID


def rows_of(samples: Path) -> list[dict]:
    """Return what is kept: nothing that is damaged, and no part twice."""
    found = read_parts(samples)
    assert not found.damaged, f"damaged: {found.damaged}"
    return found.frame.to_dict("records")


def new_rows(before: Sequence[dict], now: Sequence[dict]) -> list[dict]:
    """Return the rows that have come; none of those before may go."""
    seen, left = [_name_of(row) for row in before], []
    for row in now:
        if _name_of(row) in seen:
            seen.remove(_name_of(row))
        else:
            left.append(row)
    assert not seen, f"{len(seen)} rows have gone"
    return left


def _name_of(row: dict) -> tuple[object, ...]:
    """Return what no two rows share."""
    return row["from"], row["to"], row["time_s"], row["tool"], row["settings"]


def wrong(folder: Path) -> str:
    """Say what is left that nobody needs."""
    files = {path.name for path in (folder / "samples").iterdir()}
    strange = {name for name in files if not name.endswith(".parquet")} - KEPT
    # What a process that was killed was writing, or could not remove, stays for a while.
    hits = folder / "hits"
    could_not_remove = hits.exists() and "os.unlink" in hits.read_text()
    if could_not_remove or not (folder / "ended").exists():
        strange = {name for name in strange if not name.startswith(".")}
    return f"there is left: {strange}" if strange else ""


def trials(tools: Sequence[str]) -> list[Trial]:
    """Return a trial of each tool, or of some."""
    chosen = tools or COMMANDS
    faults = [
        Trial(f"measure-{tool}", prepare, partial(run, tool), wrong, first=13 * number)
        for number, tool in enumerate(chosen)
    ]
    kills = [
        Trial(f"measure-{tool}-{who}", prepare, partial(run_apart, tool, who), kills_only=True)
        for tool in APART
        if tool in chosen
        for who in (OPERATOR_ALONE, AGENTS)
    ]
    return [*faults, *kills]


if __name__ == "__main__":
    sys.exit(max(trial.carry_out() for trial in trials(sys.argv[2:])))
