"""Real processes on loopback: agents, a relay, a collector; any may be killed at any time."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from instances.ports import free_port

from datacollect.net.keys import new_private_key, write_private_key
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.run import Agent
from datacollect.transfer.protocol.file_names import STATE_FOLDER
from datacollect.transfer.pull.run import pull

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

# Children are copies of this process, which has imported everything: they begin at once.
FORK = multiprocessing.get_context("fork")
LISTENS_WITHIN_S = 30.0


class Loopback:
    """Two sources and a relay, each a process; a collection of all that the sources hold.

    Parameters
    ----------
    folder : Path
    files : dict of str to dict of str to bytes
        By source and path.
    slot_s : float, optional
        By nights: links into the relay and out of it are open in turns, and what comes in waits
        there, in a spool.
    limits : dict
        Of the collection.
    """

    def __init__(
        self,
        folder: Path,
        files: dict[str, dict[str, bytes]],
        slot_s: float | None = None,
        **limits,
    ) -> None:
        self.slot_s = slot_s
        self.folder, self.files, self.into = folder, files, folder / "into"
        self.children: dict[str, multiprocessing.Process] = {}
        key = new_private_key()
        write_private_key(folder / "collector.key", key)
        ports = {name: free_port() for name in (*files, "R")}
        for source, content in files.items():
            for path, data in content.items():
                (folder / f"data-{source}" / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / f"data-{source}" / path).write_bytes(data)
        entries = {}
        for name, port in ports.items():
            places = {other: f"127.0.0.1:{ports[other]}" for other in files}
            serve = f'serve = "data-{name}"' if name in files else ""
            relays = "" if name in files else f"connect_to = {_inline(places)}"
            if relays and slot_s is not None:
                relays += '\nspool = { folder = "spool", bytes = 100_000_000 }'
            (folder / f"{name}.toml").write_text(
                f'format = "datacollect-agent/1"\nname = "{name}"\nlisten = "127.0.0.1:{port}"\n'
                f'collectors = ["{key.public}"]\n{serve}\n{relays}\n'
            )
            entries[name] = self.start(name)
        hops = [("R", "D"), *((source, "R") for source in files)]
        if slot_s is None:
            hops += [(source, "D") for source in files]
        rate = 1e6 if slot_s is None else 2e5
        links = [{"from": a, "to": b, "bandwidth_bytes_per_s": rate} for a, b in hops]
        if slot_s is not None:
            now = datetime.now(UTC)
            links = [each | {"open": nights(now, 6 * (each["to"] == "D"))} for each in links]
        self.collection = {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(folder / "collector.key"),
            "agents": entries,
            "links": links,
            "timezone": "UTC",
            "limits": {"timeout_s": 5.0} | limits,
        }

    def start(self, name: str) -> dict[str, str]:
        """Start an agent, or with ``"C"`` the collector; return what an agent says of itself."""
        if name == "C":
            args = self.collection, self.into, self.slot_s
            child = FORK.Process(target=_collect, args=args, daemon=True)
            child.start()
            self.children[name] = child
            return {}
        mine, its = FORK.Pipe(duplex=False)
        config = AgentConfig.from_file(self.folder / f"{name}.toml")
        child = FORK.Process(target=_serve, args=(config, its), daemon=True)
        child.start()
        its.close()
        self.children[name] = child
        assert mine.poll(LISTENS_WITHIN_S), f"{name} does not listen"
        said = mine.recv()
        mine.close()
        return said

    def kill(self, name: str) -> None:
        """Kill a process as a loss of power would."""
        child = self.children[name]
        os.kill(child.pid, signal.SIGKILL)
        child.join()

    def kill_all(self) -> None:
        """End the test."""
        for name, child in self.children.items():
            if child.is_alive():
                self.kill(name)

    def judge(self, *, is_over: bool) -> None:
        """Require that what has its final name is whole, and in the end that all has."""
        found = {}
        for source in self.files:
            base = self.into / source
            for path in base.rglob("*") if base.is_dir() else ():
                if path.is_file():
                    found[source, str(path.relative_to(base))] = path.read_bytes()
        wanted = {(s, path): data for s, each in self.files.items() for path, data in each.items()}
        for key, data in found.items():
            assert data == wanted[key], f"{key} has its final name and is not whole"
        if is_over:
            assert found.keys() == wanted.keys()
            assert {p.name for p in self.into.iterdir()} == {*self.files, STATE_FOLDER}
            assert not any((self.into / STATE_FOLDER / "incoming").iterdir())

    def carry_out(self, seed: int, kills: int, until_s: float = 90.0) -> dict[str, int]:
        """Collect while processes are killed at random instants; return how often each was."""
        chance = random.Random(seed)
        count = dict.fromkeys((*self.files, "R", "C"), 0)
        self.start("C")
        deadline_s = time.monotonic() + until_s
        while self.children["C"].exitcode != 0:
            assert time.monotonic() < deadline_s, f"seed {seed}: not complete after {until_s} s"
            self.children["C"].join(chance.uniform(0.02, 0.4))
            if kills and self.children["C"].exitcode is None:
                kills -= 1
                victim = chance.choice([*count, "C", "C"])
                count[victim] += 1
                self.kill(victim)
                self.judge(is_over=False)
                time.sleep(chance.choice([0.0, 0.0, 0.3]))
                self.start(victim)
            elif self.children["C"].exitcode not in (None, 0):
                self.start("C")
        self.judge(is_over=True)
        return count

    def log(self) -> list[dict]:
        """Return what the collector's starts have logged."""
        text = (self.into / STATE_FOLDER / "log.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def _serve(config: AgentConfig, pipe: Connection) -> None:
    _be_quiet()
    agent = Agent(config, lambda _: None)
    pipe.send({"url": agent.url, "fingerprint": agent.fingerprint})
    agent.run()


def nights(now: datetime, first_s: int) -> list[str]:
    """Return hours of five seconds, twelve seconds apart, for five minutes from an instant on."""
    begins = [now + timedelta(seconds=first_s + 12 * i) for i in range(25)]
    return [f"{at:%H:%M:%S}-{at + timedelta(seconds=5):%H:%M:%S}" for at in begins]


def _collect(collection: dict, into: Path, slot_s: float | None) -> None:
    _be_quiet()
    try:
        answer = pull(collection, into, "coordinated", slot_s=slot_s)
    except Exception as error:  # noqa: BLE001 - shown where the test fails
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(3)
    os._exit(0 if answer.complete else 1)


def _be_quiet() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _inline(places: dict[str, str]) -> str:
    return "{ " + ", ".join(f'{name} = "{place}"' for name, place in places.items()) + " }"


def some_files(seed: int, big_bytes: int = 6_000_000, n_small: int = 150) -> dict[str, bytes]:
    """Return files of all sizes: large, small, empty, in folders."""
    chance = random.Random(seed)
    files = {"big": chance.randbytes(big_bytes), "run/odd": chance.randbytes(65_537), "none": b""}
    for i in range(n_small):
        files[f"many/{i % 7}/{i}"] = chance.randbytes(chance.choice([0, 1, 100, 4096, 9000]))
    return files
