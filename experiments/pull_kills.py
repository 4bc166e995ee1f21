"""Collect large files over loopback while something is killed every other second; compare all.

    python experiments/pull_kills.py FOLDER --gb 20

Two sources, a blind relay and a collector, each a process. Every two seconds one of them, every
other time the collector, is killed as a loss of power would, and started again. In the end each
file must be what its source holds, byte by byte. FOLDER, which must not exist yet, takes twice the
data, and is removed.
"""

from __future__ import annotations

import argparse
import filecmp
import multiprocessing
import os
import random
import shutil
import signal
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.files.units import format_bytes
from datacollect.net.keys import new_private_key, write_private_key
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.run import Agent
from datacollect.transfer.pull.run import pull

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess

FORK = multiprocessing.get_context("fork")
BLOCK = 2**20
FILES_EACH = 5
HOSTS = ("S1", "S2", "R")
LINKS = (("S1", "D"), ("S2", "D"), ("S1", "R"), ("S2", "R"), ("R", "D"))


class World:
    """Processes to be killed: agents at ports that stay theirs, and a collector."""

    def __init__(self, folder: Path, n_bytes: int, seed: int) -> None:
        self.folder, self.into = folder, folder / "into"
        self.children: dict[str, BaseProcess] = {}
        for name in HOSTS[:2]:
            write_files(folder / name, n_bytes // 2, seed)
            seed += 1
        key = new_private_key()
        write_private_key(folder / "key", key)
        ports = {name: free_port() for name in HOSTS}
        places = ", ".join(f'{name} = "127.0.0.1:{ports[name]}"' for name in HOSTS[:2])
        agents = {}
        for name, port in ports.items():
            more = f"connect_to = {{ {places} }}" if name == "R" else f'serve = "{name}"'
            (folder / f"{name}.toml").write_text(
                f'format = "datacollect-agent/1"\nname = "{name}"\nlisten = "127.0.0.1:{port}"\n'
                f'collectors = ["{key.public}"]\n{more}\n'
            )
            agents[name] = self.start(name)
        self.collection = {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(folder / "key"),
            "agents": agents,
            "links": [{"from": a, "to": b, "bandwidth_bytes_per_s": 1e8} for a, b in LINKS],
            "limits": {"timeout_s": 5.0, "connections": 6},
        }

    def start(self, name: str) -> Any:
        """Start an agent, or the collector; return what an agent says of itself."""
        if name == "D":
            self._fork(name, collect, self.collection, self.into)
            return None
        mine, its = FORK.Pipe(duplex=False)
        self._fork(name, serve, AgentConfig.from_file(self.folder / f"{name}.toml"), its)
        its.close()
        return mine.recv()

    def _fork(self, name: str, target: Callable[..., None], *arguments: object) -> None:
        child = FORK.Process(target=target, args=arguments, daemon=True)
        child.start()
        self.children[name] = child

    def kill(self, name: str) -> None:
        """Kill a process as a loss of power would."""
        child = self.children[name]
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()

    def differences(self) -> list[str]:
        """Return the files that are not as at their source, and those that should not be."""
        wrong = []
        for name in HOSTS[:2]:
            served = {path.name for path in (self.folder / name).iterdir()}
            there = {path.name for path in (self.into / name).iterdir()}
            wrong += [f"{name}/{path}" for path in served ^ there]
            wrong += [
                f"{name}/{path}"
                for path in sorted(served & there)
                if not filecmp.cmp(self.folder / name / path, self.into / name / path, False)
            ]
        return wrong


def write_files(folder: Path, n_bytes: int, seed: int) -> None:
    """Write files of which no two blocks are alike."""
    folder.mkdir(parents=True)
    block = np.random.default_rng(seed).integers(0, 2**63, BLOCK // 8, dtype=np.uint64)
    for i in range(FILES_EACH):
        with (folder / f"{i}.bin").open("wb") as file:
            for _ in range(n_bytes // FILES_EACH // BLOCK):
                block += 1
                file.write(block.tobytes())
            file.write(os.urandom(n_bytes // FILES_EACH % BLOCK))


def serve(config: AgentConfig, pipe: Any) -> None:
    """Run an agent."""
    agent = Agent(config, lambda _: None)
    pipe.send({"url": agent.url, "fingerprint": agent.fingerprint})
    agent.run()


def collect(collection: dict[str, Any], into: Path) -> None:
    """Collect; code 0: all is there."""
    os._exit(0 if pull(collection, into, "coordinated").complete else 1)


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def main() -> None:
    """Collect, kill, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gb", type=float, default=20.0)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between kills")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True)
    draws, killed = random.Random(given.seed), Counter[str]()
    try:
        world = World(given.folder, round(given.gb * 1e9), given.seed)
        os.sync()
        begun_s, n_starts = time.monotonic(), 1
        world.start("D")
        while world.children["D"].exitcode != 0:
            world.children["D"].join(given.every)
            if world.children["D"].exitcode is None:
                victim = draws.choice([*HOSTS, "D", "D", "D"])
                killed[victim] += 1
                world.kill(victim)
                world.start(victim)
                n_starts += victim == "D"
            elif world.children["D"].exitcode != 0:
                world.start("D")
                n_starts += 1
        took_s = time.monotonic() - begun_s
        wrong = world.differences()
        rate = format_bytes(given.gb * 1e9 / took_s)
        print(f"{given.gb:g} GB in {took_s:.0f} s, {rate}/s; {n_starts} starts of the collector")
        print(f"killed: {dict(sorted(killed.items()))}, {killed.total()} in all")
        print(f"not as at their source: {wrong or 'none'}")
        for name in HOSTS:
            world.kill(name)
        sys.exit(bool(wrong))
    finally:
        shutil.rmtree(given.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
