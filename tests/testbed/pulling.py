"""Real pulls in a bed: an agent at each source and relay, `datacollect pull` at the destination.

Everything is what users run, as processes of their own; only the network is emulated.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tomllib
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testbed.bed import Bed, Started

    from datacollect.problem.problem import Problem
    from datacollect.scenario.setting import Setting

PORT = 7443
COMMAND = (sys.executable, "-m", "datacollect")
# Interpreters and modules that come up beside each other on a busy machine.
START_S = 60.0


class BedAgents:
    """Agents of a setting's hosts, serving files as large as its backlogs, and their collector.

    Parameters
    ----------
    bed : Bed
    setting : Setting
        Its backlogs are what sources serve.
    problem : Problem
        What the collector is told of links, shared wires and hosts.
    folder : Path
    n_files : int
        Of each source, of about the same size.
    """

    def __init__(
        self, bed: Bed, setting: Setting, problem: Problem, folder: Path, n_files: int = 3
    ) -> None:
        self.bed, self.setting, self.folder = bed, setting, folder
        self._numbers = count()
        self.agents: dict[str, Started] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        made = [*COMMAND, "keys", "new", str(folder / "collector.key")]
        self.key = bed.run(setting.destination, made).strip().splitlines()[-1]
        self.tree = problem.to_dict()
        self.hosts = [name for name in setting.hosts if name != setting.destination]
        for name in self.hosts:
            self._write_agent(name, n_files)
        for name in self.hosts:
            self.start(name)
        for name in self.hosts:
            self._wait(name)

    def start(self, name: str) -> None:
        """Start the agent of a host."""
        argv = [*COMMAND, "agent", str(self.folder / name / "agent.toml"), "--json"]
        self.agents[name] = self.bed.start(name, argv)

    def pull(
        self, method: str, connections: int, *, into: Path | None = None, timeout_s: float = 300.0
    ) -> dict[str, Any]:
        """Pull everything into a new folder; return what the command says."""
        started, into = self.start_pull(method, connections, into=into)
        try:
            started.wait(timeout_s)
        finally:
            started.kill()
        said = started.stdout.read_text(encoding="utf-8")
        assert said, started.stderr.read_text(encoding="utf-8")
        return dict(json.loads(said))

    def start_pull(
        self, method: str, connections: int, *, into: Path | None = None
    ) -> tuple[Started, Path]:
        """Start a pull; return it, and where files arrive."""
        number = next(self._numbers)
        into = into or self.folder / f"into-{number}"
        path = self.folder / f"collection-{number}.json"
        path.write_text(json.dumps(self._collection(connections)), encoding="utf-8")
        argv = [*COMMAND, "pull", str(path), "--into", str(into), "--method", method, "--json"]
        return self.bed.start(self.setting.destination, argv), into

    def differences(self, into: Path) -> list[str]:
        """Return the files that are not as at their source."""
        differ = []
        for name in self.setting.backlog_bytes:
            for served in sorted((self.folder / name / "data").iterdir()):
                there = into / name / served.name
                if not there.is_file() or there.read_bytes() != served.read_bytes():
                    differ.append(f"{name}/{served.name}")
        return differ

    def clear(self, into: Path) -> None:
        """Remove what was collected."""
        shutil.rmtree(into)

    def _collection(self, connections: int) -> dict[str, Any]:
        there = {self.setting.destination, *self.hosts}
        hosts = {
            name: {key: value for key, value in _said(entry).items() if key != "backlog_bytes"}
            for name, entry in self.tree["hosts"].items()
            if name in there
        }
        return {
            "format": "datacollect-collection/1",
            "destination": self.setting.destination,
            "key": str(self.folder / "collector.key"),
            "agents": {
                name: {"url": fact["url"], "fingerprint": fact["fingerprint"]}
                for name, fact in self.facts.items()
            },
            "limits": {"connections": connections, "piece_bytes": 65536},
            "hosts": hosts,
            "links": [_said(link) for link in self.tree["links"] if self._is_way(link)],
            "shared": [
                row | {"links": links}
                for row in self.tree["shared"]
                if (links := [pair for pair in row["links"] if self._is_way(_link(pair))])
            ],
        }

    def _is_way(self, link: dict[str, Any]) -> bool:
        """Whether data may come this way: to the destination, or to a relay that serves nothing."""
        holders, destination = self.setting.backlog_bytes, self.setting.destination
        return link["from"] != destination and link["to"] not in holders

    def _write_agent(self, name: str, n_files: int) -> None:
        folder = self.folder / name
        folder.mkdir()
        lines = [
            'format = "datacollect-agent/1"',
            f'name = "{name}"',
            f'listen = "{self.bed.address(name)}:{PORT}"',
            f'collectors = ["{self.key}"]',
        ]
        backlog = self.setting.backlog_bytes.get(name, 0)
        if backlog:
            (folder / "data").mkdir()
            draws = random.Random(name)
            cuts = [backlog * i // n_files for i in range(n_files + 1)]
            for i, (first, last) in enumerate(pairwise(cuts)):
                (folder / "data" / f"{i}.bin").write_bytes(draws.randbytes(last - first))
            lines.append('serve = "data"')
        else:
            reached = ", ".join(
                f'{other} = "{self.bed.address(other)}:{PORT}"'
                for other in self.setting.backlog_bytes
            )
            lines.append(f"connect_to = {{ {reached} }}")
        text = "\n".join(lines) + "\n"
        tomllib.loads(text)
        (folder / "agent.toml").write_text(text, encoding="utf-8")

    def _wait(self, name: str) -> None:
        said = self.agents[name].says("\n", START_S)
        self.facts[name] = json.loads(said.splitlines()[0])


def _said(entry: dict[str, Any]) -> dict[str, Any]:
    """What an entry says; None is nothing."""
    return {key: value for key, value in entry.items() if value is not None}


def _link(pair: list[str]) -> dict[str, Any]:
    return {"from": pair[0], "to": pair[1]}
