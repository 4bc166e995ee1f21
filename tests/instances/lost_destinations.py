"""A destination and all around it on loopback, of which a test loses what it likes."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyrage
import pytest
from instances.agents import KEY
from instances.bistros import rows_with_certificates, run_bistro
from instances.events import key_of
from instances.ports import free_port
from instances.timestamping import WITHIN_S, World

from datacollect.commands.main import run
from datacollect.net.keys import write_private_key

IDENTITY = pyrage.x25519.Identity.generate()
FILES = {"a.txt": b"first", "b.txt": b"second", "c.txt": b"third", "d.txt": b"fourth"}


class Collecting:
    """An event of which three files were collected; yesterday, two of them."""

    def __init__(self, world: World, capsys) -> None:
        self.world, self.folder, self._capsys = world, world.folder, capsys
        self.into = world.folder / "collected"
        self.bistros: dict[str, ExitStack] = {}

    def start_bistro(self, name: str) -> None:
        self.bistros[name] = ExitStack()
        run_bistro(self.world, name, self.bistros[name])

    def stop_bistro(self, name: str) -> None:
        self.bistros.pop(name).close()

    def told(self, *arguments: str) -> tuple[int, dict, str]:
        """Return the exit code of a command, what it says as JSON, and all that it says."""
        self._capsys.readouterr()
        code = run([*arguments, "--json"])
        said = self._capsys.readouterr()
        lines = said.out.strip()
        tree = json.loads(lines[lines.index("{") :]) if "{" in lines else {}
        return code, tree, " ".join((said.out + said.err).split())

    def command(self, *arguments: str) -> tuple[int, dict]:
        return self.told(*arguments)[:2]

    def words(self, *arguments: str) -> str:
        """Return what a command says to people, on one line."""
        self._capsys.readouterr()
        run([*arguments])
        said = self._capsys.readouterr()
        return " ".join((said.out + said.err).split())

    def hand_in(self, *names: str) -> None:
        for name in names:
            (self.folder / name).write_bytes(FILES[name])
            self.command("upload", name, "--event", "event.toml")

    def run_once(self) -> None:
        self._capsys.readouterr()
        run(["event", "run", "event.toml", "--destination", "destination.toml", "--once"])

    def status(self) -> dict:
        return self.command("event", "status", "destination.toml")[1]

    def collect(self, n: int) -> dict:
        """Run until so many are collected, for a while; return the status."""
        end_s = time.monotonic() + WITHIN_S
        while True:
            self.run_once()
            found = self.status()
            if found["collected"] >= n or time.monotonic() > end_s:
                return found
            time.sleep(0.5)

    def recover(self, *more: str, mirror: str = "mirror") -> tuple[int, dict]:
        arguments = ["event", "recover", "event.toml", "--destination", "destination.toml"]
        return self.command(*arguments, "--from", mirror, *more)

    def collected_files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.into.glob("files/*/*")}


@contextmanager
def world_with_destination(folder: Path, closed_after_s: float, **how) -> Iterator[World]:
    """Yield an event in a folder, which has the keys of its destination; nothing runs yet.

    Bistros close batches and segments sooner, so that nobody waits for ten seconds.
    """
    verdicts = {"key": key_of("verdicts").public, "url": f"https://localhost:{free_port()}"}
    with (
        pytest.MonkeyPatch.context() as patch,
        World(
            folder,
            bistros=rows_with_certificates(folder),
            verdicts=verdicts,
            recipients=[str(IDENTITY.to_public())],
            **how,
        ) as world,
    ):
        patch.setattr("datacollect.bistro.upload_server.core.BATCH_AFTER_S", closed_after_s)
        patch.setattr("datacollect.bistro.upload_server.core.CLOSED_AFTER_S", closed_after_s)
        (folder / "own.identity").write_text(f"{IDENTITY}\n")
        write_private_key(folder / "verdicts.key", key_of("verdicts"))
        write_private_key(folder / "collector.key", KEY)
        yield world


@contextmanager
def collecting_world(folder: Path) -> Iterator[World]:
    """Yield an event in a folder, which is the working folder: witnesses and a service run."""
    with (
        pytest.MonkeyPatch.context() as patch,
        world_with_destination(folder, 0.5, admission="open") as world,
    ):
        patch.setenv("SSL_CERT_FILE", str(world.authority))
        patch.chdir(folder)
        port = world.event.verdicts_url.rpartition(":")[2]
        (folder / "destination.toml").write_text(
            'format = "datacollect-destination/1"\nkey = "verdicts.key"\n'
            'collector = "collector.key"\nidentities = ["own.identity"]\nfolder = "collected"\n'
            f'listen = "127.0.0.1:{port}"\nworkers = 1\nmirrors = ["own"]\n'
            'tls = { certificate = "tls.pem", key = "tls.key" }\n'
        )
        (folder / "own").mkdir()
        world.start_witnesses()
        world.start(0)
        yield world


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
