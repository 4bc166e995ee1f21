"""Honest people beside crowds, at real processes: all of them end.

How long they take beside how long alone is printed (``pytest -s``) and judged by nobody: what a
machine does besides would decide. What is counted is how often an honest one has to come.
"""

from __future__ import annotations

import http.client
import json
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from instances.agents import write_agent
from instances.bistros import Client, bistro_event, commitment_to
from instances.crowds import crowd
from instances.events import key_of
from instances.how_many import many
from instances.timestamping import WITHIN_S, World

from datacollect.bistro.formats.custody.verdicts import COVERED_PATH
from datacollect.bistro.formats.log.witnessing import ADD_CHECKPOINT
from datacollect.net.keys import write_private_key

N_HONEST, N_IDLE, N_SLOW, N_PUSHERS = 20, 1000, 1000, 100
KINDS = {
    "idle": {"idle": N_IDLE},
    "slow": {"slow": N_SLOW},
    "pushers": {"pushers": N_PUSHERS},
    "all": {"idle": N_IDLE, "slow": N_SLOW, "pushers": N_PUSHERS},
}
HONEST = "127.0.0.1"
DATA = bytes(range(256)) * 400
# Whoever has come so often, and is not served, is not being served.
MOST_TRIES = 5
AGAIN_S = 0.2
COMMIT_PATH = "/commit"


@contextmanager
def process_of(arguments: list[str], folder: Path) -> Iterator[dict[str, str]]:
    """Run one of our servers until the end; yield what it says of itself."""
    with (
        (folder / f"{Path(arguments[1]).stem}.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "datacollect", *arguments, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        ) as process,
    ):
        try:
            ready, _, _ = select.select([process.stdout], [], [], WITHIN_S)
            assert ready
            yield json.loads(process.stdout.readline())
            assert process.poll() is None
        finally:
            process.kill()


def all_served(serve: Callable[[int], None], first: int, n: int = N_HONEST) -> tuple[float, int]:
    """Serve honest people, all at once; return how long that took, and how often one had to come.

    Who is not let in, or cut off, comes again.
    """

    def come(number: int) -> int:
        for n_tries in range(1, MOST_TRIES + 1):
            with suppress(OSError, http.client.HTTPException):
                serve(number)
                return n_tries
            time.sleep(AGAIN_S)
        raise AssertionError("never served")

    begun_s = time.monotonic()
    with ThreadPoolExecutor(min(n, 50)) as people:
        tries = [*people.map(come, range(first, first + n))]
    return time.monotonic() - begun_s, max(tries)


def told(where: str, kind: str, alone_s: float, beside_s: float, tries: int, met: dict) -> None:
    ratio = beside_s / alone_s
    sys.stdout.write(
        f"\n{where}, {kind}: alone {alone_s:.2f} s, beside {beside_s:.2f} s, {ratio:.1f} times; "
        f"{tries} tries at most; the crowd: {json.dumps(met, sort_keys=True)}\n"
    )


@pytest.fixture
def north(tmp_path):
    """A bistro's process: its event and port."""
    event = bistro_event(tmp_path, limits={"bytes": 10**8, "commitments_per_ticket": 2})
    write_private_key(tmp_path / "north.receipts", key_of("north"))
    accept = (
        '[accept]\nevent = "event.toml"\nfolder = "up"\nbytes = 1e10\n'
        'receipt_key = "north.receipts"\n'
    )
    path = write_agent(tmp_path, "north", more=accept)
    with process_of(["agent", str(path)], tmp_path) as ready:
        yield event, int(ready["url"].rpartition(":")[2])


def push(event, port: int, number: int) -> None:
    """Hand in as one person does: begin, send, be told that it is held."""
    client = Client(("127.0.0.1", port), source=HONEST)
    try:
        commitment = commitment_to(event, DATA, salt=number)
        status, headers, _ = client.create(event, commitment, number=number)
        assert status == 201, status
        offset = int(headers["upload-offset"])
        if "datacollect-receipt" not in headers:
            status, headers, _ = client.patch(headers["location"], offset, DATA[offset:])
        assert "datacollect-receipt" in headers, status
    finally:
        client.close()


# Each alone in `make test-all`: whoever ends beside all of them ends beside one.
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS if many(100) == 100 else ["all"])
def test_honest_people_end_beside_a_crowd_at_a_bistro(north, tmp_path, kind):
    event, port = north
    serve = partial(push, event, port)
    alone_s, _ = all_served(serve, 1)
    with crowd(port, COVERED_PATH, tmp_path, WITHIN_S, **KINDS[kind]) as met:
        beside_s, tries = all_served(serve, 1 + N_HONEST)
    told("bistro", kind, alone_s, beside_s, tries, met)
    for each, n in KINDS[kind].items():
        assert sum(count for what, count in met.items() if what.startswith(each)) >= n


@pytest.mark.slow
def test_500_people_behind_one_address_end_beside_silent_connections_at_a_bistro(north, tmp_path):
    event, port = north
    with crowd(port, COVERED_PATH, tmp_path, WITHIN_S, idle=N_IDLE) as met:
        took_s, tries = all_served(partial(push, event, port), 1, 500)
    sys.stdout.write(
        f"\nbistro, 500 of one address beside the idle: {took_s:.1f} s, {tries} tries\n"
    )
    assert met["idle come"] >= N_IDLE


@pytest.fixture
def world(tmp_path):
    """A service and a witness as processes; two more witnesses, which all quorums need."""
    now_s = int(time.time())
    text = {
        name: time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(now_s + after_s))
        for name, after_s in (
            *(("opens", -3600), ("deadline", 7200)),
            *(("collect_until", 9000), ("keep_until", 90_000)),
        )
    }
    with World(tmp_path, timezone="UTC", **text) as made:
        made.start_witnesses(0, 1)
        port = made.event.witnesses[2].url.rpartition(":")[2]
        write_private_key(tmp_path / "w2.key", key_of("w2.example"))
        (tmp_path / "w2.toml").write_text(
            'format = "datacollect-witness/1"\nname = "w2.example"\nkey = "w2.key"\n'
            f'listen = "127.0.0.1:{port}"\nfolder = "w2"\nclock = "trusted"\n'
            'tls = { certificate = "tls.pem", key = "tls.key" }\n'
            f'logs = ["{made.event.services[0].log.text}"]\n'
        )
        with process_of(["witness", str(tmp_path / "w2.toml")], tmp_path):
            made.start()
            yield made


def be_timestamped(world: World, number: int) -> None:
    """Commit, and wait for a proof, which takes all three witnesses."""
    entry = number.to_bytes(32, "big")
    answer = world.commit(world.services[0], entry, number)
    assert answer.status == 200, answer
    world.proof(world.services[0], entry)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["idle", "slow"])
@pytest.mark.parametrize("where", ["service", "witness"])
def test_honest_people_are_timestamped_beside_a_crowd(world, tmp_path, where, kind):
    url = world.services[0].url if where == "service" else world.event.witnesses[2].url
    serve = partial(be_timestamped, world)
    alone_s, _ = all_served(serve, 1)
    path = COMMIT_PATH if where == "service" else ADD_CHECKPOINT
    with crowd(int(url.rpartition(":")[2]), path, tmp_path, WITHIN_S, **KINDS[kind]) as met:
        beside_s, tries = all_served(serve, 1 + N_HONEST)
    told(where, kind, alone_s, beside_s, tries, met)
    assert met[f"{kind} come"] >= KINDS[kind][kind]
