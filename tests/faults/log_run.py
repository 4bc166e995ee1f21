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
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import shim

shim.install()

from faults.copies import BROKEN, DONE, SAID, Trial  # noqa: E402
from faults.signing import Witnesses  # noqa: E402
from faults.time_limits import Late, Waiting, limit_s  # noqa: E402
from instances.events import event_of, key_of  # noqa: E402

from datacollect.bistro.formats.log.acknowledgement import Acknowledgement  # noqa: E402
from datacollect.bistro.formats.log.checkpoints import cosigned_times  # noqa: E402
from datacollect.bistro.formats.log.proofs import LogProof  # noqa: E402
from datacollect.bistro.http.config import Listening, ServiceConfig  # noqa: E402
from datacollect.bistro.http.exchange import Asked  # noqa: E402
from datacollect.bistro.log_service import core  # noqa: E402
from datacollect.bistro.log_service.server import sequencer  # noqa: E402
from datacollect.bistro.log_service.store import LogStore  # noqa: E402
from datacollect.errors import DatacollectError  # noqa: E402
from datacollect.files.held_folder import Held  # noqa: E402

GROUPS = (1, 3, 300, 2)
PAUSE_S = 0.02
# Whoever has a fault waits without result; without one, slow machines take a while.
PATIENCE_S = (0.2, 20.0)
PROOF_S = (4.0, 20.0)
EVENT = event_of(admission="open")
LOG = EVENT.services[0].log


def entries_of(group: int, generation: int) -> list[bytes]:
    return [
        hashlib.sha256(f"{generation}/{group}/{i}".encode()).digest() for i in range(GROUPS[group])
    ]


async def commit_all(keeper: sequencer.Sequencer, folder: Path, generation: int) -> int:
    """Commit groups, coming again where that is asked for; note what was acknowledged."""
    for group in range(len(GROUPS)):
        entries = entries_of(group, generation)
        waiting = Waiting(limit_s(PATIENCE_S[generation]))
        while not waiting.is_over():
            asked = Asked("commit", "a", b"".join(entries), "list")
            reply = await keeper.ask(asked)
            if reply.status == 200:
                break
            assert reply.status in (429, 503, 507), reply
            assert reply.retry_after_s is not None or b"has failed" in reply.body, reply
            await asyncio.sleep(PAUSE_S)
        if reply.status != 200:
            return SAID
        with (folder / "acknowledged").open("a") as file:
            for row, entry in zip(json.loads(reply.body), entries, strict=True):
                word = Acknowledgement(
                    LOG.name, row["index"], row["time_s"], base64.b64decode(row["signature"])
                )
                assert word.is_by(LOG, entry)
                file.write(json.dumps([entry.hex(), row["index"]]) + "\n")
        if not await is_proved(keeper, entries[-1], row["index"], PROOF_S[generation]):
            return SAID
    return DONE


async def is_proved(
    keeper: sequencer.Sequencer, entry: bytes, index: int, patience_s: float
) -> bool:
    waiting = Waiting(limit_s(patience_s))
    while not waiting.is_over():
        reply = await keeper.ask(Asked("get", path=f"/proof/{entry.hex()}"))
        if reply.status == 200:
            proof = LogProof.parse(reply.body)
            assert (proof.index, proof.includes(entry)) == (index, True)
            assert len(cosigned_times(proof.signed.note, EVENT.witness_keys)) >= EVENT.quorum
            return True
        assert reply.status in (202, 503), reply
        await asyncio.sleep(PAUSE_S)
    return False


async def serve(store: LogStore, folder: Path, generation: int) -> int:
    config = ServiceConfig(
        EVENT, b"", key_of("s0"), Listening(("127.0.0.1", 0), None), folder / "log", 0, ()
    )
    keeper = sequencer.Sequencer(config, store, Witnesses(folder, EVENT, LOG).ask, lambda _: None)
    keeper.start()
    try:
        code = await commit_all(keeper, folder, generation)
        if generation and code == DONE:
            for line in (folder / "acknowledged").read_text().splitlines():
                entry, index = json.loads(line)
                if not await is_proved(keeper, bytes.fromhex(entry), index, PROOF_S[1]):
                    raise Late(f"no proof of entry {index}")
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


TRIAL = Trial("log", lambda _: None, run)


if __name__ == "__main__":
    sys.exit(TRIAL.carry_out())
