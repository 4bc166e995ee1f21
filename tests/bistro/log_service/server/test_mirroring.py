"""No witness is asked for a checkpoint before a mirror's disk has its entries, or has none."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import threading
import time
from contextlib import closing
from hashlib import sha256
from random import Random
from types import SimpleNamespace

import pytest
from instances.custody import custody_event, custody_event_bytes
from instances.events import key_of, witness_names
from instances.timestamping import World, until

from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint, cosign
from datacollect.bistro.formats.log.tiles import Edge, Tile
from datacollect.bistro.formats.log.witnessing import AddCheckpoint
from datacollect.bistro.http.config import Listening, ServiceConfig
from datacollect.bistro.http.exchange import Asked
from datacollect.bistro.log_service import log_copy
from datacollect.bistro.log_service.log_copy import LogCopy, folder_name
from datacollect.bistro.log_service.server import mirroring
from datacollect.bistro.log_service.server.sequencer import Sequencer
from datacollect.bistro.log_service.store import LogStore
from datacollect.commands.main import run
from datacollect.errors import ProblemError
from datacollect.files.held_folder import Held

EVENT = custody_event()
# Of the destination: who keeps it hands in without tickets.
LOG, KEY = EVENT.verdicts, key_of("dest")
WITHIN_S = 60.0


def some(first: int, n: int) -> list[bytes]:
    return [sha256(b"%d" % i).digest() for i in range(first, first + n)]


def held_on_disk(mirror, log=LOG) -> int:
    """Return how many entries a mirror holds, by its own files alone; -1: none are proved."""
    place = mirror / folder_name(log)
    try:
        head = SignedCheckpoint.parse((place / log_copy.PUSHED).read_bytes())
    except FileNotFoundError:
        return -1
    except NotADirectoryError:
        return -1
    size = head.checkpoint.size
    assert head.is_of(log)
    edge = Edge.read(size, lambda tile: (place / tile.path).read_bytes())
    assert edge.root() == head.checkpoint.root
    for index in range(-(-size // 256)):
        bundle = Tile(-1, index, min(size - 256 * index, 256))
        assert (place / bundle.path).stat().st_size > 0
    return size


class Keeper:
    """A log with fake witnesses that look at mirrors whenever they are asked."""

    def __init__(self, folder, mirrors) -> None:
        self.mirrors, self.said = mirrors, []
        # For each request: the size, and what mirrors held just then.
        self.asked: list[tuple[int, int]] = []
        self._folder = folder

    async def ask(self, url: str, body: bytes):
        asked = AddCheckpoint.parse(body)
        held = max(map(held_on_disk, self.mirrors), default=-1)
        self.asked.append((asked.signed.checkpoint.size, held))
        name = next(n for n in witness_names() if n in url)
        line = cosign(asked.signed.note.text, int(time.time()), name, key_of(name))
        return 200, line.line.encode()

    async def run(self, work) -> None:
        config = ServiceConfig(
            EVENT,
            custody_event_bytes(),
            KEY,
            Listening(("127.0.0.1", 0), None),
            self._folder,
            0,
            (),
            tuple(self.mirrors),
        )
        with closing(LogStore(Held(self._folder), LOG.text)) as store:
            self.log = Sequencer(config, store, self.ask, self.said.append)
            self.log.start()
            try:
                await work(self)
            finally:
                await self.log.stop()

    async def published(self, entries) -> None:
        """Have entries logged, and wait until they are published."""
        while (reply := await self.log.record(entries)).status != 200:
            await asyncio.sleep(0.01)
        stop = 1 + max(row["index"] for row in json.loads(reply.body))
        end_s = time.monotonic() + WITHIN_S
        while self.log.published_size < stop:
            assert time.monotonic() < end_s, self.said
            await asyncio.sleep(0.01)

    async def status(self) -> dict:
        reply = await self.log.ask(Asked("get", path="/mirrored"))
        return json.loads(reply.body) if reply.status == 200 else {}


def run_log(folder, mirrors, work) -> Keeper:
    keeper = Keeper(folder, mirrors)
    asyncio.run(keeper.run(work))
    return keeper


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """A checkpoint comes as soon as it may, and what fails is tried again soon."""
    monkeypatch.setattr("datacollect.bistro.log_service.core.CHECKPOINT_S", 0.02)
    monkeypatch.setattr(mirroring, "AGAIN_S", 0.02)


@pytest.fixture
def names_trouble(monkeypatch):
    """Nobody is away before he has said why, however long that takes; from then on at once."""
    clock = [0.0]

    def note(mirror, trouble):
        vars(mirror)["why"] = trouble
        clock[0] = 1e9 if trouble else 0.0

    said = property(lambda mirror: vars(mirror)["why"], note)
    monkeypatch.setattr(mirroring.MirrorFolder, "trouble", said, raising=False)
    fake = SimpleNamespace(monotonic=lambda: clock[0], time=time.time)
    monkeypatch.setattr(mirroring, "time", fake)


@pytest.fixture
def mirror(tmp_path):
    (tmp_path / "mirror").mkdir()
    return tmp_path / "mirror"


def test_mirror_holds_all_entries_before_any_witness_is_asked(tmp_path, mirror):
    async def work(keeper):
        for i in range(5):
            await keeper.published(some(100 * i, 100))
        assert (await keeper.status()) == {"held": 500, "mirrors": 1, "away_since_s": None}

    keeper = run_log(tmp_path / "log", [mirror], work)
    assert {size for size, _ in keeper.asked} >= {0, 500}
    assert all(held >= size for size, held in keeper.asked), keeper.asked
    # What a quorum has signed is a mirror's copy like any other.
    copy = LogCopy(mirror / folder_name(LOG), LOG, EVENT)
    assert [*copy.leaves()] == some(0, copy.size)
    assert copy.size in copy.sizes()
    assert keeper.said == []


def test_mirror_has_what_proves_a_time_before_anybody_is_shown_it(tmp_path, mirror, monkeypatch):
    """Else an entry would stand there later, once the log was made again from the mirror."""
    seen: list[bool] = []
    real = LogStore.publish

    def publish(store, action):
        held = LogCopy(mirror / folder_name(LOG), LOG, EVENT).checkpoint(action.size)
        seen.append(held is not None)
        real(store, action)

    monkeypatch.setattr(LogStore, "publish", publish)

    async def work(keeper):
        for i in range(3):
            await keeper.published(some(10 * i, 10))

    run_log(tmp_path / "log", [mirror], work)
    assert seen
    assert all(seen)


def test_log_goes_on_where_it_has_stopped_and_takes_a_new_mirror(tmp_path, mirror):
    async def first(keeper):
        await keeper.published(some(0, 300))

    async def then(keeper):
        await keeper.published(some(300, 1))
        await keeper.published(some(301, 1))

    run_log(tmp_path / "log", [mirror], first)
    (tmp_path / "new").mkdir()
    keeper = run_log(tmp_path / "log", [tmp_path / "new", tmp_path / "away"], then)
    assert all(held >= size for size, held in keeper.asked)
    assert held_on_disk(tmp_path / "new") == 302
    assert not (tmp_path / "away").exists()
    # It has the checkpoints of before as well: by these the least times are proved.
    with closing(LogStore(Held(tmp_path / "log"), LOG.text)) as store:
        sizes = store.published_sizes(0, 4096)
    copy = LogCopy(tmp_path / "new" / folder_name(LOG), LOG, EVENT)
    assert {*sizes[:-1]} <= {*copy.sizes()}
    assert len(sizes) > 2


def test_without_mirrors_nothing_is_said_of_them(tmp_path):
    async def work(keeper):
        assert await keeper.status() == {}

    assert run_log(tmp_path / "log", [], work).said == []


@pytest.mark.slow
def test_mirror_that_is_away_holds_the_log_up_for_a_while_only(tmp_path, mirror, monkeypatch):
    async def work(keeper):
        monkeypatch.setattr(mirroring, "AWAY_S", WITHIN_S)
        await keeper.published(some(0, 10))
        mirror.rename(tmp_path / "gone")
        monkeypatch.setattr(mirroring, "AWAY_S", 0.5)
        began_s = time.monotonic()
        await keeper.published(some(10, 10))
        assert time.monotonic() - began_s >= 0.5
        assert (await keeper.status())["away_since_s"] is not None
        assert (await keeper.status())["held"] == 10
        # Nobody waits once more while it is away.
        monkeypatch.setattr(mirroring, "AWAY_S", 10 * WITHIN_S)
        await keeper.published(some(20, 10))
        # Nothing was written to where it was.
        assert not mirror.exists()
        (tmp_path / "gone").rename(mirror)
        end_s = time.monotonic() + WITHIN_S
        at = 30
        while (await keeper.status())["away_since_s"] is not None:
            assert time.monotonic() < end_s, keeper.said
            await keeper.published(some(at, 1))
            at += 1
        await keeper.published(some(at, 10))

    keeper = run_log(tmp_path / "log", [mirror], work)
    assert "no mirror has copied new entries for 0.5 s: " in keeper.said[0]
    assert "the log continues without" in keeper.said[0]
    assert "holds all" in keeper.said[1]
    assert len(keeper.said) == 2
    last, held = keeper.asked[-1]
    assert held >= last > 30


@pytest.mark.slow
def test_disk_that_hangs_holds_up_neither_the_log_nor_its_end(tmp_path, mirror, monkeypatch):
    monkeypatch.setattr(mirroring, "AWAY_S", 0.3)
    hanging = threading.Event()
    monkeypatch.setattr(LogCopy, "push", lambda *_: hanging.wait(WITHIN_S))

    async def work(keeper):
        await keeper.published(some(0, 10))

    began_s = time.monotonic()
    keeper = run_log(tmp_path / "log", [mirror], work)
    assert time.monotonic() - began_s < WITHIN_S / 2
    assert "0.3 s: hangs" in keeper.said[0]
    hanging.set()


@pytest.mark.slow
@pytest.mark.usefixtures("names_trouble")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "full"), "no room is left on its disk"),
        (ValueError("nobody expects it"), "ValueError: nobody expects it"),
    ],
    ids=["full", "surprise"],
)
def test_trouble_of_a_mirror_is_named_and_made_up_for(tmp_path, mirror, monkeypatch, error, words):
    is_full = True
    real = log_copy.name_durably

    def named(beside, path, **options):
        if is_full and mirror in path.parents:
            raise error
        return real(beside, path, **options)

    monkeypatch.setattr(log_copy, "name_durably", named)

    async def work(keeper):
        nonlocal is_full
        await keeper.published(some(0, 10))
        is_full = False
        at, end_s = 10, time.monotonic() + WITHIN_S
        while len(keeper.said) < 2:
            assert time.monotonic() < end_s
            await keeper.published(some(at, 1))
            at += 1

    keeper = run_log(tmp_path / "log", [mirror], work)
    assert words in keeper.said[0]
    assert "holds all" in keeper.said[1]


@pytest.mark.slow
@pytest.mark.usefixtures("names_trouble")
def test_mirror_that_holds_more_than_a_restored_log_says_so(tmp_path, mirror):
    async def first(keeper):
        await keeper.published(some(0, 10))
        shutil.copytree(keeper._folder, tmp_path / "old", ignore=shutil.ignore_patterns("lock"))
        await keeper.published(some(10, 10))

    async def restored(keeper):
        await keeper.published(some(50, 1))

    run_log(tmp_path / "log", [mirror], first)
    keeper = run_log(tmp_path / "old", [mirror], restored)
    assert (
        "holds 20 entries of this log, but the log here begins differently: it was"
        in keeper.said[0]
    )
    assert "run `datacollect event recover` with that mirror" in keeper.said[0]
    # What it had is not written over.
    assert held_on_disk(mirror) == 20


def test_mirror_over_http_is_none_that_is_written_to(tmp_path):
    with World(tmp_path, settings='mirrors = ["https://mirror.example"]\n') as world:
        file = world.services[0].file
    with pytest.raises(ProblemError, match="mirrors must be folders, got 'https://"):
        ServiceConfig.from_file(file)


@pytest.mark.slow
@pytest.mark.parametrize("n_signing", [1, 2, 3])
def test_nothing_is_lost_that_any_witness_has_signed(tmp_path, monkeypatch, capsys, n_signing):
    """The service is killed, its disk lost, just when some witnesses have signed its last head."""
    (tmp_path / "other").mkdir()
    with World(tmp_path, admission="open", settings='mirrors = ["other"]\n') as world:
        monkeypatch.setenv("SSL_CERT_FILE", str(world.authority))
        world.start_witnesses()
        service = world.start(0)
        world.commit(service, some(0, 10))
        proofs = {entry: world.proof(service, entry) for entry in some(0, 10)}
        for i in range(n_signing, 4):
            world.stop_witness(i)
        world.commit(service, some(10, 2))
        until(
            lambda: all(
                any(seen.size == 12 for seen in world._witnesses[i][1].seen().values())
                for i in range(n_signing)
            ),
            "signatures",
        )
        world.kill(service)
        shutil.rmtree(service.folder)
        for i in range(n_signing, 4):
            world.start_witness(i)
        command = ["event", "recover", str(tmp_path / "event.toml"), "--json"]
        command += ["--service", str(service.file), "--from", str(tmp_path / "other")]
        assert run(command) == 0
        found = json.loads(capsys.readouterr().out)["log"]
        assert found["size"] == 12
        assert {each["outcome"] for each in found["witnesses"]} == {"signs"}
        service = world.start(0)
        for entry, proof in proofs.items():
            world.require_proves(service, entry, proof)
        for i, entry in enumerate(some(10, 2)):
            assert world.proof(service, entry).index == 10 + i
        assert world.get(service, "/mirrored").json["held"] >= 12


@pytest.mark.slow
def test_service_that_is_killed_again_and_again_leaves_all_that_was_shown_in_its_mirror(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "other").mkdir()
    random = Random(1)
    with World(tmp_path, admission="open", settings='mirrors = ["other"]\n') as world:
        monkeypatch.setenv("SSL_CERT_FILE", str(world.authority))
        world.start_witnesses()
        service, log, shown = world.services[0], world.event.services[0].log, {}
        for round_ in range(5):
            world.start(0)
            for i in range(4):
                entries = some(100 * round_ + 10 * i, 10)
                world.commit(service, entries)
                if random.random() < 0.5:
                    shown[entries[-1]] = world.proof(service, entries[-1])
                time.sleep(random.random() * 0.3)
            world.kill(service)
            # Whatever any witness has signed by now is there.
            seen = [store.seen() for _, store in world._witnesses.values()]
            signed = max((each[log.name].size for each in seen if log.name in each), default=-1)
            assert held_on_disk(tmp_path / "other", log) >= signed
        shutil.rmtree(service.folder)
        command = ["event", "recover", str(tmp_path / "event.toml"), "--json"]
        command += ["--service", str(service.file), "--from", str(tmp_path / "other")]
        assert run(command) == 0
        found = json.loads(capsys.readouterr().out)["log"]
        assert {each["outcome"] for each in found["witnesses"]} == {"signs"}
        world.start(0)
        assert len(shown) > 3
        for entry, proof in shown.items():
            world.require_proves(service, entry, proof)
