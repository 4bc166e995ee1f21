"""Measuring in a bed as users do: an agent at each host, `datacollect measure` at one of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.pulling import COMMAND, PORT, START_S

from datacollect.files.toml_tables import toml_of
from datacollect.measurement.hosts_file import HOSTS

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    """

    def __init__(
        self, bed: Bed, folder: Path, names: Iterable[str], congestion: str = "reno"
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
                "connect_to": {to: place for to, place in places.items() if to != name},
                "measure": {
                    "operators": [made.strip().splitlines()[-1]],
                    "bytes_per_hour": 10**12,
                    "udp_port": PORT,
                },
            }
            (folder / name / "agent.json").write_text(json.dumps(tree), encoding="utf-8")
        agents = {name: self._start(name) for name in self.names}
        self.hosts = folder / "hosts.toml"
        self.hosts.write_text(self._hosts_file(agents), encoding="utf-8")

    def measure(self, tool: str, *options: object, timeout_s: float = 600.0) -> dict[str, Any]:
        """Run a tool of the command, at the last of the hosts, and return what it says as JSON."""
        return self._run([tool, str(self.hosts), *map(str, options)], timeout_s)

    def problem(self) -> dict[str, Any]:
        """Return what the command says of all that was measured so far."""
        return self._run(["problem", "samples", "--hosts", str(self.hosts)], 60.0)

    def _run(self, arguments: list[str], timeout_s: float) -> dict[str, Any]:
        argv = [*COMMAND, "measure", *arguments, "--json"]
        started = self.bed.start(self.names[-1], argv, cwd=self.folder)
        try:
            started.wait(timeout_s)
        finally:
            started.kill()
        said = started.stdout.read_text(encoding="utf-8")
        if not said:
            raise RuntimeError(started.stderr.read_text(encoding="utf-8"))
        return dict(json.loads(said))

    def _start(self, name: str) -> Started:
        argv = [*COMMAND, "agent", str(self.folder / name / "agent.json"), "--json"]
        return self.bed.start(name, argv)

    def _hosts_file(self, agents: dict[str, Started]) -> str:
        facts = {
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
