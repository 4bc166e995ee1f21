"""Measuring in a bed as users do: an agent at each host, `datacollect measure` at one of them."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.bed import PUNCTUAL
from testbed.pulling import COMMAND, PORT, START_S

from datacollect.files.toml_tables import toml_of
from datacollect.measuring.plan.hosts_file import HOSTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from testbed.bed import Bed, Started


class MeasuredHosts:
    """Agents that take part in all tests of one operator.

    Parameters
    ----------
    bed : Bed
    folder : Path
    names : iterable of str
        Hosts of the bed; each may send to each.
    congestion : str
        What their TCP does.
    pairs : collection of (str, str), optional
        Who may send to whom; by default all.
    data_bytes : mapping, optional
        What hosts serve: files of random bytes.
    """

    def __init__(
        self,
        bed: Bed,
        folder: Path,
        names: Iterable[str],
        congestion: str = "reno",
        pairs: Collection[tuple[str, str]] | None = None,
        data_bytes: Mapping[str, int] | None = None,
    ) -> None:
        self.bed, self.folder, self.names = bed, folder, tuple(names)
        self.key = folder / "operator.key"
        made = bed.run(self.names[0], [*COMMAND, "keys", "new", str(self.key)])
        places = {name: f"{bed.address(name)}:{PORT}" for name in self.names}
        for name in self.names:
            (folder / name).mkdir()
            tree = {
                "format": "datacollect-agent/1",
                "name": name,
                "listen": places[name],
                "collectors": [made.strip().splitlines()[-1]],
                "congestion": congestion,
                "connect_to": {
                    to: place
                    for to, place in places.items()
                    if to != name and (pairs is None or (name, to) in pairs)
                },
                "measure": {
                    "operators": [made.strip().splitlines()[-1]],
                    "bytes_per_hour": 10**12,
                    "udp_port": PORT,
                },
            }
            if size_bytes := (data_bytes or {}).get(name):
                _write_files(folder / name / "data", size_bytes)
                tree["serve"] = "data"
            (folder / name / "agent.json").write_text(json.dumps(tree), encoding="utf-8")
        agents = {name: self._start(name) for name in self.names}
        self.facts: dict[str, dict[str, Any]] = {}
        self.hosts = folder / "hosts.toml"
        self.hosts.write_text(self._hosts_file(agents), encoding="utf-8")

    def measure(self, tool: str, *options: object, timeout_s: float = 600.0) -> dict[str, Any]:
        """Run a tool of the command, at the last of the hosts, and return what it says as JSON."""
        return self._run([tool, str(self.hosts), *map(str, options)], timeout_s)

    def problem(self, backlog_bytes: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Return what the command says of all that was measured so far."""
        holds = [f"--backlog={name}={n_bytes}" for name, n_bytes in (backlog_bytes or {}).items()]
        return self._run(["problem", "samples", "--hosts", str(self.hosts), *holds], 60.0)

    def _run(self, arguments: list[str], timeout_s: float) -> dict[str, Any]:
        return self._said([*COMMAND, "measure", *arguments, "--json"], timeout_s)

    def _said(self, argv: list[str], timeout_s: float) -> dict[str, Any]:
        started = self.bed.start(self.names[-1], argv, cwd=self.folder)
        try:
            started.wait(timeout_s)
        finally:
            started.kill()
        said = started.stdout.read_text(encoding="utf-8")
        if not said:
            raise RuntimeError(started.stderr.read_text(encoding="utf-8"))
        return dict(json.loads(said))

    def pull(
        self,
        tree: Mapping[str, Any],
        connections: int,
        into: str,
        timeout_s: float = 600.0,
        method: str = "coordinated",
    ) -> dict[str, Any]:
        """Collect what the sources of a problem hold, and return what the command says."""
        destination = tree["destination"]
        path = self.folder / f"{into}.json"
        hosts = {
            name: {key: value for key, value in host.items() if key != "backlog_bytes"}
            for name, host in tree["hosts"].items()
        }
        collection = {
            "format": "datacollect-collection/1",
            "destination": destination,
            "key": str(self.key),
            "agents": {
                name: {"url": fact["url"], "fingerprint": fact["fingerprint"]}
                for name, fact in self.facts.items()
                if name != destination
            },
            "limits": {"connections": connections},
            "hosts": hosts,
            "links": tree["links"],
            "shared": tree.get("shared", []),
        }
        path.write_text(json.dumps(collection), encoding="utf-8")
        argv = ["pull", str(path), "--into", str(self.folder / into), "--method", method]
        return self._said([*COMMAND, *argv, "--json"], timeout_s)

    def _start(self, name: str) -> Started:
        argv = [*PUNCTUAL, *COMMAND, "agent", str(self.folder / name / "agent.json"), "--json"]
        return self.bed.start(name, argv)

    def _hosts_file(self, agents: dict[str, Started]) -> str:
        self.facts = facts = {
            name: json.loads(started.says("\n", START_S).splitlines()[0])
            for name, started in agents.items()
        }
        hosts = {
            name: {"url": fact["url"], "fingerprint": fact["fingerprint"]}
            for name, fact in facts.items()
        }
        return toml_of(
            HOSTS,
            {
                "format": "datacollect-hosts/1",
                "destination": self.names[-1],
                "key": str(self.key),
                "hosts": hosts,
            },
        )


def _write_files(folder: Path, size_bytes: int, n_files: int = 3) -> None:
    folder.mkdir()
    draws = random.Random(folder.parent.name)
    cuts = [size_bytes * i // n_files for i in range(n_files + 1)]
    for i, (first, last) in enumerate(pairwise(cuts)):
        (folder / f"{i}.bin").write_bytes(draws.randbytes(last - first))
