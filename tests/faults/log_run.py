"""Fail the n-th call of a service: what was acknowledged is there afterwards, and no log forks.

Run as a script in a process of its own, for the wrappers of `shim` stand before the program is
imported. Each experiment is a copy of this process: a sequencer with its log's folder, witnesses
in memory that remember what they have signed, and people who come again. Then the same without a
fault, in the same folder.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import shim

shim.install()

from faults.experiments import Experiment, shimmed  # noqa: E402
from instances.events import event_of, key_of  # noqa: E402

from datacollect.bistro.config.file import Listening, ServiceConfig  # noqa: E402
from datacollect.bistro.log.acknowledgement import Acknowledgement  # noqa: E402
from datacollect.bistro.log.checkpoints import cosigned_times  # noqa: E402
from datacollect.bistro.log.proofs import LogProof  # noqa: E402
from datacollect.bistro.log.witnessing import AddCheckpoint  # noqa: E402
from datacollect.bistro.service import core  # noqa: E402
from datacollect.bistro.serving import clocks, sequencer  # noqa: E402
from datacollect.bistro.serving.exchange import Asked  # noqa: E402
from datacollect.bistro.store.folder import Held  # noqa: E402
from datacollect.bistro.store.log_store import LogStore  # noqa: E402
from datacollect.bistro.witness.core import Cosigned, Seen, WitnessCore  # noqa: E402
from datacollect.errors import DatacollectError  # noqa: E402

DONE, SAID, BROKEN = 0, 3, 1
# Garbage that was read may be written again, and a clock that is wrong is another test's.
LEFT_OUT = ("GARBAGE", "CORRUPT")
GROUPS = (1, 3, 300, 2)
TRIES, MOST_PROOFS = 8, 200
EVENT = event_of(admission="open")
LOG = EVENT.services[0].log


def entries_of(group: int, generation: int) -> list[bytes]:
    return [
        hashlib.sha256(f"{generation}/{group}/{i}".encode()).digest() for i in range(GROUPS[group])
    ]


class Witnesses:
    """They sign in memory, and note what they have signed."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "signed"
        seen: dict[int, dict[str, Seen]] = {i: {} for i in range(4)}
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                i, size, root = json.loads(line)
                seen[i][LOG.name] = Seen(size, bytes.fromhex(root))
        names = [witness.vkey.name for witness in EVENT.witnesses]
        self._cores = [
            WitnessCore(name, key_of(name), [LOG], seen[i], 0, clocks.now())
            for i, name in enumerate(names)
        ]

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


async def commit_all(keeper: sequencer.Sequencer, folder: Path, generation: int) -> int:
    """Commit groups, coming again where that is asked for; note what was acknowledged."""
    for group in range(len(GROUPS)):
        entries = entries_of(group, generation)
        for _ in range(TRIES):
            asked = Asked("commit", "a", b"".join(entries), "list")
            reply = await keeper.ask(asked)
            if reply.status == 200:
                break
            assert reply.status in (503, 507), reply
            assert reply.retry_after_s is not None or b"has failed" in reply.body, reply
            await asyncio.sleep(0.02)
        if reply.status != 200:
            return SAID
        with (folder / "acknowledged").open("a") as file:
            for row, entry in zip(json.loads(reply.body), entries, strict=True):
                word = Acknowledgement(
                    LOG.name, row["index"], row["time_s"], base64.b64decode(row["signature"])
                )
                assert word.is_by(LOG, entry)
                file.write(json.dumps([entry.hex(), row["index"]]) + "\n")
        if not await is_proved(keeper, entries[-1], row["index"]):
            return SAID
    return DONE


async def is_proved(keeper: sequencer.Sequencer, entry: bytes, index: int) -> bool:
    for _ in range(MOST_PROOFS):
        reply = await keeper.ask(Asked("get", path=f"/proof/{entry.hex()}"))
        if reply.status == 200:
            proof = LogProof.parse(reply.body)
            assert (proof.index, proof.includes(entry)) == (index, True)
            assert len(cosigned_times(proof.signed.note, EVENT.witness_keys)) >= EVENT.quorum
            return True
        assert reply.status in (202, 503), reply
        await asyncio.sleep(0.02)
    return False


async def serve(store: LogStore, folder: Path, generation: int) -> int:
    config = ServiceConfig(
        EVENT, b"", key_of("s0"), Listening(("127.0.0.1", 0), None), folder / "log", 0, ()
    )
    keeper = sequencer.Sequencer(config, store, Witnesses(folder).ask, lambda _: None)
    keeper.start()
    try:
        code = await commit_all(keeper, folder, generation)
        if generation and code == DONE:
            for line in (folder / "acknowledged").read_text().splitlines():
                entry, index = json.loads(line)
                assert await is_proved(keeper, bytes.fromhex(entry), index)
    finally:
        await keeper.stop()
    return code


def run(folder: Path, generation: int) -> int:
    """Serve once; return how that ended."""
    core.GROUP_S = core.CHECKPOINT_S = sequencer.RETRY_S = 0.005
    try:
        store = LogStore(Held(folder / "log"), LOG.text)
        try:
            return asyncio.run(serve(store, folder, generation))
        finally:
            store.close()
    except DatacollectError as error:
        return SAID if ";" in str(error) else BROKEN


def in_copy(
    folder: Path,
    generation: int,
    fault: dict | None = None,
    work: Callable[[Path, int], int] = run,
) -> int:
    """Do so in a copy of this process; return its exit code, negative for a signal."""
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = BROKEN
        try:
            number = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(number, 2)
            if fault is not None:
                shim.arm(fault)
            code = work(folder, generation)
            if fault is not None and "record" in fault:
                shim.ARMED.write_counts()
        except BaseException:  # noqa: BLE001 - says which, and must not go on as its parent
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    end_s = time.monotonic() + 120
    while time.monotonic() < end_s:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError("it is stuck")


def judged(experiment: Experiment, folder: Path) -> str:
    """Carry out an experiment; return what is wrong, if anything is."""
    fault = {
        "call": experiment.call,
        "kind": experiment.kind,
        "error": experiment.error,
        "n": experiment.n,
        "onward": experiment.onward,
        "hits": str(folder / "hits"),
    }
    try:
        code = in_copy(folder, 0, fault)
        if code not in (DONE, SAID, -9) or (code == -9 and experiment.error != "SIGKILL"):
            return f"exit {code}: {(folder / 'said').read_text()[-2000:]}"
        again = in_copy(folder, 1)
        return "" if again == DONE else f"then {again}: {(folder / 'said').read_text()[-2000:]}"
    except AssertionError as error:
        return str(error)


def main() -> int:
    """Carry out all experiments, or each so manieth; exit 1 where a rule was broken."""
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with tempfile.TemporaryDirectory(prefix="log-faults-") as scratch:
        folder = Path(scratch) / "clean"
        folder.mkdir()
        assert in_copy(folder, 0, {"record": str(folder / "counts")}) == DONE, (
            folder / "said"
        ).read_text()
        counts = json.loads((folder / "counts").read_text())
        counts = {site: n for site, n in counts.items() if not site.startswith("clock")}
        plan = [e for e in shimmed("log", counts, 3) if e.error not in LEFT_OUT][::step]
        broken = 0
        for number, experiment in enumerate(plan):
            place = Path(scratch) / str(number)
            place.mkdir()
            if why := judged(experiment, place):
                broken += 1
                print(f"{experiment.key}: {why}")  # noqa: T201
            shutil.rmtree(place)
        print(f"{len(plan)} experiments, {broken} with a rule broken")  # noqa: T201
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
