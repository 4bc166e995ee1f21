"""A destination that has lost something goes on: nothing is lost, or what is lost is named."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack

import pytest
from instances import lost_destinations
from instances.bistros import NAMES
from instances.events import key_of
from instances.lost_destinations import Collecting, collecting_world, remove
from instances.timestamping import until

from datacollect.bistro.destination.missing import LOST_SINCE
from datacollect.bistro.log_service.server import mirroring
from datacollect.bistro.log_service.server.verdict_log import VerdictLog
from datacollect.bistro.mirror.mirror import mirror_once
from datacollect.commands.main import run

FILES = {name: lost_destinations.FILES[name] for name in ("a.txt", "b.txt", "c.txt")}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The world, with what was there today and yesterday, and mirrors of both."""
    with collecting_world(tmp_path_factory.mktemp("world")) as world, ExitStack() as ending:
        yield world, ending


@pytest.fixture
def collecting(made, capsys):
    """What was there today, in its place."""
    world, ending = made
    found = Collecting(world, capsys)
    today, kept = world.folder / "today", getattr(world, "bistros", None)
    found.bistros = kept if kept is not None else {}
    if kept is None:
        world.bistros = found.bistros
        ending.callback(lambda: [stack.close() for stack in found.bistros.values()])
        for name in NAMES:
            found.start_bistro(name)
        begin(found)
    if found.into.exists():
        shutil.rmtree(found.into)
    shutil.copytree(today, found.into)
    return found


def begin(found: Collecting) -> None:
    found.hand_in("a.txt", "b.txt")
    assert found.collect(2)["collected"] == 2
    shutil.copytree(found.into, found.folder / "yesterday")
    mirrored(found, "older")
    found.hand_in("c.txt")
    status = found.collect(3)
    assert status["collected"] == 3
    assert found.collected_files() == FILES
    mirrored(found, "mirror")
    # What people hold: proofs that each was collected.
    with serving(found):
        found.hand_in(*FILES)
    for path in [*found.folder.glob("*.receipt.json")]:
        assert json.loads(path.read_text())["collected"], path
        (found.folder / "receipts").mkdir(exist_ok=True)
        shutil.copy(path, found.folder / "receipts" / path.name)
    shutil.copytree(found.into, found.folder / "today")


def serving(found: Collecting):
    """Let the log of verdicts be read, as `event run` does while it runs."""
    return found.world.verdict_log(key_of("verdicts"))


def mirrored(found: Collecting, name: str) -> None:
    """Copy all logs while that of verdicts is served."""
    verdicts = found.folder / "verdicts"
    shutil.rmtree(verdicts, ignore_errors=True)
    shutil.copytree(found.into / "verdicts", verdicts)
    with serving(found):
        standing = mirror_once(found.folder / "event.toml", found.folder / name)
    assert standing.exit_code == 0, standing


def lose_disk(found: Collecting) -> None:
    remove(found.into)


def restore_yesterday(found: Collecting) -> None:
    remove(found.into)
    shutil.copytree(found.folder / "yesterday", found.into)


def restore_register(found: Collecting) -> None:
    remove(found.into / "register")
    shutil.copytree(found.folder / "yesterday" / "register", found.into / "register")


def move(found: Collecting) -> None:
    """Nothing lies any more where the register says."""
    found.into.rename(found.folder / "elsewhere")
    file = found.folder / "destination.toml"
    file.write_text(file.read_text().replace('"collected"', '"elsewhere"'))
    found.into = found.folder / "elsewhere"


def lose_witness(found: Collecting) -> None:
    lose_disk(found)
    found.world.stop_witness(1)
    remove(found.folder / "w1")
    found.world.start_witness(1)


def lose_service(found: Collecting) -> None:
    service = found.world.services[0]
    found.world.kill(service)
    remove(service.folder)
    lose_disk(found)
    arguments = ["event", "recover", "event.toml", "--service", "s0.toml", "--from", "mirror"]
    assert found.command(*arguments)[0] == 0
    found.world.start(0)


LOSSES = {
    "nothing": lambda _: None,
    "disk": lose_disk,
    "database": lambda found: remove(found.into / "register"),
    "files": lambda found: remove(found.into / "files"),
    "one file": lambda found: remove(next(found.into.glob("files/*/b.txt"))),
    "log of verdicts": lambda found: remove(found.into / "verdicts"),
    "segments": lambda found: remove(found.into / "segments"),
    "database and log": lambda found: [remove(found.into / n) for n in ("register", "verdicts")],
    "yesterday's copy": restore_yesterday,
    "yesterday's database": restore_register,
    "moved": move,
    "disk and a witness": lose_witness,
    "disk and the service": lose_service,
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_all_is_collected_again_and_nobody_is_blamed(collecting, loss):
    before = collecting.status()
    file = collecting.folder / "destination.toml"
    given = file.read_text()
    try:
        LOSSES[loss](collecting)
        code, found = collecting.recover()
        assert (code, found["log"]["goes_on"]) == (0, True), found
        assert {each["outcome"] for each in found["log"]["witnesses"]} == {"signs"}
        assert (found["n_said"], found["log"]["size"]) == (3, before["n_verdicts"])
        status = collecting.collect(3)
        # A round more, in which what is covered is told, and nothing is said anew.
        collecting.run_once()
        status = collecting.status()
    finally:
        file.write_text(given)
    assert collecting.collected_files() == FILES
    assert {each["kind"] for each in status["lacking"]} == {"deadline"}
    assert (status["collected"], status["files_here"], status["lies"]) == (3, 3, [])
    assert status["n_verdicts"] == before["n_verdicts"]
    if loss == "moved":
        remove(collecting.into)


@pytest.mark.slow
def test_without_recovery_no_verdict_is_published(collecting, monkeypatch):
    """A log that begins again is none that witnesses sign."""
    monkeypatch.setattr(VerdictLog.record, "__defaults__", (2.0,))
    lose_disk(collecting)
    collecting.run_once()
    status = collecting.status()
    assert status["n_verdicts"] == 0


@pytest.mark.slow
def test_what_only_a_silent_bistro_held_is_named_and_comes_with_it(collecting):
    for name in NAMES:
        collecting.stop_bistro(name)
    try:
        lose_disk(collecting)
        assert collecting.recover()[0] == 0
        collecting.run_once()
        status = collecting.status()
    finally:
        for name in NAMES:
            collecting.start_bistro(name)
    lacking = {each["kind"]: each for each in status["lacking"]}
    assert (lacking[LOST_SINCE]["n"], lacking[LOST_SINCE]["who"]) == (3, "the destination")
    assert (
        "`datacollect event run` continues where bistros still hold it"
        in (lacking[LOST_SINCE]["remedy"])
    )
    # They are silent, and not blamed for what they were told to let go.
    assert {each["who"] for each in status["lacking"] if each["kind"] == "silent"} == {*NAMES}
    assert status["lies"] == []
    status = collecting.collect(3)
    assert LOST_SINCE not in {each["kind"] for each in status["lacking"]}
    assert collecting.collected_files() == FILES


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_only_a_bistro_held_that_is_lost_as_well_is_named(collecting, name):
    """The other half of the files comes again; nobody is blamed for what both have lost."""
    other = next(each for each in NAMES if each != name)
    here = {path.parent.name for path in collecting.into.glob("files/*/*")}
    collecting.stop_bistro(name)
    try:
        lose_disk(collecting)
        assert collecting.recover()[0] == 0
        collecting.run_once()
        status = collecting.status()
    finally:
        collecting.start_bistro(name)
    found = {path.parent.name for path in collecting.into.glob("files/*/*")}
    lacking = {each["kind"]: each for each in status["lacking"]}
    assert found <= here
    assert {*lacking.get(LOST_SINCE, {"entries": ()})["entries"]} == here - found
    assert other not in {each["who"] for each in status["lacking"]}
    assert status["lies"] == []


@pytest.mark.slow
def test_folder_that_the_destination_writes_itself_is_a_mirror(collecting):
    lose_disk(collecting)
    code, found = collecting.recover(mirror="own")
    assert (code, found["log"]["size"], found["log"]["goes_on"]) == (0, 3, True)
    assert collecting.collect(3)["collected"] == 3
    assert collecting.collected_files() == FILES


@pytest.mark.slow
def test_verdicts_that_no_mirror_has_come_from_the_receipts_of_people(collecting):
    lose_disk(collecting)
    code, found = collecting.recover(mirror="older")
    log = found["log"]
    assert (code, log["is_dead"], log["size"]) == (1, True, 2)
    assert {each["outcome"] for each in log["witnesses"]} == {"has signed more"}
    code, found = collecting.recover("--receipts", "receipts", mirror="older")
    log = found["log"]
    assert (code, log["goes_on"], log["size"], log["n_filled"]) == (0, True, 3, 1)
    assert (found["n_proved"], found["n_beside"]) == (3, 0)
    assert collecting.collect(3)["collected"] == 3
    assert collecting.collected_files() == FILES


@pytest.mark.slow
def test_destination_whose_log_is_dead_collects_and_names_what_it_cannot_prove(
    collecting, monkeypatch
):
    monkeypatch.setattr(VerdictLog.record, "__defaults__", (4.0,))
    # Its mirror holds more, too, and takes nothing: the log goes on without it.
    monkeypatch.setattr(mirroring, "AWAY_S", 0.2)
    lose_disk(collecting)
    assert collecting.recover(mirror="older")[0] == 1

    def told():
        # Until witnesses have said what is the matter.
        collecting.run_once()
        status = collecting.status()
        texts = (each["text"] for each in status["lacking"] if each["kind"] == "not published")
        return status if any("signed 3 entries" in text for text in texts) else None

    status = until(told, "what is the matter")
    assert collecting.collected_files() == FILES
    (lack,) = (each for each in status["lacking"] if each["kind"] == "not published")
    assert lack["n"] >= 1
    # However long it runs, witnesses sign nothing more.
    assert "signed 3 entries of this log, and its folder holds 2" in lack["text"]
    assert "event recover" in lack["remedy"]
    assert status["n_verdicts"] == 2
    assert status["lies"] == []


@pytest.mark.slow
def test_receipts_that_prove_nothing_are_named(collecting, capsys):
    folder = collecting.folder / "odd"
    folder.mkdir()
    (folder / "x.receipt.json").write_text("{")
    tree = json.loads((collecting.folder / "receipts" / "c.txt.receipt.json").read_text())
    other = json.loads((collecting.folder / "receipts" / "a.txt.receipt.json").read_text())
    (folder / "y.receipt.json").write_text(json.dumps(tree | {"collected": other["collected"]}))
    capsys.readouterr()
    arguments = ["event", "recover", "event.toml", "--destination", "destination.toml"]
    assert run([*arguments, "--receipts", "odd"]) == 0
    said = capsys.readouterr()
    assert "x.receipt.json" in said.err + said.out
    assert "y.receipt.json: the receipt does not prove that" in said.err + said.out
    assert "0 are proved by receipts" in said.out
