"""A small collection on loopback: two agents, a relay before the second, a plain web server.

Everything but the collector is started once and serves every experiment. An experiment pulls into a
new folder, so that it needs nothing made but that folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from faults.time_limits import FACTOR, LOOKS_EVERY_S, Waiting, are_longer, carried_out, limit_s
from instances.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE_S, TIMEOUT_S = 2.0, 1.0
READY_WITHIN_S = 60.0
ENDS_WITHIN_S = 10.0
PIECE_BYTES = 65_536
# Where nothing can be imported from: what is in the folder of the caller is not meant.
NOWHERE = "/"
# Threads of libraries would only add noise, and forking with them is asking for trouble.
QUIET = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


@dataclass(frozen=True)
class Program:
    """Command of the program: its interpreter, and what is put before its search path.

    Parameters
    ----------
    python : str
    path : str or None
        Folder of the sources that are tried; None takes what is installed.
    """

    python: str = sys.executable
    path: str | None = None

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of the program with these arguments."""
        return [self.python, "-m", "datacollect", *arguments]

    def environment(self, *before: str) -> dict[str, str]:
        """Return its environment; the folders `before` come first in the search path."""
        folders = [*before, *([self.path] if self.path else [])]
        given = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([*folders, *([given] if given else [])])
        # Users have streams that wait for whole lines, and keep what could not be written.
        ours = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
        return {**ours, **QUIET, **({"PYTHONPATH": path} if path else {})}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end, without any fault."""
        command = self.command(*arguments)
        return carried_out(command, READY_WITHIN_S, env=self.environment(), cwd=NOWHERE)


def small_files(seed: int) -> dict[str, bytes]:
    """Return six files: one of several pieces, one empty, some in folders."""
    chance = random.Random(seed)
    return {
        "big.bin": chance.randbytes(300_000),
        "empty": b"",
        "notes.txt": chance.randbytes(2_000 + seed),
        "run/a.dat": chance.randbytes(5_000),
        "run/deep/b.dat": chance.randbytes(70_000),
        "run/deep/c.dat": chance.randbytes(9),
    }


@dataclass(frozen=True)
class Variant:
    """An agent that fails: its name, its port, its file, and the collection that knows it there."""

    name: str
    port: int
    file: Path
    collection: Path

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments that run it."""
        return "agent", str(self.file), "--json"


@dataclass
class World:
    """Sources of a pull, and the file that names them.

    Attributes
    ----------
    folder : Path
    program : Program
    files : dict of str to dict of str to bytes
        What each source holds.
    collection : Path
    """

    folder: Path
    program: Program = field(default_factory=Program)
    files: dict[str, dict[str, bytes]] = field(init=False)
    collection: Path = field(init=False)
    _children: dict[str, subprocess.Popen] = field(default_factory=dict)
    _ports: dict[str, int] = field(default_factory=dict)
    _said: dict[str, dict[str, str]] = field(default_factory=dict)
    _web: _Web | None = None

    def __post_init__(self) -> None:
        web = {p: d for p, d in small_files(3).items() if p != "run/a.dat"}
        self.files = {"S1": small_files(1), "S2": small_files(2), "W": web}
        self.collection = self.folder / "collection.toml"

    def __enter__(self) -> World:
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def agent_command(self, name: str) -> list[str]:
        """Return the command line that runs one of the agents."""
        return self.program.command("agent", str(self.folder / f"{name}.toml"), "--json")

    def start(self, name: str) -> dict[str, str]:
        """Start an agent; return what it says of itself when it is ready."""
        with (self.folder / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                self.agent_command(name),
                env=self.program.environment(),
                cwd=NOWHERE,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._children[name] = child
        return said_when_ready(child, name)

    def stop(self, name: str) -> None:
        """End an agent."""
        child = self._children.pop(name)
        end(child)
        if child.stdout is not None:
            child.stdout.close()

    def close(self) -> None:
        """End everything."""
        for name in [*self._children]:
            self.stop(name)
        if self._web is not None:
            self._web.close()
            self._web = None

    def pull_arguments(self, into: Path, variant: Variant | None = None) -> tuple[str, ...]:
        """Return the arguments of the pull that every experiment makes."""
        collection = self.collection if variant is None else variant.collection
        collection = longer_of(collection) if are_longer() else collection
        return "pull", str(collection), "--into", str(into), "--json"

    @property
    def ports(self) -> dict[str, int]:
        """Where each server listens."""
        return {**self._ports, "W": self._web.port}

    def variant(self, name: str, slot: int) -> Variant:
        """Make a place for an agent that fails: the same agent elsewhere, and who knows it there.

        Parameters
        ----------
        name : str
            ``S1`` or ``R``.
        slot : int
            Each of those that work at the same time has its own.
        """
        stem = f"{name}-{slot}"
        port = free_port()
        text = (self.folder / f"{name}.toml").read_text()
        text = text.replace(f":{self._ports[name]}", f":{port}")
        (self.folder / f"{stem}.toml").write_text(text)
        said = self.start(stem)
        self.stop(stem)
        collection = self.folder / f"collection-{stem}.toml"
        self._write_collection(self._said | {name: said}, collection)
        return Variant(name, port, self.folder / f"{stem}.toml", collection)

    def _make(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        key = self.folder / "collector.key"
        made = self.program.run("keys", "new", str(key), "--json")
        assert made.returncode == 0, made.stderr
        public = json.loads(made.stdout)["public"]
        for name in ("S1", "S2"):
            for path, data in self.files[name].items():
                file = self.folder / f"data-{name}" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        self._ports = {name: free_port() for name in ("S1", "S2", "R")}
        for name, port in self._ports.items():
            serves = f'serve = "data-{name}"\n' if name != "R" else ""
            relays = f'connect_to = {{ S2 = "127.0.0.1:{self._ports["S2"]}" }}\n'
            (self.folder / f"{name}.toml").write_text(
                f'format = "datacollect-agent/1"\nname = "{name}"\nlisten = "127.0.0.1:{port}"\n'
                f'collectors = ["{public}"]\n{serves}{relays if name == "R" else ""}'
            )
        self._said = {name: self.start(name) for name in self._ports}
        self._web = _Web(self.files["W"])
        self._write_collection(self._said, self.collection)

    def _write_collection(self, said: Mapping[str, Mapping[str, str]], path: Path) -> None:
        rows = [
            f"W,{path},{len(data)},{hashlib.sha256(data).hexdigest()}"
            for path, data in self.files["W"].items()
        ]
        manifest = "\n".join(["host,path,bytes,sha256", *rows, ""])
        (self.folder / "manifest.csv").write_text(manifest)
        assert self._web is not None
        lines = [
            'format = "datacollect-collection/1"',
            'destination = "D"',
            'key = "collector.key"',
        ]
        for name, facts in said.items():
            lines += [f"[agents.{name}]", f'url = "{facts["url"]}"']
            lines += [f'fingerprint = "{facts["fingerprint"]}"']
        lines += ["[servers.W]", f'url = "{self._web.url}"', 'manifest = "manifest.csv"']
        lines += ["plain_http = true"]
        # The second source's bytes come over the relay: no row names its straight way.
        for a, b in (("S1", "D"), ("S2", "R"), ("R", "D"), ("W", "D")):
            lines += ["[[links]]", f'from = "{a}"', f'to = "{b}"']
            lines += ["bandwidth_bytes_per_s = 10000000"]
        lines += ["[limits]", "connections = 4", f"piece_bytes = {PIECE_BYTES}"]
        for place, factor in ((path, 1), (longer_of(path), FACTOR)):
            patience = [f"patience_s = {factor * PATIENCE_S}", f"timeout_s = {factor * TIMEOUT_S}"]
            place.write_text("\n".join([*lines, *patience, ""]))


def longer_of(collection: Path) -> Path:
    """Return the same collection with limits of time ten times as long."""
    return collection.with_name(f"longer-{collection.name}")


def said_when_ready(child: subprocess.Popen, name: str) -> dict[str, str]:
    """Return the line of JSON that an agent says when it is ready."""
    assert child.stdout is not None
    waiting, ready = Waiting(limit_s(READY_WITHIN_S)), []
    while not ready and not waiting.is_over():
        ready, _, _ = select.select([child.stdout], [], [], LOOKS_EVERY_S)
    line = child.stdout.readline() if ready else b""
    assert line.strip(), f"{name} is not ready: exit code {child.poll()}"
    return json.loads(line)


def end(child: subprocess.Popen) -> None:
    """End a process: it is asked to, and after some seconds it is made to."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            child.kill()
    child.wait()


class _Web:
    """A web server that knows ranges and versions, in a thread."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        handler = type("Handler", (_Handler,), {"files": files})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.daemon = True
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    files: Mapping[str, bytes]

    def handle(self):
        with suppress(OSError):
            super().handle()

    def do_GET(self):
        data = self.files.get(unquote(self.path[1:]))
        if data is None:
            self._answer(404, {}, b"no such file")
            return
        etag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        headers = {"ETag": etag, "Accept-Ranges": "bytes"}
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked is None or self.headers.get("If-Range", etag) != etag:
            self._answer(200, headers, data)
            return
        first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
        if first > last:
            self._answer(416, {"Content-Range": f"bytes */{len(data)}"}, b"")
            return
        headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        self._answer(206, headers, data[first : last + 1])

    def _answer(self, status, headers, body):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
