"""Hosts whose tests are done at once, over wires in memory: what each link gets is max-min fair.

No sockets and no waiting: cycles ask for tests as always, and rows come from the model.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
from instances.measuring import OPERATOR

from datacollect.measuring.cycle import measure_cycle, several_links
from datacollect.measuring.operator.tools import TOOLS
from datacollect.net.fan_out import Outcome
from datacollect.net.keys import write_private_key

Pair = tuple[str, str]


@dataclass
class Lines:
    """Lines of hosts, and wires between them, in bytes per second.

    Attributes
    ----------
    up, down : mapping of str to float
        What hosts' lines carry; without end where none is said.
    wires : mapping of a number of bytes per second to pairs
        Each carries that for its pairs together.
    away : set of str
        Hosts that do not answer.
    tests : list
        What was asked for: a tool and its pairs.
    """

    up: Mapping[str, float]
    down: Mapping[str, float] = field(default_factory=dict)
    wires: Mapping[float, Iterable[Pair]] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)
    noise: float = 0.01
    tests: list[tuple[str, tuple[Pair, ...]]] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def rates(self, pairs: Iterable[Pair]) -> dict[Pair, float]:
        """Return what pairs get at once: all grow alike, until what one of them needs is full."""
        pairs = list(pairs)
        needs = [
            ({pair for pair in pairs if pair[end] == host}, rate)
            for end, of_hosts in ((0, self.up), (1, self.down))
            for host, rate in of_hosts.items()
        ]
        needs += [({*pairs} & {*on_wire}, rate) for rate, on_wire in self.wires.items()]
        found: dict[Pair, float] = {}
        growing = set(pairs)
        while growing:
            share, full = min(
                (
                    (rate - sum(found.get(pair, 0.0) for pair in of)) / len(of & growing),
                    sorted(of & growing),
                )
                for of, rate in needs
                if of & growing
            )
            found |= dict.fromkeys(full, share)
            growing -= {*full}
        return found

    def rows(self, tool, pairs, settings):
        """Return the rows of tests at once, each with its settings."""
        self.tests.append((tool, tuple(pairs)))
        begun_s = time.time()
        rates = self.rates(pair for pair in pairs if self.away.isdisjoint(pair))
        for pair, one in zip(pairs, settings, strict=True):
            row = {"from": pair[0], "to": pair[1], "time_s": begun_s, "tool": tool}
            row |= {"settings": json.dumps(asdict(one)), "concurrency": len(pairs) - 1}
            if self.away & {*pair}:
                yield row | {"ended": f"{min(self.away & {*pair})}: is away"}
                continue
            rate = rates[pair] * (1 + self.noise * self.random.uniform(-1, 1))
            seconds = min(one.seconds, one.most_bytes / rate)
            yield row | {
                "ended": "done",
                "bandwidth_bytes_per_s": rate,
                "bytes": int(rate * seconds),
                "duration_s": seconds,
                "streams": one.streams,
                "beside_pull": False,
            }

    def take_part(self, monkeypatch) -> None:
        """Have all tests of cycles done by this model."""

        def tcp(sender, receiver, key, settings, patience_s=0.0, report=None):
            return self.rows("tcp", [(sender.name, receiver.name)], [settings])

        def light(sender, receiver, key, settings, patience_s=0.0, report=None):
            row = {"from": sender.name, "to": receiver.name, "time_s": time.time()}
            gone = self.away & {sender.name, receiver.name}
            ended = f"{min(gone)}: is away" if gone else "done"
            yield row | {"tool": settings.tool, "ended": ended, "rtt_s": 0.01}

        def flood(pairs, key, settings, patience_s=0.0, report=None):
            names = [(sender.name, receiver.name) for sender, receiver in pairs]
            (host,) = set.intersection(*map(set, names)) - (
                set() if len(names) > 1 else {names[0][1]}
            )
            said = {"host": host, "flood": secrets.token_hex(8)}
            return [
                row | {"tool": "flood", "settings": json.dumps(json.loads(row["settings"]) | said)}
                for row in self.rows("flood", names, settings)
            ]

        for name, measure in (("tcp", tcp), ("ping", light), ("trace", light)):
            monkeypatch.setitem(TOOLS, name, TOOLS[name]._replace(measure=measure))
        monkeypatch.setattr(several_links, "measure_flood", flood)
        # One after the other, in this thread.
        monkeypatch.setattr(
            measure_cycle,
            "fan_out",
            lambda names, call: {name: Outcome(name, call(name), None) for name in names},
        )

    def floods(self) -> list[set[Pair]]:
        """Return of which pairs floods were asked for, in this order."""
        return [{*pairs} for tool, pairs in self.tests if tool == "flood"]


def write_hosts_of(folder, names, **more) -> str:
    """Write a file of hosts that are nowhere, the first of which is the destination."""
    write_private_key(folder / "operator.key", OPERATOR)
    lines = ['format = "datacollect-hosts/1"', f'destination = "{names[0]}"']
    lines += ['key = "operator.key"']
    lines += [f"{key} = {value}" for key, value in more.items()]
    for i, name in enumerate(names):
        lines += [f"[hosts.{name}]", f'url = "https://127.0.0.1:{i + 1}"']
        lines += [f'fingerprint = "sha256:{i:064}"']
    (folder / "hosts.toml").write_text("\n".join(lines))
    return str(folder / "hosts.toml")
