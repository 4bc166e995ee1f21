"""Costs of a large log: entries a second, bytes on the disk, memory, and the time of a proof.

    python experiments/timestamp_growth.py FOLDER [--entries 1000000] [-o growth.csv]

The log's core and store are driven without a network, with a clock that says when the next second
has come: only the work counts. Each entry is a request with a ticket of its own, whose signature
the processes in front have verified. Each line is at about a threefold size.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from instances.events import event_of, key_of

from datacollect.bistro.folder import Held
from datacollect.bistro.formats.event.tickets import Admitted
from datacollect.bistro.log_service import messages, requests
from datacollect.bistro.log_service.core import ServiceCore
from datacollect.bistro.log_service.proving import proof_of
from datacollect.bistro.log_service.store import LogStore
from datacollect.bistro.now import Now
from datacollect.bistro.witness.core import WitnessCore

# Entries that the disk takes together, and how often.
BATCH, BATCHES_A_SECOND = 200, 50
N_PROOFS = 1000
COLUMNS = (
    *("entries", "cpu_ms_each", "disk_bytes_each", "database_bytes_each", "files", "checkpoints"),
    *("memory_mb", "proof_p50_ms", "proof_p99_ms"),
)


class Grown:
    """A log that grows, with its witnesses, at a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.event = event_of()
        self.at_s = 0.0
        log = self.event.services[0].log
        self.store = LogStore(Held(folder), log.text)
        self.core = ServiceCore(self.event, key_of("s0"), self.store.kept(), self.store)
        self.witnesses = [
            WitnessCore(each.vkey.name, key_of(each.vkey.name), [log], {}, 0, self.now)
            for each in self.event.witnesses
        ]
        self.n_requests = self.n_checkpoints = 0
        self.tell(messages.Ticked(self.now))

    @property
    def now(self) -> Now:
        return Now(self.at_s, self.event.deadline_s - 10**6 + self.at_s)

    def tell(self, event: messages.Event) -> None:
        """Tell the core, and do what it asks for."""
        waiting = self.core.handle(event)
        while waiting:
            action = waiting.pop(0)
            if isinstance(action, messages.Store):
                self.store.store(action)
                done = messages.Stored(self.now, action.first + len(action.rows))
            elif isinstance(action, messages.StoreHead):
                self.store.store_tiles(action)
                self.store.store_head(action)
                self.n_checkpoints += 1
                done = messages.HeadStored(self.now, action.size)
            elif isinstance(action, messages.Publish):
                self.store.publish(action)
                done = messages.Published(self.now, action.size)
            elif isinstance(action, messages.AskWitness):
                decision = self.witnesses[action.witness].add_checkpoint(action.body, self.now)
                status = getattr(decision, "status", 200)
                done = messages.WitnessAnswered(self.now, action.witness, status, decision.answer)
            elif isinstance(action, messages.Refuse):
                sys.exit(action.text)
            else:
                continue
            waiting += self.core.handle(done)

    def commit(self) -> None:
        """Have one entry each of many people taken."""
        self.at_s += 1 / BATCHES_A_SECOND
        for _ in range(BATCH):
            ticket = Admitted(os.urandom(16).hex(), bytes(32), bytes(32))
            self.n_requests += 1
            entries = (os.urandom(32),)
            self.tell(requests.CommitAsked(self.now, self.n_requests, entries, ticket, "a"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the log is made; taken away afterwards")
    parser.add_argument("--entries", type=int, default=10**6)
    parser.add_argument("-o", type=argparse.FileType("w"), default=sys.stdout, help="a CSV file")
    options = parser.parse_args()
    grown, begun_s, n = Grown(options.folder), time.process_time(), 0
    sizes = {k * 10**e for e in range(4, 9) for k in (1, 3)} | {options.entries}
    rows = csv.writer(options.o)
    rows.writerow(COLUMNS)
    try:
        while n < options.entries:
            grown.commit()
            n += BATCH
            if n in sizes:
                rows.writerow(measured(grown, n, time.process_time() - begun_s, options.folder))
                options.o.flush()
    finally:
        grown.store.close()
        shutil.rmtree(options.folder)


def measured(grown: Grown, n: int, cpu_s: float, folder: Path) -> list[str]:
    """Return a row of what the log costs by now."""
    for _ in range(2):  # what is collected is kept first, then has its checkpoint
        grown.at_s += 2.0
        grown.tell(messages.Ticked(grown.now))
    assert grown.core.published_size == n
    waits_ms = []
    for i in range(N_PROOFS):
        begun_s = time.process_time()
        assert proof_of(i * (n - 1) // N_PROOFS, grown.store) is not None
        waits_ms.append((time.process_time() - begun_s) * 1e3)
    waits_ms.sort()
    # Before files are listed, which takes more than the log itself.
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {each: each.stat() for each in folder.rglob("*") if each.is_file()}
    database = sum(each.st_blocks for path, each in found.items() if "sqlite" in path.name)
    disk = sum(each.st_blocks for each in found.values())
    return [
        *(str(n), f"{1e3 * cpu_s / n:.3f}", f"{512 * disk / n:.0f}", f"{512 * database / n:.0f}"),
        *(str(len(found)), str(grown.n_checkpoints), f"{memory_mb:.0f}"),
        *(f"{waits_ms[N_PROOFS // 2]:.2f}", f"{waits_ms[99 * N_PROOFS // 100]:.2f}"),
    ]


if __name__ == "__main__":
    main()
