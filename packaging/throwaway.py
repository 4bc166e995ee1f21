"""Try the container's steps and the agent's Debian package in systems that are thrown away.

    python packaging/throwaway.py FOLDER

FOLDER has the package, as `release.py` writes it. A Debian with next to nothing in it is made once.
In it buildah carries the Containerfile's steps out, without any service of its own; the agent's
image has to get healthy, and the collector's to fetch from it. In a copy the package is installed,
and systemd started: `try_package.sh` says what has to go well there. All of it happens in
namespaces of mounts and processes, below one folder: when they end, nothing is left.

It ends with 0, and says why nothing was tried, where a tool is missing or the user is not root.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).resolve().parents[1]
CONTAINERFILE = REPOSITORY / "packaging" / "Containerfile"
TRY_PACKAGE = REPOSITORY / "packaging" / "try_package.sh"
TOOLS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "systemd-nspawn": "systemd-container"}
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
SUITE = "trixie"
IMAGE = f"docker.io/library/debian:{SUITE}-slim"
USER = 10001
WAIT_S = 60.0
COLLECTION = """\
format = "datacollect-collection/1"
destination = "D"
key = "collector.key"
[agents.{name}]
url = "{url}"
fingerprint = "{fingerprint}"
"""
SERVICE = """\
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'exec sh /var/tmp/try_package.sh {key} {port} >/var/tmp/said 2>&1'
ExecStopPost=/usr/bin/systemctl --no-block poweroff
"""


def main() -> None:
    """Try all in a folder of its own, and remove it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, help="where the Debian package is")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        try_all(given.folder, given.inside)
        return
    if reason := lacking():
        print(f"skipped: containers and the Debian package: {reason}")  # noqa: T201
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:  # /tmp may be small
        again = [sys.executable, __file__, str(given.folder.resolve()), "--inside", place]
        code = subprocess.run([*NAMESPACES, *again], check=False).returncode
    raise SystemExit(code)


def lacking() -> str | None:
    """Return why nothing can be tried here."""
    if os.geteuid() != 0:
        return "they need root"
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            return f"there is no {tool}; apt install {package}"
    if subprocess.run([*NAMESPACES, "true"], check=False, capture_output=True).returncode:
        return "no namespaces of mounts and processes here"
    return None


def try_all(folder: Path, place: Path) -> None:
    """Make a Debian, and try in it what is there."""
    began_s = time.monotonic()

    def tell(what: str) -> None:
        print(f"{what} ({time.monotonic() - began_s:.0f} s)", flush=True)  # noqa: T201

    base = place / "base"
    make_debian(base)
    tell(f"Debian {SUITE} is there")
    (place / "served").mkdir()
    (place / "served/file").write_bytes(os.urandom(5_000_000))
    containers = Containers(place, base)
    tell("the images of the agent and the collector are built")
    containers.try_agent()
    tell("the agent's container gets healthy, and the collector's fetches from it")
    try_package(next(folder.glob("*.deb")), base, containers)
    tell("the Debian package is installed, started, fetched from, replaced, removed and purged")


def make_debian(root: Path) -> None:
    """Write a Debian as small as the image that the Containerfile begins with."""
    small = ("--variant=minbase", "--include=ca-certificates")
    ran("mmdebstrap", "--quiet", *small, '--aptopt=Acquire::Retries "3"', SUITE, root)
    # Where packages of Python come from, as on this machine.
    settings = {"index-url": os.environ.get("PIP_INDEX_URL")}
    if certificates := os.environ.get("PIP_CERT"):
        shutil.copyfile(certificates, root / "etc/pip-certificates.pem")
        settings["cert"] = "/etc/pip-certificates.pem"
    lines = [f"{key} = {value}" for key, value in settings.items() if value]
    (root / "etc/pip.conf").write_text("\n".join(["[global]", *lines, ""]))


class Containers:
    """Images of the Containerfile, and what runs in them.

    Attributes
    ----------
    key : str
        Public key of the collector.
    """

    def __init__(self, place: Path, base: Path) -> None:
        self._place = place
        storage = ("--root", place / "storage", "--runroot", place / "running")
        self._buildah = ("buildah", *storage)
        # No service, no network of its own, and no namespaces that a machine may refuse.
        self._isolated = ("--isolation", "chroot")
        self._do("from", "--name", "base", "scratch")
        self._do("copy", "--quiet", "base", base, "/")
        self._do("commit", "--quiet", "base", IMAGE)
        for target in ("agent", "collector"):
            steps = ("--layers", "--target", target, "--tag", target, "--file", CONTAINERFILE)
            self._do(
                "build", *self._isolated, "--format=docker", "--pull-never", *steps, REPOSITORY
            )
            self._do("from", "--pull-never", "--name", target, target)
            data = place / f"data-{target}"
            data.mkdir()
            os.chown(data, USER, USER)
        new = ("datacollect", "keys", "new", "collector.key")
        self.key = self.said("collector", *new).split()[-1]

    def try_agent(self) -> None:
        """Have an agent's container get healthy, and a collector's fetch from it."""
        place = f"127.0.0.1:{free_port()}"
        init = ("init", "--name", "S1", "--serve", "/srv", "--listen", place)
        more = ("--collector", self.key, "-o", "agent.toml")
        introduction = self.said("agent", "datacollect-agent", *init, *more)
        for target in ("agent", "collector"):
            if self.said(target, "id", "-u").strip() != str(USER):
                raise SystemExit(f"the container of the {target} has privileges")
        if self.is_healthy("agent"):
            raise SystemExit("the agent's container is healthy before it runs")
        with self.running("agent"):
            wait_until(lambda: self.is_healthy("agent"), "the agent's container to get healthy")
            self.collect(introduction)

    def collect(self, introduction: str) -> None:
        """Let the collector's container fetch from the agent that a line introduces; compare."""
        name, url, fingerprint = introduction.split()
        data = self._place / "data-collector"
        text = COLLECTION.format(name=name, url=url, fingerprint=fingerprint)
        (data / "collection.toml").write_text(text)
        self._do(*self._run("collector"), *self._command("collector"))
        got, served = data / "collected" / name / "file", self._place / "served/file"
        if got.read_bytes() != served.read_bytes():
            raise SystemExit("the collector said that all is there, and other bytes came")

    def said(self, target: str, *command: str) -> str:
        """Return what a command says in a container."""
        return self._do(*self._run(target), *command)

    def is_healthy(self, target: str) -> bool:
        """Return what the health check of a container says."""
        kind, command = self._config(target)["Healthcheck"]["Test"]
        assert kind == "CMD-SHELL"
        check = [*self._buildah, *self._run(target), "sh", "-c", command]
        return (
            subprocess.run(list(map(str, check)), check=False, capture_output=True).returncode == 0
        )

    @contextmanager
    def running(self, target: str) -> Iterator[None]:
        """Run a container as it is meant to run."""
        command = [*self._buildah, *self._run(target), *self._command(target)]
        log = self._place / f"{target}.log"
        with (
            log.open("wb") as file,
            subprocess.Popen(list(map(str, command)), stdout=file, stderr=file) as process,
        ):
            try:
                yield
                if process.poll() is not None:
                    raise SystemExit(f"the container of the {target} has ended: {log.read_text()}")
            finally:
                process.terminate()
                process.wait(WAIT_S)

    def _run(self, target: str) -> tuple[object, ...]:
        data = ("--volume", f"{self._place / f'data-{target}'}:/data")
        served = ("--volume", f"{self._place / 'served'}:/srv:ro")
        return ("run", *self._isolated, *data, *served, target, "--")

    def _command(self, target: str) -> list[str]:
        config = self._config(target)
        return [*config["Entrypoint"], *config["Cmd"]]

    def _config(self, target: str) -> Any:
        found = json.loads(self._do("inspect", "--type", "image", target))
        return found["Docker"]["config"]

    def _do(self, *command: object) -> str:
        return ran(*self._buildah, *command)


def try_package(package: Path, base: Path, containers: Containers) -> None:
    """Install the package in a copy of the Debian, start that, and collect from its service."""
    root = base.with_name("installed")
    ran("cp", "--archive", "--reflink=auto", base, root)
    scratch = root / "var/tmp"
    shutil.copy(package, scratch)
    shutil.copy(TRY_PACKAGE, scratch)
    shutil.copytree(base.with_name("served"), root / "srv/data")
    inside = ("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--directory", root)
    apt = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet=2", "--yes")
    ran(*inside, "--pipe", *apt, "update")
    install = (*apt, "install", "--no-install-recommends", "systemd", f"/var/tmp/{package.name}")
    ran(*inside, "--pipe", *install)
    units = root / "etc/systemd/system"
    (units / "try.service").write_text(SERVICE.format(key=containers.key, port=free_port()))
    (units / "multi-user.target.wants").mkdir(exist_ok=True)
    (units / "multi-user.target.wants/try.service").symlink_to("../try.service")
    boot = [*map(str, inside), "--boot", "--console=pipe"]
    with subprocess.Popen(boot, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as machine:
        until = time.monotonic() + WAIT_S
        while machine.poll() is None and time.monotonic() < until:
            if (scratch / "serves").exists() and not (scratch / "collected").exists():
                containers.collect((scratch / "introduction").read_text())
                (scratch / "collected").touch()
            time.sleep(0.2)
        machine.kill()
    said = (scratch / "said").read_text() if (scratch / "said").exists() else "it did not boot"
    if not said.endswith("tried and removed\n"):
        raise SystemExit(f"the Debian package:\n{said}")


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Wait for something to happen, for some time."""
    until = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > until:
            raise SystemExit(f"waited {WAIT_S:g} s for {what}")
        time.sleep(0.2)


def ran(*command: object) -> str:
    """Run a command; return what it says, or end with all that it says."""
    words = [str(word) for word in command]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{shlex.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
