"""One quota over three services, by HTTP: more drafts than a ticket is good for, chosen late."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack

import pyrage
import pytest
from instances.agents import KEY
from instances.bistros import rows_with_certificates, run_bistro
from instances.events import key_of
from instances.ports import free_port
from instances.timestamping import World, until

from datacollect.bistro.destination.register_reading import reading
from datacollect.bistro.destination.run import log_times, logged_entries, quotas
from datacollect.bistro.destination.run.standing import read_standing
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    NEVER_CAME,
    REFUSED,
    SUPERSEDED,
)
from datacollect.bistro.person.items import items_of, kept_item
from datacollect.commands.main import run
from datacollect.net.keys import write_private_key

IDENTITY = pyrage.x25519.Identity.generate()
# By a clock that is put forward, so that no machine is too slow.
HANDED_IN_FOR_S, COLLECTED_FOR_S = 3600, 3600


@pytest.fixture
def put_to(monkeypatch):
    """Put the clock forward for all but the services, whose processes have their own."""
    ahead_s, real = [0.0], time.time
    monkeypatch.setattr(time, "time", lambda: real() + ahead_s[0])

    def put(at_s: float) -> None:
        ahead_s[0] += max(0.0, at_s - time.time())

    return put


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Three services and two bistros; a ticket is good for two drafts."""
    now_s = int(time.time())
    times = {
        "deadline": now_s + HANDED_IN_FOR_S,
        "collect_until": now_s + HANDED_IN_FOR_S + COLLECTED_FOR_S,
        "keep_until": now_s + 86400,
    }
    stamped = {
        name: time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(at_s))
        for name, at_s in times.items()
    }
    monkeypatch.setattr("datacollect.bistro.upload_server.core.BATCH_AFTER_S", 0.5)
    monkeypatch.setattr("datacollect.bistro.upload_server.core.CLOSED_AFTER_S", 0.5)
    for module, name in (
        (log_times, "SETTLED_S"),
        (logged_entries, "LOGGED_WITHIN_S"),
        (quotas, "SETTLES_AFTER_S"),
    ):
        monkeypatch.setattr(module, name, 1)
    with World(
        tmp_path,
        3,
        timezone="UTC",
        lag_s=1,
        bistros=rows_with_certificates(tmp_path),
        verdicts={"key": key_of("verdicts").public, "url": f"https://localhost:{free_port()}"},
        recipients=[str(IDENTITY.to_public())],
        limits={"commitments_per_ticket": 2},
        **stamped,
    ) as made:
        (tmp_path / "own.identity").write_text(f"{IDENTITY}\n")
        write_private_key(tmp_path / "verdicts.key", key_of("verdicts"))
        write_private_key(tmp_path / "collector.key", KEY)
        (tmp_path / "tickets").mkdir()
        for number in (1, 2):
            (tmp_path / "tickets" / f"{number}.ticket").write_text(made.ticket(number).text)
        (tmp_path / "destination.toml").write_text(
            'format = "datacollect-destination/1"\nkey = "verdicts.key"\nevery_s = 0.2\n'
            'collector = "collector.key"\nidentities = ["own.identity"]\ntickets = "tickets"\n'
            'folder = "collected"\n'
        )
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
        made.start_witnesses()
        for i in range(3):
            made.start(i)
        yield made


def committed(world, name, service):
    """Seal a draft, and commit it at one service alone; return its entry and its time."""
    (world.folder / name).write_bytes(name.encode())
    (item,) = items_of([world.folder / name], None)
    data = (world.folder / "event.toml").read_bytes()
    with kept_item(item, world.event, data, world.ticket(1)) as (_, receipt):
        assert world.commit(service, receipt.entry).status == 200
        item.save(receipt.with_more(proofs=[world.proof(service, receipt.entry)]))
    return receipt.entry


@pytest.mark.slow
@pytest.mark.long
def test_drafts_beyond_the_quota_are_collected_and_never_count(world, put_to, capsys):
    def upload(name, number):
        ticket = f"tickets/{number}.ticket"
        code = run(["upload", name, "--event", "event.toml", "--ticket", ticket, "--json"])
        assert code == 0, capsys.readouterr()
        (told,) = json.loads(capsys.readouterr().out)["files"]
        return told

    def collect():
        code = run(["event", "run", "event.toml", "--destination", "destination.toml", "--once"])
        capsys.readouterr()
        return code, read_standing(world.folder / "collected")

    def later(at_s):
        # Witnesses sign no more once their clock has been put forward, until they start again.
        for i in range(4):
            world.stop_witness(i)
        put_to(at_s)
        world.start_witnesses()

    event = world.event
    with ExitStack() as held:
        for name in ("north", "south"):
            run_bistro(world, name, held)
        first, second = (committed(world, f"{i}.txt", world.services[0]) for i in range(2))
        spent_s = time.time()
        # Each service has its own count: all that one of them would say no to, another one takes.
        assert world.commit(world.services[0], bytes(32)).status == 403
        until(lambda: time.time() > spent_s + 2, "a later second")
        third, fourth = (committed(world, f"{i}.txt", world.services[1]) for i in range(2, 4))
        (world.folder / "honest.txt").write_bytes(b"of somebody else")
        honest = upload("honest.txt", 2)
        later(event.latest_s + 2)
        for i in (2, 3):
            assert upload(f"{i}.txt", 1)["outcome"] == "in time"
        code, found = until(
            lambda: (now := collect())[1].collected == 3 and now, "that all three are collected"
        )
        assert (code, found.unread, found.never_came) == (1, (), 0)
        later(event.collect_until_s + 3)
        code, found = collect()
        assert (found.collected, found.superseded, found.never_came) == (1, 2, 2)
        assert (code, found.missing, found.lies) == (0, {}, ())
    with reading(str(world.folder / "collected" / "register"), event.id.hex()) as rows:
        said = {row.entry: (row.word, row.why, row.is_logged) for row in rows}
    assert said[bytes.fromhex(honest["entry"])] == (COLLECTED, "", True)
    assert {said[first], said[second]} == {(REFUSED, NEVER_CAME, True)}
    # In the same second the greater entry is the later one.
    ((word, instead, _),) = {said[third], said[fourth]}
    assert (word, bytes.fromhex(instead) in (first, second)) == (SUPERSEDED, True)
    assert run(["event", "status", "destination.toml"]) == 0
    assert "of these never arrived" in capsys.readouterr().out
