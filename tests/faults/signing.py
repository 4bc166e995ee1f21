"""Witnesses that sign in memory, and note in a folder what they have signed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from instances.events import key_of

from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.log.notes import VerifierKey
from datacollect.bistro.formats.log.witnessing import AddCheckpoint
from datacollect.bistro.http import clocks
from datacollect.bistro.witness.core import Cosigned, Seen, WitnessCore


class Witnesses:
    """Those of an event, for one of its logs; a log that forks is found out."""

    def __init__(self, folder: Path, event: Event, log: VerifierKey) -> None:
        self._file = folder / "signed"
        names = [witness.vkey.name for witness in event.witnesses]
        seen: dict[int, dict[str, Seen]] = {i: {} for i in range(len(names))}
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                i, size, root = json.loads(line)
                seen[i][log.name] = Seen(size, bytes.fromhex(root))
        self._cores = [
            WitnessCore(name, key_of(name), [log], seen[i], 0, clocks.now())
            for i, name in enumerate(names)
        ]

    def __call__(self) -> Witnesses:
        return self

    async def __aenter__(self) -> Witnesses:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ask(self, url: str, body: bytes) -> tuple[int | None, bytes]:
        # In a task of its own no frame of the program is above: its calls are not counted.
        return await asyncio.create_task(self._ask(url, body))

    async def _ask(self, url: str, body: bytes) -> tuple[int | None, bytes]:
        i = int(url.removeprefix("https://w")[0])
        decision = self._cores[i].add_checkpoint(body, clocks.now())
        if isinstance(decision, Cosigned):
            head = AddCheckpoint.parse(body).signed.checkpoint
            with self._file.open("a") as file:
                file.write(json.dumps([i, head.size, head.root.hex()]) + "\n")
            return 200, decision.answer
        assert not decision.is_evidence, "the log has forked"
        return decision.status, decision.answer
