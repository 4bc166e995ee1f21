"""Build what is released, and try all of it where nothing else is installed.

    python packaging/release.py FOLDER [--python PYTHON ...] [--ns3]

It writes the source distribution, the wheels of the package, of the agent and of the collector
alone, the agent in one file and, where dpkg-deb is, as a Debian package, and ``SHA256SUMS`` of all,
into an empty folder. Then, for each Python, in environments of its own with an empty home: the
wheel plans and judges the shipped example, as pipx installs it and as uvx runs it; the collector's
wheel collects a file from the agent's one file, and its bytes are compared. With ``--ns3`` the
wheel simulates the example in ns-3, too. At last the Debian package and the container's steps are
tried: see `throwaway.py` beside this file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

from build import REPOSITORY, build_pyz, build_wheel, stage_collector
from debian import build_deb

if TYPE_CHECKING:
    from collections.abc import Iterator

SUMS = "SHA256SUMS"
WAIT_S = 30.0
COLLECTION = """\
format = "datacollect-collection/1"
destination = "D"
key = "collector.key"
[agents.S1]
url = "{url}"
fingerprint = "{fingerprint}"
"""
SCENARIO = 'problem = "alps.toml"\nmethod = { name = "coordinated" }\n'


def main() -> None:
    """Build, write down hashes, try."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, help="where all is written; empty, or not there")
    parser.add_argument(
        "--python", nargs="+", default=[sys.executable], help="where it is tried; this one"
    )
    parser.add_argument("--ns3", action="store_true", help="simulate in ns-3, too: it is built")
    given = parser.parse_args()
    folder = given.folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty: name another folder, or empty it")
    if changed := said(["git", "status", "--porcelain"], REPOSITORY).strip():
        raise SystemExit(f"what is released is what is committed; commit or remove:\n{changed}")
    pythons = [program(name) for name in given.python]
    build_all(folder)
    with throwaway(folder):
        for python in pythons:
            version = said([python, "--version"], folder).split()[-1]
            for what in try_out(folder, python, ns3=given.ns3):
                tell(f"Python {version}: {what}")


@contextmanager
def throwaway(folder: Path) -> Iterator[None]:
    """Have the Debian package and the container's steps tried, at the same time as all else."""
    if not any(folder.glob("*.deb")):
        tell("skipped: containers and the Debian package: there is no dpkg-deb")
        yield
        return
    command = [sys.executable, str(REPOSITORY / "packaging" / "throwaway.py"), str(folder)]
    with subprocess.Popen(command) as process:
        yield
    if process.returncode:
        raise SystemExit(process.returncode)


def tell(what: str) -> None:
    """Say a line at once."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def program(name: str) -> str:
    """Return where a program is, from whichever folder it is called."""
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"there is no program {name}; name one that is there, as with --python")
    return os.path.abspath(found)  # noqa: PTH100 - the link of an environment is what makes it one


def build_all(folder: Path) -> None:
    """Write all that is released, and the hashes."""
    folder.mkdir(parents=True, exist_ok=True)
    build = [sys.executable, "-m", "build", "--outdir", str(folder), str(REPOSITORY)]
    done = subprocess.run(
        build, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise SystemExit(done.stdout)
    wheel = build_wheel(folder)
    build_pyz(wheel, [])
    if shutil.which("dpkg-deb"):
        build_deb(wheel)
    build_wheel(folder, stage_collector)
    (folder / SUMS).write_text("".join(f"{line}\n" for line in sums(folder)))


def sums(folder: Path) -> Iterator[str]:
    """Yield a line for each file, as ``sha256sum --check`` reads them."""
    for path in sorted(folder.iterdir()):
        if path.name != SUMS:
            yield f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"


def try_out(folder: Path, python: str, *, ns3: bool) -> Iterator[str]:
    """Yield what has worked with a Python; raise where something has not."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        wheel = only(folder, "datacollect-*.whl")
        whole = by_pipx(place / "pipx", python, wheel, "ns3" * ns3)
        said([whole, "example", "alps"], place)
        found = json.loads(said([whole, "compare", "alps.toml", "--json"], place))
        said([whole, "plan", "alps.toml", "--method", "coordinated", "-o", "plan.json"], place)
        said([*by_uvx(python, wheel), "check", "alps.toml", "plan.json"], place, packages=True)
        yield f"planned for {found['methods']['coordinated']['makespan_s']:.0f} s"
        if ns3:
            (place / "scenario.toml").write_text(SCENARIO)
            run = json.loads(said([whole, "simulate", "scenario.toml", "--json"], place))
            yield f"simulated for {run['makespan_s']:.0f} s"
        collector = installed(
            place / "alone", python, only(folder, "datacollect_collector-*.whl"), ""
        )
        yield collected(place, [python, str(only(folder, "*.pyz"))], collector)


def collected(place: Path, agent: list[str], collector: Path) -> str:
    """Have the agent in one file serve, and the collector fetch; compare what came."""
    data = os.urandom(5_000_000)
    (place / "data").mkdir()
    (place / "data/file").write_bytes(data)
    key = said([collector, "keys", "new", "collector.key"], place).split()[-1]
    init = ["init", "--name", "S1", "--serve", "data", "--collector", key]
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    said([*agent, *init, "--listen", address], place)
    with serving([*agent, "S1.toml", "--json"], place) as facts:
        (place / "collection.toml").write_text(
            COLLECTION.format(url=facts["url"], fingerprint=facts["fingerprint"])
        )
        said([collector, "pull", "collection.toml", "--into", "got"], place)
    if (place / "got/S1/file").read_bytes() != data:
        raise SystemExit("the collector said that all is there, and other bytes came")
    return f"collected {len(data)} bytes"


@contextmanager
def serving(command: list[str], place: Path) -> Iterator[dict[str, str]]:
    """Run an agent; yield what it says of itself."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=place,
        env=of_a_user(place),
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.wait(WAIT_S)


def installed(environment: Path, python: str, wheel: Path, extra: str) -> Path:
    """Install a wheel into an environment of its own; return its program."""
    said([python, "-m", "venv", str(environment)], environment.parent)
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    pip = [str(environment / "bin/python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, wanted], check=True)  # from where this user has packages come
    return environment / "bin/datacollect"


def by_pipx(home: Path, python: str, wheel: Path, extra: str) -> Path:
    """Have pipx install a wheel into a home of its own; return its program."""
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    homes = {"PIPX_HOME": str(home), "PIPX_BIN_DIR": str(home / "bin")}
    pipx = [sys.executable, "-m", "pipx", "install", "--quiet", "--python", python, wanted]
    subprocess.run(pipx, check=True, env=os.environ | homes, stdout=subprocess.DEVNULL)
    return home / "bin/datacollect"


def by_uvx(python: str, wheel: Path) -> list[str]:
    """Return the command that runs a wheel's program, and installs it nowhere."""
    tools = [sys.executable, "-m", "uv", "tool", "run"]  # which is uvx
    return [*tools, "--quiet", "--python", python, "--from", str(wheel), "datacollect"]


def packages_of_uv() -> dict[str, str]:
    """Return where uv gets packages from: where pip does."""
    names = {"PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_CERT": "SSL_CERT_FILE"}
    return {name: os.environ[of_pip] for of_pip, name in names.items() if of_pip in os.environ}


def only(folder: Path, pattern: str) -> Path:
    """Return the one file of a folder that fits."""
    (path,) = folder.glob(pattern)
    return path


def said(command: list[str | Path], place: Path, *, packages: bool = False) -> str:
    """Run a command in a folder; return what it says, or end with what it complains of.

    With `packages` it gets packages from where this user has them.
    """
    words = [str(word) for word in command]
    environment = os.environ | packages_of_uv() if packages else of_a_user(place)
    done = subprocess.run(
        words, check=False, capture_output=True, cwd=place, env=environment, text=True
    )
    if done.returncode:
        raise SystemExit(f"{shlex.join(words)}: exit {done.returncode}\n{done.stderr}")
    return re.sub(r"\x1b\[[\d;]*m", "", done.stdout)


def of_a_user(place: Path) -> dict[str, str]:
    """Return the environment of somebody whose home is empty."""
    return {"HOME": str(place), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


if __name__ == "__main__":
    main()
