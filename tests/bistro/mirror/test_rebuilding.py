"""A log made again from mirrors proves what it has proved, and goes on where witnesses let it."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from hashlib import sha256

import pytest
from instances.custody import SignedLog, commitment_of, custody_event, service_log, verdict_log
from instances.events import key_of
from instances.timestamping import World, until

from datacollect.bistro.formats.custody.verdicts import COLLECTED, Verdict
from datacollect.bistro.formats.receipt.counted_time import checkpoint_time
from datacollect.bistro.formats.receipt.receipt import Receipt, read_acknowledgement
from datacollect.bistro.log_service.log_copy import LogCopy, folder_name
from datacollect.bistro.log_service.proving import proof_of
from datacollect.bistro.log_service.store import LogStore
from datacollect.bistro.mirror import rebuilding
from datacollect.bistro.mirror.copying import LogCopying
from datacollect.bistro.mirror.mirror import EVENT_FILE, mirror_once
from datacollect.bistro.mirror.rebuilding import AHEAD, OTHER, SIGNS, SILENT, Rebuilt, WitnessSaid
from datacollect.commands.main import run
from datacollect.errors import ProblemError
from datacollect.files.held_folder import Held

EVENT = custody_event()
LOG = EVENT.services[0].log


def leaf(i: int, salt: str = "") -> bytes:
    return sha256(f"{salt}{i}".encode()).digest() * (2 if i % 3 else 1)


def log_of(sizes, salt_from: int = 10**9):
    leaves = [leaf(i, "other" if i >= salt_from else "") for i in range(sizes[-1])]
    return service_log(EVENT, 0, leaves, [(size, 1000 + 7 * i) for i, size in enumerate(sizes)])


def copied(folder, log, key=LOG) -> LogCopy:
    copy = LogCopy(folder, key, EVENT)
    LogCopying(copy, EVENT, is_mirror=True).take(log)
    return copy


def store_in(folder) -> LogStore:
    return LogStore(Held(folder), LOG.text)


def written(folder, copy) -> None:
    with closing(store_in(folder)) as store:
        rebuilding.write_log(copy, EVENT, key_of("s0"), store)


def require_proves(folder, log) -> None:
    """Each entry has its index, its proof and its least time, as the lost log has proved them."""
    with closing(store_in(folder)) as store:
        for index, entry in enumerate(log.entries):
            assert store.index_of(entry) == index
            if index % 50 in (0, 49) or index in log.sizes():
                found, before = proof_of(index, store), log.proof(entry)
                assert found.includes(entry)
                times = [checkpoint_time(proof.signed, EVENT).time_s for proof in (found, before)]
                assert times[0] == times[1] is not None
        assert store.published().decode() == log.head().decode()
        kept = store.kept()
        assert (kept.n_entries, kept.published_size) == (len(log.entries), len(log.entries))


def test_log_made_again_proves_the_same_times(tmp_path):
    log = log_of([0, 3, 200, 256, 700])
    written(tmp_path / "log", copied(tmp_path / "copy", log))
    require_proves(tmp_path / "log", log)


@pytest.mark.slow
def test_older_folder_is_brought_up_to_date_and_again_nothing_changes(tmp_path):
    written(tmp_path / "log", copied(tmp_path / "old", log_of([0, 3, 200])))
    log = log_of([0, 3, 200, 256, 700])
    copy = copied(tmp_path / "copy", log)
    for _ in range(2):
        written(tmp_path / "log", copy)
        require_proves(tmp_path / "log", log)
    # A mirror that is behind takes nothing away.
    written(tmp_path / "log", copied(tmp_path / "behind", log_of([0, 3])))
    require_proves(tmp_path / "log", log)


def test_folder_with_other_entries_is_not_touched(tmp_path):
    other = log_of([3, 150], salt_from=100)
    written(tmp_path / "log", copied(tmp_path / "other", other))
    with pytest.raises(ProblemError, match="holds another entry 100 than mirrors do"):
        written(tmp_path / "log", copied(tmp_path / "copy", log_of([3, 200])))
    require_proves(tmp_path / "log", other)


def mirror_of(folder, log, key=LOG) -> str:
    folder.mkdir()
    (folder / EVENT_FILE).touch()
    copied(folder / folder_name(key), log, key)
    return str(folder)


def gathered(folder, *mirrors) -> LogCopy:
    copy = LogCopy(folder, LOG, EVENT)
    rebuilding.gather(copy, EVENT, mirrors)
    return copy


def test_what_any_mirror_holds_counts(tmp_path):
    mirrors = [mirror_of(tmp_path / f"{n}", log_of([3, n])) for n in (5, 300, 200)]
    damaged = tmp_path / "200" / folder_name(LOG) / "tile/entries/000.p/200"
    damaged.write_bytes(b"damaged")
    assert gathered(tmp_path / "copy", "http://127.0.0.1:1/", *mirrors).size == 300
    with pytest.raises(ProblemError, match="no mirror holds the log"):
        gathered(tmp_path / "none", "http://127.0.0.1:1/")
    fork = mirror_of(tmp_path / "fork", log_of([3, 400], salt_from=50))
    with pytest.raises(ProblemError, match="fork: shows another log than others do: "):
        gathered(tmp_path / "forked", *mirrors, fork)


def test_receipts_fill_what_no_mirror_has_as_far_as_nothing_is_missing(tmp_path):
    said = [Verdict(EVENT.id, leaf(3 * i)[:32], COLLECTED).data for i in range(8)]
    heads = [(5, 1000), (7, 1001), (8, 1002)]
    whole = SignedLog(EVENT, EVENT.verdicts, "dest", said, heads)
    before = verdict_log(EVENT, said[:5])
    for given, n_filled in (([5, 6, 7], 3), ([5, 6], 2), ([5], 0), ([6, 7], 0), ([], 0)):
        copy = copied(tmp_path / f"{given}", before, EVENT.verdicts)
        proofs = {said[i]: whole.proof(said[i]) for i in given}
        # Each proof is by the least checkpoint that holds its entry.
        assert [proof.signed.checkpoint.size for proof in proofs.values()] == [
            8 if i == 7 else 7 for i in given
        ]
        assert rebuilding.fill(copy, proofs, EVENT) == n_filled
        held = LogCopy(copy.folder, EVENT.verdicts, EVENT)
        assert [*held.leaves()] == said[: 5 + n_filled]


def outcome_of(*outcomes) -> Rebuilt:
    said = tuple(WitnessSaid(f"w{i}", each, "") for i, each in enumerate(outcomes))
    return Rebuilt("log", 0, 5, 0, said, quorum=3, n_believed=2)


OUTCOMES = {
    # Goes on, is dead.
    (SIGNS, SIGNS, SIGNS, SIGNS): (True, False),
    (SIGNS, SIGNS, SIGNS, AHEAD): (True, False),
    (SIGNS, SIGNS, AHEAD, AHEAD): (False, True),
    (SIGNS, SIGNS, OTHER, AHEAD): (False, True),
    (SIGNS, SIGNS, SIGNS, SILENT): (True, False),
    (SIGNS, SIGNS, SILENT, AHEAD): (False, False),
    (SILENT, SILENT, SILENT, SILENT): (False, False),
}


@pytest.mark.parametrize("outcomes", OUTCOMES, ids=" ".join)
def test_quorum_decides_whether_a_log_goes_on(outcomes):
    found = outcome_of(*outcomes)
    assert (found.goes_on, found.is_dead) == OUTCOMES[outcomes]


# With everybody there ---------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A service with 40 entries, all proved, and a mirror of them; four witnesses."""
    with World(tmp_path, admission="open") as made:
        monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
        made.start_witnesses()
        service = made.start(0)
        for j in range(4):
            made.commit(service, some(10 * j, 10))
            made.proof(service, some(10 * j, 1)[0])
        mirror_once(tmp_path / "event.toml", tmp_path / "mirror")
        shutil.copytree(service.folder, tmp_path / "yesterday")
        shutil.copytree(tmp_path / "w0", tmp_path / "yesterday's w0")
        yield made


def some(first: int, n: int) -> list[bytes]:
    return [sha256(b"%d" % i).digest() for i in range(first, first + n)]


def recovered(world, capsys, *more: str) -> tuple[int, dict]:
    capsys.readouterr()
    code = run(
        [
            *("event", "recover", str(world.folder / "event.toml"), "--json"),
            *("--service", str(world.services[0].file)),
            *("--from", str(world.folder / "mirror"), *more),
        ]
    )
    return code, json.loads(capsys.readouterr().out or "{}")


def require_goes_on(world, n: int, proofs: dict) -> None:
    service = world.start(0)
    for entry, proof in proofs.items():
        world.require_proves(service, entry, proof)
    (new,) = some(1000 + n, 1)
    assert world.commit(service, new).json["index"] == n
    assert checkpoint_time(world.proof(service, new).signed, world.event).time_s is not None


def proofs_of(world, n: int) -> dict:
    return {entry: world.proof(world.services[0], entry) for entry in some(0, n)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "lost",
    ["disk", "yesterday's copy", "moved", "disk and a witness", "disk, and a witness of yesterday"],
)
def test_service_goes_on_after_a_loss(world, capsys, lost):
    service, n = world.services[0], 40
    if "yesterday" in lost:
        world.commit(service, some(40, 5))
        world.proof(service, some(40, 1)[0])
        mirror_once(world.folder / "event.toml", world.folder / "mirror")
        n = 45
    proofs = proofs_of(world, n)
    world.kill(service)
    if lost == "moved":
        service.folder.rename(world.folder / "elsewhere")
        service.file.write_text(service.file.read_text().replace('"log0"', '"elsewhere"'))
    else:
        shutil.rmtree(service.folder)
    if lost == "yesterday's copy":
        shutil.copytree(world.folder / "yesterday", service.folder)
        # By itself it takes nothing, for witnesses tell.
        world.start(0)
        until(lambda: "restored from an old copy" in service.said(), "what is missing")
        world.kill(service)
    if "witness" in lost:
        world.stop_witness(0)
        shutil.rmtree(world.folder / "w0")
        if "yesterday" in lost:
            shutil.copytree(world.folder / "yesterday's w0", world.folder / "w0")
        world.start_witness(0)
    code, found = recovered(world, capsys)
    assert (code, found["log"]["size"], found["log"]["goes_on"]) == (0, n, True)
    assert {each["outcome"] for each in found["log"]["witnesses"]} == {SIGNS}
    assert found["log"]["n_before"] == {"yesterday's copy": 40, "moved": 40}.get(lost, 0)
    require_goes_on(world, n, proofs)


@pytest.mark.slow
@pytest.mark.parametrize("n_ahead", [1, 2])
def test_entries_that_witnesses_signed_and_nobody_holds_are_named(world, capsys, n_ahead):
    """Two more entries, signed by one or two of four; then the disk is lost, and the mirror's is
    older."""
    service, proofs = world.services[0], proofs_of(world, 40)
    for i in range(n_ahead, 4):
        world.stop_witness(i)
    world.commit(service, some(40, 2))
    until(lambda: world.get(service, "/tile/entries/000.p/42").status == 200, "the next checkpoint")
    # Their answers come before the service is killed.
    until(lambda: all(signed_42(world, i) for i in range(n_ahead)), "a signature")
    world.kill(service)
    shutil.rmtree(service.folder)
    for i in range(n_ahead, 4):
        world.start_witness(i)
    code, found = recovered(world, capsys)
    log = found["log"]
    outcomes = [each["outcome"] for each in log["witnesses"]]
    assert outcomes == [AHEAD] * n_ahead + [SIGNS] * (4 - n_ahead)
    assert "entries 40 to 41 are missing here" in log["witnesses"][0]["text"]
    assert (code, log["is_dead"]) == ((0, False) if n_ahead == 1 else (1, True))
    if n_ahead == 1:
        require_goes_on(world, 40, proofs)
    else:
        # It takes nothing more, and proves what it has proved.
        world.start(0)
        until(lambda: "has signed 42 entries" in service.said(), "what is missing")
        for entry, proof in proofs.items():
            world.require_proves(service, entry, proof)


@pytest.mark.slow
def test_people_whose_entries_nobody_else_has_bring_a_dead_log_back(world, capsys):
    """Of three entries two witnesses have signed; each person has the service's word alone."""
    service, proofs = world.services[0], proofs_of(world, 40)
    for i in (2, 3):
        world.stop_witness(i)
    receipts = world.folder / "receipts"
    receipts.mkdir()
    for name in "abc":
        commitment = commitment_of(world.event, name)
        answer = world.commit(service, commitment.entry)
        word = read_acknowledgement(answer.body, world.event.services[0].log.name)
        file = receipts / f"{name}.receipt.json"
        file.write_bytes(Receipt(commitment, acknowledgements=(word,)).data)
    until(lambda: all(signed(world, i, 43) for i in (0, 1)), "a signature")
    world.kill(service)
    shutil.rmtree(service.folder)
    world.start_witnesses(2, 3)
    code, found = recovered(world, capsys)
    assert (code, found["log"]["is_dead"]) == (1, True)
    # One of them is missing: what stands behind it has no place.
    (receipts / "b.receipt.json").rename(world.folder / "b")
    code, found = recovered(world, capsys, "--receipts", str(receipts))
    assert (code, found["log"]["size"], found["log"]["n_filled"]) == (1, 41, 1)
    (world.folder / "b").rename(receipts / "b.receipt.json")
    code, found = recovered(world, capsys, "--receipts", str(receipts))
    assert (code, found["log"]["size"], found["log"]["n_filled"]) == (0, 43, 3)
    assert {each["outcome"] for each in found["log"]["witnesses"]} == {SIGNS}
    require_goes_on(world, 43, proofs)


def signed_42(world, i: int) -> bool:
    return signed(world, i, 42)


def signed(world, i: int, size: int) -> bool:
    _, store = world._witnesses[i]
    return any(seen.size == size for seen in store.seen().values())


@pytest.mark.slow
def test_what_cannot_be_recovered_says_what_to_do(world, capsys, tmp_path):
    service = world.services[0]
    command = ["event", "recover", str(tmp_path / "event.toml")]
    assert run(command) == 2
    assert "name one file: --destination, or --service" in capsys.readouterr().err
    one = [*command, "--service", str(service.file)]
    assert run([*one, "--from", str(tmp_path / "mirror")]) == 2
    assert (
        "another process is using this folder; stop that process first" in capsys.readouterr().err
    )
    world.kill(service)
    assert run([*one, "--receipts", "none"]) == 2
    assert "none: no such folder; name the folder of the receipts" in capsys.readouterr().err
    # Nothing was lost: nothing is needed.
    assert run(one) == 0
    assert "the log can continue: start its server" in capsys.readouterr().out
    shutil.rmtree(service.folder)
    assert run(one) == 2
    assert "no such folder; name a mirror of the log with --from" in capsys.readouterr().err
    for i in range(4):
        world.stop_witness(i)
    assert run([*one, "--from", str(tmp_path / "mirror")]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "is silent" in said
    assert "3 witnesses must answer; run this again" in said
