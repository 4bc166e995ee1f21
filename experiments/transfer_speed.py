"""What depots and pulls must reach: pieces kept, spools listed, many files, many agents.

    python experiments/transfer_speed.py [--only pieces listed files agents] [--folder DIR]
                                         [--files 1000000] [--data DATA] [--agents 60]

Prints a row of Markdown for each, beside what is to be reached; docs/tables/transfer_speed.md.

- pieces: of 64 KiB, each on the disk before it is answered for, by four threads that order 32 at
  a time;
- listed: what `datacollect spool list` reads of a spool of 100 000 pieces;
- files: of 1 KiB each, in folders of 1000, pulled from an agent on loopback until some have come;
  how long that took from the start on, and the most memory that agent and pull have had;
- agents: each in a namespace of its own, and one destination, with a wire of 100 Mbit/s and 5 ms
  each; the proportional memory of all processes together (for root, or where users may).

DIR should lie on the disk that is meant; its files go again. To make a million files takes minutes:
`--make DATA` makes them and nothing else, `--data DATA` pulls those that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests")]

from testbed.bed import Bed  # noqa: E402
from testbed.pulling import COMMAND, PORT, START_S  # noqa: E402

from datacollect.files.held_folder import Held  # noqa: E402
from datacollect.net.keys import new_private_key, write_private_key  # noqa: E402
from datacollect.scenario.setting import network_of  # noqa: E402
from datacollect.topologies import Node, Topology, Wire  # noqa: E402
from datacollect.transfer.spool.sealing import SealedPiece  # noqa: E402
from datacollect.transfer.spool.store import SpoolStore, collections_of  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from datacollect.simulation.network import SimulatedNetwork

PIECE_BYTES, ORDERED, THREADS, N_PIECES, N_LISTED = 64 * 1024, 32, 4, 20_000, 100_000
FILE_BYTES, FILES_IN_FOLDER, FIRST_FILES = 1024, 1000, 1
AGENT_BYTES, WIRE_BYTES_PER_S, DELAY_S = 2_000_000, 12.5e6, 0.0025
# Longest wait for a pull.
PATIENCE_S = 1800.0


def pieces(folder: Path, _: argparse.Namespace) -> tuple[str, str]:
    """Keep pieces in groups, as orders do."""
    store = SpoolStore(Held(folder), "K", 2**50)
    number = store.order("ed25519:x", "c1", time.time() + 3600, time.time())
    sealed = os.urandom(SealedPiece("S", 0, bytes(32), PIECE_BYTES).sealed_bytes)

    def keep(source: str) -> None:
        for begin in range(0, N_PIECES // THREADS, ORDERED):
            added = []
            for index in range(begin, min(begin + ORDERED, N_PIECES // THREADS)):
                store.reserve(len(sealed))
                piece = SealedPiece(source, index, bytes(32), PIECE_BYTES)
                added.append(store.add(number, piece, sealed))
            store.wait(added[-1], time.time())

    threads = [threading.Thread(target=keep, args=(f"S{i}",)) for i in range(THREADS)]
    begun_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    per_s = N_PIECES / (time.perf_counter() - begun_s)
    store.close()
    return f"{per_s:.0f} per second", "1500"


def listed(folder: Path, _: argparse.Namespace) -> tuple[str, str]:
    """Read what a spool of many small pieces keeps."""
    store = SpoolStore(Held(folder), "K", 2**50)
    number = store.order("ed25519:x", "c1", time.time() + 3600, time.time())
    sealed = bytes(SealedPiece("S", 0, bytes(32), 1).sealed_bytes)
    for index in range(N_LISTED):
        store.reserve(len(sealed))
        added = store.add(number, SealedPiece("S", index, bytes(32), 1), sealed)
    store.wait(added, time.time())
    begun_s = time.perf_counter()
    (found,) = collections_of(folder)
    took_s = time.perf_counter() - begun_s
    store.close()
    assert found.pieces == N_LISTED
    return f"{took_s:.3f} s", "1 s at most"


# Files ----------------------------------------------------------------------------------------


def files(folder: Path, given: argparse.Namespace) -> tuple[str, str]:
    """Pull many small files until some have come."""
    data, into = given.data or folder / "data", folder / "into"
    folder.mkdir()
    if given.data is None:
        make_files(data, given.files)
    key = new_private_key()
    write_private_key(folder / "collector.key", key)
    agent = agent_file(folder / "S1", "S1", key.public, "127.0.0.1:0", serve=str(data))
    serving = subprocess.Popen(
        [*COMMAND, "agent", str(agent), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert serving.stdout is not None
    facts = {"S1": json.loads(serving.stdout.readline())}
    path = collection_file(folder, facts)
    begun_s = time.monotonic()
    pulling = subprocess.Popen(
        [*COMMAND, "pull", str(path), "--into", str(into), "--quiet"], stdout=subprocess.DEVNULL
    )
    most: dict[int, int] = {}
    try:
        while not any((into / "S1").glob("*/*")) and pulling.poll() is None:
            note_most(most, (serving.pid, pulling.pid))
            if time.monotonic() > begun_s + PATIENCE_S:
                raise SystemExit("no file has come")
            time.sleep(0.2)
        first_s = time.monotonic() - begun_s
        processor_s = sum(map(processor_s_of, (serving.pid, pulling.pid)))
        until_s = time.monotonic() + given.further_s
        while time.monotonic() < until_s and pulling.poll() is None:
            note_most(most, (serving.pid, pulling.pid))
            time.sleep(0.2)
        n_came = sum(1 for _ in (into / "S1").glob("*/*"))
        ended = pulling.poll() is not None
    finally:
        for process in (pulling, serving):
            process.kill()
            process.wait()
    megabytes = " and ".join(f"{most[each] / 1e6:.0f}" for each in (serving.pid, pulling.pid))
    end = "all" if ended else f"{n_came}"
    found = f"first file after {first_s:.0f} s and {processor_s:.0f} s of processors, {end} after "
    found += f"{given.further_s:.0f} s more"
    return f"{found}; agent and pull {megabytes} MB at most", "60 s, 1 GB at most"


def make_files(data: Path, n_files: int) -> None:
    """Make small files, each of other bytes, in folders."""
    for first in range(0, n_files, FILES_IN_FOLDER):
        place = data / f"{first // FILES_IN_FOLDER:05}"
        place.mkdir(parents=True)
        for i in range(first, min(first + FILES_IN_FOLDER, n_files)):
            (place / f"{i:07}").write_bytes(i.to_bytes(8, "big") * (FILE_BYTES // 8))


def processor_s_of(pid: int) -> float:
    """Return what a process has had of processors."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def note_most(most: dict[int, int], pids: Iterable[int]) -> None:
    """Keep the most memory that each process has had."""
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    most[pid] = int(line.split()[1]) * 1024


def agent_file(folder: Path, name: str, collector: str, listen: str, **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tree = {"format": "datacollect-agent/1", "name": name, "listen": listen}
    path = folder / "agent.json"
    path.write_text(json.dumps(tree | {"collectors": [collector]} | more), encoding="utf-8")
    return path


def collection_file(folder: Path, facts: dict[str, dict[str, Any]], **more: Any) -> Path:
    tree = {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": str(folder / "collector.key"),
        "agents": {
            name: {key: each[key] for key in ("url", "fingerprint")} for name, each in facts.items()
        },
    }
    path = folder / "collection.json"
    path.write_text(json.dumps(tree | more), encoding="utf-8")
    return path


# Agents ---------------------------------------------------------------------------------------


def star(names: list[str]) -> SimulatedNetwork:
    """Return a network of hosts around a router, the destination with as much as ten of them."""
    wires = [
        Wire(name, "hub", WIRE_BYTES_PER_S * (10 if name == "D" else 1), DELAY_S, 300)
        for name in names
    ]
    topology = Topology.from_wires(wires, [Node(name) for name in (*names, "hub")])
    return network_of(
        topology, {name: name for name in names}, topology.shortest_routes().next_wire
    )


def agents(folder: Path, given: argparse.Namespace) -> tuple[str, str]:
    """Pull from many agents in namespaces into one destination."""
    names = [f"S{i}" for i in range(1, given.agents + 1)]
    key = new_private_key()
    folder.mkdir(exist_ok=True)
    write_private_key(folder / "collector.key", key)
    with Bed(star(["D", *names])) as bed:
        started = {}
        for name in names:
            data = folder / name / "data"
            data.mkdir(parents=True)
            (data / "file").write_bytes(os.urandom(AGENT_BYTES))
            listen = f"{bed.address(name)}:{PORT}"
            path = agent_file(folder / name, name, key.public, listen, serve=str(data))
            started[name] = bed.start(name, [*COMMAND, "agent", str(path), "--json"])
        facts = {
            name: json.loads(each.says("\n", 4 * START_S).splitlines()[0])
            for name, each in started.items()
        }
        path = collection_file(folder, facts)
        begun_s = time.monotonic()
        pulling = bed.start(
            "D", [*COMMAND, "pull", str(path), "--into", str(folder / "into"), "--json"]
        )
        most = 0
        while pulling.poll() is None and time.monotonic() < begun_s + PATIENCE_S:
            most = max(most, sum(map(pss_bytes, descendants(os.getpid()))))
            time.sleep(1.0)
        took_s = time.monotonic() - begun_s
        said = json.loads(pulling.stdout.read_text(encoding="utf-8"))
    for name in names:
        came, sent = (folder / each / "file" for each in (f"into/{name}", f"{name}/data"))
        assert came.read_bytes() == sent.read_bytes(), name
    word = "complete" if said["complete"] else "not complete"
    return (
        f"{len(names)} agents: {word} after {took_s:.0f} s; {most / 1e9:.2f} GB",
        "complete, 4 GB at most",
    )


def descendants(of: int) -> set[int]:
    """Return the processes that a process has begun, and those that these have."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it is gone
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found: set[int] = set()
    last = {of}
    while last:
        last = {pid for pid, parent in parents.items() if parent in last}
        found |= last
    return found


def pss_bytes(pid: int) -> int:
    """Return the memory of a process, what it shares divided by who shares it; 0: it is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


PARTS: dict[str, Callable[[Path, argparse.Namespace], tuple[str, str]]] = {
    "pieces": pieces,
    "listed": listed,
    "files": files,
    "agents": agents,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--folder", type=Path, help="by default one for temporary files")
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--make", type=Path, metavar="DATA")
    parser.add_argument("--data", type=Path, metavar="DATA")
    parser.add_argument("--further-s", type=float, default=60.0, help="pull on after the first")
    parser.add_argument("--agents", type=int, default=60)
    given = parser.parse_args()
    if given.make is not None:
        make_files(given.make, given.files)
        return
    print("| | measured | to reach |\n|---|---|---|", flush=True)
    for name in given.only:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            found, wanted = PARTS[name](Path(folder) / name, given)
            # To remove a million files takes long, too.
            print(f"| {name} | {found} | {wanted} |", flush=True)


if __name__ == "__main__":
    main()
