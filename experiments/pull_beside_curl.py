"""Speed of `datacollect pull` beside what people use: curl from a web server, rsync's daemon.

Everything on loopback, both sides synced to disk in the end, run alternately; ratios are of medians
in this one run. Processor times are the receiver's alone, unless it says so.

    python experiments/pull_beside_curl.py                  # 1 GiB in 8 files, 3 pairs
    python experiments/pull_beside_curl.py --gib 8 --pairs 7
    python experiments/pull_beside_curl.py --only small     # 20 000 files of 4 KiB beside rsync

nginx, curl and rsync must be installed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from instances.ports import free_port
from instances.web_servers import nginx

from datacollect.net.keys import new_private_key, write_private_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GIB, BLOCK = 2**30, 2**20
PROGRAM = (sys.executable, "-m", "datacollect")


class Taken(NamedTuple):
    """Seconds on the clock, and of the receiver's processors."""

    wall_s: float
    cpu_s: float


def taken(act: Callable[[], None]) -> Taken:
    """Measure what children do."""
    before, begun_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    act()
    wall_s = time.monotonic() - begun_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(wall_s, cpu_s)


def pairs(
    n: int, one: Callable[[Path], None], other: Callable[[Path], None], folder: Path
) -> tuple[list[Taken], list[Taken]]:
    """Run both alternately into new folders."""
    found: tuple[list[Taken], list[Taken]] = [], []
    both = [(one, found[0]), (other, found[1])]
    for i in range(n):
        # Either is first as often as the other: what one leaves behind, the next one finds.
        for act, times in both[:: -1 if i % 2 else 1]:
            into = folder / "into"
            into.mkdir()
            os.sync()
            times.append(taken(lambda act=act, into=into: act(into)))
            shutil.rmtree(into)
    return found


def tell(what: str, names: tuple[str, str], found: tuple[list[Taken], list[Taken]]) -> None:
    """Print medians and their ratios."""
    (wall, cpu), (other_wall, other_cpu) = (
        (statistics.median(t.wall_s for t in each), statistics.median(t.cpu_s for t in each))
        for each in found
    )
    sys.stdout.write(
        f"{what}\n"
        f"  {names[0]:<12} {wall:7.2f} s, processor {cpu:6.2f} s\n"
        f"  {names[1]:<12} {other_wall:7.2f} s, processor {other_cpu:6.2f} s\n"
        f"  ratios       {wall / other_wall:7.2f},   processor {cpu / max(other_cpu, 1e-9):6.2f}\n"
    )
    sys.stdout.flush()


def make_files(folder: Path, n: int, n_bytes: int) -> list[str]:
    """Write files of random bytes; return their names."""
    folder.mkdir()
    block = os.urandom(min(BLOCK, n_bytes))
    names = [f"{i:06}" for i in range(n)]
    for name in names:
        with (folder / name).open("wb") as file:
            for at in range(0, n_bytes, len(block)):
                file.write(block[: n_bytes - at])
    return names


def pulls(folder: Path, collection: str) -> Callable[[Path], None]:
    """Return what pulls a collection into a folder."""
    write_private_key(folder / "key", new_private_key()) if not (folder / "key").exists() else None
    path = folder / f"{len(list(folder.glob('*.toml')))}.toml"
    path.write_text(
        f'format = "datacollect-collection/1"\ndestination = "D"\nkey = "key"\n{collection}'
    )

    def pull(into: Path) -> None:
        done = subprocess.run(
            [*PROGRAM, "pull", str(path), "--into", str(into), "--json"],
            stdout=subprocess.PIPE,
            check=True,
        )
        assert json.loads(done.stdout)["complete"]
        os.sync()

    return pull


def beside_curl(folder: Path, n_bytes: int, n_pairs: int, connections: int) -> None:
    """Large files from nginx over TLS, by at most so many connections."""
    names = make_files(folder / "data", 8, n_bytes // 8)
    (folder / "nginx/root").mkdir(parents=True)
    (folder / "data").rename(folder / "nginx/root/data")
    with nginx(folder / "nginx") as server:
        base = f"{server.url}data"
        rows = "".join(f"W,{name},{n_bytes // 8}\n" for name in names)
        (folder / "files.csv").write_text(f"host,path,bytes\n{rows}")
        pull = pulls(
            folder,
            f'[servers.W]\nurl = "{base}/"\nmanifest = "files.csv"\n'
            f'fingerprint = "{server.fingerprint}"\n'
            f"[limits]\nconnections = {connections}\n",
        )

        def curl(into: Path) -> None:
            for name in names:
                subprocess.run(
                    ["curl", "-sfk", "-o", str(into / name), f"{base}/{name}"], check=True
                )
            os.sync()

        found = pairs(n_pairs, pull, curl, folder)
    what = f"{n_bytes / GIB:g} GiB in 8 files from nginx over TLS, {connections} connections"
    tell(what, ("pull", "curl"), found)


@contextmanager
def agent_of(
    folder: Path, name: str, more: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run an agent as a process; yield it and what it says."""
    key = subprocess.run(
        [*PROGRAM, "keys", "show", str(folder / "key")], capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    (folder / f"{name}.toml.agent").write_text(
        f'format = "datacollect-agent/1"\nname = "{name}"\nlisten = "127.0.0.1:0"\n'
        f'collectors = ["{key}"]\n{more}\n'
    )
    child = subprocess.Popen(
        [*PROGRAM, "agent", str(folder / f"{name}.toml.agent"), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert child.stdout is not None
        yield child, json.loads(child.stdout.readline())
    finally:
        child.terminate()
        child.wait()


def entry(name: str, said: dict[str, str], url: str | None = None) -> str:
    """Return an agent's table in a collection."""
    return f'[agents.{name}]\nurl = "{url or said["url"]}"\nfingerprint = "{said["fingerprint"]}"\n'


def beside_rsync(folder: Path, n_files: int, n_pairs: int) -> None:
    """Small files from an agent, beside rsync's daemon."""
    make_files(folder / "data", n_files, 4096)
    write_private_key(folder / "key", new_private_key())
    port = free_port()
    (folder / "rsyncd.conf").write_text(
        f"use chroot = no\nport = {port}\n[data]\npath = {folder / 'data'}\nuid = {os.getuid()}\n"
        f"gid = {os.getgid()}\n"
    )
    with ExitStack() as ending:
        daemon = subprocess.Popen(
            ["rsync", "--daemon", "--no-detach", f"--config={folder / 'rsyncd.conf'}"]
        )
        ending.callback(daemon.wait)
        ending.callback(daemon.terminate)
        _, said = ending.enter_context(agent_of(folder, "S", 'serve = "data"'))
        pull = pulls(folder, entry("S", said))
        time.sleep(0.5)

        def rsync(into: Path) -> None:
            subprocess.run(
                ["rsync", "-a", f"rsync://127.0.0.1:{port}/data/", f"{into}/"], check=True
            )
            os.sync()

        found = pairs(n_pairs, pull, rsync, folder)
    tell(f"{n_files} files of 4 KiB from an agent", ("pull", "rsync"), found)


def cpu_of(child: subprocess.Popen[str]) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def over_a_relay(folder: Path, n_bytes: int, n_pairs: int) -> None:
    """Large files from an agent, directly and over one relay: the processors of all processes."""
    make_files(folder / "data", 8, n_bytes // 8)
    write_private_key(folder / "key", new_private_key())
    with ExitStack() as ending:
        source, said = ending.enter_context(agent_of(folder, "S", 'serve = "data"'))
        place = said["url"].removeprefix("https://")
        relay, told = ending.enter_context(
            agent_of(folder, "R", f'connect_to = {{ S = "{place}" }}')
        )
        ways = {
            "direct": pulls(folder, entry("S", said)),
            "relayed": pulls(folder, entry("S", said, "https://127.0.0.1:1") + entry("R", told)),
        }
        times: dict[str, list[Taken]] = {name: [] for name in ways}
        for i in range(n_pairs):
            for name, act in sorted(ways.items(), reverse=bool(i % 2)):
                into = folder / "into"
                into.mkdir()
                os.sync()
                before = cpu_of(source) + cpu_of(relay)
                one = taken(lambda act=act, into=into: act(into))
                others_s = cpu_of(source) + cpu_of(relay) - before
                times[name].append(Taken(one.wall_s, one.cpu_s + others_s))
                shutil.rmtree(into)
    what = f"{n_bytes / GIB:g} GiB from an agent, processors of all processes"
    tell(what, ("over a relay", "directly"), (times["relayed"], times["direct"]))


def starting(folder: Path, n_pairs: int) -> None:
    """A single byte: all that is not the transfer."""
    make_files(folder / "data", 1, 1)
    write_private_key(folder / "key", new_private_key())
    with agent_of(folder, "S", 'serve = "data"') as (_, said):
        pull = pulls(folder, entry("S", said))

        def help_(_: Path) -> None:
            subprocess.run([*PROGRAM, "pull", "--help"], stdout=subprocess.DEVNULL, check=True)

        found = pairs(n_pairs, pull, help_, folder)
    tell("one byte from an agent", ("pull", "--help alone"), found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=16, help="of pulls of large files")
    parser.add_argument("--folder", help="where to work; the system's if absent")
    parser.add_argument("--only", choices=("start", "large", "small", "relay"), nargs="+")
    options = parser.parse_args()
    # Where it is set each start would compile the program anew, a second of processor time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    n_bytes = int(options.gib * GIB)
    parts = {
        "start": lambda folder: starting(folder, options.pairs),
        "large": lambda folder: beside_curl(folder, n_bytes, options.pairs, options.connections),
        "small": lambda folder: beside_rsync(folder, options.files, options.pairs),
        "relay": lambda folder: over_a_relay(folder, n_bytes, options.pairs),
    }
    for name in options.only or parts:
        with tempfile.TemporaryDirectory(dir=options.folder, prefix="beside-") as folder:
            parts[name](Path(folder))


if __name__ == "__main__":
    main()
