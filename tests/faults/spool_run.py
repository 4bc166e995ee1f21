"""Fail the n-th call of a pull in slots: of a source that seals, a relay that keeps, whoever pulls.

Run as a script in a process of its own, as `log_run`. Each experiment is a copy of this process
with a source, a relay with a spool, and a pull whose only way leads over it. What ends it says why;
where it says complete all is there. Then the same folder without a fault: all comes, what happened
is a valid schedule, and the spool keeps nothing of what has ended.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import shim

shim.install()

from faults.copies import BROKEN, DONE, SAID, Trial  # noqa: E402
from faults.time_limits import limit_s  # noqa: E402
from instances.agents import KEY, RunningAgent, collection_tree, write_agent  # noqa: E402
from judges.slots import judged  # noqa: E402

import datacollect as dc  # noqa: E402
import datacollect.control.adaptive.controller  # noqa: E402
from datacollect.errors import DatacollectError  # noqa: E402
from datacollect.net.keys import write_private_key  # noqa: E402
from datacollect.transfer.agent.config.file import AgentConfig  # noqa: E402
from datacollect.transfer.agent.run import Agent  # noqa: E402

# Loaded now, once for all copies.
PULL = dc.pull
DATA = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(8000))
SLOT_S = 0.5
# Whoever has a fault waits without result; without one, slow machines take a while.
PATIENCE_S = (1.0, 10.0)


def started(path: Path) -> RunningAgent:
    config = AgentConfig.from_file(path)
    agent = Agent(config, lambda _: None)
    threading.Thread(target=agent.run, daemon=True).start()
    return RunningAgent(config.name, agent)


def collection_of(folder: Path, generation: int, *agents: RunningAgent) -> dict:
    """Return a collection whose only way leads over the relay."""
    links = [{"from": a, "to": b, "bandwidth_bytes_per_s": 4e6} for a, b in ("SK", "KD")]
    limits = {"patience_s": PATIENCE_S[generation], "timeout_s": PATIENCE_S[generation]}
    limits = {name: limit_s(value) for name, value in {**limits, "time_s": 20.0}.items()}
    limits["piece_bytes"] = 65_536
    return collection_tree(folder, *agents, sources={"S": {}}, links=links, limits=limits)


def prepare(folder: Path) -> None:
    write_private_key(folder / "collector.key", KEY)
    (folder / "data").mkdir()
    (folder / "data/file").write_bytes(DATA)


def run(folder: Path, generation: int) -> int:
    """Pull once; return how that ended."""
    with ExitStack() as held:
        try:
            s = started(write_agent(folder, "S", serve="data"))
            held.callback(s.agent.stop)
            more = 'spool = { folder = "spool", bytes = 10_000_000 }'
            k = started(write_agent(folder, "K", connect_to={"S": s.place}, more=more))
            held.callback(k.agent.stop)
            answer = PULL(collection_of(folder, generation, s, k), folder / "into", slot_s=SLOT_S)
        except DatacollectError as error:
            print(error, file=sys.stderr)  # noqa: T201
            return SAID if str(error) else BROKEN
    if answer.complete:
        assert (folder / "into/S/file").read_bytes() == DATA
        return DONE
    print(answer.missing, file=sys.stderr)  # noqa: T201
    return SAID if answer.missing else BROKEN


def wrong(folder: Path) -> str:
    """Say what is wrong after a start without a fault."""
    left = [str(path) for path in (folder / "spool").rglob("*.segment")]
    left += [str(path) for path in (folder / "spool/open").iterdir()]
    try:
        judged(folder / "into")
    except DatacollectError as error:
        return f"what happened is not valid: {error}"
    return f"the spool keeps {left} of what has ended" if left else ""


TRIAL = Trial("spool", prepare, run, wrong, is_ended=True)


if __name__ == "__main__":
    sys.exit(TRIAL.carry_out())
