"""What a large log costs: entries a second, bytes on the disk, memory, and the time of a proof.

    python experiments/timestamp_growth.py FOLDER [--entries 1000000]

The log's core and store are driven without a network, with a clock that says when the next second
has come: only the work counts. Each line is at a tenfold size.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from instances.events import event_of, key_of

from datacollect.bistro.now import Now
from datacollect.bistro.service import messages
from datacollect.bistro.service.core import ServiceCore
from datacollect.bistro.service.proving import proof_of
from datacollect.bistro.store.log_store import LogStore
from datacollect.bistro.witness.core import WitnessCore

BATCH = 1000
BATCHES_A_SECOND = 10
N_PROOFS = 200


class Grown:
    """A log that grows, with its witnesses, at a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.event = event_of(admission="open")
        self.at_s = 0.0
        log = self.event.services[0].log
        self.store = LogStore(folder, log.text)
        self.core = ServiceCore(self.event, key_of("s0"), self.store.kept(), self.store)
        self.witnesses = [
            WitnessCore(each.vkey.name, key_of(each.vkey.name), [log], {}, 0, self.now)
            for each in self.event.witnesses
        ]
        self.n_requests = 0
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
        raw = os.urandom(32 * BATCH)
        entries = tuple(raw[i : i + 32] for i in range(0, len(raw), 32))
        self.n_requests += 1
        self.at_s += 1 / BATCHES_A_SECOND
        self.tell(messages.CommitAsked(self.now, self.n_requests, entries, None, "a"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the log is made; taken away afterwards")
    parser.add_argument("--entries", type=int, default=10**6)
    options = parser.parse_args()
    grown, begun_s, n = Grown(options.folder), time.process_time(), 0
    shown = 10_000
    try:
        while n < options.entries:
            grown.commit()
            n += BATCH
            if n >= shown or n == options.entries:
                show(grown, n, time.process_time() - begun_s, options.folder)
                shown *= 10
    finally:
        grown.store.close()
        shutil.rmtree(options.folder)


def show(grown: Grown, n: int, cpu_s: float, folder: Path) -> None:
    grown.at_s += 2.0
    grown.tell(messages.Ticked(grown.now))
    assert grown.core.published_size == n
    indices = [i * (n - 1) // N_PROOFS for i in range(N_PROOFS)]
    begun_s = time.process_time()
    for index in indices:
        assert proof_of(index, grown.store) is not None
    proof_ms = (time.process_time() - begun_s) / N_PROOFS * 1e3
    sizes = [each.stat().st_size for each in folder.rglob("*") if each.is_file()]
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{n} entries: {1e3 * cpu_s / n:.3f} ms of CPU each, {sum(sizes) / n:.0f} bytes each in "
        f"{len(sizes)} files, {memory_mb:.0f} MB of memory, a proof in {proof_ms:.2f} ms",
        flush=True,
    )


if __name__ == "__main__":
    main()
